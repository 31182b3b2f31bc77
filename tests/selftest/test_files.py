from __future__ import annotations

from dataclasses import replace

import numpy as np

from kullback.dumps.errors import DumpError
from kullback.selftest import files as checked


def test_each_format_gives_the_same_numbers():
    lines = checked.files()
    assert [line.name for line in lines] == ["Parquet", "JSON lines"]
    assert {line.verdict for line in lines} == {"passed"}
    assert min(line.numbers["compared"] for line in lines) > 1000


def test_a_format_that_loses_a_bit_fails(monkeypatch):
    right = checked.read

    def rounded(path):
        for columns in right(path):
            near = np.nextafter(columns.log_probs["rollout"], 0.0)
            yield replace(columns, log_probs={**columns.log_probs, "rollout": near})

    monkeypatch.setattr(checked, "read", rounded)
    assert [line.verdict for line in checked.files()] == ["failed", "failed"]


def test_a_folder_that_cannot_be_written_fails_with_its_reason(monkeypatch):
    def full(columns, path):
        raise DumpError("a.parquet cannot be written: No space left on device")

    monkeypatch.setattr(checked, "write", full)
    assert all("No space left on device" in line.says for line in checked.files())
