"""What is kept of a run that is followed: the summary so far, and how far each file was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from kullback.dumps.errors import Damaged
from kullback.dumps.pieces import Mark, Piece
from kullback.dumps.recognize import Guess
from kullback.estimation.summary import Summary
from kullback.following.stamps import Stamp
from kullback.question import Sampler, presumed_sampler

NAMED = 20  # damaged rows of a file that are kept by name; the rest are counted


@dataclass(frozen=True, slots=True)
class Counts:
    """What rows left behind beside their summary. ``a + b`` is that of both.

    Args:
        rows: How many there were, damaged ones included.
        damaged_rows: How many were damaged.
        damaged: The first of these.
        unused: Columns that turned out to be of no use, with the reason.
    """

    rows: int = 0
    damaged_rows: int = 0
    damaged: tuple[Damaged, ...] = ()
    unused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, piece: Piece) -> Counts:
        """Those of a piece of a file."""
        whole = 0 if piece.columns is None else len(piece.columns.lengths)
        lost = len(piece.damaged)
        return cls(whole + lost, lost, piece.damaged[:NAMED], piece.unused)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.rows + other.rows,
            self.damaged_rows + other.damaged_rows,
            (self.damaged + other.damaged)[:NAMED],
            self.unused | other.unused,
        )


@dataclass(frozen=True, slots=True)
class Tail:
    """The chunk of a growing file that is not full yet; it is read again when the file has grown.

    Args:
        summary: Its summary; None if it has no usable row.
        counts: What else its rows left behind.
        after: Where it ends.
    """

    summary: Summary | None
    counts: Counts
    after: Mark


@dataclass(frozen=True, slots=True)
class Counted:
    """A file of which rows were counted.

    Args:
        stamp: What it was when it was read last.
        first: The look at which it was counted first.
        grown: The last look at which it had more rows than before.
        form: Its format and what a row is, in words.
        fingerprint: What its columns were taken for.
        unused: Its columns that are not read, with the reason, where the first file has no such.
        counts: What the rows left behind that are in the summary of what is closed.
        begin: Where its tail begins; None if it was counted as a whole.
        ending: The last bytes before the end of what was read.
        tail: The rows behind ``begin``.
    """

    stamp: Stamp
    first: int
    grown: int
    form: str
    fingerprint: str
    unused: dict[str, str]
    counts: Counts
    begin: Mark | None = None
    ending: str = ""
    tail: Tail | None = None

    @property
    def end(self) -> int:
        """The byte up to which it was read."""
        if self.begin is None:
            return self.stamp.size
        return self.begin.offset if self.tail is None else self.tail.after.offset

    def closed(self) -> Counted:
        """The same once its tail has been added to what is closed."""
        if self.tail is None:
            return self
        return replace(self, counts=self.all_counts, begin=self.tail.after, tail=None)

    @property
    def all_counts(self) -> Counts:
        """What all of its rows left behind."""
        return self.counts if self.tail is None else self.counts + self.tail.counts


@dataclass(frozen=True, slots=True)
class Head:
    """What the first file says for all of them.

    Args:
        name: Its name.
        layout: Whose dump it is.
        roles: The roles with log-probs.
        columns: What each column is taken for.
        unused: The columns that are not read, with the reason.
        signature: The same to compare with another file's.
    """

    name: str
    layout: str
    roles: tuple[str, ...]
    columns: tuple[Guess, ...]
    unused: dict[str, str]
    signature: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """All that is known of a run that is followed.

    Args:
        version: Of kullback, which made it.
        place: What is followed, as an absolute path.
        asked: The questions that were asked beside the usual ones.
        by: The axes.
        map: The column of each role, as far as the caller said it.
        looks: How often it was looked at.
        head: What the first file says; None before there is one.
        closed: The summary of all rows that are never read again.
        files: The files of which rows were counted, in the order in which they came.
        seen: What the others were at the last look.

    The properties that are named as those of a ``Dump`` say the same of the rows counted so far.
    """

    version: str
    place: str
    asked: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    map: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    head: Head | None = None
    closed: Summary | None = None
    files: dict[str, Counted] = field(default_factory=dict)
    seen: dict[str, Stamp] = field(default_factory=dict)

    @property
    def summary(self) -> Summary | None:
        """The summary of all rows that were counted; None if there are none."""
        return self.with_tails(self.files)

    @property
    def rows(self) -> int:
        """All rows that were read, damaged ones included."""
        return sum(one.all_counts.rows for one in self.files.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The files, as a dump of them calls them."""
        return tuple(self.files)

    @property
    def format(self) -> str:
        """Whose columns, in which format, as a dump of all files says it."""
        forms = dict.fromkeys(one.form for one in self.files.values())
        return f"{self.head.layout if self.head else ''} {' and '.join(forms)}"

    @property
    def columns(self) -> tuple[Guess, ...]:
        """What each column is taken for, and why."""
        return self.head.columns if self.head else ()

    @property
    def sampler(self) -> Sampler:
        """The role taken as the sampler, and why; once there is a file."""
        assert self.head is not None
        return presumed_sampler(self.head.roles)

    @property
    def damaged_rows(self) -> int:
        """How many rows were left out."""
        return sum(one.all_counts.damaged_rows for one in self.files.values())

    @property
    def damaged(self) -> list[Damaged]:
        """The first of them."""
        named = (row for one in self.files.values() for row in one.all_counts.damaged)
        return list(islice(named, NAMED))

    @property
    def unused(self) -> dict[str, str]:
        """The columns that are not read, each with the reason."""
        found = dict(self.head.unused) if self.head else {}
        for one in self.files.values():
            found |= one.unused
        for one in self.files.values():
            found |= one.all_counts.unused
        return found

    def with_tails(self, names: Iterable[str]) -> Summary | None:
        """The summary of what is closed and of the tails of these files."""
        total = self.closed
        for name in names:
            tail = self.files[name].tail
            if tail is not None and tail.summary is not None:
                total = tail.summary if total is None else total + tail.summary
        return total

    def tails_closed(self, names: Iterable[str]) -> Progress:
        """The same with the tails of these files among what is closed."""
        names = list(names)
        files = self.files | {name: self.files[name].closed() for name in names}
        return replace(self, closed=self.with_tails(names), files=files)

    def anew(self) -> Progress:
        """What was asked, with nothing counted."""
        return Progress(self.version, self.place, self.asked, self.by, self.map, self.looks)
