"""How many tokens each sequence has: rows of a grid, or flat arrays with their lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.arrays import to_numpy

WITH_LENGTHS = (
    "lengths go with flat arrays: of a packed row [1, tokens] give its [0], and a mask with "
    "[sequences, tokens]"
)


def sequence_lengths(shape: tuple[int, ...], lengths: ArrayLike | int | None) -> NDArray[np.int64]:
    """The tokens of each sequence of arrays of a shape, [sequences, tokens] or flat.

    Raises:
        ValueError: The shape is another one, or the lengths do not go with it.

    Example:
        >>> sequence_lengths((2, 3), None).tolist(), sequence_lengths((6,), [4, 2]).tolist()
        ([3, 3], [4, 2])
    """
    if lengths is None or isinstance(lengths, int):
        rows, width = grid(shape, lengths)
        return np.full(rows, width, dtype=np.int64)
    cuts = to_numpy(lengths, "lengths")
    whole = cuts.dtype.kind in "iu" or not cuts.size
    if not whole or (cuts < 0).any():
        raise ValueError(f"lengths are whole numbers of tokens, not {lengths}")
    if cuts.ndim == 0 or len(shape) != 1:
        return np.full(*grid(shape, int(cuts.flat[0])), dtype=np.int64)
    if cuts.sum() != shape[0]:
        raise ValueError(not_adding_up(cuts.tolist(), shape[0]))
    return cuts.astype(np.int64)


def not_adding_up(lengths: Sequence[int], tokens: int) -> str:
    """What is wrong with lengths that do not add up to the tokens.

    Example:
        >>> print(not_adding_up([0, 4, 6], 6).partition(": ")[2])
        these are running sums (cu_seqlens), give their differences
    """
    said = f"the lengths add up to {sum(lengths)}, but there are {tokens} tokens"
    if len(lengths) > 1 and (lengths[0], lengths[-1]) == (0, tokens):
        return f"{said}: these are running sums (cu_seqlens), give their differences"
    return said


def grid(shape: tuple[int, ...], length: int | None) -> tuple[int, int]:
    """How many sequences of how many tokens arrays of a shape hold, if all are equally long.

    Raises:
        ValueError: The shape is neither [sequences, tokens] nor, with a length, flat.

    Example:
        >>> grid((2, 3), None), grid((6,), 2)
        ((2, 3), (3, 2))
    """
    if len(shape) == 2:
        if length is not None:
            raise ValueError(WITH_LENGTHS)
        return shape[0], shape[1]
    if len(shape) != 1:
        raise ValueError(f"log-probs are [sequences, tokens] or flat, not {shape}")
    if length is None:
        raise ValueError(
            "flat log-probs need lengths=: tokens of each sequence, or 1 for independent samples"
        )
    if length <= 0:
        raise ValueError(f"lengths are whole numbers of tokens, not {length}")
    if shape[0] % length:
        raise ValueError(f"{shape[0]} tokens are no whole number of sequences of {length}")
    return shape[0] // length, length
