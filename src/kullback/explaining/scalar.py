"""Noise or bug? What one number of a log says, with nothing beside it but a count of tokens."""

from __future__ import annotations

import math
from typing import NamedTuple

from kullback.diagnosis.log_labels import COARSE, ROUNDED
from kullback.diagnosis.sampler_tests import ALPHA, BFLOAT16, FLOAT32_FLOOR, chance
from kullback.explaining.explanation import Explanation, Section

HOPELESS = 1e-6  # a probability below which nobody looks for luck
LARGEST = 1e6  # nats per token; a sentinel is at 1e4
MOST = 10**15  # tokens
NEAR = 2.0  # standard errors within which a mean is as good as 0
TERMS = {
    "kl": "log p − log q",
    "k1": "log p − log q",
    "k2": "½ (log q − log p)²",
    "k3": "q/p − 1 − log(q/p)",
}

_LOG = (
    "Beside the mean, the count of its tokens. Better: per token the log-probs that the engine "
    "logged while it drew, those of the other policies, the mask and the prompt's id; kullback "
    "report makes a KL with an interval of them, and tells what is wrong. With the sampler's "
    "entropy per token it can see a temperature or top-p."
)


class _Judgment(NamedTuple):
    verdict: str
    caption: str
    says: str
    do: str
    numbers: dict[str, float]


def judge(name: str, value: float, tokens: int) -> Explanation:
    """What one number of a log says: noise, a bug, or nothing.

    Of k1 (also called kl here): P(Σ k1 ≤ −c) ≤ e^−c with c = −value · tokens, whatever depends on
    what, if p sampled these tokens and q was fixed before. k2 and k3 are never negative.

    Args:
        name: ``kl``, ``k1``, ``k2`` or ``k3``.
        value: The mean over the tokens that count, in nats.
        tokens: How many these are.

    Raises:
        ValueError: The name is none that can be judged, or a number is impossible.

    Example:
        >>> judge("kl", -0.031, 8192).caption
        'noise cannot do this'
        >>> judge("kl", -0.031, 64).numbers["verdict"], judge("k3", -0.031, 64).numbers["verdict"]
        ('no-evidence', 'impossible')
    """
    if name not in TERMS:
        raise ValueError(f"a value can be judged of {', '.join(TERMS)}, not of {name}")
    if not math.isfinite(value):
        raise ValueError(f"value {value} is not finite: look for an infinite ratio or a NaN first")
    if abs(value) > LARGEST:
        raise ValueError(f"value {value:g} is no mean of log-probs: look for a sentinel first")
    if not 1 <= tokens <= MOST or tokens != int(tokens):
        raise ValueError(f"tokens {tokens}: a mean is of 1 to {MOST:g} whole tokens")
    value, tokens = float(value), int(tokens)
    judged = _judged(name, value, tokens)
    given = (
        f"the value is the mean of {TERMS[name]} over all {tokens} tokens that count (no mean of "
        "means), in nats, unscaled"
    )
    if name in ("k2", "k3") and value < 0:
        given += ". Who sampled does not matter."
    else:
        given += (
            "; p sampled these tokens; q was fixed before; and log-probs are float32 (in bfloat16 "
            f"each may be off by {BFLOAT16:.1%} of its size)."
        )
    sections = (("Says", judged.says), ("Provided", given), ("Do", judged.do), ("Log", _LOG))
    return Explanation(
        name=f"{name} = {value:.4g} over {tokens} tokens",
        kind="value",
        caption=judged.caption,
        sections=tuple(Section(label, text) for label, text in sections if text),
        numbers={"value": value, "tokens": tokens, "verdict": judged.verdict} | judged.numbers,
    )


def _judged(name: str, value: float, tokens: int) -> _Judgment:
    if value == 0:
        return _zero()
    if name == "k2" and value < 0:
        return _negative_square()
    if name == "k3" and value < 0:
        return _negative_k3(value)
    if name in ("k2", "k3"):
        return _positive_term(name, value, tokens)
    return _negative(value, tokens) if value < 0 else _positive(value, tokens)


def _negative(value: float, tokens: int) -> _Judgment:
    nats = -value * tokens
    log_p = min(0.0, FLOAT32_FLOOR * tokens - nats)
    excess = -value - FLOAT32_FLOOR
    if excess <= 0:
        return _within_rounding(nats)
    needed = math.ceil(-math.log(ALPHA) / excess)
    numbers = {"nats": nats, "log_p": log_p, "tokens_needed": needed}
    if log_p >= math.log(ALPHA):
        return _no_evidence(value, tokens, log_p, numbers)
    hopeless = log_p < math.log(HOPELESS)
    says = (
        f"If p sampled these tokens, their k1 sum to −{nats:.4g} nats or less with a probability "
        f"of at most {chance(log_p)} (e^−{nats:.4g}, {FLOAT32_FLOOR:g} nats per token given to "
        f"rounding). {'So a condition below does not hold' if hopeless else 'That is rare'}. If "
        "you picked this step from many, multiply by their number."
    )
    do = (
        "Look, in this order:\n"
        "1. Did p sample? Take the engine's own log-probs, not recomputed ones, and after "
        "temperature, top-p and top-k.\n"
        "2. Was q trained on these tokens? Then take q as it was before, or fresh tokens.\n"
        f"3. Is it another quantity? With its sign turned (log q − log p) the value is "
        f"{-value:.4g}; if neither p nor q sampled, the importance weight is missing.\n"
        "4. Are the columns of the same tokens (shift, padding, prompt)?"
    )
    caption = "noise cannot do this" if hopeless else "noise seldom does this"
    return _Judgment("not-noise", caption, says, do, numbers)


