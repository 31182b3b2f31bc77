"""Forms, averages and gradients in words."""

from __future__ import annotations

import math
from collections.abc import Collection

from kullback.audit.aggregating import Aggregation
from kullback.audit.catalogue import Reading
from kullback.audit.clamping import Clamp
from kullback.audit.forms import EXACT, Form, Weight
from kullback.audit.gradients import Gradient
from kullback.audit.targets import SHORTNESS

_LIKE = 0.5  # the cosine below which two gradients are not called alike

SPANS = {
    "token": "token by token",
    "prefix": "the product up to each token",
    "sequence": "the product over the whole sequence",
    "average": "the geometric mean over the sequence",
}

LEVELS = {
    "token_mean": "A mean over all tokens of the batch",
    "sequence_sum": "Summed over each sequence, a mean over sequences",
    "sequence_mean": "A mean over sequences of their token means",
    "sum": "Summed over the tokens of all sequences",
    "padded_mean": "The sum over tokens, divided by all positions, padding included",
    "per_token": "One number per token; as a loss, their sum over a sequence",
    "per_sequence": "One number per sequence",
    "other": "Averaged by no rule that is known",
}

_WITHOUT_MASK = LEVELS | {
    "token_mean": "A mean over all positions",
    "sequence_mean": "A mean over all positions",
}

USES = {
    "loss": "As a loss",
    "reward_to_go": "In the reward, credited with the reward to go,",
    "full_return": "In the reward, credited with the full return,",
    "immediate": "In the reward, with immediate credit only,",
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


def _k3(form: Form) -> str:
    words = f"k3 of KL({form.p}||{form.q})"
    if form.p != "reference":
        return words
    return f"{words}, which takes samples of {form.p}: for {form.q}'s its ratio is inverted"


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
        "k1": f"k1 of {direction}",
        "k2": f"k2 of {p} and {q}, half the squared log-ratio",
        "k3": _k3(form),
        "|log r|": f"the absolute log-ratio of {p} and {q}",
        "r log r - (r - 1)": f"r log r - (r - 1), r = {ratio}, for KL({q}||{p}) from {p}'s samples",
        "r log r": f"r log r, r = {ratio}, for KL({q}||{p}) from {p}'s samples",
        "r": f"the ratio {ratio}",
        "exp(x) - x": f"r - log r, r = {ratio}: k3 without its -1",
        "log-prob": f"the log-prob of {p}",
        "p log p/q": f"the sampled token's own term of {direction}, p log p/q",
    }[form.method]


def weight_words(weight: Weight) -> str:
    """``weighted by current/old, token by token, differentiated too``."""
    if weight.sampler == "itself":
        what = f"times {weight.target}/{weight.target}, the lower one held constant"
    else:
        what = f"weighted by {weight.target}/{weight.sampler}"
    how = {"no": "", "yes": ", differentiated too", "own": ", its own token's differentiated too"}
    return f"{what}, {SPANS[weight.span]}{how[weight.attached]}"


def level_words(aggregation: Aggregation) -> str:
    """How it averages, and whether padding gets in."""
    if aggregation.returns != "scalar":
        return LEVELS[aggregation.level]
    if not aggregation.takes_mask:
        return f"{_WITHOUT_MASK.get(aggregation.level, LEVELS['other'])}; it takes no mask"
    if aggregation.leaks:
        rule = _WITHOUT_MASK.get(aggregation.level, LEVELS["other"])
        return f"{rule}, padding included: its mask does not keep that out"
    return LEVELS[aggregation.level]


def held_at(clamps: tuple[Clamp, ...]) -> str:
    """The clamps in a few words: ``, clamped at 10``."""
    said = []
    for of, name in (("output", ""), ("input", "its log-ratio "), ("weight", "its weight ")):
        levels = {abs(one.at) if of != "weight" else one.at for one in clamps if one.of == of}
        if levels:
            said.append(f", {name}clamped at {joined([number(one) for one in sorted(levels)])}")
    return "".join(said)


def clamp_words(clamps: tuple[Clamp, ...], form: Form) -> str:
    """Where each clamp begins: ``Clamped where reference/current is above 13.6``."""
    said = []
    for one in clamps:
        weight = form.weight
        ratio = f"{form.q}/{form.p}"
        if one.of == "weight" and weight:
            ratio = f"{weight.target}/{weight.sampler}"
        side = "above" if one.log_ratio > 0 else "below"
        dead = "" if one.gradient else " (no gradient there)"
        said.append(f"{ratio} is {side} {math.exp(one.log_ratio):.3g}{dead}")
    return f"Clamped where {joined(said)}"


def derivative_words(reading: Reading) -> str:
    """The form of a derivative in words."""
    form = reading.form
    what = form_words(form, reading.factor)
    if form.credit == "future":
        what += ", and what the later tokens add as a cost beside the log-prob"
    elif form.credit:
        credit = {"reward_to_go": "from that token on", "full_return": "of the whole sequence"}
        of = credit.get(form.credit, "of the same token")
        what += f", held constant as a cost {of} beside the log-prob"
    if reading.second:
        what += f", plus {times(reading.second[1], form_words(reading.second[0]))}"
    return what


def gradient_words(one: Gradient, sampler: str, other: str) -> str:
    """What a gradient does, as a predicate: ``descends KL(reference||current), …``."""
    if one.of is None:
        return f"has the gradient of no divergence; {_nearest(one, f'KL(current||{other})')}"
    if one.of == "zero":
        return "has an expected gradient of zero: noise, which moves nothing on average"
    factor = one.factor or 0.0
    verb = "descends" if factor > 0 else "ascends"
    strength = "" if abs(abs(factor) - 1) < 1e-6 else f", times {number(abs(factor))}"
    if one.of == SHORTNESS:
        longer = "longer" if factor > 0 else "shorter"
        return f"{verb} {SHORTNESS}{strength}: it makes sequences {longer}, and does nothing else"
    # Near its old copy either direction is usual, and the one from old is PPO's.
    turned = ", the other direction" if one.of == "KL(reference||current)" else ""
    return f"{verb} {one.of}{turned}{_part(one, sampler)}{strength}"


def _nearest(one: Gradient, wanted: str) -> str:
    if one.cosine < _LIKE:
        return f"it is like none (the largest cosine is {one.cosine:.2f})"
    said = f"the nearest is {one.nearest} ({_far(one.cosine, one.relative_error)})"
    if one.nearest != wanted and wanted in one.distances:
        said += f"; for {wanted} itself these are {_far(*one.distances[wanted])}"
    return said


def _far(cosine: float, error: float) -> str:
    return f"cosine {cosine:.3f}, relative error {error:.2f}"


def _part(one: Gradient, sampler: str) -> str:
    """Which part of a gradient it is."""
    prefixes = one.prefixes
    if one.part == "whole":
        is_kl = (one.of or "").startswith("KL(") and "per token" not in (one.of or "")
        return ", of whole sequences" if is_kl else ""
    latter = ", the latter" if one.part == "mixed" else ","
    whose = "the sampler's prefixes" if prefixes == sampler else f"the prefixes of {prefixes}"
    return f"{latter} token by token with {whose} held fixed"


def joined(names: Collection[str], word: str = "and") -> str:
    """``a, b and c``."""
    *rest, last = names
    return f"{', '.join(rest)} {word} {last}" if rest else last
