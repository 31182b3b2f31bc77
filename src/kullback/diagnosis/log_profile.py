"""How a logged series runs: its level, its noise, spikes that vanish, steps at which it changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEIGHBORS = 9  # steps over which the running median is taken
FEWEST = 12  # steps below which neither noise nor events are told
SIGMA = 1.4826  # of a normal law, in median absolute deviations
SPIKE = 8.0  # noises that a spike stands above its neighbors
SPIKE_RATIO = 3.0  # and how many times as large as they it is
BACK = 3.0  # noises within which the next step is back,
FALLEN = 0.1  # or share of the spike: what is noisier where it is larger comes back less exactly
CHANGE = 6.0  # noises of a difference that a change of level takes in one step
HELD = 0.6  # share of that step which the medians on either side keep, and which it has of them
AROUND = 3.0  # and of the noise of either side alone
STEADY = 0.5  # share of it, at most, by which the two halves of a side differ
GROWN = 1.5  # times as large is the larger of two levels, at least
FELL = 0.05  # share of the level before, at most, to which a KL falls that begins anew,
ANEW = 5  # over so many steps,
STAYS = 3  # and so many later it is still below half of it
LONGEST = 16  # steps of a cycle, at most,
TIMES = 5  # which is there so often,
REPEATS = 0.5  # and makes so much of the variance about a moving mean
SIDE = 10  # steps on either side that are compared, and half as many at least


@dataclass(frozen=True, slots=True)
class Profile:
    """A series, described without any assumption on what it is.

    Args:
        level: The running median.
        noise: Robust standard deviation of a step about that, from first differences: a slow drift
            does not count.
        spikes: Places of single steps far above, the next of which is back.
        changes: Places at which the level jumps and stays.
        resets: Places at which it falls to about 0, and grows from there.
        cycle: Steps after which it repeats, as where a batch is used several times; 0 if never.
        beyond_twice: Share of steps above twice their running median: there a stop rule at twice
            the level fires by noise.
        below_half: Share of steps below half of it: there a rule at half the level is silent.
        negative: Share of steps below 0.
        not_finite: Steps whose value is NaN or infinite.
    """

    level: np.ndarray
    noise: float
    spikes: tuple[int, ...]
    changes: tuple[int, ...]
    resets: tuple[int, ...]
    cycle: int
    beyond_twice: float
    below_half: float
    negative: float
    not_finite: int

    @property
    def wrong_side(self) -> float:
        """Share of the steps at which one of the two rules decides by noise."""
        return self.beyond_twice + self.below_half


def profile(values: np.ndarray) -> Profile:
    """Describe a series.

    Args:
        values: One number for each step; what is not finite is left out and counted.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> values = 0.05 + 0.001 * rng.standard_normal(100)
        >>> values[40] = 3.0
        >>> one = profile(values)
        >>> one.spikes, one.changes, round(one.noise, 3)
        ((40,), (), 0.001)
    """
    finite = np.isfinite(values)
    held, places = values[finite], np.flatnonzero(finite)
    if len(held) < FEWEST:
        level = np.full(len(held), np.median(held) if len(held) else np.nan)
        shares = (np.nan, np.nan, float((held < 0).mean()) if len(held) else np.nan)
        return Profile(level, np.nan, (), (), (), 0, *shares, int((~finite).sum()))
    level = running_median(held)
    noise = _noise(held)
    positive = level > 0
    return Profile(
        level=level,
        noise=noise,
        spikes=tuple(int(places[i]) for i in _spikes(held, level, noise)),
        changes=tuple(int(places[i]) for i in _changes(held, noise)),
        resets=tuple(int(places[i]) for i in _resets(held, noise)),
        cycle=_cycle(held),
        beyond_twice=float((positive & (held > 2 * level)).mean()),
        below_half=float((positive & (held < level / 2)).mean()),
        negative=float((held < 0).mean()),
        not_finite=int((~finite).sum()),
    )


def running_median(values: np.ndarray, width: int = NEIGHBORS) -> np.ndarray:
    """The median of each value and its neighbors; at the ends, of the nearest ``width``."""
    width = min(width, len(values))
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    medians = np.median(windows, axis=1)
    before = (len(values) - len(medians)) // 2
    return np.pad(medians, (before, len(values) - len(medians) - before), mode="edge")


def _noise(values: np.ndarray) -> float:
    """Robust standard deviation of a value about a drift, from first differences."""
    moves = np.diff(values)
    return float(SIGMA / np.sqrt(2) * np.median(np.abs(moves - np.median(moves))))


def _rounding(values: np.ndarray) -> float:
    """What float32 may make of a value, for series without noise."""
    return 2.0**-23 * float(np.abs(values).max()) + 1e-300


def _spikes(values: np.ndarray, level: np.ndarray, noise: float) -> np.ndarray:
    """Single steps; of the last one nobody knows yet whether the next is back."""
    above = values - level
    size = max(noise, _rounding(values))
    far = (above > SPIKE * size) & (values > SPIKE_RATIO * np.abs(level))
    near = np.maximum(BACK * size, FALLEN * above[:-1])
    back = np.append(np.abs(above[1:]) <= near, False)
    alone = np.append(True, ~far[:-1])
    return np.flatnonzero(far & back & alone)


def _changes(values: np.ndarray, noise: float) -> list[int]:
    """Steps between which the level jumps and stays."""
    found: list[int] = []
    jumps = np.diff(values)
    unlike = np.abs(jumps - np.median(jumps))  # a steady drift is no jump, were it without noise
    for i in np.flatnonzero(unlike > CHANGE * np.sqrt(2) * max(noise, _rounding(values))):
        before, after = values[max(0, i + 1 - SIDE) : i + 1], values[i + 1 : i + 1 + SIDE]
        near = bool(found) and i + 1 - found[-1] < SIDE  # seen from the side of another one
        if near or min(len(before), len(after)) < SIDE // 2:
            continue
        sides = np.median(before), np.median(after)
        moved = sides[1] - sides[0]
        small, large = sorted(abs(side) for side in sides)
        # A level that is held, and a step that is most of the way: a run that grows has many.
        held = HELD * abs(jumps[i]) < moved * np.sign(jumps[i]) < abs(jumps[i]) / HELD
        steady = max(_moved_within(before), _moved_within(after)) < STEADY * abs(moved)
        steady &= abs(jumps[i]) > AROUND * np.sqrt(2) * max(_noise(before), _noise(after))
        if held and steady and large > GROWN * small:
            found.append(int(i) + 1)
    return found


def _resets(values: np.ndarray, noise: float) -> list[int]:
    """Steps at which a KL falls to about 0 at once, and is still small a few steps later."""
    least = CHANGE * np.sqrt(2) * max(noise, _rounding(values))
    found = []
    for i in range(ANEW, len(values) - STAYS + 1):
        before, later = float(np.median(values[i - ANEW : i])), values[i : i + STAYS]
        fell = later[0] <= FELL * before and later.max() < before / 2 < values[i - 1]
        if fell and before - later[0] > least:
            found.append(i)
    return found


def _cycle(values: np.ndarray) -> int:
    """The shortest cycle that makes most of what the steps do; 0 if there is none."""
    size = np.abs(values).max() or 1.0
    terms = np.log(values) if (values > 0).all() else values / size
    for period in range(2, min(LONGEST, len(values) // TIMES) + 1):
        mean = np.convolve(terms, np.full(period, 1 / period), mode="valid")
        left = terms[period // 2 :][: len(mean)] - mean
        whole = left[: len(left) // period * period].reshape(-1, period)
        freedom = (whole.size - 1) / (whole.size - period)
        if whole.var() > 0 and 1 - freedom * whole.var(axis=0).mean() / whole.var() > REPEATS:
            return period
    return 0


def _moved_within(side: np.ndarray) -> float:
    """How far the second half of a side is from the first."""
    half = len(side) // 2
    return abs(float(np.median(side[half:]) - np.median(side[:half])))
