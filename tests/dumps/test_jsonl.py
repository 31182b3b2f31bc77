"""JSON lines as other people write them: NeMo-RL's and prime-rl's, cut off, garbled, mixed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kullback.dumps import DumpError, jsonl, read
from kullback.dumps.chunks import CHUNK_TOKENS

ROW = {"log_probs.a": [-1.0, -2.0], "log_probs.b": [-1.5, -2.5]}


def lines(path: Path, *texts: str) -> Path:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_nemo_rl_writes_every_value_as_a_list_of_one(plain):
    row = {
        "content": [["user: hi", "assistant: you"]],
        "rewards": [0.5],
        "input_lengths": [3],
        "token_ids": [[11, 12, 13, 0]],
        "token_loss_mask": [[0, 1, 1, 0]],
        "sample_loss_mask": [1.0],
        "advantages": [[0.1, 0.1, 0.1, 0.1]],
        "generation_logprobs": [[0.0, -0.5, -0.25, 0.0]],
        "prev_logprobs": [[0.0, -0.5, -0.5, 0.0]],
        "idx": 0,
    }
    dump = read(plain("train_data_step1.jsonl", [row, row | {"sample_loss_mask": [0.0], "idx": 1}]))
    assert dump.format == "NeMo-RL JSON lines"
    assert dump.sampler.role == "rollout"
    assert {guess.role: guess.column for guess in dump.columns if guess.role != "mask"} == {
        "rollout": "generation_logprobs",
        "old": "prev_logprobs",
        "tokens": "token_ids",
    }
    (chunk,) = dump
    assert chunk.mask.tolist() == [False, True, True, False] + [False] * 4
    assert chunk.log_probs["rollout"].tolist() == [0.0, -0.5, -0.25, 0.0] * 2
    assert chunk.tokens is not None
    assert chunk.tokens.tolist() == [11, 12, 13, 0] * 2


def test_prime_rl_exports_one_sequence_per_line(plain):
    row = {
        "schema_version": 2,
        "step": 7,
        "token_ids": [1, 2, 3],
        "loss_mask": [False, True, True],
        "inference_logprobs": [0.0, -0.5, None],
        "trainer_logprobs": [-11.9, -0.6, -0.7],
        "entropy": [11.9, 0.4, 0.3],
        "env_names": ["x", "x", "x"],
        "temperatures": [1.0, 1.0, 1.0],
    }
    dump = read(plain("rank_0.jsonl", [row]))
    assert dump.format == "prime-rl JSON lines"
    (chunk,) = dump
    np.testing.assert_array_equal(chunk.log_probs["rollout"], [0.0, -0.5, np.nan])
    assert chunk.entropy["current"].tolist() == [11.9, 0.4, 0.3]
    assert chunk.labels["step"].tolist() == [7]
    assert set(dump.unused) == {"schema_version", "env_names", "temperatures"}


def test_garbled_lines_are_named_and_blank_ones_skipped(tmp_path: Path):
    good = json.dumps(ROW)
    texts = [good, "", "[1, 2]", good[:-5], "[" * 100_000, '{"a": "\\ud83d"}', good]
    dump = read(lines(tmp_path / "a.jsonl", *texts))
    (chunk,) = dump
    assert chunk.rows is not None
    assert chunk.rows.tolist() == [0, 6]
    assert [one.place for one in dump.damaged] == ["line 3", "line 4", "line 5", "line 6"]
    reasons = [one.reason for one in dump.damaged]
    assert reasons[0] == "is not a JSON object, one per sequence"
    assert reasons[1] == "is not JSON (Expecting value)"
    assert reasons[2].startswith("is not JSON (")
    assert reasons[3] == "log_probs.a is null, and so is every other list"
    assert dump.rows == 6


def test_half_a_surrogate_pair_in_a_text_is_replaced(tmp_path: Path):
    row = json.dumps(ROW)[:-1] + ', "text": "x\\ud83d", "prompt_id": "\\ud83d"}'
    (chunk,) = read(lines(tmp_path / "a.jsonl", row))
    assert chunk.text == ["x\ufffd"]


def test_a_few_damaged_first_lines_do_not_decide_what_a_column_is(plain):
    bad = ROW | {"mask": "none"}
    dump = read(plain("a.jsonl", [bad, ROW | {"mask": [1, 0]}, ROW | {"mask": [0, 1]}]))
    (chunk,) = dump
    assert chunk.mask.tolist() == [True, False, False, True]
    assert [one.place for one in dump.damaged] == ["line 1"]


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode())
    assert [len(chunk) for chunk in read(path)] == [2]


def test_a_document_of_many_lines_is_no_jsonl(tmp_path: Path):
    path = lines(tmp_path / "a.json", json.dumps(ROW, indent=2))
    with pytest.raises(DumpError, match="none of its first 10 lines is one whole JSON object"):
        read(path)


def test_a_key_that_appears_late_is_reported(plain):
    rows = [ROW] * 20 + [ROW | {"log_probs.c": [-1.0, -1.0]}]
    dump = read(plain("a.jsonl", rows))
    assert [len(chunk) for chunk in dump] == [42]
    assert dump.unused["log_probs.c"] == "first seen after the 16 lines that say what there is"


def test_numbers_written_as_text_are_numbers(plain):
    rows = [ROW, {"log_probs.a": ["-Infinity", "NaN"], "log_probs.b": [-1, -2]}]
    (chunk,) = read(plain("a.jsonl", rows))
    np.testing.assert_array_equal(chunk.log_probs["a"][2:], [-np.inf, np.nan])


def test_chunks_are_those_of_parquet(plain):
    rows = [{"log_probs.a": [-1.0] * n, "log_probs.b": [-2.0] * n} for n in [50_000] * 5 + [0, 7]]
    sizes = [
        [len(chunk) for chunk in read(plain(f"a.{end}", rows))] for end in ("jsonl", "parquet")
    ]
    assert sizes[0] == sizes[1] == [100_000, 100_000, 50_007]
    assert max(sizes[0]) <= CHUNK_TOKENS


def test_a_key_that_stands_twice_is_damage(tmp_path: Path):
    good = json.dumps(ROW)
    twice = good[:-1] + ', "log_probs.a": [-9.0, -9.0]}'
    inside = good[:-1] + ', "reward": {"a": 1, "b": 2, "a": 3}}'
    dump = read(lines(tmp_path / "a.jsonl", good, twice, inside))
    (chunk,) = dump
    assert chunk.log_probs["a"].tolist() == ROW["log_probs.a"]
    assert [one.reason for one in dump.damaged] == ["gives log_probs.a twice", "gives a twice"]


def test_a_flag_is_no_log_prob(plain):
    dump = read(plain("a.jsonl", [ROW, ROW | {"log_probs.b": [-1.0, True]}]))
    assert [len(chunk) for chunk in dump] == [2]
    assert dump.damaged[0].reason == "log_probs.b holds [-1.0, true], not a list of numbers"


def test_one_odd_line_does_not_unwrap_the_batches_of_one(plain):
    good = {"generation_logprobs": [[-1.0]], "prev_logprobs": [[-2.0]], "token_loss_mask": [[0]]}
    dump = read(plain("a.jsonl", [good, good | {"token_loss_mask": 5}, good]))
    (chunk,) = dump
    assert chunk.mask.tolist() == [False, False]
    assert [one.place for one in dump.damaged] == ["line 2"]


@pytest.mark.parametrize("value", [{}, "", {"a": [1]}])
def test_no_list_of_lists_is_one_by_being_iterable(plain, value):
    good = ROW | {"token_bytes": [[1], [2]]}
    empty = {"log_probs.a": [], "log_probs.b": [], "token_bytes": value}
    dump = read(plain("a.jsonl", [good, empty]))
    assert [len(chunk) for chunk in dump] == [2]
    assert dump.damaged_rows == 1


def test_a_long_text_is_a_text_and_no_sentence(plain):
    long = "x" * 10**7
    dump = read(plain("a.jsonl", [ROW | {"text": long}, ROW | {"log_probs.b": long}]))
    (chunk,) = dump
    assert chunk.text == [long]
    assert len(dump.damaged[0].reason) < 100


def test_columns_that_come_late_are_not_collected_without_end(plain):
    rows = [ROW] * 16 + [ROW | {f"key {i}": 1} for i in range(3000)]
    dump = read(plain("a.jsonl", rows))
    assert sum(len(chunk) for chunk in dump) == 2 * len(rows)
    assert len(dump.unused) <= jsonl.LATE_AT_MOST
