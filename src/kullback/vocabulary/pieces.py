"""Rows in pieces that stay in the cache, summed in plain torch or with the compiled kernel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from kullback.arrays import sum_dtype
from kullback.vocabulary.kernel import load
from kullback.vocabulary.sums import log_normalizers, six_sums, workspace

# Categories times rows of a piece. On a CPU the seven working arrays of a row of 150 thousand are
# 4 MB; more rows leave the cache, and lose more than half. Elsewhere a piece has to be large
# enough that starting an operation costs nothing beside it.
_CPU_PIECE, _DEVICE_PIECE = 2**17, 2**22
# Pairs of logits above which loading the kernel, 0.5 s from its cache on disk, pays within a call.
_PAYS = 2**26


def piece_rows(like: Any, categories: int) -> int:
    """How many rows of so many categories a piece has in plain torch."""
    import torch

    cpu = like.device.type == "cpu"
    return max(1, (_CPU_PIECE * torch.get_num_threads() if cpu else _DEVICE_PIECE) // categories)


class Plain:
    """Sums in plain torch, on any device."""

    def __init__(self, like: Any, categories: int) -> None:
        self.rows = piece_rows(like, categories)
        self._like = like
        self._room: Any = None

    def sums(
        self, a: Any, b: Any, log_z: tuple[Any, Any] | None = None, *, js: bool = True
    ) -> tuple[Any, ...]:
        """What `six_sums` gives, of any number of rows."""
        import torch

        if not len(a):
            empty = a.new_empty(0, dtype=sum_dtype(a, torch))
            return empty, empty, empty.new_empty((0, 6))
        parts = []
        for i in range(0, len(a), self.rows):
            part = slice(i, i + self.rows)
            given = () if log_z is None else (log_z[0][part], log_z[1][part])
            parts.append(six_sums(a[part], b[part], self._workspace(a), *given, js=js))
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))

    def log_normalizers(self, z: Any) -> Any:
        """Log sum exp of each row."""
        import torch

        room = self._workspace(z)[0]
        found = z.new_empty(len(z), dtype=sum_dtype(z, torch))
        for i in range(0, len(z), self.rows):
            piece = z[i : i + self.rows]
            found[i : i + self.rows] = log_normalizers(piece, room[: len(piece)])
        return found

    def _workspace(self, z: Any) -> Any:
        """Made once; anew for the last tile of a vocabulary, which may be narrower."""
        shape = (min(self.rows, len(z)), z.shape[1])
        if self._room is None or self._room.shape[2] != shape[1] or self._room.shape[1] < shape[0]:
            self._room = workspace(*shape, self._like)
        return self._room


class Compiled:
    """Sums by the compiled kernel: on CPUs, of float32, in as many threads as torch may use."""

    def __init__(self) -> None:
        import torch

        self._kernel = load()
        self._threads = torch.get_num_threads()
        self.rows = 4 * self._threads

    def sums(
        self,
        a: Any,
        b: Any,
        log_z: tuple[Any, Any] | None = None,
        *,
        js: bool = True,  # noqa: ARG002 - it comes with the others
    ) -> tuple[Any, ...]:
        """What `six_sums` gives."""
        if log_z is None:
            log_z = self.log_normalizers(a), self.log_normalizers(b)
        sums = log_z[0].new_zeros((len(a), 6))
        self._each(self._kernel.add_sums, a, b, *log_z, sums)
        return *log_z, sums

    def log_normalizers(self, z: Any) -> Any:
        """Log sum exp of each row."""
        import torch

        log_z = z.new_empty(len(z), dtype=torch.float64)
        self._each(self._kernel.normalize, z, z.view(torch.int32), log_z)
        return log_z

    def _each(self, work: Any, *arrays: Any) -> None:
        """Do the work on all rows, each thread on some of them; the kernel lets go of the GIL."""
        rows = [one.numpy() for one in arrays]
        step = max(1, -(-len(rows[0]) // self._threads))
        starts = range(0, len(rows[0]), step)
        if len(starts) <= 1:
            work(*rows)
            return
        with ThreadPoolExecutor(len(starts)) as pool:
            list(pool.map(lambda i: work(*(one[i : i + step] for one in rows)), starts))


def pieces(like: Any, pairs: int, categories: int, compiled: bool | None) -> Plain | Compiled:
    """The kernel where it may be used and is worth loading, else torch.

    Args:
        like: a tensor of the dtype that is summed in, on its device.
        pairs: how many pairs of logits there are.
        categories: how many of them a row has at most.
        compiled: True or False decide, None leaves it to size.

    Raises:
        ValueError: for compiled=True where the kernel cannot be used.
    """
    import torch

    if compiled is False:
        return Plain(like, categories)
    fits = like.device.type == "cpu" and like.dtype == torch.float32
    there = find_spec("numba") is not None
    if compiled and not fits:
        raise ValueError(
            f"compiled=True of {like.dtype} on {like.device.type}, expected logits of float32 or "
            "less on the CPU; leave compiled out"
        )
    if compiled and not there:
        raise ValueError(
            "compiled=True needs Numba, which is not installed: pip install 'kullback[fast]', or "
            "leave compiled out"
        )
    pays = bool(compiled) or pairs >= _PAYS
    return Compiled() if fits and there and pays else Plain(like, categories)
