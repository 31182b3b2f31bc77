"""What a case is: a function, and what the auditor has to find of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import kullback as kb

AHEAD, BACK = "KL(current||reference)", "KL(reference||current)"
APART = f"{AHEAD} - {BACK}"
TOKEN, WHOLE = "token", "whole"


@dataclass(frozen=True)
class Case:
    """A function and what is to be found.

    Args:
        function: The KL term.
        value: (method, p, q) of its form; None if it has no form.
        factor: By what that is multiplied.
        level: How it averages.
        gradients: By (scenario, use): (of, part), with a third entry for a factor that is not 1;
            None where it is the gradient of nothing known.
        says: What a sentence of the report must hold.
        style: As `probe` takes it.
        also: Other attributes of the form of the value.
    """

    function: Callable[..., Any]
    value: tuple[str, str, str] | None
    gradients: Mapping[tuple[str, str], tuple[Any, ...] | None]
    factor: float = 1.0
    level: str | None = None
    says: tuple[str, ...] = ()
    style: str | None = None
    is_kl: bool = True
    also: Mapping[str, Any] = field(default_factory=dict)


def on_policy(*of: Any) -> dict[tuple[str, str], tuple[Any, ...] | None]:
    return {("on-policy", "loss"): of or None}


def stale(*of: Any) -> dict[tuple[str, str], tuple[Any, ...] | None]:
    return {("stale", "loss"): of or None}


def reward(credit: str, *of: Any) -> dict[tuple[str, str], tuple[Any, ...] | None]:
    return {("on-policy", credit): of or None}


def check(case: Case) -> None:
    """Probe it, and hold what is found against what is to be found."""
    found = kb.audit.probe(case.function, style=case.style)
    form = found.value.form
    if case.value is None:
        assert form is None or form.method not in ("k1", "k2", "k3")
    else:
        assert form is not None
        assert (form.method, form.p, form.q) == case.value
        assert found.value.factor == pytest.approx(case.factor)
        for name, expected in case.also.items():
            assert getattr(form, name) == expected
    assert case.level in (None, found.value.aggregation.level)
    for (scenario, use), expected in case.gradients.items():
        gradient = found.gradient(scenario, use)
        of, part, factor = (*(expected or (None, None)), None, None)[:3]
        assert (gradient.of, gradient.part) == (of, part)
        if of not in (None, "zero"):
            assert gradient.factor == pytest.approx(1.0 if factor is None else factor)
    assert found.is_kl == case.is_kl
    text = " ".join(str(found).split())
    for words in case.says:
        assert words in text
