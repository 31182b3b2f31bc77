"""NPZ archives: arrays by name, padded or flat, streamed from the archive and never unpickled.

Padded arrays are [sequences, tokens] (heads: [sequences, tokens, k]); with ``lengths`` beside them
each row ends where that says, else all have the full width. Flat arrays are [all tokens], cut by
``lengths`` or ``cu_seqlens``. Either way a 1-D array of one entry per sequence is a value per
sequence, and a single number holds for all of them.
"""

from __future__ import annotations

import lzma
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kullback.dumps.aliases import parts_of
from kullback.dumps.batch import Batch, Use
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import PER_TOKEN, Held, family
from kullback.dumps.ragged import Ragged, starts

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
DECODED_AT_ONCE = 2**21
_LEAVES = {"b": "flag", "i": "number", "u": "number", "f": "number", "U": "text"}
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class _Array:
    """An array as its header describes it."""

    member: ZipInfo
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_column: bool

    @property
    def leaf(self) -> str:
        return _LEAVES.get(self.dtype.kind, "other") if self.dtype.itemsize else "other"

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def columns(path: str) -> tuple[dict[str, Held], int | None]:
    """What each array holds of one sequence, by its shape; and how many sequences there are."""
    with _opened(path) as archive:
        arrays = _arrays(path, archive)
        lengths = _lengths(path, archive, arrays)
    logged = {name: one for name, one in arrays.items() if "log_probs" in _families(name)}
    if logged and all(len(one.shape) == 1 for one in logged.values()):
        _require_cuts(path, logged, lengths)
    flat = _flat_size(arrays, lengths)
    held = {name: _held(name, one, lengths, flat) for name, one in arrays.items()}
    sizes = {one.shape[0] for one in logged.values() if len(one.shape) > 1}
    rows = len(lengths) if lengths is not None else sizes.pop() if len(sizes) == 1 else None
    return {name: one for name, one in held.items() if name not in _CUTS}, rows


def _require_cuts(path: str, logged: dict[str, _Array], lengths: NDArray[np.int64] | None) -> None:
    """Flat log-probs need lengths that add up to them."""
    if lengths is None:
        raise DumpError(
            f"{path} holds flat log-probs and no lengths: add an array lengths, the tokens of "
            "each sequence, or save [sequences, tokens] with a mask"
        )
    for name, one in logged.items():
        if one.shape[0] != lengths.sum():
            raise DumpError(
                f"{path}: the lengths add up to {lengths.sum()}, but {name} has {one.shape[0]} "
                "tokens"
            )


def _families(name: str) -> set[str]:
    return {family(part) for part in parts_of(name)}


def _arrays(path: str, archive: ZipFile) -> dict[str, _Array]:
    arrays: dict[str, _Array] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename:
            continue
        if name in arrays:
            raise DumpError(f"{path} has two arrays named {name}: rename one")
        with archive.open(member) as file:
            arrays[name] = _described(path, name, member, file)
        if arrays[name].dtype.hasobject and parts_of(name):
            raise DumpError(
                f"{path}: {name} holds Python objects, which are not unpickled, as that can run "
                "any code; save lists of different lengths end to end, with an array of lengths"
            )
    if not arrays:
        raise DumpError(
            f"{path} is a zip archive without NumPy arrays (as a .pt of torch is): save them with "
            "numpy.savez"
        )
    return arrays


