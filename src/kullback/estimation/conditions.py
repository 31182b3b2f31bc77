"""What must hold for an estimate to be right, and what is known to be wrong with it."""

from __future__ import annotations

from kullback.estimation.question_state import QuestionState
from kullback.estimation.sequence_k3 import SUMMED
from kullback.formulas import k_family, weights
from kullback.formulas.claim import Claim
from kullback.question import Question

FEW_CLUSTERS = 50  # below, intervals are known to cover less than they say
FEW_LEFT = 0.1  # share of tokens left by the weights, below which they decide, not the data


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
    if _is_biased(claim):
        return (*claim.conditions, f"p and q are close: the mean is {claim.unbiased_for}")
    if method == "auto" and unseen == unseen:
        return (*claim.conditions, _of_the_unseen(state, unseen))
    return claim.conditions


def _of_the_unseen(state: QuestionState, mass: float) -> str:
    """What the upper end rests on: nothing can be said of it without."""
    largest = -state.log_q_over_p.low
    bound = f"{largest:.3g} nats, the largest sampled" if largest > -float("inf") else "what was"
    return f"log p/q is at most {bound}, on the {mass:.2g} of p that may not have been sampled"


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
    return tuple(found)


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
