"""Are the log-probs of one role those of another times a factor? Bits beside nats, for example."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from kullback.diagnosis.clamped import FEWEST_BINS
from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.once import once
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "unit-or-scale"
FEWEST = 200  # tokens
# Share of the squared differences that a line through 0 explains, at least. Where q is likelier it
# must be more: a temperature between two that did not sample explains up to 0.82.
EXPLAINED = 0.7
LIKELIER = 0.9
# How far the line that need not go through 0 may be from it, as a log of slopes: the log-probs of
# a temperature or a cut are on a line, too, but on none through 0. Nor may it be near to slope 1,
# which is that of an offset.
BENT = 0.08
VARIED = 0.02  # share of the mean square of log p that is its variance; else any line goes through
LEAST = 0.05  # size of the log of a factor below which nothing is told
ERRORS = 8.0  # standard errors that the mean of q/p must be from 1, or its log from 0
CLEAR = 0.1  # noise of a role that shows the sampler's own scale, at most: a drift hides it
ALIKE = 0.2  # and the size of the log of its factor, as a share of the others'
UNITS = {1 / log(2): "bits (log2)", 1 / log(10): "decimal logarithms (log10)"}


@dataclass(frozen=True, slots=True)
class Factor:
    """log q = factor · log p, as far as a line through 0 says it.

    Args:
        factor: The slope.
        explained: The share of the squares of log q − log p that a slope other than 1 explains.
        noise: What it leaves, as a share of the squares of what it explains them by.
        bent: By how much the line that need not go through 0 is steeper, as a log.
        varied: The share of the mean square of log p that is its variance.
    """

    factor: float
    explained: float
    noise: float
    bent: float
    varied: float

    @property
    def tolerance(self) -> float:
        """How far the log of the factor may be off: a drift of q, too, moves it a little."""
        return 0.003 + 3 * self.noise

    def is_of(self, factor: float) -> bool:
        """Whether it can be this factor."""
        return abs(log(self.factor / factor)) <= self.tolerance

    @property
    def exact(self) -> float:
        """The factor of a unit, where it can be that; else the slope."""
        return next((factor for factor in UNITS if self.is_of(factor)), self.factor)

    @property
    def unit(self) -> str:
        """The unit of q if p is in nats, where the factor says one."""
        return UNITS.get(self.exact, "")

    @property
    def inverse(self) -> Factor:
        """The factor of p to q."""
        return Factor(1 / self.factor, self.explained, self.noise, -self.bent, self.varied)


@dataclass(frozen=True, slots=True)
class Scaled:
    """A role whose log-probs are those of others times a factor.

    Args:
        of: The others.
        factor: The factor to them.
        sure: Whether it is known that this role has it, and not the other.
        state: The state that shows it.
    """

    of: tuple[str, ...]
    factor: Factor
    sure: bool
    state: QuestionState


def factor_of(summary: Summary, state: QuestionState) -> Factor | None:
    """The line through 0 between the log-probs of a question; None where there is none."""
    p, q = (summary.columns[role] for role in (state.question.p, state.question.q))
    n, apart = state.tokens, 2 * state.total("raw_k2")
    if not (n == p.logged == q.logged >= FEWEST and 0 < apart < np.inf):
        return None  # sums over different tokens do not go together
    xx, yy, x, y = p.squares / n, q.squares / n, p.total / n, q.total / n
    xy = (xx + yy - apart / n) / 2
    spread, along = xx - x * x, xy - x * y
    if not (xx > 0 and xy > 0 and spread > 0 and along > 0):
        return None
    factor = xy / xx
    left = max(yy - xy * factor, 0.0)
    return Factor(
        factor=factor,
        explained=1 - left * n / apart,
        noise=left / (factor * factor * xx),
        bent=log(along / spread / factor),
        varied=spread / xx,
    )


@once
def scaled_roles(summary: Summary) -> dict[str, Scaled]:
    """The roles whose log-probs are those of others times a factor.

    Two policies are never so: both give all tokens together probability 1, so that q/p has mean 1
    at most, and what q lacks it gives to tokens that are not drawn, not in proportion to log p.
    """
    found: dict[str, Scaled] = {}
    for sampler in dict.fromkeys(question.sampler for question in summary.questions):
        asked = {q: s for q, s in summary.questions.items() if q.p == q.sampler == sampler}
        if not any(_differ(summary, question) for question in asked):
            continue
        fits = {q.q: (state, factor_of(summary, state)) for q, state in asked.items()}
        odd = {
            role: (state, factor)
            for role, (state, factor) in fits.items()
            if factor is not None and _is_scaled(state, factor)
        }
        if odd:
            sound = [
                role
                for role, (_, factor) in fits.items()
                if factor is not None and role not in odd and _vouches(factor, odd)
            ]
            found |= _blamed(sampler, odd, sound)
    return found


def _differ(summary: Summary, question: Question) -> bool:
    """Whether the sizes of the two columns differ as by a factor: a glance that costs nothing."""
    p, q = (summary.columns[role].size for role in (question.p, question.q))
    return bool(0 < p < np.inf and 0 < q < np.inf) and abs(log(q / p)) >= LEAST / 2


def _is_scaled(state: QuestionState, one: Factor) -> bool:
    size = abs(log(one.factor))
    least = EXPLAINED if one.factor > 1 else LIKELIER
    line = one.explained >= least and one.varied >= VARIED
    if not line or size < LEAST or abs(one.bent) > min(BENT, size / 3):
        return False
    if np.count_nonzero(state.log_q_over_p.counts) < FEWEST_BINS:
        return False  # a small world has few values, and through two there is always a line
    term = "raw_k1" if one.factor < 1 else "q_over_s"
    found = state.per_token(state.by_group(term))
    # Below 0 is no KL, and q/p below 1 on average is no policy that was seen whole.
    return found.mean <= -ERRORS * found.standard_error and found.mean < 0


def _vouches(one: Factor, odd: dict[str, tuple[QuestionState, Factor]]) -> bool:
    """Whether a role shows the sampler's own scale."""
    least = min(abs(log(factor.factor)) for _, factor in odd.values())
    return one.noise <= CLEAR and abs(log(one.factor)) <= ALIKE * least


