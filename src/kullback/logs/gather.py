"""Points of a log, gathered to the series of one run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kullback.dumps.errors import DumpError
from kullback.logs.step_log import Series

# A trainer's own step, where it logs it as a number: loggers count rows beside it.
TRAINERS = ("train/global_step", "trainer/global_step")
NAMED = 8  # runs that a sentence names, at most


class Point(NamedTuple):
    """One number of a log.

    Args:
        run: The run it is of; empty where the format has no runs.
        name: What was logged.
        step: The step, a finite number.
        value: The number.
        time: Seconds since 1970; NaN if not logged.
    """

    run: str
    name: str
    step: float
    value: float
    time: float


@dataclass(slots=True)
class Points:
    """What a reader hands over: the points as they come, and what it left out.

    Args:
        points: The points, in the order of the log.
        notes: Filled while the points are taken.
    """

    points: Iterable[Point]
    notes: list[str] = field(default_factory=list)


def series_of(path: str, given: Points, run: str | None) -> tuple[str, dict[str, Series]]:
    """The series of one run.

    Where the steps go back (a run that was started again from a checkpoint) what was logged before
    of these and later steps does not count.

    Args:
        path: The log, for sentences.
        given: Its points.
        run: The run that is wanted; None where there is but one.

    Raises:
        DumpError: There is no point, or several runs and none is named, or not this one.
    """
    held: dict[str, dict[str, tuple[array, array, array]]] = {}
    for point in given.points:
        names = held.setdefault(point.run, {})
        if point.name not in names:
            names[point.name] = array("d"), array("d"), array("d")
        for kept, one in zip(names[point.name], point[2:], strict=True):
            kept.append(one)
    chosen = _chosen(path, list(held), run)
    made: dict[str, Series] = {}
    again: dict[tuple[tuple[float, ...], bool], dict[str, int]] = {}
    for name, columns in held[chosen].items():
        steps, values, times = (np.frombuffer(column, np.float64).copy() for column in columns)
        kept, restarts = _not_superseded(steps)
        once = kept[_once(steps[kept], values[kept])]
        made[name] = Series(name, steps[once], values[once], times[once], restarts)
        if restarts:
            at_start = bool(kept[0] > 0)  # of what was logged before nothing is kept
            again.setdefault((restarts, at_start), {})[name] = len(steps) - len(kept)
    given.notes += [_again(*what, lost) for what, lost in again.items()]
    return chosen, made


def _again(restarts: tuple[float, ...], at_start: bool, lost: dict[str, int]) -> str:
    """What is said of series that go back to the same earlier steps, each losing some values."""
    name, *others = lost
    *before, last = restarts
    who = f"{len(lost)} series ({name}, …) start" if others else f"{name} starts"
    times = f"{len(restarts)} times, last " if before else ""
    most = f"{'up to ' if len(set(lost.values())) > 1 else ''}{max(lost.values())}"
    return (
        f"{who} again {times}at step {last:g}: the later values count, and {most} earlier "
        "ones do not" + "; if these are two runs, keep them in two folders" * at_start
    )


def _chosen(path: str, runs: list[str], run: str | None) -> str:
    if not runs:
        raise DumpError(f"{path} holds no number of any step: it may be empty, or still to come")
    if run is not None:
        if run in runs:
            return run
        raise DumpError(f"{path} has no run {run!r}: it has {_few(runs)}")
    if len(runs) > 1:
        raise DumpError(
            f"{path} holds {len(runs)} runs: name one, --run NAME on the command line "
            f"({_few(runs)})"
        )
    return runs[0]


def _few(runs: list[str]) -> str:
    named = ", ".join(repr(one) if one == "" else one for one in sorted(runs)[:NAMED])
    return f"{named} and {len(runs) - NAMED} more" if len(runs) > NAMED else named


def _not_superseded(steps: np.ndarray) -> tuple[np.ndarray, tuple[float, ...]]:
    """Which points count, in the order of steps, and the steps at which these began again."""
    back = np.flatnonzero(np.diff(steps) < 0)
    if not len(back):
        return np.arange(len(steps)), ()
    lowest_later = np.append(np.minimum.accumulate(steps[::-1])[::-1][1:], np.inf)
    return np.flatnonzero(steps < lowest_later), tuple(steps[back + 1].tolist())


def _once(steps: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Without what was logged twice: the same value at the same step is no second one."""
    twice = (np.diff(steps) == 0) & (np.diff(values) == 0)
    return np.flatnonzero(np.append(True, ~twice)) if len(steps) else np.arange(0)


def flattened(row: dict[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """The names and values of a row; what stands in a group within is named by its path.

    Example:
        >>> list(flattened({"step": 1, "actor": {"kl": 0.5}}))
        [('step', 1), ('actor/kl', 0.5)]
    """
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{before}{name}/")
        else:
            yield f"{before}{name}", value


_WORDS = {"nan": np.nan, "inf": np.inf, "infinity": np.inf, "-inf": -np.inf, "-infinity": -np.inf}


def as_number(value: object) -> float | None:
    """A logged value as a number; None where it is none (a flag, text, a list, nothing).

    Example:
        >>> as_number(3), as_number("Infinity"), as_number("0.5"), as_number(True)
        (3.0, inf, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:  # an integer beyond float64
            return np.inf if value > 0 else -np.inf
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return None
