"""What a logged series is, by its name in the dictionary and by the values that it takes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from kullback.diagnosis.log_profile import Profile, profile
from kullback.dictionary import Metric, find
from kullback.logs.recognize import KL
from kullback.logs.step_log import Series, StepLog

# Nats that the mean of k3, written as exp(x) − 1 − x, can be below 0 by rounding.
ROUNDED = 2.0**-22  # in float32
COARSE = 2.0**-7  # in bfloat16
# A name that says itself that its terms are never negative.
UNFIT = ", which its values do not fit"
_NEVER = re.compile(r"k[23](?![0-9])|low_?var|abs_|mse", re.IGNORECASE)
_COEFFICIENT = re.compile(r"coef|beta|kl_ctl|kl_weight|kl_scale", re.IGNORECASE)
FEWEST_NAMES = 2  # whole names of a framework by which it is guessed
# A series of another figure than the mean: of the largest token, of the spread, …
_FIGURE = re.compile(r"(^|[/_.-])(max|min|std|var|median|p\d+|q\d+|count|grad|time|target)s?$")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A series and what it can be.

    Args:
        series: The series.
        kind: ``kl``, or ``coefficient`` (what multiplies a KL).
        metrics: The entries of the dictionary that have its name and fit its values.
        excluded: Those that have its name and do not fit: it is negative, and they cannot be.
        profile: How it runs.
    """

    series: Series
    kind: str
    metrics: tuple[Metric, ...]
    excluded: tuple[Metric, ...]
    profile: Profile

    @property
    def name(self) -> str:
        """Its name in the log."""
        return self.series.name

    @property
    def known(self) -> tuple[Metric, ...]:
        """All entries of its name."""
        return self.metrics + self.excluded

    def agreed(self, field: str) -> object:
        """What all entries say of a field; None where they differ, or there are none."""
        said = {getattr(one, field) for one in self.metrics}
        return said.pop() if len(said) == 1 else None

    @property
    def never_negative(self) -> bool:
        """Whether its name says that each of its terms is 0 or more."""
        return bool(_NEVER.search(self.name))

    @property
    def said(self) -> str:
        """What it is, in one line: methods, questions and frameworks."""
        if not self.known and self.never_negative:
            return "by its name a k2, k3 or absolute value"
        if not self.known:
            return "not in the dictionary: called a KL by its name alone"
        if not self.metrics:
            return f"by its name {_which(self.excluded)}{UNFIT}"
        said = _which(self.metrics)
        return f"{said}; not {_which(self.excluded)}" if self.excluded else said


def _which(metrics: tuple[Metric, ...]) -> str:
    """The entries, those of one meaning together."""
    meanings: dict[str, list[str]] = {}
    for one in metrics:
        asked = one.question
        method = one.method if one.method != "other" else "an own formula"
        said = one.meaning if asked is None else f"{method} of {asked}"
        if asked is not None and one.sign < 0:
            said = f"minus {said}"
        meanings.setdefault(said, []).append(one.framework)
    listed = [f"{said} ({', '.join(dict.fromkeys(of))})" for said, of in meanings.items()]
    return " or ".join(listed[:4]) + (f" or {len(listed) - 4} more" if len(listed) > 4 else "")


def guessed(log: StepLog) -> str | None:
    """The framework whose names a log has, whole and unchanged, where no other has as many.

    Example:
        >>> guessed(StepLog.of({"actor/kl_loss": [0.1], "actor/ppo_kl": [0.1], "loss": [0.1]}))
        'verl'
    """
    counts = Counter(
        metric.framework
        for name in log.series
        for metric in {one.framework: one for one in find(name) if _is_named(one, name)}.values()
    )
    (first, most), (_, second) = [*counts.most_common(2), ("", 0), ("", 0)][:2]
    return first if most >= FEWEST_NAMES and most > second else None


def labelled(log: StepLog, framework: str | None) -> tuple[Labelled, ...]:
    """The KL series and the coefficients of a log, each with what it can be.

    Args:
        log: The log.
        framework: The trainer that wrote it, if known: then only its entries count.

    Raises:
        ValueError: The framework is not in the dictionary.
    """
    made = []
    for series in log.series.values():
        name, found = series.name, find(series.name, framework)
        is_kl = bool(KL.search(name))
        known = tuple(
            one
            for one in found
            if (one.use == "coefficient" or one.question) and (is_kl or _is_named(one, name))
        )
        if _FIGURE.search(name.lower()) or not (is_kl or known):
            continue
        if _COEFFICIENT.search(name) or (known and all(o.use == "coefficient" for o in known)):
            made.append(Labelled(series, "coefficient", known, (), profile(series.values)))
        else:
            made.append(_kl(series, tuple(one for one in known if one.use != "coefficient")))
    return tuple(made)


def _is_named(metric: Metric, name: str) -> bool:
    """Whether the whole name is the entry's: many things end in /loss."""
    return name.lower() in (known.lower() for known in metric.names)


def _kl(series: Series, known: tuple[Metric, ...]) -> Labelled:
    finite = series.values[np.isfinite(series.values)]
    if not len(finite) or finite.min() >= -ROUNDED:
        return Labelled(series, "kl", known, (), profile(series.values))
    fits, excluded = [], []
    for one in known:
        if possible := one if one.can_be_negative else _set_otherwise(one):
            fits.append(possible)
        else:
            excluded.append(one)
    return Labelled(series, "kl", tuple(fits), tuple(excluded), profile(series.values))


def _set_otherwise(metric: Metric) -> Metric | None:
    """The entry as another setting makes it, with which it can be negative; if there is one."""
    made = (replace(metric, **choice.changes) for choice in metric.choices)
    return next((one for one in made if one.can_be_negative), None)
