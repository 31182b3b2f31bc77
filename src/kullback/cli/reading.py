"""From the words of a command line to a dump and what is asked of it, for every verb that reads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kullback.columns import Columns
    from kullback.dumps import Dump


def columns_by_role(maps: Iterable[str]) -> dict[str, str]:
    """The column of each role, as --map gives them."""
    named: dict[str, str] = {}
    for text in maps:
        role, equals, column = text.partition("=")
        if not (role and equals and column):
            raise ValueError(f"--map {text!r}: write role=column, as in --map current=my_log_probs")
        if named.setdefault(role, column) != column:
            raise ValueError(f"--map gives {role} two columns: {named[role]} and {column}")
    return named


def axes_of(by: Iterable[str]) -> tuple[str, ...]:
    """The axes, as --by gives them: several at once, apart by commas, or one each."""
    axes = dict.fromkeys(axis.strip() for text in by for axis in text.split(","))
    if "" in axes:
        raise ValueError("--by: write the names of axes, as in --by step,position")
    return tuple(axes)


def opened(files: Any, by: Sequence[str], **how: Any) -> Dump:
    """The dump, with the columns that it is to be split by as labels."""
    from kullback.dumps import read
    from kullback.estimation.axes import BUILT_IN

    dump = read(files, **how)
    more = [axis for axis in by if axis not in (*BUILT_IN, *dump.labels)]
    derived = {"step", "versions"} <= {guess.role for guess in dump.columns}
    if "staleness" in by and "staleness" in dump.unused and not derived:
        more.append("staleness")
    return read(files, labels=more, **how) if more else dump


@contextmanager
def progress(dump: Dump) -> Iterator[Callable[[Columns], None] | None]:
    """A bar on the error stream while a long dump is read; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=dump.rows)
        yield lambda columns: bar.advance(task, len(columns.lengths))
