"""A damaged dump for each seed, with what has to be read of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from . import damage
from .damage import DAMAGED, SAME, Verdict
from .dumps import FORMATS, LAYOUTS, Row, meaning, rows, table

Key = tuple[str, int]  # the file, and the row or line in it, from 0


@dataclass(frozen=True)
class Case:
    """A damaged dump.

    Args:
        kind: What was done to it, as in ``bytes/flip/jsonl``.
        files: The content of each file.
        expected: What has to come of a row; of one that is not named here, anything may.
        whole: Whether every row is named here, and its number of rows therefore known.
        must_read: Whether refusing the dump as a whole is a failure.
        rest: The same dump without the damaged rows, if it gives the same places.
        before: What the rows said before the bytes were damaged; of bytes that carry no checksum,
            nobody can tell a changed number, and it is counted how often it is read.
    """

    kind: str
    files: dict[str, bytes]
    expected: dict[Key, Verdict] = field(default_factory=dict)
    whole: bool = False
    must_read: bool = False
    rest: dict[str, bytes] | None = None
    before: dict[Key, Row] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The exact KLs and roles that the undamaged rows have."""
        said = {name for row in self.before.values() for name in meaning(row)}
        roles = {name.partition(".")[2] for name in said if name.startswith("log_probs.")}
        return roles | {name for name in said if name.startswith("KL(")}


def _lines_that_stand(name: str, data: bytes, before: bytes, said: list[Row]) -> dict[Key, Verdict]:
    """The lines that the damage did not touch: each must be read as the row that it was."""
    rows = dict(zip(before.splitlines(), said, strict=True))
    lines = enumerate(data.split(b"\n"))
    return {(name, i): rows[line.strip()] for i, line in lines if line.strip() in rows}


def form_for(random: Random, layout: str, of_rows: bool) -> str:
    """A format that can hold the layout, and if need be one whose rows are sequences."""
    fits = [
        name
        for name, one in FORMATS.items()
        if layout in one.layouts and not (of_rows and one.cells is None)
    ]
    return random.choice(fits)


def present(said: list[Row], form: str) -> list[Row]:
    """The rows that a file of this format can hold: one row per token holds no empty sequence."""
    return [row for row in said if row["mask"]] if form.startswith("long") else said


def of_bytes(random: Random, layout: str) -> Case:
    form = form_for(random, layout, of_rows=False)
    said, others = (rows(random, layout, random.randrange(3, 20)) for _ in range(2))
    before, other = (FORMATS[form].write(some, some) for some in (said, others))
    change = random.choice(list(damage.BYTES))
    data, name = damage.BYTES[change](random, before, other), f"a{FORMATS[form].suffix}"
    expected: dict[Key, Verdict] = {}
    if form == "jsonl":
        # Both files are dumps: a line of either one may stand in a splice.
        expected = _lines_that_stand(name, data, other, others)
        expected |= _lines_that_stand(name, data, before, said)
    keys = FORMATS[form].keys(said)
    was = {(name, key): row for key, row in zip(keys, present(said, form), strict=True)}
    if FORMATS[form].checked and change in ("flip", "replace", "zero"):
        expected = dict(was)
    return Case(f"bytes/{change}/{form}", {name: data}, expected, before=was)


