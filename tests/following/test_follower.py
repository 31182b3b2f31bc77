from __future__ import annotations

import gzip
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kullback as kb
from kullback.cli.reading import opened
from kullback.dumps import chunks, compression, jsonl
from kullback.estimation.axes import USUAL
from kullback.estimation.stored import load, store
from kullback.following import follower as module
from kullback.following.follower import UNSETTLED, Follower
from kullback.following.progress import Progress
from kullback.following.reading import UNENDED
from kullback.reporting.document import document, source_of
from kullback.reporting.write import as_json

BY = ("position", "step", "task")
LATER = 1e12  # seconds: by then every file is old


def following(place: Path, by=(), progress: Progress | None = None, **how: Any) -> Follower:
    start = progress or Progress("1", str(place), by=tuple(by))
    return Follower(place, lambda path: opened(path, by), start, every=10.0, **how)


def told(follower: Follower) -> str:
    """The report of what was counted, to the last bit."""
    summary = follower.progress.summary
    assert summary is not None
    return as_json(document(summary, source_of(follower.progress)))


def one_pass(place: Any, by=()) -> str:
    """What ``kullback report`` says."""
    dump = opened(place, by)
    return as_json(document(kb.summarize(dump, by=by, also=USUAL), source_of(dump)))


def counted(follower: Follower) -> tuple[bytes, dict[str, Any]]:
    """All that a report is made of, which takes longer to make."""
    return store(follower.progress.summary), source_of(follower.progress)


def counted_in_one_pass(place: Any, by=()) -> tuple[bytes, dict[str, Any]]:
    dump = opened(place, by)
    return store(kb.summarize(dump, by=by, also=USUAL)), source_of(dump)


def line(i: int, rng: np.random.Generator, **more: Any) -> str:
    p = rng.normal(-2, 0.3, size=1 + i % 7)
    row = {
        "log_probs.rollout": p.tolist(),
        "log_probs.current": (p + rng.normal(0, 0.1, len(p))).tolist(),
        "log_probs.reference": (p + rng.normal(0, 0.2, len(p))).tolist(),
        "tokens": rng.integers(0, 9, len(p)).tolist(),
        "top_ids.rollout": [[int(t), 9] for t in rng.integers(0, 9, len(p))],
        "top_log_probs.rollout": [[-0.7, -1.5]] * len(p),
        "step": i // 20,
        "task": ["code", "math", None][i % 3],
        "prompt_id": i // 4,
    }
    return json.dumps(row | more) + "\n"


def packed(i: int, rng: np.random.Generator) -> str:
    lengths = rng.integers(1, 5, size=1 + i % 4).tolist()
    p = rng.normal(-2, 0.3, size=sum(lengths))
    row = {
        "log_probs.rollout": p.tolist(),
        "log_probs.current": (p + 0.1).tolist(),
        "tokens": rng.integers(0, 9, len(p)).tolist(),
        "lengths": lengths,
        "step": i // 20,
        "task": ["code"] * len(lengths),
    }
    return json.dumps(row) + "\n"


def a_run(kind: str, seed: int, rows: int = 90) -> bytes:
    """Lines as a trainer writes them, some of them damaged or blank."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    found = []
    for i in range(rows):
        text = line(i, rng) if kind == "rows" else packed(i, rng)
        if i > 20 and chance.random() < 0.1:
            text = chance.choice(
                ["\n", "{broken\n", '{"log_probs.rollout": [1]}\n', text[:-2] + "\n"]
            )
        if i == 60:
            text = text.replace('"step"', '"late": 1, "step"')
        found.append(text)
    return "".join(found).encode()


@contextmanager
def small() -> Iterator[None]:
    """Chunks of 64 tokens, read some lines at a time: many ends to get wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_TOKENS", 64)
        patch.setattr(jsonl, "DECODED_AT_ONCE", 3000)
        patch.setattr(module, "SLICE", 5000)
        yield


@pytest.fixture
def small_chunks() -> Iterator[None]:
    with small():
        yield


