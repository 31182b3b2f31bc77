"""Where is a role certain of a token, to the last digit, and what do the others say there?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.columns import Columns, Place
from kullback.estimation.keyed import added
from kullback.estimation.role_sums import Logged, logged, scored
from kullback.levels import segment_sums

NEAR = 0.01  # nats: nearly certain
FAR = -15.0  # nats: what else is left where a float32 says 1, and hardly anything is


@dataclass(frozen=True, slots=True)
class CertainState:
    """Log-probs of exactly 0 in sequences that have others, too. ``a + b`` counts both.

    Args:
        zeros: How many there are.
        first: The first place.
        at_zeros: By other role, the count and sum of its own log-probs there, if it has some.
        near: Log-probs just below 0, in batches that have zeros.
        at_near: By other role, the count and sum of its own there.
        far: Log-probs that are about as low as those of what a certain role does not expect.
    """

    zeros: int
    first: Place | None
    at_zeros: dict[str, Logged]
    near: int
    at_near: dict[str, Logged]
    far: int

    @classmethod
    def of(cls, columns: Columns, role: str) -> CertainState:
        """The counts of one batch."""
        values, inside = columns.log_probs[role], columns.mask
        flags, far = inside & (values == 0), int(np.count_nonzero(inside & (values < FAR)))
        if not flags.any():
            return cls(0, None, {}, 0, {}, far)
        other = segment_sums((inside & (values < 0)).astype(float), columns.lengths) > 0
        flags &= np.repeat(other, columns.lengths)
        near = inside & (values < 0) & (values > -NEAR)
        others = {name: one for name, one in columns.log_probs.items() if name != role}
        return cls(
            zeros=int(np.count_nonzero(flags)),
            first=columns.place(int(flags.argmax())) if flags.any() else None,
            at_zeros={name: scored(one[flags]) for name, one in others.items()},
            near=int(np.count_nonzero(near)),
            at_near={name: logged(one[near]) for name, one in others.items()},
            far=far,
        )

    def __add__(self, other: CertainState) -> CertainState:
        return CertainState(
            self.zeros + other.zeros,
            self.first or other.first,
            added(self.at_zeros, other.at_zeros),
            self.near + other.near,
            added(self.at_near, other.at_near),
            self.far + other.far,
        )
