"""k3 of summed log-probs: why it is refused, in one number."""

from __future__ import annotations

import math

from kullback.estimation.question_state import QuestionState

SUMMED = "k3_of_sums"  # what a trainer computes that sums log-probs first


def sequence_k3_error(state: QuestionState) -> float:
    """The predicted error of k3 of whole sequences, in units of their KL.

        √(eˣ − 1 − x) / (KL √sequences),   x = tokens per sequence · log(1 + χ²)

    With log r of a sequence in the exponent, its variance is the product of those of the tokens:
    exactly so where they are independent and log r is normal, as a rule of size elsewhere; χ² is
    that of the tokens that were sampled, so with holes it is more. The sum of k3 over the tokens
    of a sequence is of the same KL (its prefixes are the sampler's) and has no such exponent.

    Args:
        state: The sums of a question at the level of the sequence, from tokens of p.

    Returns:
        0.1 means a tenth of the KL; infinite where no float holds it, NaN where nothing is known.

    Example:
        >>> import numpy as np
        >>> from kullback.columns import pack
        >>> from kullback.question import Question
        >>> x = np.random.default_rng(0).normal(0.1, 1.0, size=(64, 1000))
        >>> columns = pack({"p": -0.5 * (x - 0.1) ** 2, "q": -0.5 * x**2})
        >>> state = QuestionState.of(columns, Question("p", "q", level="sequence_sum"))
        >>> round(sequence_k3_error(state), 1)  # of one sequence 29.7, exactly
        3.7
    """
    tokens, sequences = state.total("tokens"), state.total("sequences")
    if state.question.weight != "none" or not tokens or not state.total("k3") > 0:
        return math.nan
    gap = (state.total("k3") - state.total("k1")) / tokens
    chi2 = max(state.squared_growth / tokens - gap * gap, 0.0)
    x = tokens / sequences * math.log1p(chi2)
    spread = math.expm1(x) - x if x < 700 else math.inf
    return math.sqrt(spread * sequences) / state.total("k3")


def refusal(state: QuestionState) -> str:
    """Why there is no k3 of summed log-probs, with its predicted error."""
    if state.question.level != "sequence_sum":
        return "refused: k3 of summed log-probs speaks of sequences; ask per sequence"
    error = sequence_k3_error(state)
    if math.isnan(error):
        return "refused: k3 of summed log-probs, from tokens of a third policy or without a spread"
    tokens, sequences = state.total("tokens"), state.total("sequences")
    return (
        f"refused: k3 of summed log-probs would be off by about {error:.2g} times the KL "
        f"({sequences:.0f} sequences of {tokens / sequences:.0f} tokens); take k3, which is summed "
        "over the tokens of each"
    )
