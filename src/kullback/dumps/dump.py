"""A dump of rollouts: its files, what their columns are taken for, its sequences in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kullback.columns import Columns
from kullback.dumps import long_form, packed
from kullback.dumps.assemble import Assembler
from kullback.dumps.chunks import chunked
from kullback.dumps.errors import Damaged, DumpError
from kullback.dumps.formats import READERS, SUFFIXES, format_of
from kullback.dumps.grain import SAID
from kullback.dumps.layout import CUTS, LABEL, is_label, spoken
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
    found = list(dict.fromkeys(path for name in names for path in _matching(os.fspath(name))))
    if not found:
        raise DumpError("no file is named: give a path, a pattern or a folder")
    more = [labels] if isinstance(labels, str) else labels
    return Dump(found, dict(map or {}), strict, tuple(dict.fromkeys(more)))


def _matching(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        inside = sorted(str(one) for one in path.iterdir() if one.name.endswith(SUFFIXES))
        if not inside:
            listed = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            raise DumpError(f"{name} holds no {listed} file: name the files or a pattern")
        return inside
    if path.exists():
        return [str(path)]
    pattern = path.relative_to(path.anchor)
    try:
        matches = Path(path.anchor).glob(str(pattern)) if set(name) & set("*?[") else ()
        files = sorted(str(one) for one in matches if one.is_file())
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
        format: Whose columns, in which format: ``TRL Parquet``, ``kullback JSON lines``.
        columns: What each column is taken for, and why.
        unused: The other columns, each with the reason.
        labels: What is known of each sequence, by the name under which its chunks have it.
        roles: The roles that have log-probs.
        sampler: The role taken as the sampler, and why.
        rows: The number of sequences; None until all were read where the files do not say it
            (JSON lines, Arrow streams, packed rows, one row per token).
        damaged_rows: How many rows were left out in the last reading.
        damaged: The first 1000 of them, each with its file, place and reason.
    """

    def __init__(
        self, files: list[str], map: Mapping[str, str], strict: bool, labels: Sequence[str] = ()
    ) -> None:
        self.files = tuple(files)
        common = os.path.commonpath([Path(path).absolute().parent for path in files])
        self.names = tuple(os.path.relpath(path, common) for path in files)
        self.strict = strict
        self._formats = {path: format_of(path) for path in files}
        self._found: dict[str, Recognition] = {}
        self.rows: int | None = 0
        for path in files:
            held, rows = READERS[self._formats[path]].columns(path)
            found = self._found[path] = recognize(path, held, map, labels)
            rows = rows if found.grain == "sequence" else None
            self.rows = None if rows is None or self.rows is None else self.rows + rows
        first, *others = self._found.values()
        for other in others:
            _require_same(first, other)
        forms = (f"{self._formats[path]}{SAID[one.grain]}" for path, one in self._found.items())
        self.format = f"{first.layout} {' and '.join(dict.fromkeys(forms))}"
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
            DumpError: A file breaks off, no row at all can be used, or, if strict, a row is
                damaged.
        """
        self.damaged, self.damaged_rows = [], 0
        rows = 0
        for path in self.files:
            for chunk in self.chunks(path):
                rows += len(chunk.lengths)
                yield chunk
        self.rows = rows + self.damaged_rows
        if not rows:
            why = f"the first: {self.damaged[0]}" if self.damaged else "there is none"
            raise DumpError(f"no row of the dump can be used, of {self.rows}; {why}")

    def chunks(self, path: str) -> Iterator[Columns]:
        """The sequences of one of the files; another process may read another one.

        Damaged rows are added to those already named.
        """
        form, found = self._formats[path], self._found[path]
        name = self.names[self.files.index(path)]
        assembler = Assembler(path, name, "line" if form == "JSON lines" else "row")
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

    def _note(self, assembler: Assembler) -> None:
        if assembler.damaged and self.strict:
            raise DumpError(str(assembler.damaged[0]))
        self.damaged_rows += len(assembler.damaged)
        self.damaged += assembler.damaged[: NAMED_AT_MOST - len(self.damaged)]
        self.unused |= assembler.unused


def _require_same(first: Recognition, other: Recognition) -> None:
    """The files of one dump must agree on what their columns are."""
    ours, theirs = (
        {(use.part, use.column) for use in one.uses if use.part not in CUTS}
        for one in (first, other)
    )
    if ours == theirs:
        return
    part, column = min(ours ^ theirs)
    here, there = (first, other) if (part, column) in ours else (other, first)
    raise DumpError(
        f"{here.path} has {spoken(part)} in column {column} and {there.path} has not: read files "
        "with the same columns together, the others apart"
    )
