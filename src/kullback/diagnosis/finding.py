"""A finding: a claim, its numbers, what it costs and what to do. The one list of codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SEVERITIES = ("note", "warning", "error")  # the least first


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Args:
        caption: The fault in one line.
        accuses: Whether it says that somebody made a mistake. The accusing codes together hold
            one per cent of false alarms per report on clean data.
        of: Where it is at home: ``dump``, or ``log`` (step logs); a few are found in both.
    """

    caption: str
    accuses: bool
    of: str = "dump"


CODES = {
    "negative-beyond-chance": Code("the sum is too low for tokens that this sampler drew", True),
    "sampler-mismatch": Code("the sampler's own log-probs do not fit what it drew", True),
    "tokens-do-not-match-text": Code("the token ids do not spell the logged text", True),
    "shifted-by-one": Code("one role's log-probs stand one token off", True),
    "misaligned": Code("two roles' log-probs are not of the same tokens", True),
    "not-log-probs": Code("log-probs above 0: probabilities, or losses with the sign lost", True),
    "not-normalized": Code("what was logged of a distribution is that of none", True),
    "sentinel-inside-mask": Code("−9999 stands where a log-prob should", True),
    "missing-values": Code("log-probs inside the mask were not logged", True),
    "mask-covers-padding": Code("padding is counted as tokens", True),
    "mask-covers-prompt": Code("tokens that nobody sampled are counted at the start", True),
    "mask-covers-environment": Code("tokens that nobody sampled are counted in the middle", True),
    "packed-boundary": Code("first tokens of packed sequences have the wrong context", True),
    "infinite-ratio": Code("a policy gives no probability to a sampled token", True),
    "temperature-mismatch": Code("draws or log-probs at another temperature", True),
    "sampler-truncated": Code("the sampler's log-probs leave out a top-k or top-p", True),
    "in-sample": Code("a policy was fitted to the tokens that judge it", True),
    "sign-impossible": Code("a logged number is negative and cannot be", True, "log"),
    "unit-or-scale": Code("two KLs, or two roles' log-probs, differ by a factor", True, "log"),
    "rows-left-out": Code("damaged rows were not read", False),
    "rows-repeated": Code("rows are copies of others", False),
    "column-not-read": Code("a column that looks like log-probs, or a mask, was not read", False),
    "weight-missing": Code("the engine sampled, and no importance weight says so", False),
    "weights-degenerate": Code("a few importance weights decide the estimate", False),
    "mean-owned-by-few": Code("a few tokens own most of the mean", False),
    "selected-on-outcome": Code("rows or tokens were left out, perhaps for what was drawn", False),
    "stale": Code("older weights sampled, as the versions say", False),
    "precision-floor": Code("a difference that rounding alone makes", False),
    "stochastic-forward": Code("two evaluations of the same tokens differ", False),
    "reference-not-start": Code("at the first step the reference is not the policy", False),
    "clamp-active": Code("a clamp cuts off what the KL is made of", False),
    "end-not-counted": Code("the token that ends a sequence is not counted throughout", False),
    "too-few-clusters": Code("too few prompts for the interval to hold what it says", False),
    "drift-behind-small-steps": Code("small steps have led far from the reference", False),
    "holes-suspected": Code("two logged estimates of one KL differ", False, "log"),
    "not-finite": Code("a logged KL is NaN or infinite", False, "log"),
    "controller-saturated": Code("a coefficient runs away", False, "log"),
    "penalty-not-used": Code("a KL is logged, and its coefficient is 0", False, "log"),
    "noise-above-signal": Code("a KL that decides something is mostly noise", False, "log"),
    "level-changed": Code("a logged KL changes its level in one step", False, "log"),
    "far-apart": Code("a logged KL is above a nat per token", False, "log"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    Args:
        code: One of ``CODES``.
        severity: ``note``, ``warning`` or ``error``.
        certainty: ``certain`` (counted), ``beyond-chance`` (by a test) or ``likely``.
        questions: The questions whose answers it spoils; of a fault of the whole dump that
            spoils no answer, none.
        claim: What is wrong, in a sentence.
        numbers: The evidence.
        cost: How wrong the number is, or which decision it would flip.
        advice: What to do.
        where: Places, the first few.

    Raises:
        ValueError: The code is none of ``CODES``.

    Example:
        >>> gap = Finding("missing-values", "warning", "certain", "A gap.", "Left out.", "Log it.")
        >>> gap.accuses, CODES[gap.code].caption
        (True, 'log-probs inside the mask were not logged')
    """

    code: str
    severity: str
    certainty: str
    claim: str
    cost: str
    advice: str
    questions: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    where: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"{self.code!r} is no finding code")

    @property
    def accuses(self) -> bool:
        """Whether it says that somebody made a mistake."""
        return CODES[self.code].accuses


def decided(wrong: float, right: float) -> str:
    """Which decision it flips to act on one value of a KL where another one is right.

    Example:
        >>> decided(0.0164, 0.003144)
        'A stop rule or a target between 0.00314 and 0.0164 decides the other way.'
        >>> decided(-0.0013, 0.0031)
        'Its sign is wrong: a penalty by it is a reward, and no stop rule fires.'
    """
    if wrong < 0 <= right:
        return "Its sign is wrong: a penalty by it is a reward, and no stop rule fires."
    low, high = sorted((wrong, right))
    if not low < high or f"{low:.3g}" == f"{high:.3g}":  # nor if one of them is no number
        return ""
    return f"A stop rule or a target between {low:.3g} and {high:.3g} decides the other way."


def without(question: object, mean: float, rest: float) -> str:
    """What the tokens that a finding speaks of do to the k1 of a question."""
    return (
        f"With them {question} is {mean:.4g} nats per token by k1, without them {rest:.4g}. "
        f"{decided(mean, rest)}"
    ).rstrip()


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked for: passed, failed, or not possible with this dump (and what to log).

    Args:
        code: The code it would have found.
        subject: What was checked: a question, a role, or "the dump".
        status: ``passed``, ``failed`` or ``not-possible``.
        reason: The numbers in a sentence, or what is needed.
    """

    code: str
    subject: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Findings, most severe first, and every check that was made or could not be. They add.

    Args:
        findings: What is wrong with the numbers.
        checks: What was looked for.

    Example:
        >>> gap = Finding("missing-values", "warning", "certain", "A gap.", "Left out.", "Log it.")
        >>> few = Finding("too-few-clusters", "note", "certain", "3.", "Too short.", "Log more.")
        >>> both = Diagnosis((few,)) + Diagnosis((gap,))
        >>> [finding.code for finding in both.findings], both.accused, few.accuses
        (['missing-values', 'too-few-clusters'], True, False)
    """

    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()

    def __add__(self, other: Diagnosis) -> Diagnosis:
        findings = self.findings + other.findings
        order = sorted(findings, key=lambda f: -SEVERITIES.index(f.severity))
        return Diagnosis(tuple(order), self.checks + other.checks)

    @classmethod
    def passed(cls, code: str, subject: str, reason: str) -> Diagnosis:
        """One thing was looked for and is not there."""
        return cls((), (Check(code, subject, "passed", reason),))

    @classmethod
    def not_possible(cls, code: str, subject: str, reason: str) -> Diagnosis:
        """One thing could not be looked for; the reason says what to log."""
        return cls((), (Check(code, subject, "not-possible", reason),))

    @classmethod
    def failed(cls, finding: Finding, subject: str, reason: str) -> Diagnosis:
        """One thing was looked for and found."""
        return cls((finding,), (Check(finding.code, subject, "failed", reason),))

    @property
    def accused(self) -> bool:
        """Whether any finding accuses."""
        return any(finding.accuses for finding in self.findings)
