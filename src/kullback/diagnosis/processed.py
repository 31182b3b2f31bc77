"""Are one side's log-probs those of after a top-k or top-p, and the other's of before?"""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.column_faults import ROUNDING
from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.sampler_tests import scored, unfit
from kullback.estimation.interval import ratio_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.slope_state import ONE_POLICY
from kullback.estimation.summary import Summary

LEAST = 0.005  # mass cut off, on average, below which nothing is told
ABOVE = 0.2  # what q/s − 1 may have above 0, as a share of what it has below
ERRORS = 8.0  # standard errors that the mean of q/s must be below 1
FEWEST = 500  # tokens
VARIED = 0.1  # spread of log q/s over its mean: the mass that is kept differs by prefix
LEFT = -3.0  # nats: less of the mass than that hardly any cut keeps
RARELY = 0.005  # share of the tokens at which it may
SCALED = 0.6  # share of its variance that log s explains; of real cuts at most 0.37 was seen


def diagnose_processed(summary: Summary) -> Diagnosis:
    """Accuse a sampler whose log-probs are renormalized over a kept set, against its own copy.

    Of two that hold the same weights, one gives every token drawn the same share of what the other
    gives it: the mass of the set that was kept. Noise, staleness or an update would lift as many
    as they lower, since q/s has mean 1.
    """
    accused: dict[str, list[tuple[QuestionState, float, float]]] = {}
    checks = []
    for question, state in summary.questions.items():
        pair = (question.p, question.q)
        if question.sampler != question.p or not ONE_POLICY.issuperset(pair):
            continue
        sound = scored(summary, question.p) and not unfit(summary, question)
        if not sound or state.tokens < FEWEST:
            continue
        kept, error, above = _kept_mass(state)
        wrong = 1 - kept >= max(LEAST, ERRORS * error) and above <= ABOVE
        wrong &= _is_of_tokens(summary, pair) and _varies(state) and not _is_scaled(summary, state)
        if wrong:
            accused.setdefault(question.p, []).append((state, kept, error))
        reason = (
            f"{question.q}/{question.p} has mean {kept:.4f} over the tokens drawn, and above 1 "
            f"{above:.0%} of what it has below"
        )
        status = "failed" if wrong else "passed"
        checks.append(Check("sampler-truncated", " and ".join(pair), status, reason))
    return Diagnosis(tuple(_finding(summary, copies) for copies in accused.values()), tuple(checks))


def _kept_mass(state: QuestionState) -> tuple[float, float, float]:
    """Mean q/s, its clustered error, and the part of q/s − 1 above 0 over the part below."""
    found = ratio_interval(
        state.by_group("q_over_s"),
        state.by_group("tokens"),
        effective=state.effective_clusters(),
        confidence=0.95,
    )
    log_r, counts = state.log_q_over_p.filled()
    with np.errstate(over="ignore"):
        excess = np.expm1(log_r)
        above = float((counts * np.where(excess > 0, excess, 0.0)).sum())
        below = float((counts * np.where(excess < 0, -excess, 0.0)).sum())
    return 1 + found.mean, found.standard_error, above / below if below > 0 else np.inf


def _is_of_tokens(summary: Summary, pair: tuple[str, str]) -> bool:
    """Whether no log-prob is above 0: of a density nobody keeps the likeliest tokens."""
    return all(summary.columns[role].high <= ROUNDING for role in pair)


def _varies(state: QuestionState) -> bool:
    """Whether q/s differs by prefix, as the mass of a kept set does, and is hardly ever tiny.

    A constant does not differ, and log-probs behind another prompt are tiny where it matters.
    """
    log_r, counts = state.log_q_over_p.filled()
    if counts[log_r < LEFT].sum() > RARELY * counts.sum():
        return False
    mean = float((counts * log_r).sum() / counts.sum())
    spread = float(np.sqrt((counts * (log_r - mean) ** 2).sum() / counts.sum()))
    return spread > VARIED * abs(mean)


def _is_scaled(summary: Summary, state: QuestionState) -> bool:
    """Whether log q/s goes with log s: the mass that is kept is the prefix's, not the token's.

    A log of another base, or another temperature, is lower where log s is, and by as much.
    """
    one, other = summary.columns[state.question.p], summary.columns[state.question.q]
    count, apart = state.tokens, 2 * state.total("raw_k2")
    across = (other.squares - one.squares - apart) / 2  # sum of log s · log q/s
    covariance = across / count - one.total / count * (other.total - one.total) / count
    variances = [one.squares / count - (one.total / count) ** 2]
    variances.append(apart / count - ((other.total - one.total) / count) ** 2)
    return bool(covariance**2 > SCALED * variances[0] * variances[1])


def _finding(summary: Summary, copies: list[tuple[QuestionState, float, float]]) -> Finding:
    (state, kept, error), *more = copies
    sampler, other = state.question.p, state.question.q
    value = state.total("k1") / state.tokens
    others = {one.question.q for one, _, _ in copies}
    spoiled = [q for q in summary.questions if q.sampler == sampler and others & {q.p, q.q}]
    also = "".join(f" Of {one.question.q} it is {mass:.3g}." for one, mass, _ in more)
    return Finding(
        code="sampler-truncated",
        severity="error",
        certainty="beyond-chance",
        questions=tuple(str(question) for question in spoiled),
        claim=(
            f"{sampler}'s log-probs are of after a top-k, top-p or min-p (processed), {other}'s of "
            f"before (raw): {other} gives what was drawn {kept:.4f} ± {error:.1g} times the "
            f"probability on average, and hardly ever more. That is the mass of {other} within "
            f"the kept sets; without a cut it would be 1.{also}"
        ),
        numbers={
            "kept_mass": {one.question.q: mass for one, mass, _ in copies},
            "standard_error": {one.question.q: own for one, _, own in copies},
            "k1_mean": value,
            "tokens": state.tokens,
        },
        cost=(
            f"{state.question} is the mean of −log kept mass, {value:.4g} nats per token, and the "
            f"other direction is infinite: neither is a drift. Weights {other}/{sampler} have mean "
            f"{kept:.3g} and scale every loss by it. {decided(value, 0.0)}"
        ).strip(),
        advice=f"Score {other} over the same kept set (renormalized), or sample without a cut. "
        f"Raw log-probs of {sampler} would hide the cut and not mend it.",
    )