def _described(path: str, name: str, member: ZipInfo, file: IO[bytes]) -> _Array:
    """What the header says, if it is true: nothing is allocated on a header's word alone."""
    try:
        read_header = _HEADERS[npy.read_magic(file)]
        shape, by_column, dtype = read_header(file)
    except (ValueError, KeyError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise DumpError(f"{path}: {name} has no header of an array that can be read") from error
    array = _Array(member, file.tell(), shape, dtype, by_column and len(shape) > 1)
    size = member.file_size - array.start
    said = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or (size != said and not dtype.hasobject):
        raise DumpError(
            f"{path}: the header of {name} speaks of {said} bytes, and there are {size}"
        )
    return array


_CUTS = ("lengths", "cu_seqlens")


def _lengths(path: str, archive: ZipFile, arrays: dict[str, _Array]) -> NDArray[np.int64] | None:
    """The tokens of each sequence, where the archive says so."""
    name = next((name for name in _CUTS if name in arrays), None)
    if name is None:
        return None
    array = arrays[name]
    if len(array.shape) != 1 or array.dtype.kind not in "iu":
        raise DumpError(f"{path}: {name} must hold one whole number per sequence")
    with archive.open(array.member) as file:
        file.read(array.start)
        cuts = _entries(path, name, array, file, array.shape[0]).astype(np.int64)
    if name == "cu_seqlens":
        if not len(cuts) or cuts[0] != 0:
            raise DumpError(f"{path}: cu_seqlens must begin with 0")
        cuts = np.diff(cuts)
    if (cuts < 0).any():
        raise DumpError(f"{path}: by {name}, a sequence would have {cuts.min()} tokens")
    return cuts


def _flat_size(arrays: dict[str, _Array], lengths: NDArray[np.int64] | None) -> int | None:
    """How long flat arrays are; None where the arrays are padded."""
    if lengths is None:
        return None
    total = int(lengths.sum())
    if total != len(lengths):
        others = (one.shape for name, one in arrays.items() if name not in _CUTS)
        return total if (total,) in others else None
    # As many tokens as sequences: the first dimension does not tell, a second one does.
    wide = [name for name, one in arrays.items() if len(one.shape) > 1]
    padded = any(not _families(name) or _families(name) & _ONE_DEEP for name in wide)
    return None if padded else total


_HEADS = {"top_ids", "top_log_probs"}
_ONE_DEEP = set(PER_TOKEN) - _HEADS


def _held(name: str, array: _Array, lengths: NDArray[np.int64] | None, flat: int | None) -> Held:
    if array.leaf == "other" or "token_bytes" in _families(name):
        return Held(0, "other")
    depth = len(array.shape)
    if flat is None or lengths is None or not depth:
        return Held(max(depth - 1, 0), array.leaf)
    families = _families(name)
    # Where a name does not tell, the size does: per token, or per sequence.
    by_size = array.shape[0] == flat and (flat != len(lengths) or not families)
    per_token = bool(families & _ONE_DEEP - {"versions"} or families & _HEADS) or by_size
    return Held(depth if per_token else depth - 1, array.leaf)


def batches(path: str, uses: Sequence[Use]) -> Iterator[Batch]:
    """The sequences of an archive, some at a time."""
    with _opened(path) as archive, ExitStack() as files:
        arrays = _arrays(path, archive)
        lengths = _lengths(path, archive, arrays)
        flat = _flat_size(arrays, lengths)
        sources = []
        for use in uses:
            array = arrays.get(use.column)
            if array is None or _held(use.column, array, lengths, flat) != use.held:
                raise DumpError(f"{path}: {use.column} is not what it was when it was opened")
            file = files.enter_context(archive.open(array.member))
            sources.append(_Source(path, file, use, array, flat))
        count = _agreed(path, sources, lengths, flat)
        for first, last in _spans(sources, count, lengths, flat):
            some = None if lengths is None else lengths[first:last]
            values = [source.next(last - first, some) for source in sources]
            yield Batch(uses, values, np.arange(first, last))
        for source in sources:
            source.file.read(1)  # at the end of a member its checksum is compared


class _Source:
    """One array, from its beginning to its end."""

    def __init__(
        self, path: str, file: IO[bytes], use: Use, array: _Array, flat: int | None
    ) -> None:
        if array.by_column:
            raise DumpError(
                f"{path}: {use.column} is stored by columns (Fortran order): save "
                "numpy.ascontiguousarray of it"
            )
        self.path, self.file, self.use, self.array = path, file, use, array
        self.by_token = use.family in PER_TOKEN and use.depth > 0
        self.flat = flat is not None and self.by_token
        self.file.read(array.start)
        self.single = None if array.shape else self._read(1).tolist()

    def next(self, count: int, lengths: NDArray[np.int64] | None) -> Any:
        """What the next sequences hold, as many as ``count``."""
        if self.single is not None:
            return self.single * count
        if self.flat:
            assert lengths is not None
            return _ragged(self._read(int(lengths.sum())), lengths)
        values = self._read(count)
        if not self.use.depth:
            return values.tolist()
        width = np.full(count, values.shape[1], dtype=np.int64)
        if lengths is None or not self.by_token:
            return _ragged(values.reshape(count * values.shape[1], *values.shape[2:]), width)
        return _ragged(values[np.arange(values.shape[1]) < lengths[:, None]], lengths)

    def _read(self, count: int) -> NDArray[Any]:
        return _entries(self.path, self.use.column, self.array, self.file, count)


def _entries(path: str, name: str, array: _Array, file: IO[bytes], count: int) -> NDArray[Any]:
    size = count * (array.row_bytes if array.shape else array.dtype.itemsize)
    data = file.read(size)
    if len(data) < size:
        raise DumpError(f"{path}: {name} ends before its last value: save it again")
    kind = np.dtype(np.uint8) if array.dtype.kind == "b" else array.dtype
    values = np.frombuffer(data, kind).reshape(count, *array.shape[1:])
    if array.dtype.kind == "b":
        return values != 0
    return values.astype(array.dtype.newbyteorder("="), copy=False)


def _ragged(values: NDArray[Any], lengths: NDArray[np.int64]) -> Ragged:
    """Lists of these lengths; the entries of a 2-D array are lists again."""
    known = np.ones(len(lengths), dtype=np.bool_)
    if values.ndim == 1:
        return Ragged(values, lengths, known)
    inner = np.full(len(values), values.shape[1], dtype=np.int64)
    return Ragged(_ragged(values.reshape(-1), inner), lengths, known)


def _agreed(
    path: str, sources: Sequence[_Source], lengths: NDArray[np.int64] | None, flat: int | None
) -> int:
    """The number of sequences, if all arrays have it."""
    first = next(one for one in sources if one.use.family == "log_probs")
    count = len(lengths) if lengths is not None else first.array.shape[0]
    for one in sources:
        due = flat if one.flat else count
        if one.array.shape and one.array.shape[0] != due:
            unit = "tokens" if one.flat else "sequences"
            raise DumpError(
                f"{path}: {one.use.column} has {one.array.shape[0]} {unit} and there should be "
                f"{due}, by {first.use.column if lengths is None else 'the lengths'}"
            )
        if lengths is not None and one.by_token and not one.flat:
            width = one.array.shape[1]
            if lengths.max(initial=0) > width:
                raise DumpError(
                    f"{path}: {one.use.column} is {width} tokens wide, and the lengths go up to "
                    f"{lengths.max()}"
                )
    return count


def _spans(
    sources: Sequence[_Source], count: int, lengths: NDArray[np.int64] | None, flat: int | None
) -> Iterator[tuple[int, int]]:
    """The sequences to read at once: some two million values of all arrays, or one sequence."""
    per_row = sum(math.prod(one.array.shape[1:]) for one in sources)
    if flat is None:
        step = max(1, DECODED_AT_ONCE // max(per_row, 1))
        yield from ((first, min(first + step, count)) for first in range(0, count, step))
        return
    assert lengths is not None
    cuts, first = starts(lengths), 0
    room = max(1, DECODED_AT_ONCE // max(per_row, 1))
    while first < count:
        last = int(np.searchsorted(cuts, cuts[first] + room, side="right")) - 1
        last = min(max(last, first + 1), first + room, count)
        yield first, last
        first = last


@contextmanager
def _opened(path: str) -> Iterator[ZipFile]:
    try:
        with ZipFile(path) as archive:
            yield archive
    except DumpError:
        raise
    except (
        *(BadZipFile, OSError, EOFError, ValueError, OverflowError, struct.error),
        *(zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError),
    ) as error:
        # An archive that is at odds with itself says so with all its bytes.
        first = f"{error}".partition("\n")[0][:80]
        raise DumpError(f"{path} cannot be read as NPZ ({first}): save it again") from error
