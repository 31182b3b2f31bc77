"""Each way in which a row can be damaged: it is left out, named, and the others are untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.dumps import DumpError, read

GOOD: dict[str, Any] = {
    "log_probs.rollout": [-1.0, -2.0],
    "log_probs.old": [-1.5, -2.5],
    "mask": [1, 1],
    "tokens": [5, 6],
    "token_bytes": [[97], None],
    "text": "a",
    "step": 3,
    "prompt_id": 7,
    "versions": [1, 2],
    "top_ids.old": [[5, 1], [6, 2]],
    "top_log_probs.old": [[-1.5, -9.0], [-2.5, -2.6]],
    "top_k.old": 2,
}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"log_probs.old": [-1.0]}, "log_probs.rollout holds 2 tokens and log_probs.old 1: lists"),
        ({"mask": [1, 1, 1]}, "log_probs.rollout holds 2 tokens and mask 3"),
        ({"top_ids.old": [[5, 1]]}, "log_probs.rollout holds 2 tokens and top_ids.old 1"),
        ({"mask": [1, 2]}, "mask holds 2: a mask is 0 or 1"),
        ({"mask": [1, None]}, "mask holds null: a mask is 0 or 1"),
        ({"mask": None}, "mask is null, where a mask is needed"),
        ({"prompt_id": None}, "prompt_id is null"),
        ({"top_k.old": -1}, "top_k.old holds -1, not the length of a list"),
        (
            {"top_ids.old": [[5], [6, 2]]},
            "top_ids.old and its log-probs list different numbers of ids",
        ),
        ({"top_ids.old": None}, "top_ids.old and its log-probs are not both there"),
        (
            {"top_ids.old": [[*range(1025)], []], "top_log_probs.old": [[-9.0] * 1025, []]},
            "top_ids.old lists more than 1024 ids at one token",
        ),
        ({"token_bytes": [[97], [256]]}, "token_bytes holds numbers that are no bytes (0 to 255)"),
    ],
)
def test_a_damaged_row_is_left_out_and_named(either, damage: dict[str, Any], reason: str):
    dump = read(either([GOOD, GOOD | damage, GOOD]))
    (chunk,) = dump
    assert chunk.rows is not None
    assert chunk.rows.tolist() == [0, 2]
    assert chunk.log_probs["old"].tolist() == [-1.5, -2.5, -1.5, -2.5]
    (damaged,) = dump.damaged
    assert damaged.row == 1
    assert damaged.reason.startswith(reason)
    assert dump.damaged_rows == 1
    assert dump.rows == 3


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            {"log_probs.old": [-1.0, "x"]},
            'log_probs.old holds [-1.0, "x"], not a list of numbers',
        ),
        ({"log_probs.old": -1.0}, "log_probs.old holds -1.0, not a list of numbers"),
        ({"log_probs.old": [[-1.0], [-2.0]]}, "log_probs.old holds [[-1.0], [-2.0]], not a list"),
        ({"log_probs.old": [-1.0, {}]}, "log_probs.old holds [-1.0, {}], not a list of numbers"),
        ({"top_ids.old": [5, 6]}, "top_ids.old holds [5, 6], not a list of lists of numbers"),
        ({"tokens": [1.5, 2]}, "tokens holds 1.5: an id is a whole number"),
        ({"tokens": [1e300, 2]}, "tokens holds 1e+300: an id is a whole number"),
        ({"top_ids.old": [[5.5, 1], [6, 2]]}, "top_ids.old holds ids that are no whole numbers"),
        ({"tokens": [10**400, 2]}, "tokens holds [10000"),
        ({"text": 5}, "text holds 5, not a text"),
        ({"step": "3"}, "step holds '3', not a number"),
        ({"step": 10**30}, "step holds 1000000000000000000000000000000, not a number"),
        ({"prompt_id": 1.5}, "prompt_id holds 1.5, not a whole number or a text"),
        ({"prompt_id": [1, 2]}, "prompt_id holds [1, 2], not a whole number or a text"),
    ],
)
def test_what_only_json_can_get_wrong(plain, damage: dict[str, Any], reason: str):
    dump = read(plain("a.jsonl", [GOOD, GOOD | damage, GOOD]))
    (chunk,) = dump
    assert len(chunk.lengths) == 2
    (damaged,) = dump.damaged
    assert (damaged.place, damaged.row) == ("line 2", 1)
    assert reason in damaged.reason


def test_a_row_of_nulls_holds_nothing(either):
    roles = {name: GOOD[name] for name in ("log_probs.rollout", "log_probs.old")}
    dump = read(either([roles, dict.fromkeys(roles)]))
    assert [len(chunk) for chunk in dump] == [2]
    assert dump.damaged[0].reason == "log_probs.rollout is null, and so is every other list"


def test_a_sequence_mask_must_be_a_mask(either):
    good = {"generation_logprobs": [-1.0], "prev_logprobs": [-2.0], "sample_loss_mask": 1}
    rows = [good, good | {"sample_loss_mask": 0}, good | {"sample_loss_mask": 2}]
    dump = read(either(rows))
    (chunk,) = dump
    np.testing.assert_array_equal(chunk.mask, [True, False])
    assert dump.damaged[0].reason.startswith("sample_loss_mask holds 2")


def test_strict_makes_the_first_damaged_row_fatal(either):
    path = either([GOOD, GOOD | {"mask": [1]}])
    with pytest.raises(
        DumpError, match=r"(row 1|line 2): log_probs.rollout holds 2 tokens and mask 1"
    ):
        list(read(path, strict=True))


def test_a_dump_without_a_usable_row_is_refused(either):
    with pytest.raises(DumpError, match=r"no row of the dump can be used, of 1; the first: .*a\."):
        list(read(either([GOOD | {"mask": [1]}])))


@pytest.mark.parametrize("part", ["prompt_id", "step", "sampling.top_p", "top_k.old"])
def test_a_flag_is_no_number(plain, part: str):
    heads = {"top_ids.old": [[5], [6]], "top_log_probs.old": [[-1.0], [-1.0]], "top_k.old": 1}
    good = GOOD | heads | {"prompt_id": 1, "step": 1, "sampling.top_p": 1}
    dump = read(plain("a.jsonl", [good, good | {part: True}]))
    assert [len(chunk.lengths) for chunk in dump] == [1]
    assert dump.damaged[0].reason.startswith(f"{part} holds True, not ")


def test_ids_in_half_precision_are_ids(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = pa.array([[np.float16(3), None]], type=pa.list_(pa.float16()))
    logs = pa.array([[-1.0, -2.0]])
    table = pa.table({"log_probs.a": logs, "log_probs.b": logs, "tokens": ids})
    pq.write_table(table, tmp_path / "a.parquet")
    (chunk,) = read(tmp_path / "a.parquet")
    assert chunk.tokens is not None
    assert chunk.tokens.tolist() == [3, -1]
