"""The same loops fed with each estimate, by batch size, with the controller's clip and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.experiments.controller.linear import spread
from kullback.experiments.controller.loop import Loop, Run, Values, World, run, unclipped

HORIZON = 10_000  # the usual one
GAIN = 256 / HORIZON
FEEDS = ("k1", "k3")
POWERS = range(4, 15)  # batches of 16 … 16,384
LOOPS = tuple(Loop(feed, 2**power, GAIN) for feed in FEEDS for power in POWERS)
AUTO = tuple(Loop("auto", samples, GAIN) for samples in (64, 256))
AUTO_STEPS, AUTO_SKIP, AUTO_COPIES = 300, 100, 3  # the estimate is asked anew at every step
SKIP = 500  # steps before a loop is looked at


@dataclass(frozen=True, slots=True)
class Fed:
    """What came of the loops of ``LOOPS`` in a world, and of those of ``AUTO``.

    Args:
        world: The world.
        clipped: The loops, with the clip.
        free: Without it.
        auto: Those that are fed with kullback's default, with the clip, settled.
    """

    world: World
    clipped: Run
    free: Run
    auto: Run

    def sds(self, *, clip: bool = True) -> Values:
        """Of the KL around the target, over the target, [loops]."""
        one = self.clipped if clip else self.free
        return np.sqrt(one.settled(SKIP).squares()[0])

    def means(self, *, clip: bool = True) -> Values:
        """Of the KL, over the target, [loops]."""
        one = self.clipped if clip else self.free
        return one.settled(SKIP).kl.mean(axis=(0, 2))

    def zs(self) -> Values:
        """How far the mean squares without a clip are from the predicted ones, [loops]."""
        squares, errors = self.free.settled(SKIP).squares()
        predicted = np.array([spread(self.world, loop).kl for loop in LOOPS])
        return (squares - predicted) / errors

    def traces(self, steps: int) -> dict[tuple[float, str], Values]:
        """The KL of one copy of each loop, by power of two and name."""
        return {
            (int(np.log2(loop.samples)), loop.feed): self.clipped.kl[:steps, place, 0]
            for place, loop in enumerate(LOOPS)
        }


def fed(world: World, seed: int) -> Fed:
    """Run them."""
    auto = run(world, AUTO, seed, steps=AUTO_STEPS, copies=AUTO_COPIES)
    return Fed(
        world,
        run(world, LOOPS, seed),
        run(world, LOOPS, seed + 1, rule=unclipped),
        auto.settled(AUTO_SKIP),
    )


def name(loop: Loop) -> str:
    """A loop as a table calls it."""
    return f"{loop.feed} of {loop.samples:,}"
