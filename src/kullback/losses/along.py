"""Sums along a sequence: from its start to a token, from a token to its end; padded or packed."""

from __future__ import annotations

from typing import Any


class Along:
    """The sequences of a batch, as what a sum along them has to know.

    Args:
        values: Any of those to be summed, for their shape and device: [sequences, tokens], or
            [tokens] with lengths.
        lengths: The tokens of each sequence of flat values, [sequences]; None for padded ones.
        xp: The namespace of the values.

    Raises:
        ValueError: The lengths are no list of numbers.

    Example:
        >>> import numpy as np
        >>> packed = Along(np.ones(5), [2, 3], np)
        >>> packed.to_here(np.ones(5)).tolist(), packed.from_here(np.ones(5)).tolist()
        ([1.0, 2.0, 1.0, 2.0, 3.0], [2.0, 1.0, 3.0, 2.0, 1.0])
    """

    def __init__(self, values: Any, lengths: Any, xp: Any) -> None:
        self._xp, self._size = xp, values.shape[-1]
        self._before = self._behind = None
        if lengths is None:
            return
        torch = xp.__name__ == "torch"
        cuts = xp.as_tensor(lengths, device=values.device) if torch else xp.asarray(lengths)
        if cuts.ndim != 1 or not cuts.shape[0]:
            raise ValueError("lengths: give the number of tokens of each sequence, one for each")
        ends = xp.cumsum(cuts, 0)
        place = xp.cumsum(xp.ones_like(values, dtype=cuts.dtype), 0) - 1
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