def begins_at(one: Follower) -> int:
    begin = one.progress.files["run.jsonl"].begin
    assert begin is not None
    return begin.offset


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def restarted(one: Follower, place: Path, by=()) -> Follower:
    """Another process, which has only what was kept."""
    return following(place, by, load(store(one.progress), Progress))


@pytest.mark.parametrize("kind", ["rows", "packed"])
@pytest.mark.parametrize("seed", range(2))
def test_however_a_file_grows_the_report_is_that_of_one_pass(tmp_path, small_chunks, kind, seed):
    """After each look, over restarts, to the last bit: numbers, places, damage and columns."""
    path, copy, data = tmp_path / "run.jsonl", tmp_path / "copy" / "run.jsonl", a_run(kind, seed)
    copy.parent.mkdir()
    chance = random.Random(seed)
    one = following(path, BY)
    at = 0
    while at < len(data):
        step = chance.choice([1, 50, 400, 3000, 12000])
        append(path, data[at : at + step])
        at += step
        look = one.look(LATER)
        assert not look.said
        whole = data[: data[:at].rfind(b"\n") + 1]
        if not whole:
            assert one.progress.summary is None
            continue
        # The names of files are in the keys of clusters: the copy has to stand at the same path.
        path.rename(path.with_suffix(".kept"))
        path.write_bytes(whole)
        expected = counted_in_one_pass(path, BY)
        path.with_suffix(".kept").replace(path)
        assert counted(one) == expected
        assert (look.waiting == {"run.jsonl": UNENDED}) == (len(whole) < min(at, len(data)))
        if chance.random() < 0.3:
            one = restarted(one, path, BY)
    assert told(one) == one_pass(path, BY)
    assert one.progress.closed is not None
    assert begins_at(one) > len(data) / 2


@settings(max_examples=20)
@given(
    kind=st.sampled_from(["rows", "packed"]),
    cuts=st.lists(st.integers(0, 12_000), max_size=12),
    ends=st.sets(st.integers(0, 12)),
)
def test_any_cuts_into_looks_and_processes_give_the_state_of_one_pass(kind, cuts, ends):
    """The whole state, to the last bit."""
    data = a_run(kind, 5, rows=40)
    with tempfile.TemporaryDirectory() as folder, small():
        path = Path(folder) / "run.jsonl"
        one = following(path, BY)
        for i, at in enumerate([*sorted(cuts), len(data)]):
            path.touch()
            append(path, data[path.stat().st_size : at])
            one.look(LATER)
            if i in ends:
                one = restarted(one, path, BY)
        assert one.progress.summary is not None
        whole = kb.summarize(opened(str(path), BY), by=BY, also=USUAL)
        assert store(one.progress.summary) == store(whole)


FORMATS = ("parquet", "arrow", "npz", "jsonl", "jsonl.gz")


def dump_of(path: Path, seed: int, rows: int = 40) -> None:
    """A file of one step, in the format that its name says."""
    lines = a_run("rows", seed, rows=rows)
    if path.name.endswith(".jsonl"):
        path.write_bytes(lines)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines))
    else:
        plain = path.with_name(".plain.jsonl")
        plain.write_bytes(lines)
        if path.suffix == ".npz":
            columns = kb.read(plain)
            (batch,) = columns
            arrays: Any = {f"log_probs.{role}": v for role, v in batch.log_probs.items()}
            np.savez(path, lengths=batch.lengths, **arrays)
        elif path.suffix == ".arrow":
            import pyarrow as pa
            import pyarrow.parquet as pq

            kb.write(kb.read(plain), plain.with_suffix(".parquet"))
            table = pq.read_table(plain.with_suffix(".parquet"))
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            plain.with_suffix(".parquet").unlink()
        else:
            kb.write(kb.read(plain), path)
        plain.unlink()


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "jsonl.gz"])
def test_one_file_per_step_gives_the_report_of_the_folder(tmp_path, small_chunks, suffix):
    """More files than may have an open chunk, over restarts; to the last bit."""
    one = following(tmp_path, ["step"])
    for step in range(20):
        path = tmp_path / f"step_{step:03}.{suffix}"
        dump_of(path, step, rows=10)
        look = one.look(LATER)
        assert (look.changed, look.said, look.waiting) == (True, (), {})
        if step % 6 == 5:
            one = restarted(one, tmp_path, ["step"])
        if step % 4 == 0:
            assert counted(one) == counted_in_one_pass(tmp_path, ["step"])
    assert told(one) == one_pass(tmp_path, ["step"])
    assert not one.look(LATER).changed
    assert sum(file.tail is not None for file in one.progress.files.values()) <= module.OPEN


