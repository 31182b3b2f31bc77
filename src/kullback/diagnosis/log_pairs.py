"""Two series of one run: the same number twice, one of them scaled, or in another unit."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from math import log

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.log_labels import Labelled
from kullback.diagnosis.log_profile import SIGMA
from kullback.diagnosis.log_tokens import lengths_of
from kullback.logs.step_log import Series, StepLog

FEWEST = 10  # steps that both need
STUCK = 0.005  # robust spread of the log of a ratio below which it is constant
ROUND = 0.01  # share by which it may be off a whole number
LARGEST = 64  # whole number, at most: micro-batches, devices, a doubling
CLOSE = 0.05  # share of a whole number that the error of a ratio may be, to tell that it is near
ALIKE = 0.05  # share by which k1 and k3 may differ without a word
ERRORS = 4.0  # standard errors of the difference beyond which they do differ
# Names that say themselves that the number is in another unit than its neighbor.
_OTHER_UNIT = re.compile(r"sum|seq|total|per_|token|coef|weight|scaled|penalty|loss_x|norm|bits")
# Names of numbers of other tokens than those of training.
_OTHER_TOKENS = re.compile(r"(^|[/_.-])(eval|val|valid|validation|test)([/_.-]|$)")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two series at the steps that they share.

    Args:
        one: The one.
        other: The other.
        ratio: The median of one/other.
        spread: The robust spread of its logarithm; small where the ratio is stuck.
        count: Steps at which both are there and neither is 0.
    """

    one: Labelled
    other: Labelled
    ratio: float
    spread: float
    count: int

    @property
    def stuck(self) -> bool:
        """Whether one is a multiple of the other."""
        return self.count >= FEWEST and self.spread < STUCK

    @property
    def named(self) -> str:
        """Both names."""
        return f"{self.one.name} and {self.other.name}"


def diagnose_pairs(
    log: StepLog, series: tuple[Labelled, ...], wrong: Collection[str] = ()
) -> Diagnosis:
    """What pairs of KL series say of each other, and of the coefficient.

    Args:
        log: The log.
        series: Its series, labelled.
        wrong: The series that are known to be wrong: nothing is told of what follows from that.
    """
    kls = [one for one in series if one.kind == "kl" and one.name not in wrong]
    coefficients = [one.series for one in series if one.kind == "coefficient"]
    lengths = lengths_of(log)
    found = Diagnosis()
    for one, other in combinations(kls, 2):
        if not _comparable(one, other):
            continue
        mine, theirs = one.series.at(other.series)
        pair = _pair(one, other, mine, theirs)
        if pair is None:
            continue
        if pair.stuck:
            found += _multiple(pair, coefficients)
        elif lengths is not None and (unit := _by(pair, lengths)):
            found += _per_sequence(pair, unit, lengths)
        elif coefficients and (by := _by_coefficient(pair, coefficients)):
            found += by
        elif _same_kl(one, other):
            found += _sums(pair, mine, theirs)
    return found


def _comparable(one: Labelled, other: Labelled) -> bool:
    """Whether they can be of the same pair of policies."""
    sides = [{(m.p, m.q) for m in each.metrics} for each in (one, other)]
    return not all(sides) or bool(sides[0] & sides[1])


def _pair(one: Labelled, other: Labelled, mine: np.ndarray, theirs: np.ndarray) -> Pair | None:
    there = np.isfinite(mine) & np.isfinite(theirs) & (mine != 0) & (theirs != 0)
    if there.sum() < FEWEST:
        return None
    ratio, spread = _ratio(mine[there] / theirs[there])
    return Pair(one, other, ratio, spread, int(there.sum()))


def _ratio(ratios: np.ndarray) -> tuple[float, float]:
    """The median, and the spread of the logarithm of those that have its sign."""
    middle = float(np.median(ratios))
    alike = ratios * np.sign(middle) > 0
    if middle == 0 or alike.mean() < 0.95:
        return middle, np.inf
    logs = np.log(np.abs(ratios[alike]))
    # The spread from the median, and the range of nine tenths: a drift must not pass as stuck.
    low, high = np.quantile(logs, (0.05, 0.95))
    return middle, float(max(SIGMA * np.median(np.abs(logs - np.median(logs))), (high - low) / 4))


def _whole(ratio: float) -> int:
    """The whole number of two or more that a ratio or its inverse is; else 0."""
    for size in (abs(ratio), 1 / abs(ratio)):
        near = round(size)
        if 2 <= near <= LARGEST and abs(size / near - 1) < ROUND:
            return near
    return 0


