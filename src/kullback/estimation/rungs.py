"""The rungs above sampled log-probs: heads, an exact KL at some positions, or at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.auto import auto
from kullback.estimation.conditions import FEW_CLUSTERS
from kullback.estimation.estimate import Estimate, no_interval, no_number, ratio_of, sizes_of
from kullback.estimation.interval import NOTHING, Interval, widened_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rungs_state import FEWEST_KNOWN, FEWEST_SAMPLED, ROW
from kullback.formulas import partial
from kullback.formulas.claim import UNSELECTED

FEWEST_OUTSIDE = 20.0  # expected tokens outside the heads, below which no multiple is fitted
COLUMNS_MATCH = "the exact columns are of these policies"
HEADS_MATCH = "the heads are of these policies"


class Adjusted(NamedTuple):
    """Sums by cluster whose ratio is the estimate, their sizes, and what was done."""

    above: NDArray[np.float64]
    below: NDArray[np.float64]
    effective: float
    said: tuple[str, ...]
    control: NDArray[np.float64] | None = None  # of mean 0, and heavy-tailed


def best_rung(state: QuestionState) -> str:
    """The highest rung that a state has data for; ``auto`` where it has none.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.question import Question
        >>> columns = pack({"p": [[-1.0]], "q": [[-1.5]]}, exact={"KL(p||q)": [[0.25]]})
        >>> best_rung(QuestionState.of(columns, Question("p", "q")))
        'rao_blackwell'
    """
    there = rungs_of(state)
    if "rao_blackwell" in there:
        return "rao_blackwell"
    known = state.rungs.total("known")
    if "subset" in there and (known >= FEWEST_KNOWN or "partial" not in there):
        return "subset"
    return "partial" if "partial" in there else "auto"


def rungs_of(state: QuestionState) -> tuple[str, ...]:
    """The rungs that a state has data for, whatever becomes of them."""
    found = ["partial", "bound"] if state.rungs.total("headed") else []
    known = state.total("exact_tokens")
    if known and known >= state.tokens + state.missing + state.infinite:
        found.append("rao_blackwell")
    elif state.rungs.total("known"):
        found.append("subset")
    return tuple(found)


def from_rungs(
    state: QuestionState, method: str, confidence: float, *, scope: str, in_sample: bool
) -> Estimate:
    """The estimate by one of ``RUNGS``, for new clusters."""
    reason = _no_rung(state, method)
    found, interval, lam = None, NOTHING, NOTHING.mean
    if reason is None:
        found = _FORMS[method](state)
        interval, lam = _interval(state, found, confidence)
        reason = no_interval(state, interval, found.effective)
    effective = state.effective_clusters() if found is None else found.effective
    return Estimate(
        **interval._asdict(),
        confidence=confidence,
        count=state.tokens,
        clusters=state.groups.clusters,
        effective_clusters=effective,
        question=state.question,
        method=method,
        lam=lam,
        scope=scope,
        assumptions=() if found is None else found.said,
        marks=_marks(state, method, effective, in_sample),
        reason=reason,
    )


def _interval(state: QuestionState, found: Adjusted, confidence: float) -> tuple[Interval, float]:
    """The widened interval; with a control whose tail is heavy, the tapered one, and its λ."""
    how = {"effective": found.effective, "confidence": confidence}
    if found.control is None:
        return widened_interval(found.above, found.below, **how), NOTHING.mean
    tapered = auto(state, found.above, found.above + found.control, found.below, **how)
    return tapered.interval, tapered.lam


def _no_rung(state: QuestionState, method: str) -> str | None:
    question, rungs = state.question, state.rungs
    if method == "rao_blackwell":
        return no_number(state, "exact")
    if question.weight != "none":
        return f"{method} is for tokens that {question.p} sampled; here {question.sampler} did"
    if question.level == "sequence_mean":
        return f"{method} answers per token and per sequence only"
    if reason := no_number(state, "k1"):
        return reason
    if method == "subset":
        if not rungs.total("known"):
            return "the exact KL is known nowhere"
        return _infinite(rungs.total("known_exact"), "the exact KL is infinite at a prefix")
    if not rungs.total("headed"):
        return (
            "no prefix has ids of which both log-probs are known: it needs the heads of "
            f"{question.p} and {question.q}, and the sampled ids"
        )
    return _infinite(rungs.total("bound"), f"{question.q} rules out what {question.p} lists")


def _infinite(total: float, why: str) -> str | None:
    return None if np.isfinite(total) else f"infinite: {why}"


def _marks(state: QuestionState, method: str, effective: float, in_sample: bool) -> tuple[str, ...]:
    marks = {
        "biased": method.startswith("biased"),
        "lower-bound": method == "bound",
        "in-sample": in_sample,
        "missing-values": bool(state.missing),
        "few-clusters": effective < FEW_CLUSTERS,
    }
    return tuple(name for name, there in marks.items() if there)


def _below(state: QuestionState) -> tuple[NDArray[np.float64], float]:
    """The sizes of the clusters at the level of the question, and the effective number of them."""
    below = ratio_of(state.question, "k1")[1]
    return state.by_group(below), state.effective_clusters(sizes_of(below))


def _rao_blackwell(state: QuestionState) -> Adjusted:
    above, below = ratio_of(state.question, "exact")
    effective = state.effective_clusters(sizes_of(below))
    return Adjusted(state.by_group(above), state.by_group(below), effective, (COLUMNS_MATCH,))


def _partial(state: QuestionState) -> Adjusted:
    """The conditional form less the multiples of its two bounded controls that fit it best.

    Each half of the clusters takes the multiples that the other half asks for: so they do not
    depend on what they multiply, and what is subtracted has mean 0. The third control, r − 1
    outside the heads, is to them what r − 1 is to k1: it takes most of the noise of a smooth tail
    away and fails at holes in it, so it is tapered as auto is.
    """
    sums = state.rungs.groups.over(state.groups)
    above = state.by_group("k1") + sums[ROW["conditional"]]
    half = _half(state)
    for side in (0, 1):
        multiple = _multiples(sums[:, half != side])
        controls = sums[[ROW["control"], ROW["centred"]]]
        above = above - np.where(half == side, multiple @ controls, 0.0)
    said = (*partial.CLAIMS["conditional"].conditions, *_told(state))
    return Adjusted(above, *_below(state), said, sums[ROW["tail"]])


def _multiples(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares for the two controls, from sums of their mean products; 0 if little is known.

    The guess is taken once at most, and never turned round: where log(p/q) outside the heads has
    nothing to do with it, its multiple is that of a few tokens, of any size.
    """
    names = ("spread", "spread_both", "spread_centred", "cross", "cross_centred")
    one, both, guess, wanted, wanted_guess = sums[[ROW[name] for name in names]].sum(axis=1)
    if one < FEWEST_OUTSIDE or not np.isfinite([guess, wanted, wanted_guess]).all():
        return np.zeros(2)
    left = guess - both * both / one  # of the guess, when the other control is taken out of it
    fitted = (wanted_guess - both * wanted / one) / left if left > 1e-9 * guess else 0.0
    taken = min(max(fitted, 0.0), 1.0)
    return np.array([(wanted - taken * both) / one, taken])


