"""What an honest sampler passes: tests whose level is one per cent per report, together."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from kullback.columns import BFLOAT16
from kullback.diagnosis.alignment import UNRELATED, shifted_roles
from kullback.diagnosis.fitted_temperature import log_likelihoods, rounding
from kullback.diagnosis.once import once
from kullback.diagnosis.rejected import cut_by_rejection
from kullback.diagnosis.soundness import scored, unfit
from kullback.estimation.column_state import ColumnState
from kullback.estimation.cut_state import ROW as CUT_ROW
from kullback.estimation.interval import ratio_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sampler_state import SamplerState
from kullback.estimation.summary import Summary
from kullback.estimation.tempered_state import EXPONENTS

ALPHA = 0.01  # probability that a report on honest data accuses any sampler
FEWEST_PREFIXES = 500  # below, no entropy test: t does not hold for heavy tails
FEWEST_MISSES = 20.0  # variance of the head's hits, about the misses expected: below, no head test
FEWEST_CLUSTERS = 4  # effective ones; likewise
# What float32 log-softmax kernels over 50,000 ids were seen to differ by, in nats.
FLOAT32_FLOOR = 4e-5
ALIEN = 0.5  # the same, where another role is related to the sampler
RELATED = 0.9  # size of its correlation, at least
FEWEST_APART = 2  # sequences of other tokens, where those of most are the same
TWO_KINDS = 0.8  # share of sequences that are clearly of the same tokens or clearly not
NEARLY_ALL = 0.9  # share of pairs of sequences that begin alike where a prompt is counted
PROMPT = 5.0  # nats that such a beginning costs; a sharper sampler saves a few tokens
FITTED = 5.0  # standard errors by which q beats even its own samples, at least, if it was fitted
FIXED = ("reference", "teacher")  # roles that nobody trains on the tokens


@dataclass(frozen=True, slots=True)
class SamplerTest:
    """One test of one sampler.

    Args:
        kind: ``bound``, ``bet``, ``entropy``, ``heads``, ``tempering``, ``cut``, ``openings`` or
            ``recall``.
        sampler: The role that is said to have sampled.
        other: For the bound and the bet, the role that it is compared with.
        log_p: Log of the probability of such a result, at most, if the sampler is honest.
        slack: What rounding of the logged numbers may have taken from it at most.
        mean: Mean of log other/sampler, of the bet's log gain, of −log p − H, of hits less head
            mass, of the log gain of another temperature, of a cut or of bets on what was seen
            before, or of what a pair's like openings cost.
        z: The mean in standard errors, for ``entropy`` and ``heads``; else NaN.
        count: Tokens, or prefixes, or pairs of sequences.
    """

    kind: str
    sampler: str
    other: str
    log_p: float
    slack: float
    mean: float
    z: float
    count: int


@once
def sampler_tests(summary: Summary) -> tuple[SamplerTest, ...]:
    """Every test that the dump allows, each sampler and pair once.

    None holds for a selection of the tokens that were drawn.
    """
    if cut_by_rejection(summary):
        return ()
    bounds: dict[tuple[str, str], SamplerTest] = {}
    bets: dict[tuple[str, str], SamplerTest] = {}
    for question, state in summary.questions.items():
        if unfit(summary, question):
            continue
        for other, term in ((question.p, "log_p_over_s"), (question.q, "log_q_over_s")):
            pair = (question.sampler, other)
            if other == question.sampler:
                continue
            slack = sum_rounding(summary, pair, state.tokens)
            if pair not in bounds:
                # P(∏ other/sampler ≥ e^c) ≤ e^−c: the product is a non-negative martingale.
                bounds[pair] = _product("bound", pair, state, term, slack)
            if other == question.q and pair not in bets:
                bets[pair] = _product("bet", pair, state, "bet", slack)
    samplers = dict.fromkeys(question.sampler for question in summary.questions)
    means = [
        test
        for role in samplers
        for kind in ("entropy", "heads")
        if (test := mean_test(summary, role, kind)) is not None
    ]
    given = [
        test(summary, role)
        for role in samplers
        if role in summary.shared and scored(summary, role)
        for test in (_openings, _recall)
    ]
    headed = [
        test(summary, role)
        for role in summary.tempered
        if scored(summary, role) and _sound(summary, role) and role not in shifted_roles(summary)
        for test in (_tempering, _cut)
    ]
    return (*bounds.values(), *bets.values(), *means, *headed, *given)


def _product(
    kind: str, pair: tuple[str, str], state: QuestionState, term: str, slack: float
) -> SamplerTest:
    """A product with mean 1 at most under the sampler, from the sum of its logs.

    The bound is the product of all ratios, and falls by every token that q likes less: it is blind
    to columns of different tokens, which leave the sum of k1 as it was. Of a bet of a tenth, little
    is lost at each of these, and it is won back wherever q/s is large.
    """
    total = state.total(term)
    mean, log_p = total / state.tokens, min(0.0, -total)
    return SamplerTest(kind, *pair, log_p, slack, mean, np.nan, state.tokens)


def _openings(summary: Summary, role: str) -> SamplerTest:
    """What N pairs share at their start is in law at most a sum of N exponentials (Chernoff)."""
    state, column = summary.shared[role], summary.columns[role]
    ratio = state.surprise / state.pairs if state.pairs else 0.0
    log_p = min(0.0, state.pairs * (1.0 - ratio + log(ratio))) if ratio > 1.0 else 0.0
    slack = FLOAT32_FLOOR * state.tokens + BFLOAT16 * state.surprise * column.bfloat16
    mean = state.surprise / state.alike if state.alike else 0.0
    return SamplerTest("openings", role, "", log_p, slack, mean, np.nan, state.pairs)


def _recall(summary: Summary, role: str) -> SamplerTest:
    """Bets that tokens follow others as they did before: mean 1 at most under the sampler."""
    state, column = summary.recalls[role], summary.columns[role]
    slack = FLOAT32_FLOOR * state.bets + _rounded(column, state.size, state.bets)
    log_p, mean = min(0.0, -state.log_gain), state.log_gain / max(state.bets, 1)
    return SamplerTest("recall", role, "", log_p, slack, mean, np.nan, state.bets)


def _sound(summary: Summary, role: str) -> bool:
    """Whether the heads are of one distribution, that of the sampled log-probs."""
    state = summary.distributions[role]
    return not state.heavy and not state.differing


def _tempering(summary: Summary, role: str) -> SamplerTest:
    """Another temperature of its own head as a bet, mixed over a grid: mean 1 under the sampler.

    Given that the token falls into the head, p(x)^β / Σ p^β against the same at β = 1.
    """
    state = summary.tempered[role]
    gains = log_likelihoods(state)
    others = np.flatnonzero(EXPONENTS != 1)
    lost = rounding(state, BFLOAT16 * state.bfloat16, FLOAT32_FLOOR)
    count = int(state.by_group("inside").sum())
    return _mixture("tempering", role, gains[others], lost[others], count)


def _cut(summary: Summary, role: str) -> SamplerTest:
    """Never beyond a cut of its own head, ∏ m at most, mixed over all cuts that are looked for."""
    state = summary.cuts[role]
    told, size = state.sums[CUT_ROW["told"]], state.sums[CUT_ROW["size"]]
    gains, least = state.sums[CUT_ROW["log_kept"]], state.sums[CUT_ROW["expected"]]
    moved = FLOAT32_FLOOR * told + BFLOAT16 * state.bfloat16 * size
    # ∏ (m + ε) ≤ exp(−Σ (1 − m − ε)): what rounding leaves of the evidence.
    lost = gains - np.maximum(least - moved, 0.0)
    return _mixture("cut", role, gains, lost, state.prefixes)


def _mixture(
    kind: str, role: str, gains: NDArray[np.float64], lost: NDArray[np.float64], count: int
) -> SamplerTest:
    """The mean of several products with mean 1 at most is one, too."""
    total, left = (
        float(np.logaddexp.reduce(some)) - log(len(gains)) for some in (gains, gains - lost)
    )
    log_p = min(0.0, -total)
    return SamplerTest(kind, role, "", log_p, total - left, total / max(count, 1), np.nan, count)


def sum_rounding(summary: Summary, pair: tuple[str, str], tokens: int) -> float:
    """The most that rounding can add to the sum of log other/sampler, in nats."""
    columns = [summary.columns[role] for role in pair]
    return FLOAT32_FLOOR * tokens + sum(_rounded(one, one.size, one.tokens) for one in columns)


def _rounded(column: ColumnState, size: float, tokens: int) -> float:
    """The most that the grid of a column can have added to a sum of its log-probs, in nats.

    Half a step of decimals is no small part of a log-prob near 0, and moves all of them one way.
    """
    if column.bfloat16:
        return BFLOAT16 * size
    name, step = column.grid
    told = "decimal" in name and column.low < column.high  # one value stands on some grid
    return 0.5 * step * tokens if told else 0.0


@once
def mean_test(summary: Summary, role: str, kind: str) -> SamplerTest | None:
    """A t test that a martingale's mean is 0.

    Its error is the larger of two: the clustered one, which few clusters make too small in one
    report of many, and the martingale's own. What rounding can have made of the mean is taken off.
    """
    from scipy.special import log_ndtr, stdtr

    state = summary.samplers.get(role)
    if state is None or not scored(summary, role):
        return None
    if kind == "heads" and summary.distributions[role].heavy:
        return None
    above, below = {"entropy": ("surprise", "prefixes"), "heads": ("hits", "heads")}[kind]
    sums, sizes = state.by_group(above), state.by_group(below)
    count = int(sizes.sum())
    effective, variance = state.effective_clusters(below), state.by_group(f"{above}_variance").sum()
    if not _can_tell(state, kind, count, variance) or effective < FEWEST_CLUSTERS:
        return None
    filled = sizes > 0
    found = ratio_interval(sums[filled], sizes[filled], effective=effective, confidence=0.95)
    error = max(found.standard_error, float(np.sqrt(variance)) / count)
    rounding = _rounding(summary.columns[role], state, kind, count)
    z = float(np.sign(found.mean)) * max(abs(found.mean) - rounding, 0.0) / error
    p = 2 * float(stdtr(effective - 1, -abs(z)))
    log_p = log(p) if p > 0 else float(log_ndtr(-abs(z)))
    return SamplerTest(kind, role, "", log_p, 0.0, found.mean, z, count)


def _can_tell(state: SamplerState, kind: str, count: int, variance: float) -> bool:
    """Whether there is enough to test, and nothing left out because of what was drawn."""
    if kind == "heads":
        return bool(variance >= FEWEST_MISSES)
    return count >= FEWEST_PREFIXES and not state.by_group("unlogged").any() and variance > 0


def _rounding(column: ColumnState, state: SamplerState, kind: str, count: int) -> float:
    """The most that rounding can add to the mean of a test."""
    if kind == "heads":
        return FLOAT32_FLOOR + BFLOAT16 * column.bfloat16
    entropy = float(state.by_group("entropy").sum()) / count * state.bfloat16
    return (
        FLOAT32_FLOOR
        + _rounded(column, column.size, column.tokens) / column.tokens
        + BFLOAT16 * entropy
    )


def sampled_by(summary: Summary, sampler: str) -> tuple[str, ...]:
    """The questions whose tokens a role is said to have sampled."""
    return tuple(str(question) for question in summary.questions if question.sampler == sampler)


def failing(tests: tuple[SamplerTest, ...]) -> tuple[SamplerTest, ...]:
    """The tests that fail, at a level shared out so that a report errs in one per cent at most."""
    return tuple(test for test in tests if test.log_p + test.slack < log(ALPHA / len(tests)))


def compared(summary: Summary, test: SamplerTest) -> QuestionState:
    """The state that sets the log-probs of the two roles of a bet against each other."""
    pair = (test.sampler, test.other)
    states = summary.questions.items()
    return next(state for q, state in states if (q.sampler, q.q) == pair)


def partly_alien(summary: Summary, bet: SamplerTest) -> bool:
    """Whether in some sequences the two go together, and in the others hardly.

    A wrong sampler, or policies far apart, differ by degrees.
    """
    rows = compared(summary, bet).related
    two_kinds = rows.near + rows.apart >= TWO_KINDS * rows.told
    return FEWEST_APART <= rows.apart < rows.near and two_kinds


def cause(summary: Summary, test: SamplerTest, failed: tuple[SamplerTest, ...]) -> str:
    """What a failing test speaks of: the ``sampler``, or ``misaligned``, ``in-sample``, and so on.

    A pair whose bet fails and whose log-probs are hardly correlated is misaligned, and no other
    test says anything of it. Sequences that begin alike count their prompt if nearly all of them
    do, at a cost that no sharper sampler could have saved; so do words that are said again.
    """
    if test.kind == "openings":
        state = summary.shared[test.sampler]
        alike = state.alike >= NEARLY_ALL * state.pairs and test.mean >= PROMPT
        return "prompt" if alike else "sampler"
    if test.kind == "recall":
        return summary.recalls[test.sampler].cause
    pair = (test.sampler, test.other)
    bets = (one for one in failed if one.kind == "bet" and (one.sampler, one.other) == pair)
    bet = next(bets, None)
    if bet and _alien(summary, bet):
        return "misaligned"
    return "in-sample" if _fitted(summary, test, failed) else "sampler"


def _alien(summary: Summary, bet: SamplerTest) -> bool:
    """Whether the two columns are hardly of the same tokens.

    Rows shuffled within a small batch keep some of their places, and some correlation; then
    another role shows what that of the same tokens is. Or only some rows are of other tokens.
    """
    if partly_alien(summary, bet):
        return True
    own = abs(compared(summary, bet).correlation)
    others = [
        abs(state.correlation)
        for question, state in summary.questions.items()
        if question.sampler == bet.sampler and question.q not in (bet.sampler, bet.other)
    ]
    return own < UNRELATED or (own < ALIEN and max(others, default=0.0) > RELATED)


def _fitted(summary: Summary, test: SamplerTest, failed: tuple[SamplerTest, ...]) -> bool:
    """Whether q was likelier trained on these tokens than s is the wrong sampler.

    The entropy must vouch for s, or a temperature or top-p explains it; and q, which somebody
    trains, must do better than on tokens of its own. A third policy beyond q does that too.
    """
    if test.kind not in ("bound", "bet") or test.other in FIXED:
        return False
    accused = any(
        one.sampler == test.sampler and one.kind in ("entropy", "heads") for one in failed
    )
    if accused or mean_test(summary, test.sampler, "entropy") is None:
        return False
    return lead(summary, test)[2] >= FITTED


def lead(summary: Summary, test: SamplerTest) -> tuple[float, float, float]:
    """By how much q beats s on these tokens, what q's own would show, and the gap's z.

    Of tokens that q sampled, p/q has mean 1, so d = log q/p has about the mean of ½ d².
    """
    for question, state in summary.questions.items():
        if (question.p, question.q, question.sampler) == (test.sampler, test.other, test.sampler):
            gains, own = -state.by_group("raw_k1"), state.by_group("raw_k2")
            found = state.per_token(gains - own)
            z = found.mean / found.standard_error if found.standard_error > 0 else 0.0
            return float(gains.sum()) / state.tokens, float(own.sum()) / state.tokens, z
    return np.nan, np.nan, 0.0


def chance(log_p: float) -> str:
    """A probability, spoken from its logarithm."""
    return f"{exp(log_p):.2g}" if log_p > -650 else f"1e{log_p / log(10):.0f}"
