"""Runs as pictures show them: one copy of each loop, thinned, and what belongs to a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kullback.experiments.controller.loop import Values
from kullback.reporting.curves import dial, profiles
from kullback.reporting.figures import Figure

COLORS = {
    "target": "var(--dim)",
    "exact": "var(--green)",
    "k1": "var(--blue)",
    "k3": "var(--orange)",
}


def traced(
    title: str,
    along: Sequence[Mapping[str, Any]],
    still: Mapping[str, Values],
    turned: Mapping[tuple[float, str], Values],
    *,
    every: int,
    axes: tuple[str, str, str],
    named: str,
    start: float,
    marks: Mapping[float, str] | None = None,
    note: str,
) -> Figure:
    """A dial: curves along a setting, and the traces of the loops at the setting that is chosen.

    Args:
        title: The finding.
        along: ``at``, ``series``, ``value``.
        still: Traces that do not depend on the setting, by name.
        turned: Traces by setting and name.
        every: The steps from one point to the next.
        axes: The setting, what the curves measure, what the traces do.
        named: The setting, as the slider calls it.
        start: The setting that is chosen first.
        marks: Places along the setting to set a line at.
        note: What must not be read out of it.
    """
    length = len(next(iter(turned.values())))
    fixed = [{"x": step, "series": "target", "value": 1.0} for step in (0, length - every)]
    fixed += [row for name, trace in still.items() for row in _points(name, trace, every)]
    moving = [
        {"at": at, **row} for (at, name), trace in turned.items()
        for row in _points(name, trace, every)
    ]  # fmt: skip
    names = {"target", *still, *(name for _, name in turned)}
    colors = {name: color for name, color in COLORS.items() if name in names}
    setting, height, traced_height = axes
    beside = profiles(fixed, moving, "step", traced_height, colors)
    return dial(
        title, along, beside, setting, height, named=named, start=start, marks=marks, note=note
    )


def _points(name: str, trace: Values, every: int) -> list[dict[str, Any]]:
    return [
        {"x": step, "series": name, "value": float(np.round(trace[step], 4))}
        for step in range(0, len(trace), every)
    ]