def _told(state: QuestionState) -> tuple[str, ...]:
    """What a reader must know of the heads."""
    headed = int(state.rungs.total("headed"))
    told = [HEADS_MATCH]
    if headed < state.tokens:
        told.append(f"heads at {headed} of {state.tokens} prefixes, elsewhere none")
    if state.rungs.heavy:
        told.append(f"heads that weigh more than 1 were left out, at {state.rungs.heavy} prefixes")
    return tuple(told)


def _of_heads(name: str) -> Callable[[QuestionState], Adjusted]:
    def found(state: QuestionState) -> Adjusted:
        above = state.rungs.groups.over(state.groups)[ROW[name]]
        return Adjusted(above, *_below(state), _told(state))

    return found


def _subset(state: QuestionState) -> Adjusted:
    """The mean of the exact KL where it is known, steadied by the lower bound, known everywhere.

        T = mean_S(exact) − b (mean_S(h) − mean_all(h))

    T is linearized cluster by cluster, which has both phases of the sampling in it: the positions
    are a sample of the tokens, the clusters one of their kind. The multiple b is the slope of the
    exact KL against the bound h over the positions of the other half of the clusters; a slope over
    clusters would hang on a few of them. Without heads, or with few positions, b is 0: k3 as a
    proxy knows the token and little of the prefix, and one hit of a hole would spoil it.
    Two-phase sampling: Cochran 1977, ch. 12.
    """
    sums, tokens = state.rungs.groups.over(state.groups), state.by_group("tokens")
    known, exact = sums[ROW["known"]], sums[ROW["known_exact"]]
    count, mean = float(known.sum()), float(exact.sum() / known.sum())
    influence = (exact - mean * known) / count
    effective, form = state.rungs.groups.effective(ROW["known"]), "the subset alone"
    enough = count >= FEWEST_KNOWN and effective >= FEWEST_SAMPLED
    if enough and state.rungs.total("headed"):
        form = "with the lower bound from the heads at all of them"
        h, half = sums[ROW["bound"]].sum() / tokens.sum(), _half(state)
        control = (sums[ROW["known_bound"]] - h * known) / count
        control = control - (sums[ROW["bound"]] - h * tokens) / tokens.sum()
        shift = np.array([_slope(sums[:, half != side]) for side in (0, 1)])[half] * control
        mean -= float(shift.sum())
        influence = (exact - mean * known) / count - shift
    # Sums whose ratio is the mean, and whose residuals are its influences; per sequence it is the
    # KL per token times the tokens per sequence.
    above = mean * tokens + influence * tokens.sum()
    told = (
        f"the {count:.0f} of {state.tokens} positions with an exact KL were chosen at random, "
        "whatever was drawn",
        f"used {form}",
        UNSELECTED,
        COLUMNS_MATCH,
    )
    return Adjusted(above, _below(state)[0], effective, told)


def _slope(sums: NDArray[np.float64]) -> float:
    """Of the exact KL against the bound, over the positions at which it is known."""
    names = ("known", "known_exact", "known_bound", "known_cross", "known_square")
    count, exact, bound, cross, square = sums[[ROW[name] for name in names]].sum(axis=1)
    if not count:
        return 0.0
    spread = square - bound * bound / count
    # Of a bound that does not vary, beyond rounding, there is no slope.
    return float((cross - bound * exact / count) / spread) if spread > 1e-9 * square else 0.0


def _half(state: QuestionState) -> NDArray[np.int64]:
    return (state.groups.keys & np.uint64(1)).astype(np.int64)


_FORMS: dict[str, Callable[[QuestionState], Adjusted]] = {
    "partial": _partial,
    "bound": _of_heads("bound"),
    "subset": _subset,
    "rao_blackwell": _rao_blackwell,
    "biased_head": _of_heads("biased_head"),
    "biased_head_renormalized": _of_heads("biased_head_renormalized"),
}
RUNGS = tuple(_FORMS)
