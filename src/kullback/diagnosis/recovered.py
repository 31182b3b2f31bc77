"""What a sampler drew with that its log-probs leave out: a temperature or a cut, recovered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.diagnosis.finding import Finding, decided
from kullback.diagnosis.fitted_temperature import ERRORS_LEFT, Fit, fitted
from kullback.diagnosis.sampler_tests import (
    SamplerTest,
    cause,
    chance,
    failing,
    sampled_by,
    sampler_tests,
)
from kullback.diagnosis.scaled import unit_of
from kullback.diagnosis.temperatures import line
from kullback.estimation.cut_state import PLACES, ROW, CutState
from kullback.estimation.slope_state import ONE_POLICY
from kullback.estimation.summary import Summary
from kullback.estimation.tempered_state import LONGEST

ROUNDING = 0.001  # of a share of draws, for logged masses
SAME = 0.03  # by which two temperatures that are one may be told apart
NEAR = 0.01  # how near to a cut of the grid the deepest draw comes if that is the one that was set


@dataclass(frozen=True, slots=True)
class Cut:
    """The cut that explains a sampler's draws best: it never drew beyond.

    Args:
        rule: ``top-k``, ``top-p`` or ``min-p``.
        edge: The cut that was looked at.
        drawn: How far the draws went, as the rule counts: no cut is tighter.
        gain: Log-likelihood of the cut less that of none, in nats.
        told: Prefixes whose heads reach to it.
        expected: Tokens that should have been drawn beyond, there.
        log_kept: Mean of −log of the mass that it keeps, there.
        first: The share of the likeliest token among the draws there.
        expected_first: That share, were the cut all that was left out.
        others: By other role that lists all that it keeps: the mass kept of that role, and
            KL(what is kept of the sampler‖that role), means over every 16th prefix.
    """

    rule: str
    edge: float
    drawn: float
    gain: float
    told: int
    expected: float
    log_kept: float
    first: float
    expected_first: float
    others: dict[str, tuple[float, float]]

    @property
    def kept(self) -> float:
        """Mean mass that it keeps of the sampler."""
        return 1 - self.expected / self.told

    @property
    def alone(self) -> bool:
        """Whether the cut explains how often the likeliest token was drawn."""
        noise = np.sqrt(self.expected_first * (1 - self.expected_first) / self.told)
        return bool(abs(self.first - self.expected_first) <= ERRORS_LEFT * noise + ROUNDING)

    @property
    def greedy(self) -> bool:
        """Whether it keeps the likeliest token alone."""
        return self.rule == "top-k" and self.drawn == 1

    @property
    def exact(self) -> bool:
        """Whether the draws went to the very edge that was looked at."""
        return abs(self.drawn - self.edge) <= NEAR * self.edge

    def __str__(self) -> str:
        if self.rule == "top-k":
            return f"top-k {self.drawn:.0f}"
        if self.exact:
            return f"{self.rule} {self.edge:g}"
        low, high = sorted((self.drawn, self.edge))
        return f"{self.rule} between {low:.3g} and {high:.3g}"


def tightest(state: CutState, but: str = "") -> Cut | None:
    """The cut that explains the draws best, of all rules but one; None if none does."""
    allowed = np.array([rule != but for rule, _ in PLACES])
    gains = np.where(allowed, state.sums[ROW["log_kept"]], 0.0)
    best = int(gains.argmax())
    if not gains[best] > 0:
        return None
    rule, edge = PLACES[best]
    rank, before, depth = state.deepest
    drawn = {"top-k": rank + 1, "top-p": before, "min-p": float(np.exp(-depth))}[rule]
    told = int(state.sums[ROW["told"], best])
    expected = float(state.sums[ROW["expected"], best])
    others = {}
    for name, rows in state.others.items():
        looked, listed, mass, kl = rows[:, best]
        if looked and listed == looked:  # where only some list all, these are a selection
            others[name] = (float(mass / listed), float(kl / listed))
    gain = float(gains[best])
    first, likely = (float(state.sums[ROW[term], best]) for term in ("firsts", "expected_firsts"))
    return Cut(
        rule=rule,
        edge=edge,
        drawn=drawn,
        gain=gain,
        told=told,
        expected=expected,
        log_kept=gain / told,
        first=first / told,
        expected_first=likely / told,
        others=others,
    )


def recovered(summary: Summary) -> dict[str, Finding]:
    """By sampler that fails tests, the finding of the one cause that explains them, if any does."""
    failed = failing(sampler_tests(summary))
    blamed = [test for test in failed if cause(summary, test, failed) == "sampler"]
    found = {
        role: _best(summary, role, [test for test in blamed if test.sampler == role])
        for role in dict.fromkeys(test.sampler for test in blamed)
    }
    return {role: one for role, one in found.items() if one is not None}


def _best(summary: Summary, role: str, failed: list[SamplerTest]) -> Finding | None:
    """The cause that explains the draws of a sampler best.

    A temperature and a cut each have a likelihood against that of the logged distribution, and so
    has another role that is taken to have sampled. None if that is larger, or neither fits.
    """
    kinds = {test.kind for test in failed}
    fit = fitted(summary.tempered[role]) if "tempering" in kinds else None
    cut = tightest(summary.cuts[role]) if "cut" in kinds else None
    other, log_p = _other_gain(summary, role), min((t.log_p for t in failed), default=0.0)
    by_cut, by_fit = (-np.inf if one is None else one.gain for one in (cut, fit))
    if cut and by_cut > other and (by_cut >= by_fit or cut.greedy) and not _cold(fit, cut):
        whole = cut.rule == "top-k" and cut.drawn >= min(summary.cuts[role].longest, LONGEST)
        inside = fit if fit and fit.fits and whole else None
        return _truncated(summary, role, cut, inside, log_p)
    if fit and (fit.fits or fit.extreme) and by_fit > other:
        return _temperature(summary, role, fit, log_p)
    return None


def _cold(fit: Fit | None, cut: Cut) -> bool:
    """Whether draws are so near to greedy that a temperature and a cut look alike.

    Not where the cut explains how often the likeliest token was drawn: never all the time, unless
    it keeps that alone.
    """
    return fit is not None and fit.extreme and fit.temperature < 1 and not cut.alone


def _other_gain(summary: Summary, role: str) -> float:
    """The log-likelihood of the draws under the likeliest other role less that under this one.

    A copy of the role at another temperature is no other explanation.
    """
    gains, copies = [0.0], _copies(summary, role)
    for question, state in summary.questions.items():
        if question.sampler == role:
            sides = ((question.p, "log_p_over_s"), (question.q, "log_q_over_s"))
            gains += [
                state.total(term)
                for other, term in sides
                if other != role and (role, other) not in copies
            ]
    return max(gains)


def _copies(summary: Summary, role: str) -> dict[tuple[str, str], float]:
    """The pairs of this role and one of the same policy at another temperature, and that."""
    found = {pair: line(state) for pair, state in summary.slopes.items() if pair[0] == role}
    return {
        pair: one.slope
        for pair, one in found.items()
        if one is not None and one.is_temperature and ONE_POLICY.issuperset(pair)
    }


def spoken(fit: Fit) -> str:
    """A temperature with its error, or its bound."""
    if fit.extreme:
        way = "less" if fit.temperature < 1 else "more"
        return f"{fit.temperature:.2g} or {way}"
    return f"{fit.temperature:.3f} ± {fit.error:.3f}"


def _temperature(summary: Summary, role: str, fit: Fit, log_p: float) -> Finding:
    code, alike, advice = "temperature-mismatch", "", f"Log {role}'s log-probs after temperature"
    copies = _copies(summary, role).items()
    near = [pair[1] for pair, slope in copies if abs(slope - fit.temperature) <= SAME]
    if near:
        alike = f" The log-probs of {near[0]} are those at this temperature."
        advice = f"Take {near[0]} as the sampler, or log {role}'s log-probs after temperature"
    elif fit.temperature > 1:  # so does any noise between two policies
        code = "sampler-mismatch"
        alike = " Other weights than those that were logged look alike: they flatten draws, too."
        if (unit := unit_of(fit.temperature, 2 * fit.error)) and not fit.extreme:
            alike += f" So do draws at temperature 1, with log-probs and heads in {unit}."
        advice += ", of the weights that drew"
    elif fit.extreme:
        alike = " So near to greedy a tight top-p or top-k looks alike."
    return Finding(
        code=code,
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, role),
        claim=(
            f"{role} did not draw as its log-probs say: within its logged heads {fit.count} "
            f"tokens fall as at temperature {spoken(fit)} of these log-probs. Its "
            f"likeliest token was drawn at {fit.first:.1%} of the prefixes, where that "
            f"temperature expects {fit.expected:.1%}. From the log-probs as logged such draws come "
            f"with a probability of at most {chance(log_p)}.{alike}"
        ),
        numbers={
            "temperature": fit.temperature,
            "standard_error": None if fit.extreme else fit.error,
            "tokens": fit.count,
            "log_gain": fit.gain,
            "log_p": log_p,
        },
        cost=(
            f"k1 and k3 answer for no policy: the tokens are those of {role} at that temperature, "
            "the log-probs are not. The corrected value is not identifiable from heads: it takes "
            "the normalizer over the whole vocabulary."
        ),
        advice=f"{advice}, or sample at temperature 1. Score with the trainer at the temperature "
        "that sampled, if that is the policy in training.",
    )


def _truncated(summary: Summary, role: str, cut: Cut, fit: Fit | None, log_p: float) -> Finding:
    state = summary.cuts[role]
    if cut.greedy:
        drew = f"{role} always drew its likeliest token (greedy, temperature 0 or top-k 1)"
    else:
        drew = f"{role} never drew beyond a {cut} of its own log-probs"
    claim = (
        f"{drew}: not once at {cut.told} prefixes, where {cut.expected:.4g} draws beyond were to "
        f"be expected. From the log-probs as logged such draws come with a probability of at most "
        f"{chance(log_p)}."
    )
    claim += "" if cut.alone else _besides(state, cut, fit)
    numbers, cost = _corrected(summary, role, cut)
    kept = {role: cut.kept} | {other: mass for other, (mass, _) in cut.others.items()}
    return Finding(
        code="sampler-truncated",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, role),
        claim=claim,
        numbers={
            "rule": cut.rule,
            "edge": cut.edge,
            "drawn": cut.drawn,
            "prefixes": cut.told,
            "of": state.prefixes,
            "expected_beyond": cut.expected,
            "kept_mass": kept,
            "log_p": log_p,
        }
        | numbers,
        cost=f"{_masses(kept)} {cost}",
        advice=f"Log {role}'s log-probs after the cut (processed), or the log of the kept mass "
        "beside them; or sample without a cut. A trainer that scores these tokens needs the same "
        "kept set.",
    )


def _besides(state: CutState, cut: Cut, fit: Fit | None) -> str:
    """What else was left out, where the cut alone does not explain the draws."""
    more = tightest(state, but=cut.rule)
    if more and (fit is None or more.gain > fit.gain):
        return f" Nor did it draw beyond a {more}."
    return f" Within its heads they fall as at temperature {spoken(fit)}." if fit else ""


def _masses(kept: dict[str, float]) -> str:
    (role, mass), *others = kept.items()
    told = f"The cut keeps {mass:.1%} of {role}'s mass"
    if others:
        told += " and " + ", ".join(f"{one:.1%} of {name}'s" for name, one in others)
    return f"{told}, on average where the heads reach."


def _corrected(summary: Summary, role: str, cut: Cut) -> tuple[dict[str, float], str]:
    """k1 of raw log-probs plus the mean of −log kept mass is the KL of what was drawn from."""
    prefixes = summary.cuts[role].prefixes
    why = ""
    if not cut.alone:
        why = (
            f"the likeliest token was drawn at {cut.first:.1%} of these prefixes, where the cut "
            f"alone expects {cut.expected_first:.1%}, so a temperature or another cut was left out "
            "besides"
        )
    elif cut.told < prefixes:
        why = f"the heads reach to the cut at {cut.told} of {prefixes} prefixes"
    if why:
        return {}, f"The corrected value is not identifiable: {why}. Log processed log-probs."
    for question, state in summary.questions.items():
        plain = question.p == question.sampler == role and state.tokens == cut.told
        if plain and not state.infinite and not state.missing:
            k1 = state.mean("k1")
            right, is_at = k1 + cut.log_kept, "is" if cut.exact else "is at least"
            return {"k1_raw": k1, "k1_corrected": right}, (
                f"KL({role} after the cut||{question.q}) {is_at} k1 plus the mean of −log kept "
                f"mass, {k1:.4g} + {cut.log_kept:.4g} = {right:.4g} nats per token, where k1 of "
                f"the raw log-probs says {k1:.4g}. {decided(k1, right)}"
            ).strip()
    return {}, f"Every ratio of {role} leaves the rest out."
