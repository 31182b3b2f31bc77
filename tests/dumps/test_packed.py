"""Packed rows: how they are cut, where their tokens stand, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.dumps import read

ROW: dict[str, Any] = {
    "log_probs.rollout": [-1.0, -2.0, -3.0],
    "log_probs.old": [-1.5, -2.5, -3.5],
    "lengths": [2, 0, 1],
}


def test_sequences_are_placed_by_row_and_by_their_number_in_it(either):
    dump = read(either([ROW, ROW]))
    assert dump.format.endswith(", packed rows")
    assert dump.rows is None
    (chunk,) = dump
    assert dump.rows == 6
    assert chunk.lengths.tolist() == [2, 0, 1, 2, 0, 1]
    assert str(chunk.place(2)).endswith("row 0, sequence 2, token 0")
    assert str(chunk.place(4)).endswith("row 1, sequence 0, token 1")
    assert len(set(chunk.clusters.tolist())) == 6
    taken = chunk.take(np.array([3, 2]))
    assert str(taken.place(0)).endswith("row 1, sequence 0, token 0")


def test_a_value_may_hold_for_all_of_a_row_or_be_missing(either):
    row = ROW | {"step": 4, "prompt_id": 9, "versions": 3, "text": ["a", None, "c"]}
    row |= {"sampling.temperature": 0.5, "entropy.old": None}
    second = row | {"text": None, "step": None, "log_probs.old": None}
    second |= {"entropy.old": [0.1, 0.2, 0.3]}
    (chunk,) = read(either([row, second]))
    assert chunk.text == ["a", None, "c", None, None, None]
    np.testing.assert_array_equal(chunk.labels["step"], [4] * 3 + [np.nan] * 3)
    assert chunk.labels["prompt_id"].tolist() == [9] * 6
    assert chunk.versions is not None
    assert chunk.versions.tolist() == [3] * 6
    np.testing.assert_array_equal(chunk.log_probs["old"][3:], [np.nan] * 3)
    np.testing.assert_array_equal(chunk.entropy["old"], [np.nan] * 3 + [0.1, 0.2, 0.3])


def test_prompts_of_a_row_are_clusters(either):
    (chunk,) = read(either([ROW | {"prompt": [[1, 2], [12], [1, 2]]}, ROW | {"prompt": None}]))
    assert chunk.cluster_kind == "prompt"
    assert chunk.clusters[0] == chunk.clusters[2] != chunk.clusters[1]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"lengths": [2, 2]}, "log_probs.rollout holds 3 tokens, but the lengths add up to 4"),
        ({"lengths": [4, -1]}, "lengths gives a sequence -1 tokens"),
        ({"lengths": [1.5, 1.5]}, "lengths holds something that is no whole number"),
        ({"lengths": None}, "lengths is null"),
        ({"log_probs.old": [-1.0]}, "log_probs.old holds 1 tokens, but the lengths add up to 3"),
        ({"text": ["a"]}, "text holds 1 entries for 3 sequences"),
    ],
)
def test_a_row_that_does_not_fit_is_damaged_as_a_whole(either, damage, reason: str):
    good = ROW | {"text": ["a", "b", "c"]}
    dump = read(either([good, good | damage, good]))
    (chunk,) = dump
    assert chunk.rows is not None
    assert chunk.rows.tolist() == [0, 0, 0, 2, 2, 2]
    (damaged,) = dump.damaged
    assert damaged.reason == reason
    assert damaged.place in ("row 1", "line 2")


def test_one_damaged_sequence_leaves_the_others(either):
    dump = read(either([ROW, ROW | {"mask": [1, 1, 2]}, ROW | {"mask": [1, 1, 1]}]))
    assert sum(len(chunk.lengths) for chunk in dump) == 2 + 3
    places = [one.place for one in dump.damaged]
    assert places[-1] in ("row 1, sequence 2", "line 2, sequence 2")


@pytest.mark.parametrize("cuts", [[1, 2, 3], [0, 2, 1, 3], []])
def test_running_sums_begin_with_nothing_and_do_not_fall(either, cuts: list[int]):
    row = {name: one for name, one in ROW.items() if name != "lengths"}
    dump = read(either([row | {"cu_seqlens": [0, 2, 2, 3]}, row | {"cu_seqlens": cuts}]))
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2, 0, 1]
    assert "cu_seqlens" in dump.damaged[0].reason


def test_of_two_ways_to_cut_the_lengths_are_taken(either):
    dump = read(either([ROW | {"cu_seqlens": [0, 1, 2, 3]}]))
    (chunk,) = dump
    assert chunk.lengths.tolist() == [2, 0, 1]
    assert dump.unused == {"cu_seqlens": "the lengths are taken from lengths"}


def test_a_single_text_is_not_the_text_of_each(plain):
    good = ROW | {"text": ["a", "b", "c"]}
    dump = read(plain("a.jsonl", [good, ROW | {"text": "abc"}]))
    list(dump)
    assert dump.damaged[0].reason == "text holds 'abc', not a list with one entry per sequence"


def test_packed_and_plain_files_are_one_dump(plain):
    plain_row = {name: ROW[name] for name in ("log_probs.rollout", "log_probs.old")}
    dump = read([plain("a.jsonl", [ROW]), plain("b.parquet", [plain_row])])
    assert dump.format == "kullback JSON lines, packed rows and Parquet"
    assert [chunk.lengths.tolist() for chunk in dump] == [[2, 0, 1], [3]]
