"""Which KL is this? The question (p, q, sampler, prefixes, level): parse, print, compare."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

LEVELS = {
    "token_mean": "per token",
    "sequence_sum": "per sequence",
    "sequence_mean": "per sequence-mean",
}
UNITS = {
    "token_mean": "nats per token",
    "sequence_sum": "nats per sequence",
    "sequence_mean": "nats per token, mean over sequences",
}

_ROLE = r"[A-Za-z][A-Za-z0-9_.-]*"
_GRAMMAR = re.compile(
    rf"\s*KL\(\s*(?P<p>{_ROLE})\s*(?:\|\||‖)\s*(?P<q>{_ROLE})\s*\)"
    rf"(?:\s*~\s*(?P<sampler>{_ROLE}))?"
    rf"(?:\s+prefixes\s+(?P<prefixes>{_ROLE}))?"
    r"(?:\s+(?P<level>per\s+(?:token|sequence-mean|sequence)))?\s*"
)


def is_role(name: str) -> bool:
    """Whether a policy may be called so: a letter, then letters, digits, '_', '.', '-'."""
    return re.fullmatch(_ROLE, name) is not None


@dataclass(frozen=True, slots=True)
class Question:
    """The KL that is asked for: of what, from whose samples, at whose prefixes, at which level.

        KL(p‖q) = E_{x~p}[log p(x) − log q(x)], in nats

    ``str(question)`` leaves the defaults out and ``Question.parse`` reads it back.

    Args:
        p: The role whose expectation it is; it comes first.
        q: The other role.
        sampler: Who sampled the tokens; by default ``p``.
        prefixes: Whose prefixes the tokens stand behind: the sampler (the default) or ``p``.
            With a third sampler this decides the importance weight (see ``weight``).
        level: ``token_mean``, ``sequence_sum`` or ``sequence_mean``.

    Raises:
        ValueError: A role is no name, p and q are the same, the prefixes belong to neither the
            sampler nor p, or the level is unknown.

    Example:
        >>> question = Question("current", "reference", sampler="rollout", level="sequence_sum")
        >>> print(question)
        KL(current||reference) ~ rollout per sequence
        >>> Question.parse("KL(current‖reference) ~ rollout per sequence") == question
        True
        >>> question.weight
        'token'
    """

    p: str
    q: str
    sampler: str = ""
    prefixes: str = ""
    level: str = "token_mean"

    def __post_init__(self) -> None:
        if not self.sampler:
            object.__setattr__(self, "sampler", self.p)
        if not self.prefixes:
            object.__setattr__(self, "prefixes", self.sampler)
        for role in (self.p, self.q, self.sampler, self.prefixes):
            if not is_role(role):
                raise ValueError(
                    f"{role!r} is no role: a role is a letter, then letters, digits, '_', '.', '-'"
                )
        if self.p == self.q:
            raise ValueError(f"KL({self.p}||{self.q}) is 0 whatever the data: name two roles")
        if self.prefixes not in (self.sampler, self.p):
            raise ValueError(
                f"prefixes {self.prefixes}: sampled tokens can answer for the prefixes of their "
                f"sampler ({self.sampler}) or, with cumulative weights, of {self.p}"
            )
        if self.level not in LEVELS:
            raise ValueError(f"level {self.level!r} is none of {', '.join(LEVELS)}")

    @classmethod
    def parse(cls, text: str | Question) -> Question:
        """Read ``KL(P||Q) [~ SAMPLER] [prefixes ROLE] [per token|sequence|sequence-mean]``.

        What is a question already stays as it is.

        Raises:
            ValueError: The text is no such sentence, or what it names is no question.
        """
        if isinstance(text, Question):
            return text
        found = _GRAMMAR.fullmatch(text)
        if not found:
            raise ValueError(
                f"{text!r} is no question: write KL(P||Q) [~ SAMPLER] [prefixes ROLE] "
                "[per token | per sequence | per sequence-mean]"
            )
        words = " ".join((found["level"] or LEVELS["token_mean"]).split())
        level = next(name for name, spoken in LEVELS.items() if spoken == words)
        return cls(found["p"], found["q"], found["sampler"] or "", found["prefixes"] or "", level)

    def __str__(self) -> str:
        text = f"KL({self.p}||{self.q})"
        if self.sampler != self.p:
            text += f" ~ {self.sampler}"
        if self.prefixes != self.sampler:
            text += f" prefixes {self.prefixes}"
        if self.level != "token_mean":
            text += f" {LEVELS[self.level]}"
        return text

    @property
    def weight(self) -> str:
        """The importance weight that answers it: ``none``, ``token`` or ``cumulative``.

        Prefix source and weight are one choice: the sampler's prefixes need the token's own
        weight only, p's prefixes the product of the weights up to and including the token.
        """
        if self.sampler == self.p:
            return "none"
        return "token" if self.prefixes == self.sampler else "cumulative"

    @property
    def unit(self) -> str:
        """The unit of the answer."""
        return UNITS[self.level]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles whose log-probs it needs, each once."""
        return tuple(dict.fromkeys((self.p, self.q, self.sampler)))

    def metric_key(self, method: str) -> str:
        """The name under which a logger files the answer.

        Example:
            >>> Question("current", "reference", sampler="rollout").metric_key("k3")
            'kl/current_over_reference/by_rollout/k3/token_mean'
        """
        prefixes = "" if self.prefixes == self.sampler else f"/prefixes_{_mangle(self.prefixes)}"
        pair = f"{_mangle(self.p)}_over_{_mangle(self.q)}"
        return f"kl/{pair}/by_{_mangle(self.sampler)}{prefixes}/{_mangle(method)}/{self.level}"


