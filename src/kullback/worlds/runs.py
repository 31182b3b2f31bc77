"""Runs: a policy that moves by small steps of one size, and a batch that it samples before each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from kullback.columns import Columns
from kullback.formulas.categorical import log_softmax
from kullback.worlds.mixture import Mixture
from kullback.worlds.tables import Table


def small_steps(
    rng: np.random.Generator,
    start: Table,
    *,
    steps: int,
    size: float,
    straight: bool = True,
    **world: Any,
) -> tuple[Mixture, ...]:
    """The worlds of a run, one for each step: ``old`` samples, and ``current`` is a step further.

        log current = log old + size · z − log normalizer, with z normal at each token

    ``reference`` is the start. Each step has a KL of about size²/2. With one z for all steps the
    KL from the reference grows as the square of their number, with another z each time as it.

    Args:
        rng: The source of the directions.
        start: Log-probs of the first policy, [contexts, alphabet].
        steps: How many.
        size: Of each.
        straight: Whether all go in one direction.
        world: What else a ``Mixture`` takes.

    Example:
        >>> from kullback.question import Question
        >>> start = np.full((4, 50), -np.log(50))
        >>> run = small_steps(np.random.default_rng(0), start, steps=10, size=0.1)
        >>> one, both = Question("old", "current"), Question("current", "reference")
        >>> f"{run[-1].exact(one):.4f} {run[-1].exact(both):.2f}"
        '0.0032 0.37'
    """
    direction = rng.standard_normal(start.shape)
    old, run = start, []
    for step in range(steps):
        if step and not straight:
            direction = rng.standard_normal(start.shape)
        current = log_softmax(old + size * direction)
        tables = {"old": old, "current": current, "reference": start}
        run.append(Mixture(tables, sampler="old", **world))
        old = current
    return tuple(run)


def logged_by_step(
    rng: np.random.Generator, run: Iterable[Mixture], every: int = 1
) -> list[Columns]:
    """A batch of each world of a run with its number as the label ``step``.

    Args:
        rng: The source of chance.
        run: What ``small_steps`` made.
        every: Log every so many steps only, the first among them.
    """
    batches = []
    for step, world in enumerate(run):
        if step % every == 0:
            batch = world.sample(rng)
            label = np.full(len(batch.lengths), step)
            batches.append(replace(batch, labels={"step": label}, source=f"step {step}"))
    return batches
