"""Was the mask edited by rejection? Then what is left was selected on the outcome."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.once import once
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rejection_state import STATISTICS, RejectionState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "selected-on-outcome"
FEWEST_TOKENS = 5  # masked ones between kept ones; below, chance may put all of them outside
FEWEST_ROWS = 3  # wholly masked ones, likewise
KEPT_PER_MASKED = 2  # likewise
NEARLY_ALL = 0.95  # share of what is masked that lies outside all that is kept
SPOKEN = {
    "tokens": "the log-ratio of a token",
    "sum": "the log-ratio of a sequence",
    "mean": "the mean log-ratio of a sequence",
    "largest": "the largest log-ratio of a sequence",
}


def diagnose_rejected(summary: Summary) -> Diagnosis:
    """Look for a band that holds all that is kept and nothing of what is masked.

    Of tokens masked for any other reason as good as none lie outside all others.
    """
    found = cut_by_rejection(summary)
    empty, rows = summary.masks.empty, summary.masks.empty + summary.masks.sequences
    told = f"{empty} of {rows} rows are wholly masked, {summary.masks.holes} tokens between counted"
    if not found:
        return Diagnosis.passed(CODE, "the dump", told)
    return Diagnosis.failed(_finding(summary, found), "the dump", told)


@once
def cut_by_rejection(summary: Summary) -> dict[Question, str]:
    """The questions by whose log-ratios the mask was cut, and by which of ``SPOKEN``."""
    return {
        question: kind
        for question, state in summary.rejections.items()
        if (kind := _band(summary.questions[question], state))
    }


def _band(state: QuestionState, rejection: RejectionState) -> str:
    """By what the mask was cut, if by anything."""
    sizes = {"tokens": state.tokens} | dict.fromkeys(STATISTICS, state.sequences)
    parts = {"tokens": rejection.tokens} | rejection.sequences
    shares = {}
    for kind, part in parts.items():
        masked = part.masked.total()
        fewest = FEWEST_TOKENS if kind == "tokens" else FEWEST_ROWS
        if masked >= fewest and sizes[kind] >= KEPT_PER_MASKED * masked:
            shares[kind] = sum(part.beyond) / masked
    best = max(shares, key=lambda kind: shares[kind], default="")
    return best if best and shares[best] >= NEARLY_ALL else ""


def _finding(summary: Summary, found: dict[Question, str]) -> Finding:
    question = max(found, key=lambda q: _share(summary.rejections[q], found[q]))
    kind, rejection = found[question], summary.rejections[question]
    part = rejection.tokens if kind == "tokens" else rejection.sequences[kind]
    masked, (below, above) = part.masked.total(), part.beyond
    what = "tokens" if kind == "tokens" else "sequences"
    sides = [f"{n} {side}" for n, side in ((below, "below"), (above, "above")) if n]
    size = "|log r|" if kind == "largest" else "log r"
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=(
            f"The mask was cut by {SPOKEN[kind]} of {question.q} to {question.p}: all that is "
            f"kept has {size} from {part.low:.3g} to {part.high:.3g}, and of {masked} masked "
            f"{what} {' and '.join(sides)} that. So the tokens that are left were selected on "
            "the outcome."
        ),
        numbers={
            "by": kind,
            "masked": masked,
            "below": below,
            "above": above,
            "low": part.low,
            "high": part.high,
        },
        cost=_cost(summary.questions[question], rejection),
        advice="Estimate the KL before the rejection, with the mask as the lengths and roles give "
        "it; keep the edited mask for the loss, under a name of its own.",
    )


def _share(rejection: RejectionState, kind: str) -> float:
    part = rejection.tokens if kind == "tokens" else rejection.sequences[kind]
    return sum(part.beyond) / part.masked.total()


def _cost(state: QuestionState, rejection: RejectionState) -> str:
    """What k1 and k3 are with what was rejected."""
    tokens = state.tokens + rejection.count
    means = {}
    for name, lost in (("k1", rejection.k1), ("k3", rejection.k3)):
        total = state.total(f"raw_{name}")
        means[name] = total / state.tokens, (total + lost) / tokens
    (k1, k1_all), (k3, k3_all) = means["k1"], means["k3"]
    return (
        f"Of what is left KL({state.question.p}||{state.question.q}) is {k1:.4g} nats per token by "
        f"k1 and {k3:.4g} by k3, with what was rejected {k1_all:.4g} and {k3_all:.4g}. "
        f"{decided(k3, k3_all)}"
    ).rstrip()