def _multiple(pair: Pair, coefficients: list[Series]) -> Diagnosis:
    code, c = "unit-or-scale", pair.ratio
    if abs(c - 1) < ROUND:
        return _agrees(pair, "are one number")
    for held in coefficients:
        size = float(np.median(held.values[np.isfinite(held.values)]))
        if size > 0 and min(abs(c / size - 1), abs(1 / c / size - 1)) < ROUND:
            return _agrees(pair, f"differ by {held.name}, as a penalty and its KL do")
    bits = min(abs(abs(c) * log(2) - 1), abs(abs(c) / log(2) - 1)) < ROUND / 5
    whole, why = _whole(c), ""
    if bits:
        why = "one is in bits and the other in nats"
    elif whole:
        why = (
            f"a term that is added {whole} times (once per micro-batch, device or pass), or "
            f"divided by {whole} once more than needed, does that"
        )
    elif abs(c + 1) < ROUND:
        why = "one has its sign turned"
    told_apart = _told_apart(pair)
    if not why or told_apart:
        said = f"{pair.one.name} is {c:.4g} times {pair.other.name} at every step"
        said += f": {told_apart}" if told_apart else ", which is no whole number"
        return Diagnosis.passed(code, pair.named, said)
    return _scaled(pair, why, whole)


def _told_apart(pair: Pair) -> str:
    """Why two series may well be in different units: by the dictionary, or by their names."""
    levels = pair.one.agreed("level"), pair.other.agreed("level")
    if all(levels) and levels[0] != levels[1]:
        return "their levels differ"
    signs = pair.one.agreed("sign"), pair.other.agreed("sign")
    if pair.ratio < 0 and all(signs) and signs[0] != signs[1]:
        return "one of them is logged as minus its KL"
    known = [bool(one.metrics) for one in (pair.one, pair.other)]
    said = [bool(_OTHER_UNIT.search(one.name.lower())) for one in (pair.one, pair.other)]
    return "" if all(known) or said[0] == said[1] else "one of the names says so"


def _agrees(pair: Pair, said: str) -> Diagnosis:
    return Diagnosis.passed("unit-or-scale", pair.named, f"they {said}")


def _scaled(pair: Pair, why: str, whole: int, certain: bool = True) -> Diagnosis:
    large, small = (pair.one, pair.other) if abs(pair.ratio) > 1 else (pair.other, pair.one)
    size = abs(pair.ratio) if abs(pair.ratio) > 1 else 1 / abs(pair.ratio)
    size = size if pair.ratio > 0 else -size
    how = "at every one of" if certain else "in the median of"
    values = [float(np.nanmedian(one.series.values)) for one in (large, small)]
    finding = Finding(
        "unit-or-scale",
        "warning",
        "certain" if certain else "likely",
        f"{large.name} is {size:.4g} times {small.name}, {how} {pair.count} steps, and both are "
        f"logged as the same KL: {why}.",
        decided(values[0], values[1]) or "One of them is not the KL that its name says.",
        "Find out which of the two is right: sum the terms and count the tokens of one batch, or "
        "change the micro-batch size, which must not change a KL. A limit or target was tuned for "
        "one of the two alone.",
        numbers={"ratio": pair.ratio, "whole": whole, "spread": pair.spread, "steps": pair.count},
    )
    return Diagnosis.failed(finding, pair.named, f"ratio {pair.ratio:.4g}")


def _by(pair: Pair, other: Series) -> float:
    """The constant k with one/other = k · a third series, or k / it; 0 if there is none.

    A third series that hardly varies explains no ratio better than a constant does.
    """
    finite = other.values[np.isfinite(other.values)]
    if len(finite) < FEWEST or (finite <= 0).any() or np.log(finite).std() < 4 * STUCK:
        return 0.0
    steps = _shared_steps(pair, other)
    mine, theirs, third = (_at(one, steps) for one in (pair.one.series, pair.other.series, other))
    there = np.isfinite(mine) & np.isfinite(theirs) & (mine != 0) & (theirs != 0)
    if there.sum() < FEWEST:
        return 0.0
    for power in (1, -1):
        middle, spread = _ratio(mine[there] / theirs[there] * third[there] ** -power)
        if spread < STUCK:
            return middle
    return 0.0


