"""Progress that outlives its process: one file, which appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

from kullback.estimation.stored import MAGIC, load, store
from kullback.following.progress import Progress
from kullback.whole_file import whole_file


def place_for(watched: Path, page: Path | None) -> Path:
    """Where progress is kept if nobody says where: a hidden file, which no folder counts as a dump.

    It stands beside the page, where whoever watches writes anyway; else beside what is watched.

    Example:
        >>> place_for(Path("/runs/a"), None).as_posix(), place_for(Path("a"), Path("b.html")).name
        ('/runs/.a.kullback-watch', '.b.html.kullback-watch')
    """
    beside = (watched if page is None else page).resolve()
    return beside.with_name(f".{beside.name[:200]}.kullback-watch")


def require_ours(path: Path) -> None:
    """Refuse to keep progress where something else stands.

    Raises:
        ValueError: Says what to do.
        OSError: The file cannot be read.
    """
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start and start != MAGIC:
            raise ValueError(f"{path} is no state of kullback watch: name another file, or none")


def keep(progress: Progress, path: Path) -> None:
    """Write progress to a file; until that is whole, the one before stands.

    Raises:
        OSError: It cannot be written.
    """
    with whole_file(path) as draft:
        draft.write_bytes(store(progress))


def kept(path: Path, asked: Progress) -> tuple[Progress, str]:
    """The progress in a file, if what was asked then is what is asked now.

    Args:
        path: The file.
        asked: An empty progress: the version, the questions, the axes and the map of today.

    Returns:
        The progress to go on from, and a sentence on why it is an empty one, if there is a file.

    Raises:
        OSError: There is a file and it cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return asked, ""
    try:
        found = load(data, Progress)
    except ValueError as error:
        return asked, f"{path}: {error}; all is counted from the start"
    for name, said in (
        ("place", "is of another place"),
        ("version", "comes from another version of kullback"),
        ("asked", "answers other questions"),
        ("by", "is split by other axes"),
        ("map", "takes other columns"),
    ):
        if getattr(found, name) != getattr(asked, name):
            return asked, f"what {path} holds {said}: all is counted from the start"
    return found, ""