def of_rows(random: Random, layout: str, few: bool = True) -> Case:
    """Damage to a few rows, which says nothing of the others; or to any number, which may."""
    form = form_for(random, layout, of_rows=True)
    table = damage.CELLS[FORMATS[form].cells or ""]
    said = rows(random, layout, random.randrange(8, 24))
    most = len(said) // 4 if few else len(said)
    chosen = random.sample(range(len(said)), random.randrange(1, most + 1))
    name, change = f"a{FORMATS[form].suffix}", random.choice(list(table))
    changed = list(said)
    expected: dict[Key, Verdict] = {(name, i): row for i, row in enumerate(said)}
    for row in chosen:
        # Not every change fits every column: take the first that it fits.
        columns = random.sample(list(said[row]), len(said[row]))
        tried = (table[change](random, said[row], column) for column in columns)
        if found := next((one for one in tried if one), None):
            changed[row], expected[name, row] = found
    write = FORMATS[form].write
    left = [row for i, row in enumerate(said) if expected[name, i] == row]
    rest = None
    if form == "jsonl":
        kept = zip(write(said, said).splitlines(), expected.values(), said, strict=True)
        rest = b"\n".join(line if v == row else b"" for line, v, row in kept)
    elif "prompt" in said[0] or "prompt_id" in said[0]:  # no cluster hangs on a row's number
        rest = write(left, said)
    named = all(
        verdict in (row, DAMAGED) for verdict, row in zip(expected.values(), said, strict=True)
    )
    return Case(
        f"{'rows' if few else 'many rows'}/{change}/{form}",
        {name: write(changed, said)},
        expected,
        whole=True,
        must_read=few,
        rest={name: rest} if few and rest and named else None,
    )


def of_many_rows(random: Random, layout: str) -> Case:
    return of_rows(random, layout, few=False)


def of_lines(random: Random, layout: str) -> Case:
    said = rows(random, layout, random.randrange(8, 24))
    lines = FORMATS["jsonl"].write(said, said).splitlines()
    kept = list(lines)
    expected: dict[Key, Verdict] = {("a.jsonl", i): row for i, row in enumerate(said)}
    change = random.choice(list(damage.LINES))
    for i in random.sample(range(len(said)), random.randrange(1, len(said) // 4 + 1)):
        lines[i], verdict = damage.LINES[change](random, lines[i])
        expected["a.jsonl", i] = said[i] if verdict == SAME else verdict
        kept[i] = b"" if verdict == DAMAGED else lines[i]
    return Case(
        f"lines/{change}/jsonl",
        {"a.jsonl": b"\n".join(lines)},
        expected,
        whole=change != "utf16",
        must_read=change != "utf16",
        rest={"a.jsonl": b"\n".join(kept)} if change != "utf16" else None,
    )


def of_table(random: Random, layout: str) -> Case:
    said = rows(random, layout, random.randrange(1, 24))
    change = random.choice(list(damage.TABLES))
    changed, options, verdict = damage.TABLES[change](random, table(said, said))
    expected: dict[Key, Verdict] = {("a.parquet", i): row for i, row in enumerate(said)}
    same = verdict == SAME
    return Case(
        f"table/{change}",
        {"a.parquet": damage.parquet_of(changed, options)},
        expected if same else {},
        whole=same,
        must_read=same,
    )


def of_files(random: Random, layout: str) -> Case:
    """Two files that may or may not belong together."""
    other = random.choice((layout, layout, *LAYOUTS))
    files: dict[str, bytes] = {}
    expected: dict[Key, Verdict] = {}
    for stem, kind in (("a", layout), ("b", other)):
        form = FORMATS[form_for(random, kind, of_rows=True)]
        said = rows(random, kind, random.randrange(1, 12))
        typed = said
        if stem == "b" and random.random() < 0.3:
            gone = random.choice(list(said[0]))
            typed = said = [{k: v for k, v in row.items() if k != gone} for row in said]
        files[f"{stem}{form.suffix}"] = form.write(said, typed)
        expected |= {(f"{stem}{form.suffix}", i): row for i, row in enumerate(said)}
    return Case("files/two", files, expected, whole=True)


FAMILIES: dict[Callable[[Random, str], Case], int] = {
    of_bytes: 40,
    of_rows: 28,
    of_many_rows: 6,
    of_lines: 14,
    of_table: 12,
    of_files: 6,
}


def case(seed: int) -> Case:
    """The damaged dump of this seed, the same in every process."""
    found = random.Random(seed)
    (family,) = found.choices(list(FAMILIES), list(FAMILIES.values()))
    return family(found, found.choice(list(LAYOUTS)))
