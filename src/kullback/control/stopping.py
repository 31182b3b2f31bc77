"""When the epochs over one batch stop: the rules of released trainers, live or replayed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Literal, get_args

from kullback.control.reading import above_zero, reading

Check = Literal["minibatch", "epoch_last", "epoch_mean"]
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """One stop rule on one batch that is used again and again; `update` and `end_epoch` go on.

        stop if KL > factor · target, where KL is what the check reads

    A reading is the KL of old and current on a minibatch, before the step on it. ``"minibatch"``
    looks at each one before its step (Stable-Baselines3, factor 1.5; Spinning Up too, whose only
    minibatch is the batch). ``"epoch_last"`` looks at the last one after each epoch (CleanRL,
    factor 1), ``"epoch_mean"`` at their mean. It is a habit and no statement: how often noise
    stops such a rule below its limit, or makes it miss, is measured in *Is the KL above my
    limit?*, and `Evidence` is what bounds it. A signed estimate (k1) misses far more than k3. It
    is a number for a decision and has no gradient.

    Args:
        target: The KL that the update may have, above 0, in the unit of the readings.
        factor: How many targets are the limit, above 0.
        check: ``"minibatch"``, ``"epoch_last"`` or ``"epoch_mean"``.
        stopped: Whether it has said stop.
        updates: Steps done: one for each reading that did not stop before its own.
        readings: Readings so far.
        last: The last one; NaN before the first.
        largest: The largest one; −inf before the first.
        total: Their sum.
        epoch: Those of the epoch that runs, or of the last one.
        between: Whether the next reading begins an epoch.

    Raises:
        ValueError: The target or the factor is no finite number above 0, or there is no such check.

    Example:
        >>> stop = EarlyStop(target=0.015)
        >>> for kl in (0.002, 0.02, 0.024):  # before the step on each minibatch
        ...     stop = stop.update(kl)
        ...     if stop.stopped:
        ...         break
        >>> print(stop)
        minibatch: stops after 2 updates, logs 0.01533; largest 0.024, mean 0.01533, limit 0.0225
    """

    target: float
    factor: float = 1.5
    check: Check = "minibatch"
    stopped: bool = False
    updates: int = 0
    readings: int = 0
    last: float = nan
    largest: float = -inf
    total: float = 0.0
    epoch: tuple[float, ...] = ()
    between: bool = True

    def __post_init__(self) -> None:
        above_zero("target", self.target)
        above_zero("factor", self.factor)
        if self.check not in CHECKS:
            raise ValueError(f"check {self.check!r} is none of {', '.join(CHECKS)}")

    @property
    def limit(self) -> float:
        """What a reading must exceed: factor · target."""
        return self.factor * self.target

    @property
    def mean(self) -> float:
        """The mean of all readings; NaN before the first."""
        return self.total / self.readings if self.readings else nan

    @property
    def logged(self) -> float:
        """What a trainer with this check logs of the batch, NaN before the first reading.

        The last reading for ``"epoch_last"``; else the mean of the last epoch, the reading that
        stopped it included. Neither is the largest, nor the mean of all.
        """
        if not self.epoch:
            return nan
        return self.last if self.check == "epoch_last" else _mean(self.epoch)

    def update(self, kl: float) -> EarlyStop:
        """The state after the reading of one minibatch, before the step on it.

        Where it then says ``stopped``, that step is not done; else it counts as done.

        Args:
            kl: The reading, in the unit of the target. Below 0 and +inf are readings that count.

        Returns:
            The next state; this one stays as it is.

        Raises:
            ValueError: The KL is NaN or −inf, or it has stopped already.
        """
        self._refuse_if_stopped()
        kl = reading(kl)
        stops = self.check == "minibatch" and kl > self.limit
        return replace(
            self,
            stopped=stops,
            updates=self.updates + (not stops),
            readings=self.readings + 1,
            last=kl,
            largest=max(self.largest, kl),
            total=self.total + kl,
            epoch=(kl,) if self.between else (*self.epoch, kl),
            between=False,
        )

    def end_epoch(self) -> EarlyStop:
        """The state after the last step of an epoch, where the rules look that ask per epoch.

        Returns:
            The next state; this one stays as it is.

        Raises:
            ValueError: The epoch had no reading, or it has stopped already.
        """
        self._refuse_if_stopped()
        if self.between:
            raise ValueError("an epoch without a reading: update with the KL of each minibatch")
        seen = {"epoch_last": self.last, "epoch_mean": _mean(self.epoch)}.get(self.check, -inf)
        return replace(self, stopped=seen > self.limit, between=True)

    def _refuse_if_stopped(self) -> None:
        if self.stopped:
            raise ValueError(
                f"it has stopped after {self.updates} updates: begin the next batch with a new one"
            )

    def __str__(self) -> str:
        done = f"stops after {self.updates}" if self.stopped else f"no stop in {self.updates}"
        return (
            f"{self.check}: {done} updates, logs {self.logged:.4g}; largest {self.largest:.4g}, "
            f"mean {self.mean:.4g}, limit {self.limit:.4g}"
        )


def replay_stops(
    readings: Iterable[Iterable[float]], *, target: float, factor: float = 1.5
) -> dict[Check, EarlyStop]:
    """Where each stop rule would have stopped the epochs over one batch.

        stop if KL > factor · target, read per minibatch before its step or after each epoch

    The readings must be of a run that did not stop on its own: what comes after a stop was never
    seen, so that a rule which would have gone on further cannot be told of. Where a rule stops,
    its state holds what it had seen until then.

    Args:
        readings: The KL of each minibatch before its step, [epochs, minibatches], in the unit of
            the target; epochs may differ in length. One minibatch per epoch is the whole batch.
        target: The KL that the update may have, above 0.
        factor: How many targets are the limit: 1.5 for Stable-Baselines3 and Spinning Up, 1 for
            CleanRL.

    Returns:
        The final `EarlyStop` of each check: ``stopped``, ``updates`` done, the value ``logged``,
        and the ``largest`` and the ``mean`` of what it saw.

    Raises:
        ValueError: The readings are not by epoch and minibatch, one of them is NaN or −inf, or the
            target or factor is no finite number above 0.

    Example:
        >>> readings = [[0.002, 0.006, 0.011], [0.013, 0.024, 0.012], [0.02, 0.031, 0.01]]
        >>> for state in replay_stops(readings, target=0.015).values():
        ...     print(state)
        minibatch: stops after 4 updates, logs 0.0185; largest 0.024, mean 0.0112, limit 0.0225
        epoch_last: no stop in 9 updates, logs 0.01; largest 0.031, mean 0.01433, limit 0.0225
        epoch_mean: no stop in 9 updates, logs 0.02033; largest 0.031, mean 0.01433, limit 0.0225
    """
    try:
        epochs = [_epoch(number, row) for number, row in enumerate(readings, start=1)]
    except TypeError:
        raise ValueError(
            "readings are by epoch and minibatch: put those of one epoch into a list of its own"
        ) from None
    if not epochs:
        raise ValueError("there are no readings: give those of each epoch, by minibatch")
    return {check: _run(EarlyStop(target, factor, check), epochs) for check in CHECKS}


def _run(stop: EarlyStop, epochs: list[list[float]]) -> EarlyStop:
    for epoch in epochs:
        for kl in epoch:
            stop = stop.update(kl)
            if stop.stopped:
                return stop
        stop = stop.end_epoch()
        if stop.stopped:
            return stop
    return stop


def _epoch(number: int, row: Iterable[float]) -> list[float]:
    """The readings of an epoch, refused with its number."""
    try:
        found = [reading(kl) for kl in row]
    except ValueError as error:
        raise ValueError(f"epoch {number}: {error}") from None
    if not found:
        raise ValueError(f"epoch {number} has no readings")
    return found


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)
