"""Sums along a sequence: from its start to a token, from a token to its end; padded or packed."""

from __future__ import annotations

from typing import Any

from kullback.arrays import own


class Along:
    """The sequences of a batch, as what a sum along them has to know.

    Args:
        shape: Of the values: [sequences, tokens], or [tokens] with lengths.
        lengths: The tokens of each sequence of flat values, [sequences]; None for padded ones.
        xp: The namespace of the values.

    Example:
        >>> import numpy as np
        >>> packed = Along((5,), [2, 3], np)
        >>> packed.to_here(np.ones(5)).tolist(), packed.from_here(np.ones(5)).tolist()
        ([1.0, 2.0, 1.0, 2.0, 3.0], [2.0, 1.0, 3.0, 2.0, 1.0])
    """

    def __init__(self, shape: tuple[int, ...], lengths: Any, xp: Any) -> None:
        self._xp, self._size = xp, shape[-1]
        self._before = self._behind = None
        if lengths is None:
            return
        cuts = own(lengths, xp)
        ends = xp.cumsum(cuts, 0)
        place = xp.cumsum(xp.ones(shape, dtype=cuts.dtype), 0) - 1
        if xp.__name__ == "torch":
            ends, place = ends.to(cuts.device), place.to(cuts.device)
        owner = xp.clip(xp.searchsorted(ends, place, side="right"), 0, cuts.shape[0] - 1)
        self._before = place - (ends - cuts)[owner]
        self._behind = ends[owner] - 1 - place

    def to_here(self, values: Any) -> Any:
        """The sum from the first token of the sequence to this one, itself included."""
        if self._before is None:
            return self._xp.cumsum(values, -1)
        return self._doubled(values, self._before, 1)

    def from_here(self, values: Any) -> Any:
        """The sum from this token to the last of the sequence, itself included."""
        if self._behind is None:
            flipped = self._xp.flip(values, (-1,))
            return self._xp.flip(self._xp.cumsum(flipped, -1), (-1,))
        return self._doubled(values, self._behind, -1)

    def whole(self, values: Any) -> Any:
        """The sum over the sequence, at each of its tokens."""
        return self.to_here(values) + self.from_here(values) - values

    def _doubled(self, values: Any, neighbors: Any, direction: int) -> Any:
        """Sums of 1, 2, 4, … tokens: what stands in another sequence is never added.

        A running sum over the whole row less its value at the start would carry the rounding, and
        an infinity, of one sequence into all later ones.
        """
        xp, step = self._xp, 1
        while step < self._size:
            values = values + xp.where(neighbors >= step, xp.roll(values, direction * step), 0.0)
            step *= 2
        return values
