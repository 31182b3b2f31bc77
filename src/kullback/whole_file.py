"""A file that appears whole or not at all: drafted beside its place, then renamed into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what shall stand at a path once the block ends without an error.

    Raises:
        OSError: The draft cannot be made the file; what stood at the path still stands.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())  # a crash must not leave a renamed but empty file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
