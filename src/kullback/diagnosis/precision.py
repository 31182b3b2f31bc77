"""Is a KL above what the precision of its log-probs can tell? Formats and kernels have a floor."""

from __future__ import annotations

import math

from kullback.diagnosis.column_faults import holds_log_probs
from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.sampler_tests import FLOAT32_FLOOR
from kullback.estimation.grids import DECIMALS
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "precision-floor"
FEWEST = 100  # tokens; below, round numbers may stand on a grid because a person wrote them
OWNS = 0.5  # share of a k3 that rounding alone makes: it is the format's
TELLS = 0.1  # share from which a question is named


def diagnose_precision(summary: Summary) -> Diagnosis:
    """The k3 that rounding makes of two equal roles, beside the k3 that is there."""
    findings, checks = [], []
    shares: dict[Question, float] = {}
    floored: dict[Question, float] = {}
    for question, state in summary.questions.items():
        told = _told(summary, question, state)
        checks.append(told)
        if told.status != "not-possible":
            shares[question] = _share(summary, question, state)
        if told.status == "failed" and not _floor(summary, question):
            floored[question] = state.distance
    rounded = {role: grid for role in summary.columns if (grid := _grid(summary, role))[0]}
    if rounded and shares:
        findings.append(_of_format(summary, rounded, shares))
    if floored:
        findings.append(_of_kernels(summary, floored))
    return Diagnosis(tuple(findings), tuple(checks))


def _grid(summary: Summary, role: str) -> tuple[str, float]:
    """The grid of a role and its spacing; no grid where too few tokens could tell.

    Few numbers of few decimals are nothing strange; few numbers of a narrow format are, if they
    have many decimals.
    """
    column = summary.columns[role]
    round_numbers = not DECIMALS.keys().isdisjoint(column.grids)
    told = column.size > 0 and holds_log_probs(column)
    if not told or (round_numbers and column.tokens < FEWEST):
        return "", 0.0
    return column.grid


def _floor(summary: Summary, question: Question) -> float:
    """Half the variance of log q − log p that rounding makes: what k2 and k3 show of equal roles.

    An error of up to half a step either way has the variance step²/12.
    """
    steps = [_grid(summary, role)[1] for role in (question.p, question.q)]
    return sum(step * step for step in steps) / 24


def _share(summary: Summary, question: Question, state: QuestionState) -> float:
    k3, floor = state.mean("raw_k3"), _floor(summary, question)
    return floor / k3 if k3 > 0 else 0.0


def _told(summary: Summary, question: Question, state: QuestionState) -> Check:
    subject = str(question)
    k3 = state.mean("raw_k3")
    if not math.isfinite(k3):
        reason = "no token has both log-probs, or a sum overflows"
        return Check(CODE, subject, "not-possible", reason)
    size, floor = state.distance, _floor(summary, question)
    if size == 0:
        return Check(CODE, subject, "passed", "the two are equal at every token")
    if floor:
        failed = _share(summary, question, state) >= OWNS
        reason = f"k3 is {k3:.3g}, and rounding alone makes {floor:.2g}"
    else:
        failed = size <= FLOAT32_FLOOR
        reason = (
            f"log-probs differ by {size:.2g} nats (root mean square), float32 kernels by up to "
            f"{FLOAT32_FLOOR:g}"
        )
    return Check(CODE, subject, "failed" if failed else "passed", reason)


def _of_format(
    summary: Summary, rounded: dict[str, tuple[str, float]], shares: dict[Question, float]
) -> Finding:
    worst = max(shares, key=lambda question: shares[question])
    k3, floor = summary.questions[worst].mean("raw_k3"), _floor(summary, worst)
    named = [str(question) for question, share in shares.items() if share >= TELLS]
    owned = shares[worst] >= OWNS
    steps = "; ".join(
        _spoken(rounded, grid) for grid in dict.fromkeys(g for g, _ in rounded.values())
    )
    verdict = (
        f"{worst} by k3 is {k3:.3g} nats per token, and rounding alone makes {floor:.2g} of equal "
        "roles: this KL is the format's, not drift's."
        if owned
        else f"Of equal roles that makes a k3 of {floor:.2g}; {worst} is {k3:.3g}."
    )
    return Finding(
        code=CODE,
        severity="warning" if owned else "note",
        certainty="certain",
        questions=tuple(named),
        claim=f"All log-probs are rounded: {steps}. {verdict}",
        numbers={
            "grids": {role: {"grid": grid, "step": step} for role, (grid, step) in rounded.items()},
            "floors": {str(question): _floor(summary, question) for question in shares},
            "k3": {str(q): summary.questions[q].mean("raw_k3") for q in shares},
        },
        cost=_cost(summary, worst, k3, floor),
        advice="Compute the log-softmax in float32 and log it in float32, or with six decimals. If "
        "the logits were narrow too, their rounding comes on top and is larger.",
    )


def _spoken(rounded: dict[str, tuple[str, float]], grid: str) -> str:
    """The roles on one grid, and the steps that it has at their log-probs."""
    steps = {role: step for role, (name, step) in rounded.items() if name == grid}
    where = grid if "decimal" in grid else f"the grid of {grid}"
    return f"those of {', '.join(steps)} on {where}, in steps of {max(steps.values()):.2g} nats"


def _cost(summary: Summary, question: Question, k3: float, floor: float) -> str:
    tokens = summary.questions[question].tokens
    noise = math.sqrt(2 * floor / tokens)
    left = max(k3 - floor, 0.0)
    return (
        f"k2 and k3 are too large by up to {floor:.2g}; of {k3:.3g} about {left:.2g} are left. "
        f"k1 gets noise, {noise:.1g} over {tokens} tokens, with mean about 0 where log-probs "
        "spread over many steps. "
        f"{decided(k3, left) if floor >= TELLS * k3 else ''}"
    ).rstrip()


def _of_kernels(summary: Summary, floored: dict[Question, float]) -> Finding:
    worst = max(floored, key=lambda question: floored[question])
    state = summary.questions[worst]
    k1, k3 = state.mean("raw_k1"), state.mean("raw_k3")
    return Finding(
        code=CODE,
        severity="note",
        certainty="likely",
        questions=tuple(map(str, floored)),
        claim=(
            f"The log-probs of {worst.p} and {worst.q} differ by {floored[worst]:.2g} nats (root "
            f"mean square), and two float32 kernels of log-softmax do by up to {FLOAT32_FLOOR:g}: "
            f"{worst} cannot be told from 0."
        ),
        numbers={str(question): size for question, size in floored.items()},
        cost=f"k1 is {k1:.2g} and k3 {k3:.2g}: their sign and their trend mean nothing. An "
        "exp(x) − 1 − x computed in float32 can even be negative here.",
        advice="If the policy should have moved, look whether the update reached the weights; if "
        "not, all is well. Log-probs computed in float64 have no such floor.",
    )
