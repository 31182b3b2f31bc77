"""One number of a trainer's log: what it is of, how it is made, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kullback.question import LEVELS, Question

# How a token's term is written, of p and q; of others the entry itself says it.
FORMULAS = {
    "k1": "log {p} − log {q}",
    "k2": "½ (log {p} − log {q})²",
    "k3": "r − 1 − log r, r = {q}/{p}",
    "abs": "|log {p} − log {q}|",
    "exact": "Σ over the vocabulary of {p} · (log {p} − log {q})",
}
NEVER_NEGATIVE = ("k2", "k3", "abs", "exact")
# "probed": run on every sequence of two small languages (results/zoo); "measured": the released
# function was run on one token, against enumeration; "read": in the source, no more.
EVIDENCE = ("probed", "measured", "read", "not verified")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a trainer's settings make of a number: where all of ``when`` hold, ``changes`` apply.

    Args:
        when: Setting to value, or to the values that do the same.
        says: What that means, in a sentence.
        changes: The fields of the metric that are different then.
    """

    when: Mapping[str, Any]
    says: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether the settings are those that it is about."""
        return all(
            key in settings and _same(settings[key], wanted) for key, wanted in self.when.items()
        )


def _same(value: Any, wanted: Any) -> bool:
    return _plain(value) in [
        _plain(one) for one in (wanted if isinstance(wanted, tuple) else (wanted,))
    ]


def _plain(value: Any) -> Any:
    """A setting as it may be spelled: true and True, 0 and 0.0, None and null."""
    if isinstance(value, str):
        word = value.strip().lower()
        spelled = {"true": True, "false": False, "null": None, "none": None, "": None}
        return spelled.get(word, word)
    return value


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a trainer logs, or trains on, under a name.

    The fields say what it is with the settings that the trainer has by default (``defaults``);
    ``under`` says what other settings make of it.

    Args:
        framework: The project: ``trl``, ``verl``, …
        names: What its log calls it. A term without a name in the log has that of the option or
            function that makes it.
        meaning: What it is, in a line.
        p: The role whose expectation the number is said to be; empty if it is no comparison.
        q: The other role.
        sampler: Who drew the tokens that it is averaged over.
        method: ``k1``, ``k2``, ``k3``, ``abs`` (the absolute log-ratio), ``exact`` (over the
            vocabulary), ``ratio``, or ``other``.
        formula: The term of a token, where no method gives it.
        weight: The ratio that multiplies the term, if one does.
        trainer: The class or mode that logs it, where others log another number by this name.
        level: ``token_mean``, ``sequence_sum``, ``sequence_mean``, ``padded_mean`` (over all
            positions), ``sum``, or empty.
        aggregation: From tokens to the number, in words.
        sign: −1 if the number is minus what its formula would be called.
        negative: Whether it can be negative, where its method does not decide it.
        clamp: What is held constant, and where.
        use: ``loss``, ``reward``, ``metric``, ``stop`` or ``coefficient``.
        gradient: What training on it descends, on-policy; empty if nobody trains on it.
        coefficient: The setting that multiplies it; at 0 nothing is trained on it.
        defaults: The settings that decide it, with their defaults where known.
        choices: What other settings make of it.
        faults: What is wrong with it, or often misread.
        version: The release, or the day of the snapshot, that was read.
        until: The release in which it is gone.
        source: The file in which it is made.
        verified: How it is known: ``probed``, ``measured``, ``read`` or ``not verified``.
        zoo: Its entry in ``results/zoo``, ``file/entry``.

    Raises:
        ValueError: A field holds a word that is none of its own.

    Example:
        >>> one = Metric("mine", ("kl",), "drift", "old", "current", method="k1")
        >>> one.question, one.formula_text, one.can_be_negative
        (Question(p='old', q='current', sampler='old', prefixes='old', level='token_mean'),
         'log old − log current', True)
    """

    framework: str
    names: tuple[str, ...]
    meaning: str
    p: str = ""
    q: str = ""
    sampler: str = ""
    method: str = "other"
    formula: str = ""
    weight: str = ""
    trainer: str = ""
    level: str = "token_mean"
    aggregation: str = "mean over all tokens that count"
    sign: int = 1
    negative: bool | None = None
    clamp: str = ""
    use: str = "metric"
    gradient: str = ""
    coefficient: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    choices: tuple[Choice, ...] = field(default=(), hash=False)
    faults: tuple[str, ...] = ()
    version: str = ""
    until: str = ""
    source: str = ""
    verified: str = "read"
    zoo: str = ""

    def __post_init__(self) -> None:
        allowed = {
            "method": (*FORMULAS, "ratio", "other"),
            "level": (*LEVELS, "padded_mean", "sum", ""),
            "use": ("loss", "reward", "metric", "stop", "coefficient"),
            "verified": EVIDENCE,
            "sign": (1, -1),
        }
        for name, words in allowed.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} {getattr(self, name)!r} is none of {words}")

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]

    @property
    def question(self) -> Question | None:
        """Which KL it is named after, in the grammar of `kullback.Question`; none if it is none.

        Its sampler is the one whose tokens are averaged, so that the question has the importance
        weight which the number itself may lack.
        """
        if not (self.p and self.q):
            return None
        level = self.level if self.level in LEVELS else "token_mean"
        return Question(self.p, self.q, self.sampler, level=level)

    @property
    def is_estimate(self) -> bool:
        """Whether its mean is plus or minus the KL that it is named after, but for its clamp."""
        asked = self.question
        if asked is None or self.method not in ("k1", "k3", "exact"):
            return False
        return asked.weight == "none" or self.weight == f"{self.p}/{self.sampler}"

    @property
    def formula_text(self) -> str:
        """The term of one token, with its weight and sign."""
        said = self.formula or FORMULAS.get(self.method, "").format(p=self.p, q=self.q)
        if self.weight:
            said = f"({self.weight}) · ({said})"
        return f"−({said})" if self.sign < 0 else said

    @property
    def can_be_negative(self) -> bool:
        """Whether it can be below 0."""
        if self.negative is not None:
            return self.negative
        return self.sign < 0 or self.method not in NEVER_NEGATIVE

    def under(self, settings: Mapping[str, Any]) -> tuple[Metric, tuple[str, ...]]:
        """What it is with these settings, and what they do to it, in sentences.

        Args:
            settings: Values of the settings that are named in ``defaults``; the others have their
                defaults.

        Example:
            >>> off = Choice({"use_kl": False}, "It is not computed.")
            >>> one = Metric("mine", ("kl",), "leash", defaults={"use_kl": True}, choices=(off,))
            >>> one.under({"use_kl": "false"})[1]
            ('It is not computed.',)
        """
        held = {**self.defaults, **settings}
        found, said = self, []
        for choice in self.choices:
            if choice.holds(held):
                found = replace(found, **choice.changes)
                said.append(choice.says)
        if self.coefficient and _plain(held.get(self.coefficient)) == 0:
            said.append(f"Nothing is trained on it: {self.coefficient} is 0.")
        return found, tuple(said)
