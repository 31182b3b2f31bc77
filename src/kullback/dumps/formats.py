"""Which format a file is in, by its first bytes: a suffix is no proof."""

from __future__ import annotations

from pathlib import Path

from kullback.dumps import arrow_ipc, compression, jsonl, npz, parquet
from kullback.dumps.errors import DumpError

READERS = {"Parquet": parquet, "Arrow": arrow_ipc, "JSON lines": jsonl, "NPZ": npz}
# What a folder stands for: the files in it whose names end so.
SUFFIXES = (".parquet", ".arrow", ".feather", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".npz")


def format_of(path: str) -> str:
    """The name of the format in ``READERS``.

    Raises:
        DumpError: The file cannot be read, or begins as none of them.
    """
    try:
        if not Path(path).is_file():  # a pipe would lose its beginning here
            raise DumpError(f"{path} is no regular file; it is read more than once: copy it to one")
        with Path(path).open("rb") as file:
            head = file.read(4096)
        packed = compression.compression_of(path)
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror}") from error
    if head.startswith(parquet.MAGIC):
        return "Parquet"
    if head.startswith((arrow_ipc.MAGIC, arrow_ipc.STREAM_MAGIC)):
        return "Arrow"
    if head.startswith(npz.MAGIC):
        return "NPZ"
    if packed:
        head = compression.beginning(path, 4096)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return "JSON lines"
    if packed and head:
        raise DumpError(f"{path} is {packed} of something else than JSON lines: unpack it first")
    what = "begins neither as Parquet (PAR1) nor as JSON lines ({)" if head else "is empty"
    raise DumpError(
        f"{path} {what}: give a Parquet or Arrow file, an NPZ archive, or text with one JSON "
        "object per line, plain or as gzip or zstd"
    )
