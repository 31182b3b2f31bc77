"""A file that appears whole or not at all: drafted beside its place, then renamed into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from pathlib import Path
from uuid import uuid4


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what shall stand at a path once the block ends without an error.

    A process that is killed in the block leaves the hidden draft, which no folder or pattern of
    dumps takes for one. A link stays; the file it leads to is written.

    Raises:
        OSError: The draft cannot be made the file, or a device or a pipe stands there; what stood
            at the path still stands.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name[:50]}.{uuid4().hex}.tmp")
    try:
        if target.exists() and not target.is_file():
            raise OSError(EINVAL, "it is no regular file")  # root could rename over /dev/null
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())  # a crash must not leave a renamed but empty file
        draft.replace(target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):  # where it could not be made; what went wrong then is known
            draft.unlink(missing_ok=True)
