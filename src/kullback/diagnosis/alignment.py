"""Do all columns speak of the same tokens? Ids against text, and one role against another."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.question_state import LAGS, QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

ENOUGH = 100  # pairs of neighbors below which a shift is not looked for


def diagnose_alignment(summary: Summary) -> Diagnosis:
    """The byte check of ids against text, and the shift by one."""
    return _text(summary) + _shift(summary)


def _text(summary: Summary) -> Diagnosis:
    code, state = "tokens-do-not-match-text", summary.sequences
    if not state.checked:
        reason = "text and the bytes of the ids are not both logged: log text and token_bytes"
        return Diagnosis((), (Check(code, "the dump", "not-possible", reason),))
    told = f"{state.misspelled} of {state.checked} sequences have ids that do not spell their text"
    check = Check(code, "the dump", "failed" if state.misspelled else "passed", told)
    if not state.misspelled:
        return Diagnosis((), (check,))
    rows = [place.row for place in state.misspelled_at]
    numbers = {"sequences": state.misspelled, "of": state.checked, "rows": rows}
    cost, worst = _text_cost(summary)
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=(),
        claim=(
            f"{told}: an id was lost or changed on the way from the engine, and every log-prob "
            "behind it was computed for another prefix than the one that was sampled."
        ),
        numbers=numbers | worst,
        cost=cost,
        advice="Leave these sequences out, or take the ids from the engine's own output rather "
        "than from its log-prob entries or from re-tokenized text.",
        where=tuple(str(place) for place in state.misspelled_at),
    )
    return Diagnosis((finding,), (check,))


def _text_cost(summary: Summary) -> tuple[str, dict[str, float | str]]:
    """How much the misspelled sequences move each k3, told of the one that they move most."""
    moved: dict[Question, tuple[float, float]] = {}
    for question, part in summary.misspelled.items():
        whole = summary.questions[question]
        rest = whole.tokens - part.tokens
        if question.weight == "none" and rest and not whole.infinite:
            without = (whole.total("k3") - part.total("k3")) / rest
            moved[question] = whole.total("k3") / whole.tokens, without
    apart = {q: a / b for q, (a, b) in moved.items() if b > 0 and a > 0}
    if not apart:
        return "Their share of the estimates cannot be told.", {}
    question = max(apart, key=lambda q: max(apart[q], 1 / apart[q]))
    with_them, without = moved[question]
    text = (
        f"With them {question} is {with_them:.4g} nats per token by k3, without them "
        f"{without:.4g}: {apart[question]:.1f} times."
    )
    return text, {"question": str(question), "k3_with": with_them, "k3_without": without}


def _shift(summary: Summary) -> Diagnosis:
    """A role stands one token off where its log-probs fit its partner's neighbors better.

    The sign is a variance of log p − log q at a lag of ±1 below half of that at lag 0. Correlation
    rules accuse honest peaked policies in three reports of ten.
    """
    code = "shifted-by-one"
    shifted: dict[Question, tuple[int, dict[str, float]]] = {}
    checks = []
    for question, state in summary.questions.items():
        variances = _variances(state)
        if not variances:
            reason = f"fewer than {ENOUGH} neighboring tokens"
            checks.append(Check(code, str(question), "not-possible", reason))
            continue
        best = min((-1, 1), key=lambda lag: variances[lag])
        failed = variances[best] < 0.5 * variances[0]
        if failed:
            shifted[question] = best, {f"variance_lag_{lag}": variances[lag] for lag in LAGS}
        reason = (
            f"Var(log p − log q) is {variances[0]:.3g} as logged, {variances[best]:.3g} with "
            f"{question.q} moved by one"
        )
        checks.append(Check(code, str(question), "failed" if failed else "passed", reason))
    finding = _shift_finding(shifted) if shifted else None
    return Diagnosis((finding,) if finding else (), tuple(checks))


def _shift_finding(shifted: dict[Question, tuple[int, dict[str, float]]]) -> Finding:
    shared = set.intersection(*({q.p, q.q} for q in shifted))
    role = shared.pop() if len(shared) == 1 else ""
    question, (lag, numbers) = next(iter(shifted.items()))
    who = f"the log-probs of {role}" if role else f"one side of {question}"
    return Finding(
        code="shifted-by-one",
        severity="error",
        certainty="likely",
        questions=tuple(str(question) for question in shifted),
        claim=(
            f"Moved by one token, {question.q} fits {question.p} better than as logged: "
            f"Var(log p − log q) falls from {numbers['variance_lag_0']:.3g} to "
            f"{numbers[f'variance_lag_{lag}']:.3g}. So {who} stand one token off."
        ),
        numbers=numbers | {"lag": float(lag)},
        cost="Every number of these pairs compares different tokens and means nothing.",
        advice="Logits at position t score the token at t + 1: shift once, and only once, when "
        "log-probs are gathered; drop the first or the last entry, not the same one on both sides.",
    )


def _variances(state: QuestionState) -> dict[int, float]:
    variances = {}
    for lag, (count, total, squares) in zip(LAGS, state.lags, strict=True):
        if count < ENOUGH:
            return {}
        variances[lag] = float(squares / count - (total / count) ** 2)
    return variances
