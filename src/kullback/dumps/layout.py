"""The canonical dump: what its columns are called and what each of them holds.

A part is one thing a dump can say of its sequences; its key is the canonical column name
(``log_probs.rollout``, ``mask``, ``KL(old||current)``), whatever the column of a file is called.
"""

from __future__ import annotations

from dataclasses import dataclass

from kullback.question import Question, is_role


@dataclass(frozen=True, slots=True)
class Held:
    """What a column holds: how deep its lists nest (0: one value per row) and what is in them.

    ``leaf`` is ``number``, ``flag`` (bool), ``text``, ``bytes``, ``nothing`` (only nulls seen) or
    ``other`` (objects, of depth 0 whatever they are in); ``ones`` says that every list of the
    outermost level has one entry.
    """

    depth: int
    leaf: str
    ones: bool = False

    def __str__(self) -> str:
        if self.leaf == "nothing":
            return "nothing"
        noun = _NOUNS[self.leaf][min(self.depth, 1)]
        return ("a list of " + "lists of " * (self.depth - 1) if self.depth else "") + noun


_NOUNS = {
    "number": ("a number", "numbers"),
    "flag": ("a flag", "flags"),
    "text": ("a text", "texts"),
    "bytes": ("bytes", "bytes"),
    "other": ("an object", "objects"),
}

# The families with one entry per token; log-probs first: they say how long a row is.
PER_TOKEN = (
    "log_probs",
    "entropy",
    "exact",
    "mask",
    "tokens",
    "token_bytes",
    "top_ids",
    "top_log_probs",
    "versions",
)

LABEL = "label."  # before the name of a column that is read because the caller asks for it

# What a part holds, by family. NeMo-RL's whole-sequence mask and a prompt in full have no column
# in the canonical dump; they are read from other projects' files only.
_SHAPES: dict[str, tuple[tuple[int, tuple[str, ...]], ...]] = {
    "log_probs": ((1, ("number",)),),
    "entropy": ((1, ("number",)),),
    "exact": ((1, ("number",)),),
    "mask": ((1, ("flag", "number")),),
    "sequence_mask": ((0, ("flag", "number")),),
    "tokens": ((1, ("number",)),),
    "token_bytes": ((1, ("bytes",)), (2, ("number",))),
    "top_ids": ((2, ("number",)),),
    "top_log_probs": ((2, ("number",)),),
    "top_k": ((0, ("number",)),),
    "versions": ((1, ("number",)), (0, ("number",))),
    "text": ((0, ("text",)),),
    "step": ((0, ("number",)),),
    "prompt_id": ((0, ("number", "text")),),
    "prompt": ((0, ("text", "other")), (1, ("number",))),
    "sampling.temperature": ((0, ("number",)),),
    "sampling.top_p": ((0, ("number",)),),
    "sampling.top_k": ((0, ("number",)),),
    "sampling.min_p": ((0, ("number",)),),
    "sampling.log_probs": ((0, ("text",)),),
    "label": ((0, ("number", "flag", "text")),),
}

# What cuts rows into sequences or joins them to one, by what a row is (see ``grain``).
_CUTS: dict[str, dict[str, tuple[tuple[int, tuple[str, ...]], ...]]] = {
    "sequence": {},
    "batch": {"lengths": ((1, ("number",)),), "cu_seqlens": ((1, ("number",)),)},
    "token": {"sequence": ((0, ("number", "text")),), "position": ((0, ("number",)),)},
}
CUTS = frozenset(name for names in _CUTS.values() for name in names)
# What one value may say for a whole packed batch.
_SHARED = ("step", "prompt_id", "top_k", "versions")
_NO_COLUMN = ("prompt", "sequence_mask", "label")  # of the canonical dump

_BY_ROLE = ("log_probs", "entropy", "top_ids", "top_log_probs", "top_k")


