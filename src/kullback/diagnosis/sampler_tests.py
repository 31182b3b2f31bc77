"""What an honest sampler passes: tests whose level is one per cent per report, together."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from kullback.diagnosis.alignment import is_shifted, shifted_roles
from kullback.diagnosis.boundaries import badly_packed
from kullback.diagnosis.column_faults import holds_log_probs
from kullback.diagnosis.environment import unscored_inside
from kullback.diagnosis.openings import opens_unscored
from kullback.diagnosis.rejected import cut_by_rejection
from kullback.estimation.column_state import ColumnState
from kullback.estimation.interval import ratio_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sampler_state import SamplerState
from kullback.estimation.summary import Summary
from kullback.question import Question

ALPHA = 0.01  # probability that a report on honest data accuses any sampler
FEWEST_PREFIXES = 500  # below, no entropy test: t does not hold for heavy tails
FEWEST_MISSES = 20.0  # variance of the head's hits, about the misses expected: below, no head test
FEWEST_CLUSTERS = 4  # effective ones; likewise
# What float32 log-softmax kernels over 50,000 ids were seen to differ by, in nats.
FLOAT32_FLOOR = 4e-5
BFLOAT16 = 2.0**-9  # relative rounding error, half a unit in the last of eight bits
UNRELATED = 0.3  # size of a correlation below which two columns may be of different tokens
NEARLY_ALL = 0.9  # share of pairs of sequences that begin alike where a prompt is counted
REJECTED = "the mask was cut by log-ratios, and what is left is a selection"
PROMPT = 5.0  # nats that such a beginning costs; a sharper sampler saves a few tokens


@dataclass(frozen=True, slots=True)
class SamplerTest:
    """One test of one sampler.

    Args:
        kind: ``bound``, ``bet``, ``entropy``, ``heads`` or ``openings``.
        sampler: The role that is said to have sampled.
        other: For the bound and the bet, the role that it is compared with.
        log_p: Log of the probability of such a result, at most, if the sampler is honest.
        slack: What rounding of the logged numbers may have taken from it at most.
        mean: Mean of log other/sampler, of the bet's log gain, of −log p − H, of hits less head
            mass, or of what a pair's like openings cost.
        z: The mean in standard errors; NaN for the bound, the bet and the openings.
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
            slack = _slack(summary, pair, state.tokens)
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
        if (test := _mean_test(summary, role, kind)) is not None
    ]
    openings = [
        _openings(summary, role)
        for role in samplers
        if role in summary.shared and scored(summary, role)
    ]
    return (*bounds.values(), *bets.values(), *means, *openings)


def _product(
    kind: str, pair: tuple[str, str], state: QuestionState, term: str, slack: float
) -> SamplerTest:
    """A product with mean 1 at most under the sampler, from the sum of its logs.

    The bound is the product of all ratios, a bet of all of the stake on q against s. It falls by
    every token that q likes less, and so is blind to columns of different tokens, which leave the
    sum of k1 as it was. Of a bet of a tenth, little is lost at each of these, and it is won back
    wherever q/s is large.
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


def scored(summary: Summary, role: str) -> bool:
    """Whether the column holds log-probs of what it is said to, at every token."""
    blank = opens_unscored(summary, role) or unscored_inside(summary, role)
    elsewhere = blank or role in badly_packed(summary)
    return holds_log_probs(summary.columns[role]) and not elsewhere


def unfit(summary: Summary, question: Question) -> str:
    """Why the product of its ratios is no martingale, even if the sampler is honest; else nothing.

    It is none over a selection: a token outside a support makes the whole product 0 and is left
    out of the sums, and a log-prob may be missing because of what was drawn. Nor is it one if a
    column holds something else, or stands elsewhere.
    """
    state = summary.questions[question]
    if cut_by_rejection(summary):
        return REJECTED
    for role in question.roles:
        if not scored(summary, role):
            return f"what stands in the column of {role} is not its log-probs throughout"
    if not state.tokens:
        return "no token has the log-probs of both"
    if state.infinite or state.missing:
        return (
            f"{state.infinite + state.missing} log-probs are infinite or missing, perhaps "
            "because of what was drawn"
        )
    if is_shifted(state) or shifted_roles(summary) & set(question.roles):
        return "the columns are shifted against each other"
    return ""


def _slack(summary: Summary, pair: tuple[str, str], tokens: int) -> float:
    """The most that rounding can add to the sum of log other/sampler, in nats."""
    columns = [summary.columns[role] for role in pair]
    return FLOAT32_FLOOR * tokens + sum(BFLOAT16 * c.size for c in columns if c.bfloat16)


def _mean_test(summary: Summary, role: str, kind: str) -> SamplerTest | None:
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
    logs = column.size / column.tokens * column.bfloat16
    entropy = float(state.by_group("entropy").sum()) / count * state.bfloat16
    return FLOAT32_FLOOR + BFLOAT16 * (logs + entropy)


def failing(tests: tuple[SamplerTest, ...]) -> tuple[SamplerTest, ...]:
    """The tests that fail, at a level shared out so that a report errs in one per cent at most."""
    return tuple(test for test in tests if test.log_p + test.slack < log(ALPHA / len(tests)))


def correlation(summary: Summary, test: SamplerTest) -> float:
    """Of the log-probs of the two roles of a bet."""
    pair = (test.sampler, test.other)
    states = summary.questions.items()
    return next(state.correlation for q, state in states if (q.sampler, q.q) == pair)


def cause(summary: Summary, test: SamplerTest, failed: tuple[SamplerTest, ...]) -> str:
    """What a failing test speaks of: ``misaligned`` columns, a counted ``prompt``, the ``sampler``.

    A pair whose bet fails and whose log-probs are hardly correlated is misaligned, and no other
    test says anything of it. Sequences that begin alike count their prompt if nearly all of them
    do, and at a cost that no sharper sampler could have saved.
    """
    if test.kind == "openings":
        state = summary.shared[test.sampler]
        alike = state.alike >= NEARLY_ALL * state.pairs and test.mean >= PROMPT
        return "prompt" if alike else "sampler"
    pair = (test.sampler, test.other)
    bets = (one for one in failed if one.kind == "bet" and (one.sampler, one.other) == pair)
    bet = next(bets, None)
    return "misaligned" if bet and abs(correlation(summary, bet)) < UNRELATED else "sampler"


def chance(log_p: float) -> str:
    """A probability, spoken from its logarithm."""
    return f"{exp(log_p):.2g}" if log_p > -650 else f"1e{log_p / log(10):.0f}"
