"""What a fault is: what goes wrong, the codes that name it, and how to put it into a world."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from kullback.columns import Columns
from kullback.worlds.mixture import Mixture

Inject = Callable[[Mixture, np.random.Generator], Columns]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault does, the finding codes that name it, and how to put it into a world.

    Args:
        caption: What goes wrong.
        code: The finding code that should name it.
        inject: Puts it into a world.
        also: Other codes that may be told in its place, or beside it.
        everywhere: Whether it can be seen in every world; else some worlds hide it.
    """

    caption: str
    code: str
    inject: Inject
    also: tuple[str, ...] = ()
    everywhere: bool = True

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code that may name it; any other that accuses names another fault."""
        return (self.code, *self.also)

    def names(self, told: Collection[str]) -> bool:
        """Whether it is named by any of the codes that were told."""
        return any(code in told for code in self.codes)


def other_role(world: Mixture) -> str:
    """The first role that does not sample."""
    return next(role for role in world.roles if role != world.sampler)


def in_log(change: Callable[[Columns, str, str], Columns]) -> Inject:
    """A change of the log, given the sampler and the first other role."""
    return lambda world, rng: change(world.sample(rng), world.sampler, other_role(world))
