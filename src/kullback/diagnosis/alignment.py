"""Do all columns speak of the same tokens? Ids against text, and one role against another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.once import once
from kullback.estimation.estimate import from_state
from kullback.estimation.question_state import LAGS, QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

FEWEST_INNER = 100  # tokens with a neighbor on either side; below, a shift is not looked for
FEWEST_EACH = 3  # of them per sequence; one or two always stand at one place and prove nothing
VARIANCE_LEFT = 0.5  # share of the variance that a move by one token may leave, at most
UNRELATED = 0.3  # size of a correlation below which two columns may be of different tokens
SQUARES_LEFT = 0.8  # likewise of the mean of the squares, cut at 4


def diagnose_alignment(summary: Summary) -> Diagnosis:
    """The byte check of ids against text, and the shift by one."""
    return _text(summary) + _shift(summary)


def _text(summary: Summary) -> Diagnosis:
    code, state = "tokens-do-not-match-text", summary.spelling
    if not state.checked:
        reason = "text and the bytes of the ids are not both logged: log text and token_bytes"
        return Diagnosis.not_possible(code, "the dump", reason)
    told = f"{state.misspelled} of {state.checked} sequences have ids that do not spell their text"
    if not state.misspelled:
        return Diagnosis.passed(code, "the dump", told)
    moves = _moves(summary)
    cost, worst = _text_cost(moves)
    rows = [place.row for place in state.places]
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=tuple(str(question) for question, move in moves.items() if move.matters),
        claim=(
            f"{told}: an id was lost or changed on the way from the engine, and every log-prob "
            "behind it was computed for another prefix than the one that was sampled."
        ),
        numbers={"sequences": state.misspelled, "of": state.checked, "rows": rows} | worst,
        cost=cost,
        advice="Leave these sequences out, or take the ids from the engine's own output rather "
        "than from its log-prob entries or from re-tokenized text.",
        where=tuple(str(place) for place in state.places),
    )
    return Diagnosis.failed(finding, "the dump", told)


@dataclass(frozen=True, slots=True)
class _Move:
    """The means of a question with and without the misspelled sequences, and k1's error."""

    k1: tuple[float, float]
    k3: tuple[float, float]
    standard_error: float

    @property
    def matters(self) -> bool:
        """Whether k1 moves by half its error, or k3 by a tenth, or nothing is left without them."""
        with_them, without = self.k3
        near = abs(self.k1[0] - self.k1[1]) <= 0.5 * self.standard_error
        return not (near and abs(with_them - without) <= 0.1 * abs(without))


def _moves(summary: Summary) -> dict[Question, _Move]:
    moves = {}
    for question, part in summary.misspelled.items():
        whole = summary.questions[question]
        if whole.tokens and not whole.infinite:
            k1, k3 = (_with_and_without(whole, part, term) for term in ("k1", "k3"))
            moves[question] = _Move(k1, k3, from_state(whole, "k1").standard_error)
    return moves


def _with_and_without(whole: QuestionState, part: QuestionState, term: str) -> tuple[float, float]:
    """The mean of a term over all tokens, and over those outside the part."""
    total, rest = whole.total(term), whole.tokens - part.tokens
    return total / whole.tokens, (total - part.total(term)) / rest if rest else math.nan


def _text_cost(moves: dict[Question, _Move]) -> tuple[str, dict[str, float | str]]:
    """What the misspelled sequences cost, told of the k3 that they move most."""
    factors = {
        question: move.k3[0] / move.k3[1]
        for question, move in moves.items()
        if all(mean > 0 for mean in move.k3)  # and neither is NaN
    }
    if not factors:
        return "Their share of the estimates cannot be told.", {}
    question = max(factors, key=lambda q: max(factors[q], 1 / factors[q]))
    with_them, without = moves[question].k3
    text = (
        f"With them {question} is {with_them:.4g} nats per token by k3, without them "
        f"{without:.4g}: {factors[question]:.1f} times. {decided(with_them, without)}".rstrip()
    )
    return text, {"question": str(question), "k3_with": with_them, "k3_without": without}


