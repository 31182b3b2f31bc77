"""Forms, averages and gradients in words."""

from __future__ import annotations

import math
from collections.abc import Collection

from kullback.audit.aggregating import Aggregation
from kullback.audit.clamping import Clamp
from kullback.audit.forms import EXACT, Form, Weight
from kullback.audit.gradients import Gradient

SPANS = {
    "token": "token by token",
    "prefix": "the product up to each token",
    "sequence": "the product over the whole sequence",
    "average": "the geometric mean over the sequence",
}

LEVELS = {
    "token_mean": "a mean over all tokens of the batch",
    "sequence_sum": "summed over each sequence, a mean over sequences",
    "sequence_mean": "a mean over sequences of their token means",
    "sum": "summed over the tokens of all sequences: it grows with the batch",
    "padded_mean": "divided by all positions, padding included: it shrinks with the padding",
    "per_token": "one number per token",
    "per_sequence": "one number per sequence",
    "other": "averaged by no rule that is known",
}

_WITHOUT_MASK = LEVELS | {
    "token_mean": "a mean over all positions",
    "sequence_mean": "a mean over all positions",
}

USES = {
    "loss": "as a loss",
    "reward_to_go": "in the reward, with the reward to go",
    "full_return": "in the reward, with the full return",
    "immediate": "in the reward, with immediate credit only",
}


def number(value: float) -> str:
    """A factor with the digits that it has: 1/3 as it is.

    Example:
        >>> number(2.0), number(-0.5), number(1 / 3), number(1 / math.log(2))
        ('2', '-0.5', '1/3', '1/log 2')
    """
    nearest = round(value)
    if nearest and abs(value - nearest) < 1e-6 * abs(value):
        return str(nearest)
    for name, known in (("1/log 2", 1 / math.log(2)), ("1/(log 2)^2", 1 / math.log(2) ** 2)):
        if abs(value - known) < 1e-6:
            return name
    inverse = 1 / value if value else 0.0
    if (
        round(inverse)
        and abs(inverse - round(inverse)) < 1e-6 * abs(inverse)
        and abs(inverse) > 2.5
    ):
        return f"{'-' if inverse < 0 else ''}1/{abs(round(inverse))}"
    return f"{value:.4g}"


def times(factor: float, what: str) -> str:
    """A multiple of it.

    Example:
        >>> times(1.0, "k1"), times(-1.0, "k1"), times(0.5, "k1")
        ('k1', 'minus k1', '0.5 times k1')
    """
    if abs(factor - 1) < 1e-6:
        return what
    if abs(factor + 1) < 1e-6:
        return f"minus {what}"
    return f"{number(factor)} times {what}"


def form_words(form: Form, factor: float = 1.0) -> str:
    """A form and its factor: ``k3 of KL(current||reference), weighted by current/old``."""
    if form.method == "k2" and abs(factor - 2) < 1e-6:
        what = f"the squared log-ratio of {form.p} and {form.q}, twice k2"
    else:
        what = times(factor, _method(form))
    what += {
        "nats": "",
        "bits": ", of log-ratios in bits where nats belong",
        "probabilities": ", of probabilities where log-probabilities belong",
        "ratios": ", of the ratio where its log belongs",
    }[form.scale]
    what += {
        "token": "",
        "sequence": ", of log-ratios summed over the sequence first",
        "average": ", of the sequence's mean log-ratio (the geometric mean of its ratios)",
    }[form.unit]
    return what + (f", {weight_words(form.weight)}" if form.weight else "")