def _within_rounding(nats: float) -> _Judgment:
    says = (
        f"Kernels that compute log-softmax in float32 differ by up to {FLOAT32_FLOOR:g} nats per "
        "token, and to one side. A mean as close to 0 as this may be rounding, whatever the number "
        "of tokens."
    )
    do = "Score both sides with the same kernel in the same precision, if the difference matters."
    return _Judgment("rounding", "within rounding of 0", says, do, {"nats": nats})


def _no_evidence(value: float, tokens: int, log_p: float, numbers: dict[str, float]) -> _Judgment:
    share, fits = math.exp(log_p), _fitting(value, tokens)
    says = (
        f"A fair sampler shows a sum of −{-value * tokens:.3g} nats or less in up to "
        f"{share:.{1 if share < 0.1 else 0}%} of its batches: no evidence of a bug, nor of "
        f"its absence. At this mean {numbers['tokens_needed']} tokens would be needed for "
        f"{ALPHA:.0%}."
    )
    if fits:
        says += f" Roughly, any KL up to {fits[1]:.2g} nats fits it."
    do = "Do not clamp it to 0, which biases the mean over steps: average, or take more tokens."
    return _Judgment("no-evidence", "no evidence, this may be noise", says, do, numbers)


def _positive(value: float, tokens: int) -> _Judgment:
    error = math.sqrt(2 * value / tokens)
    low, high = _fitting(value, tokens) or (math.nan, math.nan)
    z = math.sqrt(value * tokens / 2)
    near = z < NEAR
    says = (
        "The sign is as it should be, and says nothing of the sampler: a wrong one can make it "
        f"positive, too. Roughly, a token of k1 has the standard deviation √(2 KL) if the policies "
        f"are close and differ smoothly. Then the error of this mean is √(2 · {value:.4g} / "
        f"{tokens}) = {error:.2g}: it is {z:.1f} standard errors from 0, and KLs from {low:.2g} to "
        f"{high:.2g} fit it. Tokens of a prompt depend on each other, and tokens that one side "
        "nearly forbids have large terms: the true error is larger."
    )
    if value <= FLOAT32_FLOOR:
        says += f" And float32 kernels alone differ by {FLOAT32_FLOOR:g} nats per token."
    caption = "within noise of 0" if near else "not noise alone, if the policies differ smoothly"
    do = "Do not read a trend into steps whose errors overlap." if near else ""
    verdict = "within-noise" if near else "positive"
    numbers = {"standard_error": error, "z": z, "low": low, "high": high}
    return _Judgment(verdict, caption, says, do, numbers)


def _fitting(value: float, tokens: int) -> tuple[float, float] | None:
    """KLs κ with |value − κ| ≤ 2 √(2 κ / tokens), lowest and highest; none if there is none."""
    half = NEAR**2 / tokens
    middle, square = value + half, half * (2 * value + half)  # middle² − value²
    if middle <= 0 or square < 0:
        return None
    high = middle + math.sqrt(square)
    return value**2 / high, high


def _positive_term(name: str, value: float, tokens: int) -> _Judgment:
    error = value * math.sqrt(2 / tokens)
    says = (
        f"{name} is never negative, so its sign says nothing, of the sampler least of all. "
        f"Roughly, if the policies are close and differ smoothly, a token of {name} has the "
        "standard deviation √2 KL (more where prefixes differ), and this mean the error "
        f"{value:.4g} · √(2 / {tokens}) = {error:.2g}. Where p dropped tokens that q still has, a "
        "batch without them shows too small a value and too small an error: what it says is a "
        "lower end at best."
    )
    if name == "k2":
        says += " k2 is biased: near the KL for close policies only."
    do = (
        "Log k1 beside it: where the two differ by more than their errors, q has mass that was not "
        "sampled, or p did not sample (kullback explain missing-mass)."
    )
    caption = "nothing speaks against it, and little for it"
    return _Judgment("positive", caption, says, do, {"standard_error": error})


def _negative_k3(value: float) -> _Judgment:
    if -value <= ROUNDED:
        says = (
            f"k3 is never negative, but written as exp(x) − 1 − x it loses its digits near x = 0: "
            f"in float32 it is off by {ROUNDED:.1g}. This is rounding, and the KL is about 0."
        )
        do = "kb.k3 sums a series there, and is right to the last digits."
        return _Judgment("rounding", "rounding of float32", says, do, {"rounding": ROUNDED})
    says = (
        "Every term of k3 is 0 or more, so no mean of them is negative. It is not k3, or not its "
        "mean."
    )
    if -value <= COARSE:
        says += f" Or it was computed in bfloat16, where exp(x) − 1 − x is off by {COARSE:.1g}."
    do = (
        "Look for the ratio upside down in one of its two places (exp(log p − log q) with log q − "
        "log p), a ratio clamped while its logarithm is not, a mask that zeroes one part of the "
        "formula, a sum of signed weights, a coefficient or a baseline; and for k1 under its name."
    )
    return _Judgment("impossible", "a mean of k3 cannot be negative", says, do, {})


def _negative_square() -> _Judgment:
    says = "k2 is a square. No mean of squares is negative, in any precision."
    do = "Look for a sign, a coefficient, a baseline, signed weights; and for k1 under its name."
    return _Judgment("impossible", "a mean of k2 cannot be negative", says, do, {})


def _zero() -> _Judgment:
    says = (
        "Exactly 0 is no estimate: all terms are 0, so both columns hold the same numbers. Before "
        "the first update, with one set of weights scored once, that is as it should be."
    )
    do = (
        "Otherwise look for a column compared with itself, an empty mask whose mean was set to 0, "
        "and a clamp at 0."
    )
    return _Judgment("zero", "the same numbers on both sides", says, do, {})