def close(a: Any, b: Any, path: str = "") -> None:
    """The same report but for the rounding of sums in another order."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            close(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            close(one, other, f"{path}[{i}]")
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12), path
    else:
        assert a == b, path


@pytest.mark.parametrize("seed", range(2))
def test_files_of_several_ranks_that_grow_at_once(tmp_path, small_chunks, seed):
    """Chunks come in another order than in one pass; everything else is the same."""
    chance = random.Random(seed)
    paths = [tmp_path / f"rank_{i}.jsonl" for i in range(3)]
    data = [a_run("rows", 10 * seed + i) for i in range(3)]
    at = [0, 0, 0]
    one = following(tmp_path, ["step"])
    while any(at[i] < len(data[i]) for i in range(3)):
        for i, path in enumerate(paths):
            step = chance.choice([0, 500, 4000])
            append(path, data[i][at[i] : at[i] + step])
            at[i] += step
        one.look(0.0)
        if chance.random() < 0.2:
            one = restarted(one, tmp_path, ["step"])
    ours, theirs = json.loads(told(one)), json.loads(one_pass(tmp_path, ["step"]))
    assert sorted(one.progress.names) == theirs["source"]["files"]
    for report in (ours, theirs):  # the first place of a fault is that which came first
        del report["source"]["files"], report["source"]["damaged"]
        for finding in report["findings"]:
            del finding["where"]
            finding["claim"] = finding["claim"].partition(" The first: ")[0]
    close(ours, theirs)


def test_a_file_is_counted_once_it_stands_still(tmp_path):
    one, path = following(tmp_path), tmp_path / "a.parquet"
    dump_of(path, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:3000])
    now = path.stat().st_mtime + 1
    assert one.look(now).waiting == {"a.parquet": UNSETTLED}
    path.write_bytes(whole)
    assert one.look(now + 1).waiting == {"a.parquet": UNSETTLED}
    assert one.progress.summary is None
    look = one.look(now + 2)
    assert (look.changed, look.waiting) == (True, {})
    assert told(one) == one_pass(tmp_path)


def test_a_file_that_is_older_than_the_interval_is_counted_at_first_sight(tmp_path):
    dump_of(tmp_path / "a.npz", 1)
    age = (tmp_path / "a.npz").stat().st_mtime
    assert following(tmp_path).look(age + 9.9).waiting == {"a.npz": UNSETTLED}
    assert following(tmp_path).look(age + 10.1).changed


def test_half_a_file_that_stands_still_is_named_and_never_counted(tmp_path):
    for name in FORMATS[:3]:
        path = tmp_path / f"a.{name}"
        dump_of(path, 1)
        path.write_bytes(path.read_bytes()[:-40])
    gz = tmp_path / "a.jsonl.gz"
    dump_of(gz, 1)
    whole = gz.read_bytes()
    gz.write_bytes(whole[:-40])
    (tmp_path / "empty.parquet").write_bytes(b"")
    long_form = tmp_path / "tokens.jsonl"
    token = '{"sequence": 1, "log_probs.rollout": -1.0, "log_probs.current": -1.5}'
    long_form.write_text(token)
    one = following(tmp_path)
    assert not one.look(LATER).changed
    look = one.look(LATER)
    assert not look.changed
    assert set(look.waiting) == {path.name for path in tmp_path.iterdir()}
    assert look.waiting["a.jsonl.gz"] == "its gzip stream has no end yet"
    assert look.waiting["empty.parquet"] == "it is empty"
    assert look.waiting["tokens.jsonl"] == UNENDED
    assert look.waiting["a.parquet"].startswith("it cannot be read as Parquet")
    gz.write_bytes(whole)
    assert one.look(LATER).changed
    assert one.progress.names == ("a.jsonl.gz",)
    append(long_form, b"\n")
    look = one.look(LATER)
    # Other columns: not the same dump.
    assert "read files with the same columns together" in look.waiting["tokens.jsonl"]


def test_tokens_in_rows_are_counted_when_all_are_there(tmp_path):
    path = tmp_path / "tokens.jsonl"
    row = {"sequence": 1, "log_probs.rollout": -1.0, "log_probs.current": -1.5}
    one, now = following(path), 0.0
    for i in range(3):
        append(path, (json.dumps(row | {"sequence": i // 2}) + "\n").encode())
        now = path.stat().st_mtime
        assert one.look(now).waiting == {"tokens.jsonl": UNSETTLED}
    assert one.look(now).changed
    assert told(one) == one_pass(path)


def test_a_counted_file_that_changes_begins_all_anew(tmp_path):
    for i in range(3):
        dump_of(tmp_path / f"{i}.parquet", i)
    one = following(tmp_path)
    assert one.look(LATER).changed
    dump_of(tmp_path / "1.parquet", 7)
    look = one.look(LATER)
    assert look.changed
    [said] = look.said
    assert said.startswith("1.parquet is another file than the one that was counted: all is")
    assert told(one) == one_pass(tmp_path)
    os.utime(tmp_path / "2.parquet", (1, 1))
    assert one.look(LATER).said == (
        "2.parquet has changed since it was counted: all is counted from the start",
    )
    assert told(one) == one_pass(tmp_path)


def test_a_file_that_goes_keeps_its_rows_until_all_begins_anew(tmp_path):
    for i in range(3):
        dump_of(tmp_path / f"{i}.parquet", i)
    one = following(tmp_path)
    one.look(LATER)
    before = told(one)
    (tmp_path / "0.parquet").unlink()
    look = one.look(LATER)
    assert look.said == ("0.parquet: not there any more; what was counted stays counted",)
    assert told(one) == before
    assert one.look(LATER).said == ()
    assert restarted(one, tmp_path).look(LATER).said == look.said
    os.utime(tmp_path / "2.parquet", (1, 1))
    [said] = one.look(LATER).said
    assert said.endswith("from the start, without the files that are gone (1)")
    assert told(one) == one_pass(tmp_path)


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (lambda path, data: path.write_bytes(data[:900]), "become shorter than what was counted"),
        (lambda path, data: path.write_bytes(data[::-1]), "run.jsonl was written anew"),
        (lambda path, data: rewritten(path, data), "another file than the one that was counted"),
    ],
    ids=["cut", "rewritten", "replaced"],
)
def test_a_growing_file_that_was_rewritten_begins_anew(tmp_path, then, why):
    path, data = tmp_path / "run.jsonl", a_run("rows", 1, rows=40)
    path.write_bytes(data)
    one = following(path)
    one.look(LATER)
    then(path, data)
    os.utime(path, (5, 5))
    [said] = one.look(LATER).said
    assert why in said
    if why.startswith("run"):  # nothing of it is JSON lines any more
        assert one.progress.summary is None
    else:
        assert told(one) == one_pass_of_whole_lines(path)


def rewritten(path: Path, data: bytes) -> None:
    path.with_suffix(".new").write_bytes(data + data)
    path.with_suffix(".new").replace(path)


def one_pass_of_whole_lines(path: Path) -> str:
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\n") + 1])
    return one_pass(path)


def test_rows_of_closed_chunks_are_never_read_again(tmp_path, small_chunks, monkeypatch):
    path, data = tmp_path / "run.jsonl", a_run("rows", 3)
    path.write_bytes(data)
    one = following(path)
    one.look(LATER)
    begin = begins_at(one)
    assert begin > len(data) * 0.8
    starts = []
    plain = compression.lines

    def lines(name, span=None):
        starts.append(span.start if span else None)
        return plain(name, span)

    monkeypatch.setattr(jsonl, "lines", lines)
    append(path, line(1, np.random.default_rng(5)).encode())
    again = restarted(one, path)
    assert again.look(LATER).changed
    # Without a start: the first sixteen lines, which say what the columns are.
    assert set(starts) == {None, begin}
    monkeypatch.undo()


def test_what_the_first_lines_say_may_grow_until_there_are_sixteen(tmp_path):
    path, rng = tmp_path / "run.jsonl", np.random.default_rng(0)
    one = following(path)
    append(path, line(1, rng).encode())
    one.look(LATER)
    append(path, line(2, rng, **{"log_probs.old": [-1.0] * 3}).encode())
    look = one.look(LATER)
    assert (look.changed, look.said) == (True, ())
    assert told(one) == one_pass(path)
    assert "KL(rollout||old)" in told(one)


def test_a_first_file_that_says_more_of_its_columns_begins_anew(tmp_path):
    rng = np.random.default_rng(0)
    one = following(tmp_path)
    for name in "ab":
        append(tmp_path / f"{name}.jsonl", line(1, rng).encode())
    one.look(LATER)
    for name in "ab":
        append(tmp_path / f"{name}.jsonl", line(2, rng, **{"log_probs.old": [-1.0] * 3}).encode())
    [said] = one.look(LATER).said
    assert said.startswith("the first lines of a.jsonl now say other columns: all is counted")
    assert told(one) == one_pass(tmp_path)


def test_nothing_there_yet_is_waited_for(tmp_path):
    one = following(tmp_path / "later")
    look = one.look(LATER)
    assert (look.changed, look.said, look.waiting) == (False, (), {})
    (tmp_path / "later").mkdir()
    assert one.look(LATER).waiting == {}
    dump_of(tmp_path / "later" / "a.parquet", 1)
    assert one.look(LATER).changed


def test_one_file_of_two_names_counts_once(tmp_path):
    dump_of(tmp_path / "a.parquet", 1)
    (tmp_path / "b.parquet").symlink_to("a.parquet")
    one = following(tmp_path)
    one.look(LATER)
    assert one.progress.names == ("a.parquet",)


def test_a_question_that_the_files_cannot_answer_is_an_error(tmp_path):
    dump_of(tmp_path / "a.parquet", 1)
    start = Progress("1", "", asked=("KL(nobody||current)",))
    with pytest.raises(ValueError, match="needs log-probs of nobody"):
        following(tmp_path, progress=start).look(LATER)


def test_threads_do_not_change_a_bit(tmp_path, small_chunks):
    path = tmp_path / "run.jsonl"
    path.write_bytes(a_run("rows", 3))
    reports = []
    for jobs in (1, 3):
        one = following(path, BY, jobs=jobs)
        one.look(LATER)
        reports.append(told(one))
    assert reports[0] == reports[1] == one_pass(path, BY)


def test_progress_is_whole_at_every_pause(tmp_path, small_chunks):
    """A process may end there; whoever goes on counts no row twice and none less."""
    for i in range(3):
        dump_of(tmp_path / f"{i}.jsonl", i, rows=30)
    one, kept = following(tmp_path), []
    one.look(LATER, lambda: kept.append(store(one.progress)))
    assert len(kept) > 6
    assert told(one) == one_pass(tmp_path)
    expected = counted(one)
    for data in kept:
        again = following(tmp_path, progress=load(data, Progress))
        again.look(LATER)
        assert counted(again) == expected


def test_lines_that_are_no_dump_say_why_and_half_a_line_waits(tmp_path):
    """Not to have stood still is no reason where reading on would not help."""
    one, path = following(tmp_path), tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": ')
    now = path.stat().st_mtime
    assert one.look(now).waiting == {"a.jsonl": UNENDED}
    append(path, b"1}\n")
    assert "a KL needs those of two policies" in one.look(now).waiting["a.jsonl"]
    assert one.look(now).waiting["a.jsonl"].startswith("it has log-probs of none")
