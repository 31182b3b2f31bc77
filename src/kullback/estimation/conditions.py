"""What must hold for an estimate to be right, and what is known to be wrong with it."""

from __future__ import annotations

import numpy as np

from kullback.estimation.interval import Interval, widened_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sequence_k3 import SUMMED
from kullback.formulas import k_family, weights
from kullback.formulas.claim import Claim
from kullback.question import Question

FEW_CLUSTERS = 50  # below, intervals are known to cover less than they say
FEW_LEFT = 0.1  # share of tokens left by the weights, below which they decide, not the data
FEW_CARRY = 0.25  # share of the clusters; light weights leave 0.64 of them where k1 is normal
SURE = 0.998  # of the interval of a whole sequence's mean weight that does not reach 1,
LEAST_LACK = 0.05  # and it is below by this: over long sequences rounding, too, makes some of it


def assumptions(state: QuestionState, method: str, unseen: float) -> tuple[str, ...]:
    """What must hold for a mean to be what it is called, and its interval too.

    Args:
        state: The sums of one question.
        method: The estimator.
        unseen: p's mass, at most, that was not sampled; NaN where the interval does not use it.
    """
    claim = _claim(state.question, method)
    if claim is None:
        return () if method == SUMMED else ("the exact columns are of these policies",)
    told = list(claim.conditions)
    if prefixes_unseen(state, method):
        where = f"where {state.question.sampler} did not go"
        told.append(f"p and q are as close {where}: {seen_of_prefixes(state, method)}")
    if _is_biased(claim):
        told.append(f"p and q are close: the mean is {claim.unbiased_for}")
    elif method == "auto" and unseen == unseen:
        told.append(_of_the_unseen(state, unseen))
    return tuple(told)


def _of_the_unseen(state: QuestionState, mass: float) -> str:
    """What the upper end rests on: nothing can be said of it without."""
    largest = -state.log_q_over_p.low
    bound = f"{largest:.3g} nats, the largest sampled" if largest > -float("inf") else "what was"
    return f"log p/q is at most {bound}, on the {mass:.2g} of p that may not have been sampled"


def seen_of_prefixes(state: QuestionState, method: str) -> str:
    """The two numbers by which prefixes are told to be unseen, in words."""
    whole = path_weight(state)
    return (
        f"{carrying(state, method):.0f} of {state.groups.clusters} clusters carry the sum, and the "
        f"weights of whole sequences have mean {whole.mean:.3g} ± {whole.standard_error:.2g}, "
        f"where all of {state.question.p} would be 1"
    )


def marks(state: QuestionState, method: str, effective: float, in_sample: bool) -> tuple[str, ...]:
    """What is known to be wrong with an estimate.

    Args:
        state: The sums of one question.
        method: The estimator.
        effective: Effective number of clusters.
        in_sample: Whether q (or p) was trained on these very tokens.
    """
    found = []
    sampled = method != "exact"
    if _is_biased(_claim(state.question, method)):
        found.append("biased")
    if in_sample and sampled:
        found.append("in-sample")
    random_length = state.shortest != state.longest
    if sampled and state.question.level == "sequence_mean" and random_length:
        found.append("selected-on-outcome")
    if sampled and state.missing:
        found.append("missing-values")
    if sampled and effective < FEW_CLUSTERS:
        found.append("few-clusters")
    if sampled and state.question.weight != "none" and ess_fraction(state) < FEW_LEFT:
        found.append("weights-degenerate")
    if sampled and prefixes_unseen(state, method):
        found.append("prefixes-unseen")
    return tuple(found)


def prefixes_unseen(state: QuestionState, method: str) -> bool:
    """Whether an estimate over p's prefixes rests on the few that s drew, or lacks some of p.

    Neither the effective number of weights nor the error of the mean shows it: if no sequence went
    where p goes, the weights are all small and even. Two things do: the weights of whole sequences,
    whose mean is 1 under s, fall short of it by more than noise; or fewer than fifty clusters, and
    less than a quarter of all, carry the sum.
    """
    if state.question.weight != "cumulative" or not state.tokens:
        return False
    whole = path_weight(state)
    few = min(FEW_CLUSTERS, FEW_CARRY * len(state.groups.keys))
    return whole.high < 1 > whole.mean + LEAST_LACK or carrying(state, method) < few


def path_weight(state: QuestionState) -> Interval:
    """The mean weight of a whole sequence, which is 1 if s sampled; its interval by cluster.

    NaN in the cells of a split, which hold parts of sequences.
    """
    return widened_interval(
        state.by_group("path"),
        state.by_group("sequences"),
        effective=state.effective_clusters("sequences"),
        confidence=SURE,
    )


def carrying(state: QuestionState, method: str) -> float:
    """How many clusters carry the sum of a method, (Σ |x|)² / Σ x²; k1's for ``auto``."""
    sizes = np.abs(state.by_group("k1" if method == "auto" else method))
    largest = sizes.max(initial=0.0)
    if not 0 < largest < np.inf:
        return float(len(sizes)) if largest == 0 else 1.0
    sizes = sizes / largest  # squares of what is tiny would vanish, and of what is huge overflow
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def ess_fraction(state: QuestionState) -> float:
    """The share of the tokens that is left by the weights: (Σ w)² / (n Σ w²), at most 1.

    It is 0 where the squares overflow: then one weight is all there is.
    """
    weight, squares = state.total("weight"), state.total("weight_squared")
    if squares == float("inf"):
        return 0.0
    return weight * weight / (state.tokens * squares) if squares > 0 else float("nan")


def _claim(question: Question, method: str) -> Claim | None:
    """What is proved of a mean; nothing of an exact column, which is no estimate.

    What is proved of k1 is what auto needs as well.
    """
    term = "k1" if method == "auto" else method
    if question.weight == "none":
        return k_family.CLAIMS.get(term)
    return weights.CLAIMS.get(f"weighted_{term}")


def _is_biased(claim: Claim | None) -> bool:
    return claim is not None and claim.unbiased_for != "KL(p||q)"
