from __future__ import annotations

import json
import struct
import zlib

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.read import read_log
from kullback.logs.wandb_file import BLOCK


def framed(records: list[bytes], head: bytes) -> bytes:
    """Records in blocks, cut where a block ends, as W&B writes them."""
    data = bytearray(head)
    for record in records:
        kind, rest = 1, record
        while rest or kind == 1:
            left = BLOCK - len(data) % BLOCK
            if left < 7:
                data += bytes(left)
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            code = (2 if rest else 1) if piece is not None and kind == 1 else (3 if rest else 4)
            kind = 0
            check = zlib.crc32(bytes([code]) + piece)
            data += struct.pack("<IHB", check, len(piece), code) + piece
    return bytes(data)


def field(number: int, value: bytes) -> bytes:
    size = len(value)
    length = bytearray()
    while True:
        length.append(size & 0x7F | (0x80 if size > 0x7F else 0))
        size >>= 7
        if not size:
            break
    key = number << 3 | 2
    return (
        (bytes([key]) if key < 128 else bytes([key & 0x7F | 0x80, key >> 7]))
        + bytes(length)
        + value
    )


def history(step: int, **values: object) -> bytes:
    items = b"".join(
        field(1, field(2, name.encode()) + field(16, json.dumps(value).encode()))
        for name, value in ({"_step": step} | values).items()
    )
    return field(2, items)


def test_records_may_go_over_blocks(data, tmp_path):
    head = (data / "run-first.wandb").read_bytes()[:7]
    records = [history(i, kl=i / 8, text="x" * 9000) for i in range(20)]
    path = tmp_path / "run.wandb"
    path.write_bytes(framed(records, head))
    log = read_log(path)
    assert log["kl"].values.tolist() == [i / 8 for i in range(20)]
    assert list(log) == ["kl"]
    path.write_bytes(path.read_bytes()[:-9])
    assert len(read_log(path)["kl"]) == 19
    assert "ends within a record" in read_log(path).notes[0]


def test_numbers_may_have_their_own_types(data, tmp_path):
    head = (data / "run-first.wandb").read_bytes()[:7]
    items = field(1, field(2, b"n") + b"\x28\x05") + field(
        1, field(2, b"kl") + b"\x31" + struct.pack("<d", 0.25)
    )
    (tmp_path / "run.wandb").write_bytes(framed([field(2, items + field(2, b"\x08\x03"))], head))
    log = read_log(tmp_path / "run.wandb")
    assert (log["n"].values.tolist(), log["kl"].values.tolist()) == ([5.0], [0.25])
    assert log["kl"].steps.tolist() == [3.0]


def test_damage_is_found_by_its_checksum(data, tmp_path):
    damaged = bytearray((data / "run-first.wandb").read_bytes())
    damaged[200] ^= 0xFF
    (tmp_path / "run.wandb").write_bytes(damaged)
    with pytest.raises(DumpError, match=r"byte \d+: a record does not fit its checksum"):
        read_log(tmp_path / "run.wandb")


def test_the_step_is_what_was_defined_as_the_step(data, tmp_path):
    """As a trainer of transformers does: ``define_metric("*", step_metric=…)``."""
    head = (data / "run-first.wandb").read_bytes()[:7]
    defined = field(12, field(2, b"*") + field(4, b"train/global_step"))
    rows = [
        history(0, other=1.0),  # before any: rows are counted
        history(1, **{"train/global_step": 0, "profiling/time": 0.5}),
        history(2, **{"train/global_step": 10, "train/kl": 0.25}),
        history(3, other=2.0),  # the last one holds
        history(4, **{"train/global_step": 20, "train/kl": 0.5}),
    ]
    path = tmp_path / "run.wandb"
    path.write_bytes(framed([defined, *rows], head))
    log = read_log(path)
    assert log["train/kl"].steps.tolist() == [10.0, 20.0]
    assert log["other"].steps.tolist() == [0.0, 10.0]
    path.write_bytes(framed(rows, head))
    assert read_log(path)["train/kl"].steps.tolist() == [2.0, 4.0]