def _shift(summary: Summary) -> Diagnosis:
    """A role stands one token off where its log-probs fit its partner's neighbors better."""
    code = "shifted-by-one"
    shifted: dict[Question, tuple[int, dict[str, float]]] = {}
    checks = []
    for question, state in summary.questions.items():
        variances = _variances(state, moved=0)
        if not variances:
            reason = f"under {FEWEST_INNER} tokens, or {FEWEST_EACH} a sequence, have two neighbors"
            checks.append(Check(code, str(question), "not-possible", reason))
            continue
        best = _best(variances)
        failed = is_shifted(state)
        if failed:
            shifted[question] = best, {f"variance_lag_{lag}": variances[lag] for lag in LAGS}
        reason = (
            f"Var(log p − log q) is {variances[0]:.3g} as logged, {variances[best]:.3g} with "
            f"{question.q} moved by one"
        )
        checks.append(Check(code, str(question), "failed" if failed else "passed", reason))
    findings = (_shift_finding(summary, shifted),) if shifted else ()
    return Diagnosis(findings, tuple(checks))


def is_shifted(state: QuestionState) -> bool:
    """Whether p and q fit each other clearly better when one of them is moved by one token.

    The variance must halve, and the mean of the squares cut at 4, which no few tokens can move,
    fall by a fifth. On real rollouts a shift undone takes the variance to 0.01 (a light update) …
    0.35 (a KL of 1.4) of itself and the cut squares to 0.04 … 0.67; tokens that one side dislikes
    move the first alone. And it must be so whichever side is moved: a token near an end of its
    sequence is inner for one of them only. Rules on correlations accuse honest peaked policies in
    three reports of ten.
    """
    variances = _variances(state, moved=0)
    if not variances:
        return False
    best = _best(variances)
    for moved, cuts in enumerate(state.lags[:, :, 3]):
        cut: dict[int, float] = dict(zip(LAGS, cuts.tolist(), strict=True))
        variances = _variances(state, moved)
        if variances[best] >= VARIANCE_LEFT * variances[0] or cut[best] >= SQUARES_LEFT * cut[0]:
            return False
    return True


@once
def shifted_roles(summary: Summary) -> frozenset[str]:
    """The roles that all shifted pairs have in common: one of them stands elsewhere."""
    pairs = [{q.p, q.q} for q, state in summary.questions.items() if is_shifted(state)]
    return frozenset(set.intersection(*pairs)) if pairs else frozenset()


def _shift_finding(
    summary: Summary, shifted: dict[Question, tuple[int, dict[str, float]]]
) -> Finding:
    shared = shifted_roles(summary)
    role = next(iter(shared)) if len(shared) == 1 else ""
    question, (lag, numbers) = next(iter(shifted.items()))
    logged, moved = (numbers[f"variance_lag_{at}"] / 2 for at in (0, lag))
    who = f"the log-probs of {role} stand" if role else f"one side of {question} stands"
    return Finding(
        code="shifted-by-one",
        severity="error",
        certainty="likely",
        questions=tuple(str(q) for q in summary.questions if q in shifted or role in q.roles),
        claim=(
            f"Moved by one token, {question.q} fits {question.p} better than as logged: "
            f"Var(log p − log q) falls from {numbers['variance_lag_0']:.3g} to "
            f"{numbers[f'variance_lag_{lag}']:.3g}. So {who} one token off."
        ),
        numbers=numbers | {"lag": float(lag)},
        cost="Every number of these pairs compares different tokens and means nothing. Half the "
        f"variance, near 0 about the KL, is {logged:.3g} as logged and {moved:.3g} one token on. "
        f"{decided(logged, moved)}",
        advice="Logits at position t score the token at t + 1: shift once, and only once, when "
        "log-probs are gathered; drop the first or the last entry, not the same one on both sides.",
        where=tuple(str(token.place) for token in summary.questions[question].top_k1[:3]),
    )


def _best(variances: dict[int, float]) -> int:
    """The lag of one token at which the two sides fit best."""
    return min((-1, 1), key=lambda lag: variances[lag])


def _variances(state: QuestionState, moved: int) -> dict[int, float]:
    """The variance of the differences at each lag, with q (0) or p (1) moved.

    There is none where too few tokens could tell.
    """
    if state.lags[0, 0, 0] < max(FEWEST_INNER, FEWEST_EACH * state.sequences):
        return {}
    return {
        lag: float(squares / count - (total / count) ** 2)
        for lag, (count, total, squares, _) in zip(LAGS, state.lags[moved], strict=True)
    }