def canonical(column: str, grain: str = "sequence") -> str | None:
    """The part that a canonical column name stands for; None for any other name.

    Args:
        column: The name.
        grain: What a row of the file is; ``lengths``, say, is a part of packed batches only.

    Example:
        >>> canonical("log_probs.rollout"), canonical("KL(old‖current)"), canonical("reward")
        ('log_probs.rollout', 'KL(old||current)', None)
    """
    head, _, role = column.partition(".")
    if head in _BY_ROLE:
        return column if is_role(role) else None
    if column.startswith("KL("):
        return _exact(column)
    known = column in _SHAPES and column not in _NO_COLUMN
    return column if known or column in _CUTS[grain] else None


def _exact(column: str) -> str | None:
    try:
        question = Question.parse(column)
    except ValueError:
        return None
    plain = Question(question.p, question.q)
    # An exact KL holds at its prefix, whoever sampled: a sampler or a level in the name means
    # something else was computed.
    return str(plain) if question == plain else None


def family(part: str) -> str:
    """The family of a part: ``log_probs`` for ``log_probs.rollout``, ``exact`` for a KL."""
    if part.startswith("KL("):
        return "exact"
    if part.startswith(LABEL):
        return "label"
    head = part.partition(".")[0]
    return head if head in _BY_ROLE else part


def role_of(part: str) -> str:
    """The role that a part belongs to: ``rollout`` for ``top_ids.rollout``."""
    return part.partition(".")[2]


def _shapes(part: str, grain: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """What the part may look like in one row."""
    kind = family(part)
    if kind in CUTS:
        return _CUTS[grain].get(kind, ())
    shapes = _SHAPES[kind]
    if grain == "token" and kind in PER_TOKEN:
        return tuple((depth - 1, leaves) for depth, leaves in shapes if depth)
    if grain == "token":
        # One value in every row of a sequence; of lists and objects that cannot be seen cheaply.
        return tuple((0, _plain(leaves)) for depth, leaves in shapes if not depth)
    if grain == "batch" and kind not in PER_TOKEN:
        each = tuple((depth + 1, _plain(leaves)) for depth, leaves in shapes)
        return (*each, (0, shapes[0][1])) if is_shareable(part) else each
    return shapes


def is_shareable(part: str) -> bool:
    """Whether one value may hold for all sequences of a packed row."""
    return family(part) in _SHARED or part.startswith(("sampling.", LABEL))


def _plain(leaves: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(leaf for leaf in leaves if leaf != "other")


def depth_in(part: str, held: Held, grain: str = "sequence") -> int | None:
    """How deep the lists of this part nest in a column that holds this; None if it cannot be it.

    Where a row is a sequence, a column one level deeper still fits if every outer list has one
    entry: NeMo-RL writes a batch of one per line.
    """
    for wrapped in (0, 1) if grain == "sequence" else (0,):
        for depth, leaves in _shapes(part, grain):
            nothing = held.leaf == "nothing" and held.depth <= depth
            fits = held.depth == depth + wrapped and held.leaf in leaves
            if nothing or (fits and (held.ones or not wrapped)):
                return depth
    return None


def is_label(part: str) -> bool:
    """Whether it says something of each sequence that stays with it as a label."""
    return part in ("step", "prompt_id") or part.startswith(("sampling.", LABEL))


def expected(part: str, grain: str = "sequence") -> str:
    """What a column of this part should hold, for a sentence."""
    shapes = _shapes(part, grain)
    return str(Held(shapes[0][0], shapes[0][1][-1])) if shapes else "a value per sequence"


def spoken(part: str) -> str:
    """The part as a person names it: ``rollout``, ``mask``, ``entropy of rollout``."""
    kind = family(part)
    if kind == "log_probs":
        return role_of(part)
    if kind in ("top_ids", "top_log_probs", "top_k"):
        return f"top_k of {role_of(part)}"
    if kind == "entropy":
        return f"entropy of {role_of(part)}"
    if kind == "label":
        return f"label {part.removeprefix(LABEL)}"
    return "mask" if kind == "sequence_mask" else part
