"""The short form of benchmarks/fuzz.py: some hundred damaged dumps; and the judge can convict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage

import pytest

from kullback.dumps import checks, chunks, jsonl, parquet
from kullback.dumps.batch import Batch

from . import damage
from .cases import Case, case, of_bytes, of_lines, of_rows, present
from .dumps import FORMATS, meaning, rows
from .judge import Outcome, judge

SEEDS = 420
Family = Callable[[Random, str], Case]


def judged(first: int, last: int, folder: Path) -> Iterator[tuple[int, Case, Outcome]]:
    for seed in range(first, last):
        damaged = case(seed)
        yield seed, damaged, judge(damaged, folder, thorough=seed % 8 == 0)


@pytest.mark.parametrize("first", range(0, SEEDS, 60))
def test_a_damaged_dump_is_refused_or_read_right(tmp_path: Path, first: int):
    before = getrusage(RUSAGE_SELF).ru_maxrss
    found = list(judged(first, first + 60, tmp_path))
    assert [(seed, one.kind, out.why) for seed, one, out in found if out.kind == "failed"] == []
    assert len({out.kind for _, _, out in found}) >= 3  # refused, read, damaged rows named
    # A few kilobytes that are damaged do not ask for gigabytes.
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 2**29 / 1024


def test_where_chunks_end_does_not_matter(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_TOKENS", 16)
    monkeypatch.setattr(parquet, "DECODED_AT_ONCE", 64)
    for seed in range(SEEDS, SEEDS + 100):
        outcome = judge(case(seed), tmp_path, thorough=False)
        assert outcome.kind != "failed", (seed, outcome.why)


def test_the_short_form_does_every_damage():
    done = Counter(part for seed in range(SEEDS) for part in case(seed).kind.split("/"))
    tables = (damage.BYTES, damage.ROWS, damage.JSON_ROWS, damage.LINES, damage.TABLES)
    assert {name for table in tables for name in table} | {"two"} <= done.keys()


def test_a_seed_is_the_same_dump_everywhere():
    assert [case(seed).files for seed in range(20)] == [case(seed).files for seed in range(20)]


@pytest.mark.parametrize(
    ("form", "layout"), [(name, one) for name in FORMATS for one in FORMATS[name].layouts]
)
def test_an_undamaged_dump_is_read_as_it_was_written(tmp_path: Path, form: str, layout: str):
    """Without this the judge could call anything right."""
    said = rows(Random(0), layout, 12)
    name, there = f"a{FORMATS[form].suffix}", present(said, form)
    keys = FORMATS[form].keys(said)
    whole = Case(
        "none",
        {name: FORMATS[form].write(said, said)},
        {(name, key): row for key, row in zip(keys, there, strict=True)},
        whole=True,
        must_read=True,
    )
    assert judge(whole, tmp_path, thorough=True) == Outcome("read")


def blind(_: Batch) -> dict[int, str]:
    return {}


# A reader that does not look for something, the damage that shows it, and the seed from which on
# it is looked for: what shows a flipped bit is rare.
BLIND: dict[str, tuple[Family, str, int, Callable[[pytest.MonkeyPatch], None]]] = {
    "a key that stands twice": (of_lines, "twice", 0, lambda p: p.setattr(jsonl, "_object", dict)),
    "a mask of other values": (
        of_rows,
        "no_mask",
        0,
        lambda p: p.setitem(checks._LISTS, "mask", blind),
    ),
    "unpaired lists": (of_rows, "unpaired", 0, lambda p: p.setattr(checks, "_top_lengths", blind)),
    "a flag among numbers": (
        of_rows,
        "wrong_entry",
        0,
        lambda p: p.setattr(jsonl, "_numbers", jsonl._flags),
    ),
    "a flipped bit": (of_bytes, "zero/checked", 400, lambda p: p.setattr(parquet, "_STREAMED", {})),
    "a lost row": (of_rows, "jsonl", 0, lambda p: p.setattr(jsonl, "_parsed", lambda line: {})),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_reader_that_does_not_look_is_convicted(tmp_path: Path, monkeypatch, name: str):
    family, kind, first, patch = BLIND[name]
    patch(monkeypatch)
    seeds = range(first, 1000)
    damaged = (family(Random(seed), layout) for seed in seeds for layout in ("full", "trl"))
    judged = (judge(one, tmp_path, thorough=False) for one in damaged if kind in one.kind)
    assert any(outcome.kind == "failed" for outcome in judged)


def test_what_a_row_means():
    assert meaning({"generation_logprobs": [[-1.0]], "token_loss_mask": [[1]]}) == {
        "log_probs.rollout": [-1.0],
        "mask": [True],
    }
