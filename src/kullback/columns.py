"""One batch of sampled tokens: log-probs by role, mask, place and cluster, packed end to end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kullback.arrays import to_numpy
from kullback.clusters import cluster_keys, content_keys
from kullback.lengths import sequence_lengths
from kullback.uneven import end_to_end

# The fields of ``Columns`` by their shape, for what treats all of them alike.
_BY_TOKEN = ("mask", "tokens", "token_bytes", "versions")
_BY_TOKEN_AND_ROLE = ("log_probs", "entropy", "exact")
_BY_SEQUENCE = ("clusters", "text", "rows", "within")

SENTINEL = -9999.0  # what engines write where they have no log-prob (or clamped a −inf)

BFLOAT16 = 2.0**-9  # relative rounding error, half a unit in the last of its eight bits


def is_sentinel(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where −9999 stands, or what float16 (−10000) and bfloat16 (−9984) make of it."""
    return (values == SENTINEL) | (values == -10000.0) | (values == -9984.0)


def is_number(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a log-prob stands that sums can hold: finite, and no sentinel."""
    return np.isfinite(values) & ~is_sentinel(values)


def fits_bfloat16(values: NDArray[Any]) -> bool:
    """Whether every value is a float32 whose last sixteen bits are 0."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return bool(((narrow == values) & (narrow.view(np.uint32) & 0xFFFF == 0)).all())


class TopK(NamedTuple):
    """The logged head of a distribution at each prefix: ids and log-probs, [tokens, k].

    A ragged list ends in id −1 and log-prob NaN.
    """

    ids: NDArray[np.int64]
    log_probs: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token stands: the file, the row in it, and the position in the sequence.

    Where a row holds several sequences, ``sequence`` says which, counted from 0.
    """

    source: str
    row: int
    position: int
    sequence: int | None = None

    @property
    def order(self) -> tuple[str, int, int, int]:
        """What sorts places as they stand in their sources."""
        return self.source, self.row, self.sequence or 0, self.position

    def __str__(self) -> str:
        which = "" if self.sequence is None else f"sequence {self.sequence}, "
        where = f"row {self.row}, {which}token {self.position}"
        return f"{self.source}, {where}" if self.source else where


@dataclass(frozen=True)
class Columns:
    """Whole sequences of sampled tokens, one after another.

    Arrays marked [tokens] hold all tokens of all sequences end to end; ``lengths`` cuts them.
    A token counts where ``mask`` is true. A log-prob that was not logged is NaN or −9999.

    Args:
        lengths: Tokens of each sequence, [sequences].
        mask: Which tokens count, [tokens].
        log_probs: Log-prob of the sampled token under each role, [tokens] each, in nats.
        clusters: 64-bit key of what each sequence shares with others (its prompt), [sequences].
        cluster_kind: What a cluster is: ``prompt`` or ``sequence``.
        entropy: Entropy of a role's distribution at each prefix, [tokens] each, in nats.
        top_k: The largest log-probs of a role at each prefix.
        exact: Exact KL at each prefix, by question (``KL(old||current)``), [tokens] each.
        tokens: Token ids, [tokens].
        token_bytes: The bytes that each id stands for, [tokens]; None for a special id.
        text: The text of each sequence, as logged.
        versions: Version of the weights that sampled each token, [tokens].
        labels: What is known of each sequence (``step``, ``temperature``, …), [sequences] each.
        source: Where the sequences come from (a file name).
        rows: The row of each sequence in its source, [sequences].
        within: Where a row holds several sequences, which of them each one is, [sequences].

    Raises:
        ValueError: An array does not have the length that ``lengths`` asks for.

    Example:
        >>> batch = Columns(
        ...     lengths=np.array([2, 1]),
        ...     mask=np.array([True, True, False]),
        ...     log_probs={"old": np.array([-1.0, -0.5, -2.0])},
        ...     clusters=cluster_keys(["first prompt", "second prompt"]),
        ... )
        >>> len(batch), str(batch.place(2))
        (3, 'row 1, token 0')
    """

    lengths: NDArray[np.int64]
    mask: NDArray[np.bool_]
    log_probs: Mapping[str, NDArray[Any]]
    clusters: NDArray[np.uint64]
    cluster_kind: str = "sequence"
    entropy: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    top_k: Mapping[str, TopK] = field(default_factory=dict)
    exact: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tokens: NDArray[np.int64] | None = None
    token_bytes: Sequence[bytes | None] | None = None
    text: Sequence[str | None] | None = None
    versions: NDArray[np.int64] | None = None
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    source: str = ""
    rows: NDArray[np.int64] | None = None
    within: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.lengths.ndim != 1 or (self.lengths < 0).any():
            raise ValueError("lengths must be a flat array of numbers of tokens")
        for name, values in self._by_token():
            if len(values) != len(self):
                raise ValueError(
                    f"{name} holds {len(values)} tokens, but the lengths add up to {len(self)}"
                )
        for name, values in self._by_sequence():
            if len(values) != len(self.lengths):
                raise ValueError(
                    f"{name} has {len(values)} entries for {len(self.lengths)} sequences"
                )

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def _by_token(self) -> Iterable[tuple[str, Any]]:
        yield from self._there(_BY_TOKEN)
        for name in _BY_TOKEN_AND_ROLE:
            yield from ((f"{name} of {role}", v) for role, v in getattr(self, name).items())
        yield from ((f"top_k of {role}", head.ids) for role, head in self.top_k.items())

    def _by_sequence(self) -> Iterable[tuple[str, Any]]:
        yield from self._there(_BY_SEQUENCE)
        yield from self.labels.items()

    def _there(self, names: Iterable[str]) -> Iterable[tuple[str, Any]]:
        """The fields of these names that hold something."""
        return ((name, v) for name in names if (v := getattr(self, name)) is not None)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where each sequence ends in the token arrays, [sequences]."""
        return np.cumsum(self.lengths)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each sequence starts in the token arrays, [sequences]."""
        return self.ends - self.lengths

    @property
    def sequence_of_token(self) -> NDArray[np.int64]:
        """The sequence of each token, [tokens]."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def position_of_token(self) -> NDArray[np.int64]:
        """Where each token stands in its sequence, from 0, [tokens]."""
        return np.arange(len(self)) - np.repeat(self.starts, self.lengths)

    def place(self, token: int) -> Place:
        """Where a token stands."""
        sequence = self._sequence_of(token)
        return self.place_in(sequence, token - int(self.starts[sequence]))

    def _sequence_of(self, token: int) -> int:
        return int(np.searchsorted(self.ends, token, side="right"))

    def place_in(self, sequence: int, position: int) -> Place:
        """Where a position of a sequence stands."""
        row = sequence if self.rows is None else int(self.rows[sequence])
        which = None if self.within is None else int(self.within[sequence])
        return Place(self.source, row, position, which)

    def first_places(self, faults: Mapping[str, NDArray[np.bool_]]) -> dict[str, Place]:
        """Where each fault stands first, of those that are seen at all."""
        return {
            name: self.place(int(flags.argmax())) for name, flags in faults.items() if flags.any()
        }

    def outermost(self, flags: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last flagged token of each sequence that is not empty.

        Where none is flagged, the first is past all tokens and the last is −1.
        """
        place, starts = np.arange(len(self)), self.starts[self.lengths > 0]
        if not len(starts):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        first = np.minimum.reduceat(np.where(flags, place, len(self)), starts)
        return first, np.maximum.reduceat(np.where(flags, place, -1), starts)

    def outside(self, flags: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The tokens before the first, and those behind the last, flagged token of a sequence."""
        first, last = self.outermost(flags)
        place, lengths = np.arange(len(self)), self.lengths[self.lengths > 0]
        return place < np.repeat(first, lengths), place > np.repeat(last, lengths)

    def context(self, token: int, width: int = 8) -> tuple[str, str, str] | None:
        """The text before a token, of it, and after it, ``width`` tokens to each side."""
        if self.token_bytes is None:
            return None
        sequence = self._sequence_of(token)
        start, end = int(self.starts[sequence]), int(self.ends[sequence])

        def spoken(first: int, last: int) -> str:
            known = (piece or b"" for piece in self.token_bytes[first:last])  # type: ignore[index]
            return b"".join(known).decode("utf-8", errors="replace")

        before, after = max(start, token - width), min(end, token + width + 1)
        return spoken(before, token), spoken(token, token + 1), spoken(token + 1, after)

    def take(self, chosen: NDArray[np.int64] | slice) -> Columns:
        """The sequences of these indices, in this order."""
        sequences = np.arange(len(self.lengths))[chosen]
        lengths = self.lengths[sequences]
        moved = self.starts[sequences] - (np.cumsum(lengths) - lengths)
        tokens = np.arange(lengths.sum()) + np.repeat(moved, lengths)

        def some(values: Any, index: NDArray[np.int64]) -> Any:
            if isinstance(values, np.ndarray):
                return values[index]
            return [values[i] for i in index.tolist()]

        changed: dict[str, Any] = {"lengths": lengths}
        changed |= {name: some(v, tokens) for name, v in self._there(_BY_TOKEN)}
        changed |= {name: some(v, sequences) for name, v in self._there(_BY_SEQUENCE)}
        for name in _BY_TOKEN_AND_ROLE:
            changed[name] = {role: v[tokens] for role, v in getattr(self, name).items()}
        changed["top_k"] = {
            role: TopK(head.ids[tokens], head.log_probs[tokens])
            for role, head in self.top_k.items()
        }
        if self.rows is None:
            changed["rows"] = sequences  # a sequence keeps its place
        changed["labels"] = {name: v[sequences] for name, v in self.labels.items()}
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in changed}
        return Columns(**kept, **changed)


def pack(
    log_probs: Mapping[str, ArrayLike],
    *,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | int | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    exact: Mapping[str, ArrayLike] | None = None,
) -> Columns:
    """Arrays as people hold them, as one batch.

    Args:
        log_probs: Log-probs by role, each [sequences, tokens], a list of rows of any lengths or,
            with ``lengths``, flat, in nats; of NumPy, torch or JAX, on any device.
        mask: Which tokens count; bool or 0/1, of the same shape. All, if left out.
        lengths: For flat arrays, the tokens of each sequence; 1 means independent samples.
        clusters: What each sequence shares with others (a prompt id), [sequences]; by default
            every sequence is its own cluster.
        exact: Exact KL at each prefix where it is known, else NaN, by question, in nats.

    Returns:
        The batch, end to end; half precision has become float32, integers float64.

    Raises:
        ValueError: Shapes differ, a flat array comes without lengths, the mask is not 0/1, or an
            exact KL is negative.
        TypeError: An array is being traced (torch.compile, jit, vmap, grad).

    Example:
        >>> batch = pack({"p": [[-1.0, -2.0], [-3.0, 0.0]]}, mask=[[1, 1], [1, 0]])
        >>> len(batch), int(batch.mask.sum())
        (4, 3)
    """
    given, lengths = end_to_end({**log_probs, **(exact or {}), "the mask": mask}, lengths)
    mask = given.pop("the mask")
    arrays = {
        name: floating(values, f"log-probs of {name}" if name in log_probs else name)
        for name, values in given.items()
    }
    if not arrays:
        raise ValueError("there are no log-probs: give at least one role")
    (first, array), *_ = arrays.items()
    shape = array.shape
    for name, values in arrays.items():
        if values.shape != shape:
            raise ValueError(
                f"{first} has shape {shape}, {name} {values.shape}: give both for the same tokens"
            )
    cuts = sequence_lengths(shape, lengths)
    flat = {name: values.reshape(-1) for name, values in arrays.items()}
    flags = _flags(mask, shape)
    for name in exact or {}:
        # A float32 sum over a vocabulary may leave a KL of 0 a little below it.
        if len(wrong := flat[name][flags & (flat[name] < -1e-3)]):
            raise ValueError(f"{name} holds {wrong[0]:g}: a KL is never negative")
    return Columns(
        lengths=cuts,
        mask=flags,
        log_probs={name: flat[name] for name in log_probs},
        exact={name: flat[name] for name in exact or {}},
        clusters=content_keys(flat, len(cuts)) if clusters is None else cluster_keys(clusters),
        cluster_kind="sequence" if clusters is None else "prompt",
    )


def floating(values: Any, name: str) -> NDArray[Any]:
    """Log-probs of any library as float32 or float64; half precision is widened at once."""
    array = to_numpy(values, name)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} holds {array.dtype}, not numbers")
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if narrow else np.float64, copy=False)


def _flags(mask: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones(int(np.prod(shape)), dtype=np.bool_)
    flags = to_numpy(mask, "mask")
    if flags.shape != shape:
        raise ValueError(f"the mask has shape {flags.shape}, the log-probs {shape}")
    if not np.isin(flags, (0, 1)).all():
        raise ValueError("the mask holds other values than 0 and 1: it is no weight")
    return flags.astype(np.bool_).reshape(-1)
