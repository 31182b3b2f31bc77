"""What does this function compute, and what does training with it descend?"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kullback.audit.advising import advice
from kullback.audit.aggregating import Aggregation, aggregation
from kullback.audit.calling import Caller
from kullback.audit.catalogue import Reading, all_sequences, recognized, slope_table
from kullback.audit.enumerating import CREDITS, Calls, calls, whole_calls
from kullback.audit.gradients import Gradient, gradients
from kullback.audit.roles import parameters
from kullback.audit.scenes import APART, SCENARIOS, Array, sequence, staged, together
from kullback.audit.value import Value, counts_tokens, reading, reading_data, value
from kullback.audit.verdict import Findings, details, verdict
from kullback.audit.warning import warnings

_WIDTH = 80  # columns of the text
_LABEL = 12  # and those in which the labels stand


@dataclass(frozen=True, slots=True)
class Probe:
    """What a KL term is: its value, its expected gradients, and what to do. ``str()`` tells it.

    Attributes:
        name: The function's name.
        library: The library that it was called in.
        parameters: What each of its parameters was given.
        verdict: What it is, in two to four sentences.
        value: What it computes.
        derivative: The form that it is when differentiated; None if detached or unknown.
        gradients: Its expected gradients: for each scenario, each use and each kind of lengths.
        detached: Whether no gradient flows from it to the current policy.
        is_kl: Whether it is a KL term at all.
        details: Sentences on each of these, by a label.
        warnings: What else is wrong.
        advice: What to do.
    """

    name: str
    library: str
    parameters: Mapping[str, str]
    verdict: str
    value: Value
    derivative: Reading | None
    gradients: tuple[Gradient, ...]
    detached: bool
    is_kl: bool
    details: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    advice: str

    def gradient(
        self, scenario: str = "on-policy", use: str = "loss", lengths: str = "random"
    ) -> Gradient:
        """One of the gradients.

        Raises:
            KeyError: There is none for this scenario, use and kind of lengths.
        """
        for one in self.gradients:
            if (one.scenario, one.use, one.lengths) == (scenario, use, lengths):
                return one
        raise KeyError(f"no gradient for {scenario}, {use}, {lengths}")

    def as_data(self) -> dict[str, Any]:
        """As lists, dictionaries, strings and numbers."""
        return {
            "schema": "kullback.probe/1",
            "name": self.name,
            "library": self.library,
            "parameters": dict(self.parameters),
            "verdict": self.verdict,
            "value": self.value.as_data(),
            "derivative": self.derivative and reading_data(self.derivative),
            "gradients": [one.as_data() for one in self.gradients],
            "detached": self.detached,
            "is_kl": self.is_kl,
            "details": [{"label": label, "text": text} for label, text in self.details],
            "warnings": list(self.warnings),
            "advice": self.advice,
        }

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {key}" for name, key in self.parameters.items())
        said = [
            *self.details,
            *(("Warning", one) for one in self.warnings),
            ("Do", self.advice),
            ("Called", f"In {self.library}, with {given}."),
        ]
        lines = textwrap.wrap(f"{self.name}: {self.verdict}", _WIDTH, break_on_hyphens=False)
        last = ""
        for label, text in said:
            if label != last:
                lines.append("")
            rows = textwrap.wrap(text, _WIDTH - _LABEL, break_on_hyphens=False)
            heads = ["" if label == last else label, *[""] * (len(rows) - 1)]
            lines += [f"{head:{_LABEL}}{row}" for head, row in zip(heads, rows, strict=True)]
            last = label
        return "\n".join(lines)


def probe(
    fn: Callable[..., Any],
    *,
    library: str | None = None,
    style: str | None = None,
    arguments: Mapping[str, str] | None = None,
    credit: str | None = None,
) -> Probe:
    """Name the value and the expected gradient of somebody's KL term, by exact enumeration.

    The function is called on every sequence of two small languages, one sequence at a time, where
    the current policy, an older one, or another engine sampled, and on batches and single tokens
    chosen to show how it averages and where it clamps. What each sequence gives is held against
    the formulas that people write, and the exact mean gradient against those of divergences:
    nothing is sampled, so nothing is noise.

    Args:
        fn: Takes per-token log-probs [sequences, tokens] of ``current``, ``reference``, ``old`` and
            ``rollout``, their logits [sequences, tokens, vocabulary], ``mask`` and ``tokens``,
            under these names or usual ones (``log_prob``, ``ref_per_token_logps``,
            ``response_mask``). Returns a scalar, [sequences], [sequences, tokens], or a tuple that
            begins with it, or a dictionary with ``loss``.
        library: ``torch``, ``jax``, or ``numpy`` (which has no gradient); else the one that the
            function uses is found.
        style: ``loss``: it is differentiated. ``reward``: its values are a cost in the reward.
            None: a loss; and a cost, if no gradient flows from it.
        arguments: What parameters with other names are given: ``{"x": "current"}``.
        credit: In the reward, for which costs a token answers: ``reward_to_go``, ``full_return`` or
            ``immediate``; each if None.

    Returns:
        What was found; printing it tells it in sentences.

    Raises:
        TypeError: ``fn`` cannot be called.
        ValueError: A parameter or an argument is not known, or the function raised something.

    Example:
        >>> def penalty(log_prob, ref_log_prob):
        ...     return log_prob - ref_log_prob
        >>> found = probe(penalty, library="numpy")
        >>> found.value.form.method, found.gradient(use="reward_to_go").of
        ('k1', 'KL(current||reference)')
    """
    _refuse_unknown(style, credit)
    trial = together([sequence(staged(APART.name, ends=True), row) for row in (0, 1)])
    caller = Caller(fn, parameters(fn, arguments), library, trial)
    apart = calls(caller, APART.name, ends=False), calls(caller, APART.name, ends=True)
    form = reading(caller, apart)
    averages = aggregation(caller, averaged=form.averaged if form else None)
    each = calls if averages.adds else whole_calls
    both = {
        name: (each(caller, name, ends=False), each(caller, name, ends=True))
        for name in _applicable(caller)
    }
    computed = value(caller, apart, form, averages, both)
    everywhere = [one for pair in (apart, *both.values()) for one in pair]
    detached = not any(np.any(one.derivatives) for one in everywhere)
    derivative = None if detached else _derivative(caller, apart, computed)
    other = _other(computed, caller.roles)
    named = tuple(
        one
        for use in _uses(style, credit, detached=detached)
        for name, (fixed, random) in both.items()
        for one in _named((fixed, random), name, use, computed, averages, caller.roles, other)
    )
    flows = frozenset(key.removesuffix("_logits") for one in everywhere for key in one.flows)
    found = Findings(computed, derivative, named, detached, flows, caller.roles, other)
    return Probe(
        caller.name,
        caller.library,
        caller.parameters,
        verdict(found),
        computed,
        derivative,
        named,
        detached,
        found.is_kl,
        tuple(details(found)),
        tuple(warnings(caller, computed, averages)),
        advice(found),
    )


def _refuse_unknown(style: str | None, credit: str | None) -> None:
    if style not in (None, "loss", "reward"):
        raise ValueError(f"style {style!r} is neither 'loss' nor 'reward'")
    if credit not in (None, *CREDITS):
        raise ValueError(f"credit {credit!r} is none of {', '.join(CREDITS)}")


def _applicable(caller: Caller) -> list[str]:
    """The engine's scenario is another one only where a function tells rollout from old."""
    tells = {"old", "rollout"} <= set(caller.roles)
    return [name for name in SCENARIOS if name != "engine" or tells]


