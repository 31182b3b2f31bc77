"""Arrow files and streams: as people write them, cut off, and damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc

from kullback.dumps import Dump, DumpError, read

ROWS = [
    {"log_probs.a": [-1.0 - i, -2.0], "log_probs.b": [-1.5, None], "prompt_id": f"p{i // 2}"}
    for i in range(100)
]
TABLE = pa.Table.from_pylist(ROWS).append_column("reward", pa.array([0.5] * 100))


def written(path: Path, table: pa.Table, form: str, rows: int = 30, **options: Any) -> Path:
    opened = {"file": ipc.new_file, "stream": ipc.new_stream}[form]
    settings = ipc.IpcWriteOptions(**options)
    with opened(path, table.schema, options=settings) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_record_batches_are_rows(tmp_path: Path, form: str, compression: str | None):
    dump = read(written(tmp_path / "a.x", TABLE, form, compression=compression))
    assert (dump.format, dump.rows) == ("kullback Arrow", 100 if form == "file" else None)
    (chunk,) = dump
    assert dump.rows == 100
    assert chunk.log_probs["a"].tolist()[::2] == [-1.0 - i for i in range(100)]
    assert np.isnan(chunk.log_probs["b"][1::2]).all()
    assert chunk.rows is not None
    assert chunk.rows.tolist() == list(range(100))
    assert chunk.labels["prompt_id"].tolist()[:3] == ["p0", "p0", "p1"]


def test_feather_is_an_arrow_file_and_a_folder_holds_them(tmp_path: Path):
    feather.write_feather(TABLE, str(tmp_path / "a.feather"))
    written(tmp_path / "b.arrow", TABLE, "stream")
    assert [len(chunk) for chunk in read(tmp_path)] == [200, 200]


def test_lists_of_one_list_are_unwrapped(tmp_path: Path):
    wrapped = {"generation_logprobs": [[-1.0, -2.0]], "prev_logprobs": [[-1.5, -2.5]]}
    table = pa.Table.from_pylist([wrapped | {"sample_loss_mask": [1]}] * 3)
    dump = read(written(tmp_path / "a.arrow", table, "file"))
    assert dump.format == "NeMo-RL Arrow"
    assert [len(chunk) for chunk in dump] == [6]


def test_text_that_is_not_utf8_is_replaced(tmp_path: Path):
    text = pa.array([b"a\xff"]).view(pa.string())
    table = pa.table({"log_probs.a": [[-1.0]], "log_probs.b": [[-1.0]], "text": text})
    (chunk,) = read(written(tmp_path / "a.arrow", table, "stream"))
    assert chunk.text == ["a\ufffd"]


def test_an_offset_out_of_bounds_is_one_sentence(tmp_path: Path):
    lists = pa.ListArray.from_arrays(pa.array([0, 10**9, 2], pa.int32()), pa.array([-1.0, -2.0]))
    table = pa.table({"log_probs.a": lists, "log_probs.b": lists})
    with pytest.raises(DumpError, match=r"a\.arrow cannot be read as Arrow \("):
        list(read(written(tmp_path / "a.arrow", table, "file")))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_file_that_breaks_off_is_one_sentence(tmp_path: Path, form: str):
    path = written(tmp_path / "a.arrow", TABLE, form)
    whole = path.read_bytes()
    for size in (8, 100, len(whole) // 2, len(whole) - 500):
        path.write_bytes(whole[:size])
        with pytest.raises(DumpError, match=r"a\.arrow cannot be read as Arrow \("):
            list(read(path))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_damage_anywhere_is_a_sentence_or_another_number(tmp_path: Path, form: str):
    path = written(tmp_path / "a.arrow", TABLE.slice(0, 4), form, compression="zstd")
    whole = path.read_bytes()
    refused = 0
    for place in range(8, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            list(read(path))
        except DumpError:
            refused += 1
    assert refused > 20


def test_a_file_that_changed_unnoticed_is_one_sentence(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Dump, "_require_unchanged", lambda self, path: None)
    dump = read(written(tmp_path / "a.arrow", TABLE, "file"))
    for table in (
        TABLE.drop_columns("prompt_id"),
        TABLE.set_column(0, "log_probs.a", [[1.0] * 100]),
    ):
        written(tmp_path / "a.arrow", table, "file")
        with pytest.raises(
            DumpError, match=r"column \S+ is not what it was when the file was opened"
        ):
            list(dump)
