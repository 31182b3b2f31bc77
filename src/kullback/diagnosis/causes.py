"""One fault, one finding: what another finding explains is not told a second time."""

from __future__ import annotations

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
    return told and bool(finding.questions) and set(finding.questions) <= set(cause.questions)