def _uses(style: str | None, credit: str | None, *, detached: bool) -> tuple[str, ...]:
    credits = (credit,) if credit else CREDITS
    if style == "reward":
        return credits
    if not detached:
        return ("loss",)
    return () if style == "loss" else credits


def _derivative(caller: Caller, apart: tuple[Calls, Calls], computed: Value) -> Reading | None:
    mask = all_sequences().mask
    seen = np.concatenate([one.derivatives for one in apart])[mask]
    if not np.isfinite(seen).all():
        return None
    logits = any(key.endswith("_logits") for key in caller.given)
    lengths = np.broadcast_to(mask.sum(axis=1)[:, None], mask.shape)[mask]
    table = slope_table(caller.roles, logits=logits)
    return recognized(seen.ravel(), table, np.repeat(lengths, seen.shape[-1]), computed.form)


def _other(computed: Value, roles: tuple[str, ...]) -> str:
    """Whom current is compared with."""
    if computed.form and computed.form.p != computed.form.q:
        pair = [role for role in (computed.form.p, computed.form.q) if role != "current"]
        return "reference" if "reference" in pair else pair[0]
    return next((role for role in ("reference", "old", "rollout") if role in roles), "reference")


def _named(
    both: tuple[Calls, Calls],
    scenario: str,
    use: str,
    computed: Value,
    averages: Aggregation,
    roles: tuple[str, ...],
    other: str,
) -> tuple[Gradient, Gradient]:
    given: dict[str, Any] = {"scenario": scenario, "use": use, "roles": roles, "other": other}
    if averages.adds:
        return gradients(*(_scaled(one, use, computed, averages) for one in both), **given)
    found = [_derivatives(one, use) for one in both]
    # What the batch divided by is not known: its tokens, the current policy's by weight, nothing.
    tried = [gradients(*found, drawn=True, **given)]
    for role in ("current", both[0].world.sampler):
        lengths = [one.world.mean(one.world.lengths, by=role) for one in both]
        scaled = [one * length for one, length in zip(found, lengths, strict=True)]
        tried.insert(0, gradients(*scaled, drawn=True, **given))
    plain = [pair for pair in tried if pair[1].factor and abs(abs(pair[1].factor) - 1) < 1e-6]
    return next(iter(plain or [pair for pair in tried if pair[1].of] or tried))


def _scaled(one: Calls, use: str, computed: Value, averages: Aggregation) -> Array:
    """On the scale of a sum over tokens, wherever a batch takes the length back."""
    found = _derivatives(one, use)
    random = one.world.eos is not None
    if computed.averaged and (counts_tokens(averages) or not random):
        return found * one.world.lengths[:, None, None]
    return found


def _derivatives(one: Calls, use: str) -> Array:
    return one.derivatives if use == "loss" else one.as_reward(use)