def _shared_steps(pair: Pair, other: Series) -> np.ndarray:
    both = np.intersect1d(pair.one.series.steps, pair.other.series.steps)
    return np.intersect1d(both, other.steps)


def _at(series: Series, steps: np.ndarray) -> np.ndarray:
    return series.values[np.searchsorted(series.steps, steps)]


def _per_sequence(pair: Pair, unit: float, lengths: Series) -> Diagnosis:
    said = (
        f"one is {abs(unit):.3g} times the other times {lengths.name}: one is per sequence, "
        "the other per token"
    )
    if told_apart := _told_apart(pair):
        said = f"{said}; {told_apart}"
        return Diagnosis.passed("unit-or-scale", pair.named, said)
    return _scaled(pair, said, 0, certain=False)


def _by_coefficient(pair: Pair, coefficients: list[Series]) -> Diagnosis | None:
    """A penalty and its KL, where the coefficient moves."""
    for held in coefficients:
        if k := _by(pair, held):
            if abs(abs(k) - 1) < ROUND:
                return _agrees(pair, f"differ by {held.name}, as a penalty and its KL do")
            if whole := _whole(k):
                why = f"beside {held.name} there is a factor of {whole}"
                return _scaled(pair, why, whole)
    return None


def _same_kl(one: Labelled, other: Labelled) -> bool:
    """Whether both estimate the same KL on the same tokens, by one term or by two."""
    methods = {one.agreed("method"), other.agreed("method")}
    alike = all(
        one.agreed(field) is not None and one.agreed(field) == other.agreed(field)
        for field in ("p", "q", "level", "sampler", "weight", "sign")
    )
    apart = bool(_OTHER_TOKENS.search(one.name)) != bool(_OTHER_TOKENS.search(other.name))
    return alike and methods <= {"k1", "k3", "exact"} and not apart


def _sums(pair: Pair, mine: np.ndarray, theirs: np.ndarray) -> Diagnosis:
    """Whether the sums over the steps agree, as those of two unbiased estimates do."""
    code = "holes-suspected"
    there = np.isfinite(mine) & np.isfinite(theirs)
    mine, theirs = mine[there], theirs[there]
    gap = mine - theirs
    mean = float(gap.mean())
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    sums = float(mine.sum()), float(theirs.sum())
    said = f"they sum to {sums[0]:.4g} and {sums[1]:.4g} over {len(gap)} steps"
    close = abs(sums[0] - sums[1]) < ALIKE * max(abs(one) for one in sums)
    if abs(mean) <= ERRORS * error or close:
        return Diagnosis.passed(code, pair.named, said)
    scaled = _scaled_by_chance(mine, theirs)
    maybe = f" Their ratio is {scaled}, so one can be scaled too." if scaled else ""
    two = pair.one.agreed("method") != pair.other.agreed("method")
    finding = Finding(
        code,
        "note",
        "beyond-chance",
        f"{pair.named} estimate the same KL and differ: {said}, {abs(mean) / error:.1f} standard "
        f"errors apart.{maybe}",
        decided(sums[0] / len(gap), sums[1] / len(gap)) or "One of them is off.",
        "Where k1 is above k3, q has mass at tokens that were not sampled, and k1 is the one to "
        "trust; where it is below, p may not have sampled. A clamp on one of them does it too."
        if two
        else "Both are the same mean by their names: look whether one is of other tokens or of "
        "another mask, is added once per micro-batch, or is clamped.",
        numbers={
            "ratio": sums[0] / sums[1] if sums[1] else np.inf,
            "difference": mean,
            "standard_error": error,
            "steps": len(gap),
        },
    )
    return Diagnosis.failed(finding, pair.named, said)


def _scaled_by_chance(mine: np.ndarray, theirs: np.ndarray) -> str:
    """The ratio of the sums, or its inverse, with its error, where that fits a whole number."""
    large, small = (mine, theirs) if abs(mine.sum()) > abs(theirs.sum()) else (theirs, mine)
    if not small.sum():
        return ""
    ratio = float(large.sum() / small.sum())
    left = large - ratio * small
    error = float(left.std(ddof=1) / np.sqrt(len(left)) / abs(small.mean()))
    whole = round(ratio)
    fits = 2 <= whole <= LARGEST and abs(ratio - whole) <= max(2 * error, ROUND * whole)
    return f"{ratio:.3g} ± {error:.1g}" if fits and error < CLOSE * whole else ""