def _method(form: Form) -> str:
    p, q = form.p, form.q
    ratio, direction = f"{q}/{p}", f"KL({p}||{q})"
    if form.method in EXACT:
        return {
            "KL": f"{direction}, exact over the vocabulary",
            "cross-entropy": f"the cross-entropy of {q} under {p}, over the vocabulary",
            "JS": f"the Jensen-Shannon divergence of {p} and {q}, over the vocabulary",
            "TV": f"the total variation of {p} and {q}, over the vocabulary",
            "squared difference": f"the squared difference of {p}'s and {q}'s probabilities",
            "entropy": f"the entropy of {p}, over the vocabulary",
        }[form.method]
    return {
        "k1": f"k1 of {direction} (log {p}/{q})",
        "k2": f"k2 of {p} and {q} (half the squared log-ratio)",
        "k3": f"k3 of {direction} (r - 1 - log r, r = {ratio})",
        "|log r|": f"the absolute log-ratio of {p} and {q}",
        "r log r - (r - 1)": f"r log r - (r - 1), r = {ratio}, which estimates KL({q}||{p}) from {p}",
        "r log r": f"r log r, r = {ratio}, which estimates KL({q}||{p}) from {p}",
        "r": f"the ratio {ratio}",
        "exp(x) - x": f"r - log r, r = {ratio}: k3 without its -1",
        "log-prob": f"the log-prob of {p}",
    }[form.method]


def weight_words(weight: Weight) -> str:
    """``weighted by current/old, token by token, differentiated too``."""
    if weight.sampler == "itself":
        what = f"multiplied by {weight.target}/{weight.target} with the lower one held constant"
    else:
        what = f"weighted by {weight.target}/{weight.sampler}"
    how = {"no": "", "yes": ", differentiated too", "own": ", its own token's differentiated too"}
    return f"{what}, {SPANS[weight.span]}{how[weight.attached]}"


def level_words(aggregation: Aggregation) -> str:
    """How it averages, and whether padding gets in."""
    if aggregation.returns == "scalar" and not aggregation.takes_mask:
        return f"{_WITHOUT_MASK.get(aggregation.level, LEVELS['other'])}; it takes no mask"
    if aggregation.returns == "scalar" and aggregation.leaks:
        return "over all positions, padding included: its mask does not keep it out"
    return LEVELS[aggregation.level]


def clamp_words(clamps: tuple[Clamp, ...], form: Form) -> str:
    """The clamps in half a sentence; nothing where there are none."""
    said: dict[str, list[str]] = {}
    for one in clamps:
        if one.of == "weight":
            name, at = "its weight is held", f"{'at most' if one.log_ratio > 0 else 'at least'}"
            said.setdefault(name, []).append(f"at {at} {number(one.at)}")
            continue
        side = "above" if one.log_ratio > 0 else "below"
        ratio = math.exp(one.log_ratio)
        name = "held" if one.of == "output" else "its log-ratio is held"
        grad = "" if one.gradient else ", without a gradient"
        where = f"where {form.q}/{form.p} is {side} {ratio:.3g}{grad}"
        said.setdefault(name, []).append(f"at {number(one.at)} {where}")
    return "; ".join(f"{name} {' and '.join(parts)}" for name, parts in said.items())


def gradient_words(one: Gradient, sampler: str) -> str:
    """What a gradient descends, as a predicate: ``descends KL(reference||current), …``."""
    if one.of is None:
        return (
            f"is the gradient of no divergence: nearest is that of {one.nearest}, with cosine "
            f"{one.cosine:.2f} and relative error {one.relative_error:.2f}"
        )
    if one.of == "zero":
        return "has an expected gradient of zero: it adds noise, and moves nothing on average"
    factor = one.factor or 0.0
    verb = "descends" if factor > 0 else "ascends"
    strength = "" if abs(abs(factor) - 1) < 1e-6 else f", times {number(abs(factor))}"
    return f"{verb} {one.of}{_part(one, sampler)}{strength}"


def _part(one: Gradient, sampler: str) -> str:
    """Which part of a gradient it is."""
    prefixes = one.prefixes
    if one.part != "token":
        is_kl = (one.of or "").startswith("KL(") and "per token" not in (one.of or "")
        return " of whole sequences" if is_kl else ""
    whose = "the sampler's prefixes" if prefixes == sampler else f"the prefixes of {prefixes}"
    return f", token by token with {whose} held fixed"


def joined(names: Collection[str]) -> str:
    """``a, b and c``."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
