"""A dump of rollouts: its files, what their columns are taken for, its sequences in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from stat import S_ISDIR

from kullback.columns import Columns
from kullback.dumps import long_form, packed
from kullback.dumps.assemble import Assembler
from kullback.dumps.chunks import chunked
from kullback.dumps.compression import compression_of
from kullback.dumps.errors import Damaged, DumpError
from kullback.dumps.formats import READERS, SUFFIXES, format_of
from kullback.dumps.grain import SAID
from kullback.dumps.layout import CUTS, LABEL, is_label, spoken
from kullback.dumps.pieces import Mark, Piece, pieces
from kullback.dumps.recognize import Recognition, recognize
from kullback.question import presumed_sampler

NAMED_AT_MOST = 1000


def read(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    map: Mapping[str, str] | None = None,
    labels: Iterable[str] = (),
    strict: bool = False,
) -> Dump:
    """Open rollout dumps; the sequences are read when the result is iterated.

    Args:
        files: Paths or patterns (``rollouts/*.parquet``); a folder stands for the dumps in
            it, by their suffixes (``formats.SUFFIXES``). A file named twice is read once.
        map: What a column is, where its name does not say: role or part to column, as in
            ``{"current": "my_log_probs", "mask": "loss_mask"}``.
        labels: Other columns to keep as labels of the sequences, under their names: one number,
            flag or text per sequence each, to split a summary by.
        strict: Raise at the first damaged row in place of leaving it out.

    Returns:
        The dump: iterate it, as often as you like, for ``Columns`` of whole sequences.

    Raises:
        DumpError: There is no such file, its format is none that is read here, its columns cannot
            be told, a label is none of them, or the files do not have the same ones.

    Example:
        >>> from kullback.dumps import demo_path
        >>> dump = read(demo_path())
        >>> dump.rows, dump.sampler.role, sum(len(chunk) for chunk in dump)
        (128, 'rollout', 7632)
    """
    names = [files] if isinstance(files, str | os.PathLike) else list(files)
    found: dict[str, str] = {}
    for path in (path for name in names for path in _found(os.fspath(name))):
        # By where it leads: a file must not count twice because a link to it was named, too.
        found.setdefault(os.path.realpath(path), path)
    if not found:
        raise DumpError("no file is named: give a path, a pattern or a folder")
    more = [labels] if isinstance(labels, str) else labels
    return Dump(list(found.values()), dict(map or {}), strict, tuple(dict.fromkeys(more)))


def _found(name: str) -> list[str]:
    try:
        return _matching(name)
    except OSError as error:
        raise DumpError(f"{error.filename or name} cannot be read: {error.strerror}") from error


def _matching(name: str) -> list[str]:
    if not name:  # as a path it would be this folder
        raise DumpError("an empty name names no file: give a path, a pattern or a folder")
    try:
        is_folder = S_ISDIR(Path(name).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return _expanded(name)
    if not is_folder:
        return [str(Path(name))]
    files = (one for one in Path(name).iterdir() if not one.name.startswith("."))
    inside = sorted(str(one) for one in files if one.name.endswith(SUFFIXES))
    if not inside:
        listed = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise DumpError(f"{name} holds no {listed} file: name the files or a pattern")
    return inside


def _expanded(name: str) -> list[str]:
    path = Path(name)
    pattern = path.relative_to(path.anchor)
    try:
        matches = Path(path.anchor).glob(str(pattern)) if set(name) & set("*?[") else ()
        # As in a shell: hidden files, the drafts of a writer among them, are not meant.
        files = sorted(str(o) for o in matches if o.is_file() and not o.name.startswith("."))
    except ValueError as error:
        raise DumpError(f"{name} is no pattern: {str(error).lower()}") from error
    if not files:
        raise DumpError(f"{name}: there is no such file; check the path or the pattern")
    return files


class Dump:
    """Rollouts in files, as ``Columns`` of whole sequences.

    Iterating reads the files in order. A chunk holds whole sequences of one file, at most 2^17
    tokens of them or one longer sequence; where it ends depends on the file alone, never on its
    row groups, its format or the reader.

    Attributes:
        files: The files, in reading order.
        names: What they are called in a report: their paths below their common folder.
        layout: Whose dump it is.
        forms: The formats of the files, with what a row is where it is no sequence.
        format: Whose columns, in which format: ``TRL Parquet``, ``kullback JSON lines``.
        columns: What each column is taken for, and why.
        unused: The other columns, each with the reason.
        labels: What is known of each sequence, by the name under which its chunks have it.
        roles: The roles that have log-probs.
        signature: The parts of the dump and the columns that are taken for them, sorted.
        sampler: The role taken as the sampler, and why.
        rows: The number of sequences; None until all were read where the files do not say it
            (JSON lines, Arrow streams, packed rows, one row per token).
        damaged_rows: How many rows were left out in the last reading.
        damaged: The first 1000 of them, each with its file, place and reason.

    Example:
        >>> from kullback.dumps import demo_path
        >>> dump = read(demo_path())
        >>> print(dump)
        <Dump: 1 files of kullback Parquet, 128 rows, sampler rollout>
        >>> dump.roles
        ('rollout', 'old', 'current', 'reference', 'strong', 'rescored')
    """

    def __init__(
        self, files: list[str], map: Mapping[str, str], strict: bool, labels: Sequence[str] = ()
    ) -> None:
        self.files = tuple(files)
        common = os.path.commonpath([Path(path).absolute().parent for path in files])
        self.names = tuple(os.path.relpath(path, common) for path in files)
        self.strict = strict
        self._stamps = {path: _stamp(path) for path in files}
        self._formats = {path: format_of(path) for path in files}
        self._found: dict[str, Recognition] = {}
        self.rows: int | None = 0
        for path in files:
            held, rows = READERS[self._formats[path]].columns(path)
            found = self._found[path] = recognize(path, held, map, labels)
            rows = rows if found.grain == "sequence" else None
            self.rows = None if rows is None or self.rows is None else self.rows + rows
        first, *others = self._found.values()
        self.signature = _signature(first)
        for other in others:
            require_same(first.path, self.signature, other.path, _signature(other))
        forms = (f"{self._formats[path]}{SAID[one.grain]}" for path, one in self._found.items())
        self.layout, self.forms = first.layout, tuple(dict.fromkeys(forms))
        self.format = f"{self.layout} {' and '.join(self.forms)}"
        self.columns = tuple(first.guesses)
        self.unused: dict[str, str] = {}
        for one in self._found.values():
            self.unused |= one.unused
        parts = [use.part for use in first.uses if is_label(use.part)]
        self.labels = tuple(part.removeprefix(LABEL) for part in parts)
        self.roles = tuple(first.roles)
        self.sampler = presumed_sampler(self.roles)
        self.damaged: list[Damaged] = []
        self.damaged_rows = 0

    def __repr__(self) -> str:
        rows = "rows not counted yet" if self.rows is None else f"{self.rows} rows"
        files = f"{len(self.files)} files of {self.format}"
        return f"<Dump: {files}, {rows}, sampler {self.sampler.role}>"

    def __iter__(self) -> Iterator[Columns]:
        """The sequences, in chunks.

        Raises:
            DumpError: A file breaks off or has changed, no row at all can be used, or, if strict,
                a row is damaged.
        """
        self.damaged, self.damaged_rows = [], 0
        rows = 0
        for path in self.files:
            for chunk in self.chunks(path):
                rows += len(chunk.lengths)
                yield chunk
        self.rows = rows + self.damaged_rows
        if not rows:
            none = f"there is none in {' and '.join(self.files[:3])}"
            why = f"the first: {self.damaged[0]}" if self.damaged else none
            raise DumpError(f"no row of the dump can be used, of {self.rows}; {why}")

    def chunks(self, path: str) -> Iterator[Columns]:
        """The sequences of one of the files; another process may read another one.

        Damaged rows are added to those already named.
        """
        form, found = self._formats[path], self._found[path]
        name = self.names[self.files.index(path)]
        assembler = Assembler(path, name, "line" if form == "JSON lines" else "row")
        self._require_unchanged(path)
        batches = READERS[form].batches(path, found.uses)
        if found.grain == "batch":
            batches = packed.sequences(batches)
        elif found.grain == "token":
            batches = long_form.sequences(batches, path, assembler.place)
        for batch in chunked(batches):
            columns = assembler.columns(batch)
            self._note(assembler)
            if columns is not None:
                yield columns
        self._require_unchanged(path)

    def grows(self, path: str) -> bool:
        """Whether the file can be read on by whole lines while rows are added at its end.

        Compressed lines, and those of which each is a token, cannot be cut at any line.
        """
        plain = self._formats[path] == "JSON lines" and not self.is_compressed(path)
        return plain and self._found[path].grain != "token"

    def is_compressed(self, path: str) -> bool:
        """Whether one of the files is text in gzip or zstd."""
        return self._formats[path] == "JSON lines" and compression_of(path) is not None

    def fingerprint(self, path: str) -> str:
        """A hash of what the columns of one of the files are taken for, and why."""
        found = self._found[path]
        told = repr((found.uses, found.guesses, sorted(found.unused.items()), found.grain))
        return blake2b(told.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def pieces(self, path: str, begin: Mark, stop: int) -> Iterator[Piece]:
        """The chunks of a file that ``grows``, from a mark up to a byte at which a line ends.

        Whether it was rewritten meanwhile is for the caller to see.
        """
        name = self.names[self.files.index(path)]
        return pieces(path, name, self._found[path], begin, stop)

    def _require_unchanged(self, path: str) -> None:
        """Half of one file and half of another are no dump, whatever can be read of them."""
        if _stamp(path) != self._stamps[path]:
            raise DumpError(
                f"{path} has changed since it was opened: read it again when it is written, or "
                "read a copy"
            )

    def _note(self, assembler: Assembler) -> None:
        if assembler.damaged and self.strict:
            raise DumpError(str(assembler.damaged[0]))
        self.damaged_rows += len(assembler.damaged)
        self.damaged += assembler.damaged[: NAMED_AT_MOST - len(self.damaged)]
        self.unused |= assembler.unused


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror}") from error
    return found.st_size, found.st_mtime_ns


def _signature(found: Recognition) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((use.part, use.column) for use in found.uses if use.part not in CUTS))


def require_same(
    path: str,
    ours: tuple[tuple[str, str], ...],
    other: str,
    theirs: tuple[tuple[str, str], ...],
) -> None:
    """Refuse two files as one dump unless they agree on what their columns are.

    Args:
        path: One file.
        ours: Its parts and columns, the ``signature`` of its dump.
        other: The other file.
        theirs: Those of that.

    Raises:
        DumpError: Says in what they differ.
    """
    if ours == theirs:
        return
    part, column = min(set(ours) ^ set(theirs))
    here, there = (path, other) if (part, column) in ours else (other, path)
    raise DumpError(
        f"{here} has {spoken(part)} in column {column} and {there} has not: read files "
        "with the same columns together, the others apart"
    )