def _mangle(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower())


def metric_keys(questions: Iterable[Question], method: str) -> dict[Question, str]:
    """The metric key of each question; refuses questions that a logger could not tell apart.

    Raises:
        ValueError: Two different questions have the same key (``Old`` and ``old``, say).

    Example:
        >>> metric_keys([Question("old", "current")], "k1")[Question("old", "current")]
        'kl/old_over_current/by_old/k1/token_mean'
    """
    keys: dict[Question, str] = {}
    owners: dict[str, Question] = {}
    for question in questions:
        key = question.metric_key(method)
        other = owners.setdefault(key, question)
        if other != question:
            raise ValueError(f"{other} and {question} share the metric key {key}: rename a role")
        keys[question] = key
    return keys


class Sampler(NamedTuple):
    """The role taken as the sampler of the tokens, and why."""

    role: str
    reason: str


_SAMPLERS = {
    "rollout": "the engine's own log-probs",
    "old": "no log-probs of the engine (rollout): the trainer's copy stands in for it, so that "
    "a mismatch between the two cannot be seen",
    "student": "neither rollout nor old is there: in distillation the student samples",
    "current": "neither rollout nor old is there: taken as sampled on-policy",
}


def presumed_sampler(roles: Iterable[str]) -> Sampler:
    """Who is taken to have sampled, where nobody says it.

    Example:
        >>> presumed_sampler(["reference", "old"]).role
        'old'
    """
    there = list(roles)
    for role, reason in _SAMPLERS.items():
        if role in there:
            return Sampler(role, reason)
    role = next((role for role in there if role not in ("reference", "teacher")), there[0])
    return Sampler(role, "no role is known to sample: the first that is no reference or teacher")


def default_questions(roles: Iterable[str], sampler: str | None = None) -> tuple[Question, ...]:
    """What a report asks: the sampler against every other role, and the policy against reference.

    The policy is current, else old, else the sampler. If another role sampled, the question of
    the policy needs the importance weight.

    Raises:
        ValueError: There is only one role, or none called like the sampler.

    Example:
        >>> [str(q) for q in default_questions(["rollout", "current", "reference"])]
        ['KL(rollout||current)', 'KL(rollout||reference)', 'KL(current||reference) ~ rollout']
    """
    there = list(roles)
    if len(there) < 2:
        found = f"only those of {there[0]}" if there else "none"
        raise ValueError(f"a KL needs the log-probs of two roles; there are {found}")
    source = sampler or presumed_sampler(there).role
    if source not in there:
        raise ValueError(f"there are no log-probs of {source}, only of {', '.join(there)}")
    asked = [Question(source, role) for role in there if role != source]
    policy = next((role for role in ("current", "old") if role in there), source)
    if "reference" in there and source not in (policy, "reference"):
        asked.append(Question(policy, "reference", source))
    return tuple(asked)
