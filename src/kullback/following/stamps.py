"""Is it still the file that it was? Size, time of change and inode; and where its lines end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kullback.dumps.formats import SUFFIXES

BLOCK = 2**16
REMEMBERED = 64  # bytes before a place in a file, by which it is told from a rewritten one


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file at one look.

    Args:
        size: Its bytes.
        changed: When it was changed, in nanoseconds.
        inode: Its number in the file system: another one means another file of the same name.
    """

    size: int
    changed: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file.

        Raises:
            OSError: It is not there.
        """
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def partial(self) -> Stamp:
        """What is kept of a file that was read in part: as the stamp of no look it is no match."""
        return Stamp(self.size, -1, self.inode)


def stamps_in(place: Path) -> dict[str, Stamp]:
    """The files that a place stands for now, by name: itself, or the dumps in the folder.

    What is not there, or not any more, is left out; a file that has two names is there once.

    Raises:
        OSError: The folder cannot be listed.
    """
    paths = [place]
    if place.is_dir():
        inside = (one for one in place.iterdir() if not one.name.startswith("."))
        paths = sorted((one for one in inside if one.name.endswith(SUFFIXES)), key=str)
    found: dict[str, Stamp] = {}
    known: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        try:
            if real not in known:
                found[path.name] = Stamp.of(path)
        except OSError:
            continue
        known.add(real)
    return found


def path_of(place: Path, name: str) -> Path:
    """The path of a file by its name at the place."""
    return place if name == place.name and not place.is_dir() else place / name


def last_line_end(path: Path, start: int, stop: int) -> int:
    """The byte behind the last end of a line from one byte up to another; the first if none is.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        while stop > start:
            here = max(start, stop - BLOCK)
            file.seek(here)
            at = file.read(stop - here).rfind(b"\n")
            if at >= 0:
                return here + at + 1
            stop = here
    return start


def ending(path: Path, stop: int) -> str:
    """The last bytes before a place in a file, in hexadecimal.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, stop - REMEMBERED))
        return file.read(min(stop, REMEMBERED)).hex()
