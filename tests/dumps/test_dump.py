"""Finding files, telling their format, agreeing on columns, choosing the sampler; and the demo."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from kullback.dumps import Dump, DumpError, demo_path, read
from kullback.estimation.summary import summarize

ROW = {"log_probs.rollout": [-1.0, -2.0], "log_probs.old": [-1.5, -2.5]}


@pytest.fixture
def folder(plain) -> Path:
    for name in ("b.parquet", "a.jsonl"):
        path = plain(name, [ROW])
    (path.parent / "notes.txt").write_text("no dump")
    return path.parent


def test_files_come_from_paths_patterns_and_folders(folder: Path):
    a, b = str(folder / "a.jsonl"), str(folder / "b.parquet")
    assert read(a).files == (a,)
    assert read(folder / "b.parquet").files == (b,)
    assert read(folder).files == (a, b)
    assert read(f"{folder}/*.*l*").files == (a,)
    assert read([b, folder, a]).files == (b, a)
    assert read(folder).format == "kullback JSON lines and Parquet"


def test_patterns_are_relative_to_where_one_stands(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    assert read("*.parquet").files == ("b.parquet",)
    assert read("**/*.jsonl").files == ("a.jsonl",)


def test_a_name_with_a_bracket_is_a_file_before_it_is_a_pattern(plain):
    path = plain("a[1].jsonl", [ROW])
    assert read(path).files == (str(path),)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "an empty name names no file"),
        ("none.parquet", "none.parquet: there is no such file"),
        ("*.npz", "*.npz: there is no such file"),
        ("x**/a", "x**/a"),
        ("empty", "empty holds no .parquet, .arrow"),
        ("notes.txt", "notes.txt begins neither as Parquet (PAR1) nor as JSON lines"),
        ("nothing.jsonl", "nothing.jsonl is empty"),
        ([], "no file is named"),
    ],
)
def test_what_is_no_dump_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
):
    monkeypatch.chdir(folder)
    Path("empty").mkdir()
    Path("nothing.jsonl").touch()
    with pytest.raises(DumpError) as error:
        read(name)
    assert said in str(error.value)


def test_the_first_bytes_tell_the_format_and_not_the_suffix(plain):
    path = plain("a.jsonl", [ROW])
    other = path.rename(path.with_suffix(".parquet"))
    assert read(other).format == "kullback JSON lines"


def test_rows_are_known_from_the_footer_or_after_reading(plain):
    parquet, jsonl = read(plain("a.parquet", [ROW] * 3)), read(plain("a.jsonl", [ROW] * 3))
    assert (parquet.rows, jsonl.rows) == (3, None)
    list(jsonl)
    assert jsonl.rows == 3


def test_a_dump_can_be_read_again_and_counts_damage_anew(plain):
    dump = read(plain("a.jsonl", [ROW, ROW | {"log_probs.old": [-1.0]}]))
    for _ in range(2):
        assert [len(chunk) for chunk in dump] == [2]
        assert dump.damaged_rows == len(dump.damaged) == 1


def test_many_damaged_rows_are_counted_and_the_first_thousand_named(plain):
    dump = read(plain("a.jsonl", [ROW] + [ROW | {"log_probs.old": [-1.0]}] * 1500))
    list(dump)
    assert dump.damaged_rows == 1500
    assert [one.row for one in dump.damaged] == list(range(1, 1001))


def test_a_dump_travels_to_another_process(plain):
    dump = read(plain("a.parquet", [ROW]))
    copy: Dump = pickle.loads(pickle.dumps(dump))
    (chunk,) = copy.chunks(copy.files[0])
    assert chunk.log_probs["old"].tolist() == [-1.5, -2.5]


def test_files_with_other_columns_are_refused(plain):
    paths = [plain("a.jsonl", [ROW]), plain("b.jsonl", [ROW | {"log_probs.new": [-1.0, -1.0]}])]
    with pytest.raises(DumpError) as error:
        read(paths)
    assert str(error.value) == (
        f"{paths[1]} has new in column log_probs.new and {paths[0]} has not: read files with the "
        "same columns together, the others apart"
    )


@pytest.mark.parametrize(
    ("roles", "sampler"),
    [
        (["current", "old", "rollout"], "rollout"),
        (["current", "old"], "old"),
        (["reference", "current"], "current"),
        (["teacher", "student"], "student"),
        (["reference", "mine", "yours"], "mine"),
        (["teacher", "reference"], "teacher"),
    ],
)
def test_the_sampler_is_the_most_likely_role_with_a_reason(plain, roles: list[str], sampler: str):
    dump = read(plain("a.jsonl", [{f"log_probs.{role}": [-1.0] for role in roles}]))
    assert dump.roles == tuple(roles)
    assert dump.sampler.role == sampler
    assert dump.sampler.reason


def test_empty_files_are_no_rows(plain):
    empty = plain("a.parquet", [{"log_probs.a": [-1.0], "log_probs.b": [-1.0]}])
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(empty).slice(0, 0), empty)
    with pytest.raises(
        DumpError, match=r"no row of the dump can be used, of 0; there is none in .*a\.parquet"
    ):
        list(read(empty))


# What the bundled demo must say of itself: role, column and how, in the order of the file.
ROLES = ("rollout", "old", "current", "reference", "strong", "rescored")
EXACT = (
    *("KL(old||reference)", "KL(current||reference)", "KL(reference||old)"),
    *("KL(reference||current)", "KL(reference||strong)", "KL(reference||rescored)"),
    *("KL(strong||reference)", "KL(rescored||old)", "KL(rescored||current)"),
    *("KL(rescored||reference)", "KL(rescored||strong)"),
)
SUSPECT = {7, 49, 67, 80}


def test_the_demo_says_what_it_holds():
    dump = read(demo_path())
    assert dump.format == "kullback Parquet"
    assert dump.unused == {}
    assert dump.sampler == ("rollout", "the engine's own log-probs")
    assert [(guess.role, guess.column, guess.how) for guess in dump.columns] == [
        (role, column, "canonical")
        for role, column in [
            ("tokens", "tokens"),
            ("token_bytes", "token_bytes"),
            ("mask", "mask"),
            *((role, f"log_probs.{role}") for role in ROLES),
            ("entropy of reference", "entropy.reference"),
            ("entropy of rescored", "entropy.rescored"),
            *((name, name) for name in EXACT),
            ("top_k of rollout", "top_ids.rollout"),
            ("top_k of rollout", "top_log_probs.rollout"),
            ("top_k of rollout", "top_k.rollout"),
            ("text", "text"),
            *((name, name) for name in ("step", "prompt_id")),
            *((f"sampling.{name}", f"sampling.{name}") for name in ("temperature", "top_p")),
            *((f"sampling.{name}", f"sampling.{name}") for name in ("top_k", "min_p", "log_probs")),
        ]
    ]


def test_the_demo_holds_real_rollouts_with_their_known_defect():
    dump = read(demo_path())
    (chunk,) = dump
    assert (len(chunk), len(chunk.lengths), len(set(chunk.clusters.tolist()))) == (7632, 128, 64)
    assert chunk.mask.all()
    assert dump.damaged == []
    assert chunk.text is not None
    assert chunk.token_bytes is not None
    pieces = np.split(np.arange(len(chunk)), chunk.ends[:-1])
    bytes_of = [b"".join(chunk.token_bytes[i] or b"" for i in piece) for piece in pieces]
    texts = [(text or "").encode() for text in chunk.text]
    # The engine merged the tokens of one character and kept only the last id.
    wrong = {i for i, (a, b) in enumerate(zip(bytes_of, texts, strict=True)) if a != b}
    assert wrong == SUSPECT


def test_the_heads_of_the_demo_are_the_sampler_s_twenty_largest():
    (chunk,) = read(demo_path())
    head = chunk.top_k["rollout"]
    assert head.ids.shape == (7632, 20)
    assert (np.diff(head.log_probs) <= 0).all()
    assert chunk.tokens is not None
    hit = head.ids == chunk.tokens[:, None]
    logged = chunk.log_probs["rollout"][hit.any(axis=1)]
    np.testing.assert_array_equal(head.log_probs[hit], logged)


def test_labels_are_read_under_their_names_whatever_else_the_columns_are(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {"log_probs.old": [-1.0], "log_probs.current": [-1.5], "prompt_id": 4, "temperature": 0.5,
         "task": "a", "correct": True, "label": 7},
        {"log_probs.old": [-1.0], "log_probs.current": [-1.5], "prompt_id": 5, "temperature": None,
         "task": None, "correct": None, "label": 8},
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ["task", "correct", "label", "temperature", "prompt_id", "task"]
    for path in (tmp_path / "a.parquet", tmp_path / "a.jsonl"):
        dump = read(path, labels=names)
        assert set(dump.labels) == {*names, "sampling.temperature"}
        assert dump.unused == {}
        (chunk,) = dump
        assert chunk.labels["task"].tolist() == ["a", None]
        assert chunk.labels["correct"].tolist() == [True, None]
        assert chunk.labels["label"].tolist() == [7, 8]
        assert chunk.labels["prompt_id"].tolist() == [4, 5]
        for name in ("temperature", "sampling.temperature"):
            assert chunk.labels[name][0] == 0.5
            assert np.isnan(chunk.labels[name][1])
        assert "label" in read(path).unused
        assert read(path).labels == ("prompt_id", "sampling.temperature")


@pytest.mark.parametrize(
    ("name", "said"),
    [("task", "no column 'task' to read as a label: it has"), ("ids", "a list of numbers, but")],
)
def test_a_label_that_cannot_be_one_is_refused(tmp_path, name, said):
    path = tmp_path / "a.jsonl"
    path.write_text('{"log_probs.old": [-1.0], "log_probs.current": [-1.5], "ids": [1, 2]}\n')
    with pytest.raises(DumpError, match=said):
        read(path, labels=[name])


def test_a_row_whose_label_is_no_label_is_damaged(tmp_path):
    path = tmp_path / "a.jsonl"
    good = '{"log_probs.old": [-1.0], "log_probs.current": [-1.5], "task": "a"}\n'
    path.write_text(2 * good + good.replace('"a"', '{"b": 1}'))
    dump = read(path, labels=["task"])
    assert sum(len(chunk.lengths) for chunk in dump) == 2
    assert "task holds {'b': 1}, not a number, a flag or a text" in dump.damaged[0].reason


def test_a_file_counts_once_however_it_is_named(plain, monkeypatch):
    path = plain("a.jsonl", [ROW])
    link = path.with_name("b.jsonl")
    link.symlink_to("a.jsonl")
    monkeypatch.chdir(path.parent)
    assert read([path, "a.jsonl", "./a.jsonl", link]).files == (str(path),)
    assert read(path.parent).files == (str(path),)


def test_hidden_files_are_not_meant(folder: Path):
    draft = folder / ".a.jsonl.0123.tmp"
    draft.write_bytes((folder / "a.jsonl").read_bytes())
    (folder / "._b.parquet").write_bytes(b"resource fork")
    (folder / "notes.txt").unlink()
    both = (str(folder / "a.jsonl"), str(folder / "b.parquet"))
    assert read(folder).files == read(f"{folder}/*").files == both
    assert read(draft).files == (str(draft),)  # unless it is named


def test_links_that_lead_in_a_circle_and_names_too_long_are_one_sentence(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DumpError, match=r"a cannot be read: Too many levels of symbolic links"):
        read(tmp_path / "a")
    with pytest.raises(DumpError, match=r"cannot be read: File name too long"):
        read(tmp_path / ("a" * 300))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "a.jsonl")
    for files in (tmp_path, tmp_path / "a.jsonl"):
        with pytest.raises(DumpError, match=r"a\.jsonl is no regular file"):
            read(files)


LONG = {name: values * 50_000 for name, values in ROW.items()}  # of 100,000 tokens: a chunk each
CHANGES = {
    "appended": lambda path: path.write_bytes(path.read_bytes() * 2),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-2000]),
    "emptied": lambda path: path.write_bytes(b""),
    "other rows": lambda path: path.write_bytes(path.read_bytes().replace(b"-1", b"-9") + b"\n"),
    "deleted": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "replaced": lambda path: (path.unlink(), path.write_text("something else")),
}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_it_was_opened_is_refused(plain, name: str, change: str):
    path = plain(name, [LONG] * 3)
    dump = read(path)
    CHANGES[change](path)
    with pytest.raises(DumpError, match=f"{name} (has changed since it was opened|cannot be read)"):
        list(dump)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_read_gives_no_number(plain, name: str, change: str):
    path = plain(name, [LONG] * 3)

    def changing():
        for i, chunk in enumerate(read(path)):
            yield chunk
            if i == 0:
                CHANGES[change](path)

    with pytest.raises(DumpError, match=f"{name} (has changed since it was opened|cannot be read)"):
        summarize(changing())


def test_no_row_at_all_names_the_file(plain):
    path = plain("a.jsonl", [ROW | {"log_probs.old": [-1.0]}])
    with pytest.raises(DumpError, match=r"of 1; the first: .*a\.jsonl, line 1"):
        list(read(path))


def test_a_global_step_is_the_step_unless_one_is_called_so(tmp_path: Path) -> None:
    row = {"log_probs.old": [-1.0], "log_probs.current": [-1.5], "global_step": 7}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (chunk,) = read(path)
    assert chunk.labels["step"].tolist() == [7]
    path.write_text(json.dumps(row | {"step": 3}) + "\n")
    dump = read(path)
    (chunk,) = dump
    assert chunk.labels["step"].tolist() == [3]
    assert "global_step" in dump.unused
