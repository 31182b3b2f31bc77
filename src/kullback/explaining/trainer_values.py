"""Noise or bug? One value of a named number of somebody's log, with its sign turned if need be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kullback.dictionary import Metric, find
from kullback.explaining.explanation import Explanation, Section
from kullback.explaining.scalar import judge
from kullback.explaining.trainer_numbers import settled, unknown


def judge_logged(
    name: str,
    value: float,
    tokens: int,
    framework: str,
    version: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Explanation:
    """Judge a value as the number that a framework logs under this name.

    Raises:
        ValueError: The framework logs no such number, several that would be judged differently,
            or one that a count of tokens does not judge; or a number is impossible.

    Example:
        >>> judge_logged("ref_kl", -0.031, 8192, "prime-rl").caption
        'not noise alone, if the policies differ smoothly'
        >>> judge_logged("ref_kl", 0.031, 8192, "prime-rl").caption
        'noise cannot do this'
    """
    found = [settled(one, config)[0] for one in find(name, framework, version)]
    if not found:
        raise ValueError(unknown(name, framework))
    if len({(one.method, one.sign, one.weight, one.level) for one in found}) > 1:
        trainers = ", ".join(one.trainer or one.name for one in found)
        raise ValueError(
            f"{len(found)} numbers of {found[0].framework} are called {name} ({trainers}): say "
            f"which, --framework {found[0].framework}/{found[0].trainer or found[0].name}"
        )
    one = found[0]
    _require_judgeable(one, value)
    judged = judge(one.method, one.sign * value, tokens)
    return replace(
        judged,
        name=f"{one.name} ({one.framework}) = {value:.4g} over {tokens} tokens",
        sections=(Section("Read as", _read_as(one, value)), *judged.sections),
        numbers=judged.numbers | {"value": value, "sign": one.sign, "method": one.method},
    )


def _require_judgeable(one: Metric, value: float) -> None:
    """Refuse what a mean over tokens says nothing of, unless its sign is impossible anyway."""
    if one.method in ("k2", "k3") and one.sign * value < 0:
        return
    why = ""
    if one.method not in ("k1", "k2", "k3"):
        why = f"it is {one.meaning}"
    elif one.level not in ("token_mean", "padded_mean"):
        why = f"it is no mean over tokens ({one.aggregation})"
    elif one.weight and one.method == "k1":
        why = f"its terms are weighted by {one.weight}"
    if why:
        raise ValueError(
            f"{one.name} of {one.framework} cannot be judged by a count of tokens: {why}"
        )


def _read_as(one: Metric, value: float) -> str:
    said = f"{one.method} of {one.question}"
    if one.sign < 0:
        said = f"minus {said}: {one.method} is {-value:.4g}, and a negative log is normal"
    if one.level == "padded_mean":
        said += "; padding counts, so the count must be of all positions"
    if one.sampler != one.p and not one.weight:
        said += (
            f". {one.sampler.capitalize()} sampled, not {one.p}, and no weight is there: what "
            "follows holds while the two are one"
        )
    return f"{said[0].upper()}{said[1:]}."
