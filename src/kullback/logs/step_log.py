"""What a trainer logged: one series for each name, each with its steps and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Series:
    """One name of a log, over the steps.

    Args:
        name: Its name, as logged.
        steps: The steps, rising.
        values: The values there, float64; NaN and infinity as they were logged.
        times: Seconds since 1970, NaN where not logged.
        restarts: The steps to which the log went back: there a run was started again.

    Example:
        >>> log = StepLog.of({"kl": [0.1, 0.2], "loss": [3.0, 2.0]})
        >>> kl, loss = log["kl"], log["loss"]
        >>> len(kl), kl.at(loss)[0].tolist()
        (2, [0.1, 0.2])
    """

    name: str
    steps: np.ndarray
    values: np.ndarray
    times: np.ndarray
    restarts: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)

    def at(self, other: Series) -> tuple[np.ndarray, np.ndarray]:
        """The values of this series and of another one, at the steps that both have."""
        _, mine, theirs = np.intersect1d(
            self.steps, other.steps, assume_unique=False, return_indices=True
        )
        return self.values[mine], other.values[theirs]


@dataclass(frozen=True, slots=True)
class StepLog:
    """The series of one run.

    Args:
        source: The file or folder that was read.
        format: What it is: ``TensorBoard``, ``W&B``, ``MLflow``, ``trackio``, ``JSON lines``, …
        run: The name of the run, where the format has names for runs.
        series: The series by name, in the order in which they were first logged.
        notes: What was left out, or taken for something, each with the reason.

    Example:
        >>> import numpy as np
        >>> steps = np.arange(3.0)
        >>> log = StepLog.of({"kl": [0.0, 0.01, 0.02]}, steps=steps)
        >>> log.steps, log["kl"].values.tolist(), list(log)
        (3, [0.0, 0.01, 0.02], ['kl'])
    """

    source: str
    format: str
    run: str
    series: Mapping[str, Series]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, object], *, steps: object = None) -> StepLog:
        """A log of arrays that are at hand, all over the same steps (0, 1, … if not given).

        Raises:
            ValueError: A series is not one number for each step.
        """
        made: dict[str, Series] = {}
        for name, given in values.items():
            array = np.asarray(given, dtype=np.float64)
            at = np.arange(float(array.size)) if steps is None else np.asarray(steps, np.float64)
            if array.ndim != 1 or array.shape != at.shape:
                raise ValueError(
                    f"series {name!r} has the shape {array.shape}: give one number for each of "
                    f"the {at.size} steps"
                )
            made[name] = Series(name, at, array, np.full(at.shape, np.nan))
        return cls("arrays", "arrays", "", made)

    def __getitem__(self, name: str) -> Series:
        return self.series[name]

    def __iter__(self):  # noqa: ANN204  (an iterator of names, as a mapping's)
        return iter(self.series)

    def __len__(self) -> int:
        return len(self.series)

    @property
    def steps(self) -> int:
        """How many different steps there are."""
        if not self.series:
            return 0
        return len(np.unique(np.concatenate([one.steps for one in self.series.values()])))
