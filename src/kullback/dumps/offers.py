"""What a column's name suggests: offered to the caller to check, never taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from kullback.question import is_role

# Words that people put before or behind "logprobs", by the role they mostly mean.
SPOKEN_ROLES = {
    "rollout": ("rollout", "sampler", "sampling", "engine", "behavior", "behaviour", "inference",
                "infer", "generation", "generator", "vllm", "sglang"),
    "old": ("old", "prev", "previous", "prox", "proximal"),
    "current": ("current", "cur", "new", "policy", "pi", "trainer", "train", "training", "learner",
                "model"),
    "reference": ("reference", "ref", "base", "sft", "init", "initial"),
    "teacher": ("teacher",),
    "student": ("student",),
}  # fmt: skip
ROLE_OF_WORD = {word: role for role, words in SPOKEN_ROLES.items() for word in words}

LOG_PROBS = re.compile(r"(?:^|_)(?:log_?(?:probs?|ps?|pi)|lps?)(?:_|$)")


def role_offered(column: str) -> str | None:
    """The role whose log-probs a column may be, by its name; "" if it does not say whose.

    Returns:
        None for a name that does not speak of log-probs, and is not a role's own.

    Example:
        >>> role_offered("ref_logprobs"), role_offered("lp_f32"), role_offered("logps")
        ('reference', 'f32', '')
        >>> role_offered("old"), role_offered("reward")
        ('old', None)
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", column)
    rest = LOG_PROBS.sub("_", name.lower(), count=1).strip("_")
    if rest == name.lower().strip("_"):
        return rest if rest in SPOKEN_ROLES else None
    if re.search(r"(?:^|_)top_?k?\d*(?:_|$)", rest):
        return None  # a head, not the log-prob of the token
    words = [word for word in rest.split("_") if word not in ("per", "token", "tokens")]
    roles = {ROLE_OF_WORD[word] for word in words if word in ROLE_OF_WORD}
    if len(roles) > 1:
        roles.discard("current")  # old_policy, ref_model: what they all are
    if len(roles) == 1:
        return roles.pop()
    rest = "_".join(words)
    return rest if is_role(rest) else ""


def offers(columns: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """What to write for columns that may be log-probs, as far as their names say.

    Args:
        columns: The names of columns that hold one number per token and are not read yet.
        taken: The roles that have a column already.

    Example:
        >>> offers(["old_logprobs", "new_logprobs", "reward"])
        ['if they are log-probs: --map old=old_logprobs --map current=new_logprobs']
    """
    roles = {column: role for column in columns if (role := role_offered(column)) is not None}
    claimed = Counter([*taken, *roles.values()])
    told = {name: role for name, role in roles.items() if role and claimed[role] == 1}
    maps = " ".join(f"--map {role}={name}" for name, role in told.items())
    undecided = [name for name in roles if name not in told]
    whose = f"whose is {', '.join(undecided)}? --map rollout= if the engine logged it, current= if "
    return [f"if they are log-probs: {maps}"] * bool(told) + [f"{whose}the trainer did"] * bool(
        undecided
    )
