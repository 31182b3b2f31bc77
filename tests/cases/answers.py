"""What every case asks, and how kullback answers it or why it does not; and what verdicts mean."""

from __future__ import annotations

from .control import CONTROL
from .densities import DENSITIES
from .distributions import DISTRIBUTIONS
from .entries import Table
from .gradients import GRADIENTS
from .logs import codes, packed
from .sampled import SAMPLED, drawn, findings
from .sequences import SEQUENCES
from .weighed import WEIGHED

ANSWERS: Table = SAMPLED | SEQUENCES | DISTRIBUTIONS | DENSITIES | GRADIENTS | CONTROL | WEIGHED

# Codes that a report on the log of a case tells, though nobody asks for its verdict.
TOLD: Table = {
    "14-packed-boundary-token": {"packed-boundary": lambda x: codes(packed(x))},
    "22-support-violation-and-epsilon": {
        "infinite-ratio": lambda x: findings(drawn(x["p"], 20, p=x["p"], q=x["q"]))
    },
}

# What a case calls its verdict, and what kullback says: a finding, a check, a claim, a refusal.
VERDICTS = {
    "negative-k1-within-sampling-noise": "negative-beyond-chance passed",
    "sampler-is-not-the-policy": "negative-beyond-chance",
    "temperature-not-applied": "temperature-mismatch",
    "stochastic-forward-pass": "stochastic-forward",
    "zero-mean-numeric-noise": "stochastic-forward",  # two evaluations differ, and k1 is near 0
    "reference-differs-from-start": "reference-not-start",
    "controller-saturated-target-unreachable": "controller-saturated",
    "environment-tokens-carry-kl": "mask-covers-environment",
    "needs-importance-weight": "negative-beyond-chance",
    "mask-includes-padding": "mask-covers-padding",
    "refuse-misaligned-dump": "lists of one row must be of one length",
    "input-not-log-normalised": "not-log-probs",
    "mean-dominated-by-few-tokens": "mean-owned-by-few",
    "inputs-not-normalised": "expected probabilities >= 0 that sum to 1",
    "truncated-sum-is-not-a-divergence": "expected probabilities >= 0 that sum to 1",
    "k3-overflow-in-low-precision": "In float32 its value is not finite where reference/current",
    "inverted-ratio-estimates-neither-direction": "for current's its ratio is inverted",
    "fails-identity-test": "Where all policies agree it is 0.7183 and not 0",
    "finite-in-log-space": "a number",
    "not-absolutely-continuous": "infinite",
    "expected-gradient-is-zero-only-noise": "noise around zero",
    "gradient-of-forward-kl": "the gradient of KL(q||p), the other direction",
    "divided-by-microbatch-count-twice": "mean over tokens × 1/micro-batches",
    "divided-by-tokens-twice": "mean over tokens × 1/tokens",
    "refuse-running-sums": "these are running sums (cu_seqlens), give their differences",
    "refuse-shape-mismatch": "give both for the same tokens",
    "prefixes-unseen": "prefixes-unseen",
    "matched-form-vanishes-at-endpoints-swapped-form-reaches-kl": ("0 to 0; KL(T||S) to KL(S||T)"),
}
