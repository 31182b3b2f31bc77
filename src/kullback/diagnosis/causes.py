"""One fault, one finding: what another finding explains is not told a second time."""

from __future__ import annotations

from dataclasses import replace

from kullback.diagnosis.finding import Diagnosis, Finding

# Of the questions that a cause spoils, what is its doing.
_SPOILED = (
    "reference-not-start",
    "stochastic-forward",
    "precision-floor",
    "clamp-active",
    "weights-degenerate",
    "mean-owned-by-few",
    "weight-missing",
)
# And where single tokens or a limit are at fault.
_LEFT_OVER = ("reference-not-start", "weights-degenerate", "mean-owned-by-few")
# What tokens that nobody sampled, or log-probs of other tokens, do to the tests of a sampler.
_TESTED = ("negative-beyond-chance", "sampler-mismatch", "not-normalized")
# And words that are said again, of which the log-probs are those of others.
_GIVEN = ("mask-covers-prompt", "mask-covers-environment")
EXPLAINS = {
    "shifted-by-one": ("missing-values", *_GIVEN, *_TESTED, *_SPOILED),
    "misaligned": ("missing-values", *_GIVEN, *_TESTED, *_SPOILED),
    "unit-or-scale": ("temperature-mismatch", "not-normalized", *_SPOILED),
    "not-log-probs": _SPOILED,
    "missing-values": ("clamp-active", "not-normalized", *_LEFT_OVER),
    "mask-covers-prompt": (*_TESTED, *_SPOILED),
    "mask-covers-padding": ("missing-values", "end-not-counted", *_TESTED, *_SPOILED),
    "mask-covers-environment": (*_TESTED, *_SPOILED),
    "infinite-ratio": ("clamp-active", "not-normalized", *_LEFT_OVER),
    "clamp-active": _LEFT_OVER,
}


def without_consequences(found: Diagnosis) -> Diagnosis:
    """The findings less those that touch no question but what a graver finding already spoils.

    The checks stay: what was looked for was found.
    """
    causes = [finding for finding in found.findings if finding.code in EXPLAINS]
    kept = tuple(
        finding
        for finding in found.findings
        if not any(_explains(cause, finding) for cause in causes if cause is not finding)
    )
    return Diagnosis(kept, found.checks)


def _explains(cause: Finding, finding: Finding) -> bool:
    # A warning of missing values counts gaps, which explain nothing; one of a clamp names it.
    grave = cause.severity == "error" or (cause.code, cause.severity) == ("clamp-active", "warning")
    told = grave and finding.code in EXPLAINS[cause.code]
    # What a clamp of a trainer would do spoils no question, and speaks of one.
    touched = set(finding.questions) or {finding.numbers.get("question")} - {None}
    return told and bool(touched) and touched <= set(cause.questions)


def together(found: dict[str, Diagnosis]) -> Diagnosis:
    """One finding for a fault that several roles share, where there is one thing to do about it."""
    shared: dict[str, dict[str, Finding]] = {}
    for role, diagnosis in found.items():
        for finding in diagnosis.findings:
            shared.setdefault(finding.advice, {})[role] = finding
    checks = tuple(check for diagnosis in found.values() for check in diagnosis.checks)
    return Diagnosis(tuple(_joined(by_role) for by_role in shared.values()), checks)


def _joined(by_role: dict[str, Finding]) -> Finding:
    (_, first), *others = by_role.items()
    if not others:
        return first
    everyone = by_role.values()
    return replace(
        first,
        claim=f"{first.claim} The same fault is in {', '.join(role for role, _ in others)}.",
        questions=tuple(dict.fromkeys(q for finding in everyone for q in finding.questions)),
        numbers={role: finding.numbers for role, finding in by_role.items()},
        where=tuple(place for finding in everyone for place in finding.where),
    )
