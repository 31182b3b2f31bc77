"""Text in gzip or zstd, unpacked block by block while it is read; plain text as it is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple

from kullback.dumps.errors import DumpError

MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# A line is held in memory as a whole, and a gigabyte of zeros packs into a megabyte.
LONGEST_LINE = 2**27
BLOCK = 2**13


class Span(NamedTuple):
    """Whole lines of a plain file: from a byte up to another, and the number of the first."""

    start: int
    stop: int
    line: int


def compression_of(path: str) -> str | None:
    """``gzip`` or ``zstd``, by the first bytes; None for anything else."""
    with Path(path).open("rb") as file:
        head = file.read(4)
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def beginning(path: str, size: int) -> bytes:
    """The first bytes of the content, or as many of them as can be had."""
    head = b""
    with _opened(path) as (file, _):
        try:
            while len(head) < size and (more := file.read(min(size - len(head), BLOCK))):
                head += more
        except EOFError:
            pass  # cut in its first block: what is there decides
    return head


def lines(path: str, span: Span | None = None) -> Iterator[tuple[int, bytes | str]]:
    """The lines of a file that are not blank, with their numbers, counted from 0.

    In place of a line that cannot be had stands the reason. One longer than 128 MiB is skipped;
    where a compressed stream ends before its end mark, there is nothing behind.

    Args:
        path: The file.
        span: Read these lines alone; for files that are not compressed.

    Raises:
        DumpError: The file cannot be read, or a compressed stream is damaged.
    """
    number = span.line - 1 if span else -1
    with _opened(path) as (file, kind):
        if span:
            file.seek(span.start)
        try:
            while not (span and file.tell() >= span.stop) and (line := file.readline(LONGEST_LINE)):
                number += 1
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = file.readline(BLOCK)
                    yield number, "is longer than 128 MiB, more than a sequence needs"
                elif line.strip():
                    yield number, line
        except EOFError:
            yield number + 1, f"the {kind} stream breaks off here: what followed is lost"


def breaks_off(path: str) -> str | None:
    """``gzip`` or ``zstd`` where such a stream ends before its end mark, as while it is written.

    Raises:
        DumpError: The file cannot be read, or the stream is damaged.
    """
    with _opened(path) as (file, kind):
        try:
            while kind and file.read(2**20):
                pass
        except EOFError:
            return kind
    return None


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes], str | None]]:
    """The content; reading past the place where a stream was cut is an EOFError."""
    try:
        kind = compression_of(path)
        opener: Any = {"gzip": gzip.open, "zstd": _zstd, None: open}[kind]
        with opener(path, "rb") as file:
            yield file, kind
    except (OSError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0].rstrip(".")
        raise DumpError(f"{path} cannot be read: {why}") from error


def _zstd(path: str, _mode: str) -> IO[bytes]:
    return BufferedReader(_Zstd(path), BLOCK)


class _Zstd(RawIOBase):
    """pyarrow's zstd stream as Python's own files are, and as gzip's is where it was cut."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.OSFile(path), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._stream.readinto(buffer)
        except OSError as error:
            if "Truncated" in str(error):
                raise EOFError from error
            raise

    def close(self) -> None:
        self._stream.close()
        super().close()