def _blamed(
    sampler: str, odd: dict[str, tuple[QuestionState, Factor]], sound: list[str]
) -> dict[str, Scaled]:
    """The sampler where all others differ from it, else those that do; by the unit in doubt."""
    role = min(odd, key=lambda one: odd[one][1].noise)
    state, factor = odd[role]
    others = {
        one: Scaled((sampler, *sound), its, True, its_state)
        for one, (its_state, its) in odd.items()
    }
    own = {sampler: Scaled(tuple(odd), factor.inverse, True, state)}
    if sound:
        return others
    if factor.inverse.unit or (len(odd) > 1 and not factor.unit):
        return own
    if factor.unit:
        return others
    # Two roles, and no unit that says which of them it is.
    return {
        role: Scaled((sampler,), factor, False, state),
        sampler: Scaled((role,), factor.inverse, False, state),
    }


def diagnose_scaled(summary: Summary) -> Diagnosis:
    """Accuse a role whose log-probs are in another unit, or were multiplied."""
    scaled = scaled_roles(summary)
    findings, told = [], set()
    for role, one in scaled.items():
        pair = frozenset((role, *one.of))
        if one.sure or pair not in told:
            findings.append(_finding(summary, role, one))
        told.add(pair)
    checks = []
    for question, state in summary.questions.items():
        if question.p == question.sampler and (fit := factor_of(summary, state)) is not None:
            reason = (
                f"log {question.q} is {fit.factor:.3f} times log {question.p} by a line through 0, "
                f"which explains {max(fit.explained, 0):.0%} of their differences"
            )
            failed = not scaled.keys().isdisjoint((question.p, question.q)) and _is_scaled(
                state, fit
            )
            checks.append(Check(CODE, str(question), "failed" if failed else "passed", reason))
    return Diagnosis(tuple(findings), tuple(checks))


def _finding(summary: Summary, role: str, one: Scaled) -> Finding:
    state, factor = one.state, one.factor
    others, tokens = _listed(one.of), state.tokens
    p, q = state.question.p, state.question.q
    totals = {name: summary.columns[name].total / tokens for name in (p, q)}
    as_logged = totals[p] - totals[q]
    totals[role] /= factor.exact
    right = totals[p] - totals[q]
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(
            dict.fromkeys(
                text
                for name in ((role,) if one.sure else (role, *one.of))
                for text in summary.asked_of(name)
            )
        ),
        claim=(
            f"The log-probs of {role} are {factor.factor:.4f} times those of {others}: over "
            f"{tokens} tokens a line through 0 explains {factor.explained:.1%} of the squared "
            f"differences. No two policies are so: the probabilities of one of them do not add up "
            f"to 1. {_reading(role, others, one)}"
        ),
        numbers={
            "factor": factor.factor,
            "explained": factor.explained,
            "unit": factor.unit or None,
            "tokens": tokens,
            "k1_mean": as_logged,
            "k1_in_one_unit": right,
        },
        cost=f"KL({p}||{q}) is {as_logged:.4g} nats per token by k1 as logged, and {right:.4g} "
        f"without the factor. {decided(as_logged, right)}".rstrip(),
        advice=_advice(role, one),
        where=tuple(str(token.place) for token in state.top_k1[:3]),
    )


def _reading(role: str, others: str, one: Scaled) -> str:
    factor = one.factor
    if factor.unit:
        told = f"So {role} is in {factor.unit}, if {others} {_are(one.of)} in nats."
        temperature = 1 / factor.factor
        near = round(temperature, 1)
        if near > 0 and near != 1 and factor.is_of(1 / near):
            told += f" Log-probs divided by a temperature of {near:g} look alike."
        return told
    which = f"{role} was multiplied" if one.sure else f"{role} or {others} was multiplied"
    return (
        f"So {which}: divided by a temperature behind the log-softmax, by a count, or weighted by "
        "a coefficient."
    )


def _listed(names: tuple[str, ...]) -> str:
    """Names in a sentence."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _are(names: tuple[str, ...]) -> str:
    return "are" if len(names) > 1 else "is"


def _advice(role: str, one: Scaled) -> str:
    factor = one.factor.factor
    if one.factor.unit:
        base = 2 if factor > 1 else 10
        return (
            f"Log natural logarithms: multiply {role} by log {base} = {log(base):.4f}, and its "
            "heads and entropies with it if they are in the same unit."
        )
    return (
        f"Look for what multiplies {role} by {factor:.4g} between the log-softmax and the log. A "
        "temperature belongs before the log-softmax: it changes the normalizer."
    )


def unit_of(factor: float, near: float) -> str:
    """The unit whose factor to nats is near to this one; else nothing."""
    return next((name for value, name in UNITS.items() if abs(factor - value) <= near), "")


def spoken_factor(factor: float, error: float) -> str:
    """What a factor of −log p to the entropy can come from, if it is that of a unit."""
    told = f": −log p is {factor:.3f} ± {error:.2g} times H on average"
    if unit := unit_of(factor, 2 * error):
        return f"; or log-probs in {unit} beside an entropy in nats{told}"
    if factor > 0 and (unit := unit_of(1 / factor, 2 * error / factor**2)):
        return f"; or an entropy in {unit} beside log-probs in nats{told}"
    return ""
