"""Rows to columns: nulls, ids, labels, versions and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.clusters import cluster_keys
from kullback.columns import Columns
from kullback.dumps import read

ROLES = {"log_probs.rollout": [-1.0, -2.0], "log_probs.old": [-1.5, -2.5]}


def only(path: Any, **options: Any) -> Columns:
    (chunk,) = read(path, **options)
    return chunk


def test_a_row_of_everything(either):
    row = ROLES | {
        "mask": [True, False],
        "tokens": [5, 6],
        "token_bytes": [[0xC3], None],
        "text": "é",
        "entropy.old": [0.5, None],
        "KL(rollout||old)": [0.1, 0.2],
        "versions": [3, 4],
        "step": 9,
        "sampling.temperature": 0.7,
        "sampling.log_probs": "raw",
    }
    one = only(either([row]))
    assert one.lengths.tolist() == [2]
    assert one.mask.tolist() == [True, False]
    assert one.tokens is not None
    assert one.tokens.tolist() == [5, 6]
    assert list(one.token_bytes or ()) == [b"\xc3", None]
    assert one.text == ["é"]
    np.testing.assert_array_equal(one.entropy["old"], [0.5, np.nan])
    assert one.exact["KL(rollout||old)"].tolist() == [0.1, 0.2]
    assert one.versions is not None
    assert one.versions.tolist() == [3, 4]
    assert {name: values.tolist() for name, values in one.labels.items()} == {
        "step": [9],
        "sampling.temperature": [0.7],
        "sampling.log_probs": ["raw"],
    }


def test_missing_impossible_and_clamped_log_probs_stay_what_they_are(either):
    rows = [
        {"log_probs.a": [None, -9999.0, float("-inf")], "log_probs.b": [float("nan"), 0.0, -1.0]}
    ]
    one = only(either(rows))
    np.testing.assert_array_equal(one.log_probs["a"], [np.nan, -9999.0, -np.inf])
    np.testing.assert_array_equal(one.log_probs["b"], [np.nan, 0.0, -1.0])


def test_a_null_list_is_missing_entries_in_a_row_whose_length_is_known(either):
    heads = {"top_ids.a": [[1, 2], [3, 4]], "top_log_probs.a": [[-0.1, -3.0], [-0.2, -2.0]]}
    whole = {"log_probs.a": [-3.0, -0.2], "log_probs.b": [-2.0, -3.0], "tokens": [2, 3]}
    whole |= heads | {"token_bytes": [[97], [98]], "versions": [1, 1], "KL(a||b)": [0.1, 0.2]}
    empty = dict.fromkeys(whole) | {"log_probs.a": [-4.0]}
    one = only(either([whole, empty, whole]))
    np.testing.assert_array_equal(one.log_probs["b"], [-2, -3, np.nan, -2, -3])
    np.testing.assert_array_equal(one.exact["KL(a||b)"], [0.1, 0.2, np.nan, 0.1, 0.2])
    assert one.tokens is not None
    assert one.tokens.tolist() == [2, 3, -1, 2, 3]
    assert one.versions is not None
    assert one.versions.tolist() == [1, 1, -1, 1, 1]
    assert list(one.token_bytes or ()) == [b"a", b"b", None, b"a", b"b"]
    assert one.top_k["a"].ids.tolist() == [[1, 2], [3, 4], [-1, -1], [1, 2], [3, 4]]


def test_an_empty_sequence_is_kept(either):
    one = only(either([ROLES, {"log_probs.rollout": [], "log_probs.old": []}]))
    assert one.lengths.tolist() == [2, 0]


def test_one_version_per_sequence_is_repeated(either):
    one = only(either([ROLES | {"versions": 4}, ROLES | {"versions": None}]))
    assert one.versions is not None
    assert one.versions.tolist() == [4, 4, -1, -1]


def test_a_label_that_is_not_known_everywhere_is_nan(either):
    one = only(either([ROLES | {"step": 4}, ROLES | {"step": None}]))
    np.testing.assert_array_equal(one.labels["step"], [4, np.nan])


def test_clusters_are_prompt_ids_of_any_kind(plain):
    ids = [3, "3", 3, -1, 2**63, "x"]
    one = only(plain("a.jsonl", [ROLES | {"prompt_id": one} for one in ids]))
    assert one.cluster_kind == "prompt"
    assert one.clusters[0] == one.clusters[2] == cluster_keys([3])[0]
    assert one.clusters[1] == cluster_keys(["3"])[0]
    assert len(set(one.clusters.tolist())) == 5
    assert one.labels["prompt_id"].tolist() == ids


@pytest.mark.parametrize(
    "prompts",
    [["a", "b", "a"], [[1, 2], [12], [1, 2]], [[{"role": "user", "content": c}] for c in "aba"]],
)
def test_without_prompt_ids_the_prompts_themselves_are_the_clusters(either, prompts: list[Any]):
    one = only(either([ROLES | {"prompt": prompt} for prompt in prompts]))
    assert one.cluster_kind == "prompt"
    assert one.clusters[0] == one.clusters[2] != one.clusters[1]
    assert "prompt_id" not in one.labels


@pytest.mark.parametrize("prompt", ["a", [1, 2]])
def test_sequences_without_a_prompt_are_not_one_cluster(either, prompt: Any):
    dump = read(either([ROLES | {"prompt": prompt}, ROLES | {"prompt": None}]))
    assert [len(chunk.lengths) for chunk in dump] == [1]
    assert dump.damaged[0].reason == "prompt is null"


def test_a_prompt_has_the_same_key_in_either_format(plain):
    rows = [ROLES | {"prompt": [5, 6, 7]}]
    parquet, jsonl = only(plain("a.parquet", rows)), only(plain("a.jsonl", rows))
    assert parquet.clusters.tolist() == jsonl.clusters.tolist()


def test_without_prompts_each_row_of_each_file_is_a_cluster(plain):
    paths = [plain("a.jsonl", [ROLES] * 3), plain("b.jsonl", [ROLES] * 3)]
    chunks = list(read(paths))
    keys = np.concatenate([chunk.clusters for chunk in chunks])
    assert len(set(keys.tolist())) == 6
    assert {chunk.cluster_kind for chunk in chunks} == {"sequence"}
    assert [chunk.source for chunk in chunks] == ["a.jsonl", "b.jsonl"]


def test_a_list_of_the_sampled_token_alone_is_reported_as_no_head(either):
    row = ROLES | {
        "tokens": [5, 6],
        "top_ids.old": [[5], [6]],
        "top_log_probs.old": [[-1.5], [-2.5]],
    }
    dump = read(either([row]))
    (one,) = dump
    assert one.top_k == {}
    assert dump.unused["top_ids.old"].startswith("lists nothing but the sampled token")


def test_without_tokens_the_rank_is_unknown_unless_k_is_stated(either):
    heads = {"top_ids.old": [[5, 6], [6, 5]], "top_log_probs.old": [[-1.5, -1.6], [-0.5, -2.0]]}
    dump = read(either([ROLES | heads]))
    (one,) = dump
    assert one.top_k == {}
    assert "without tokens or top_k" in dump.unused["top_ids.old"]
    assert only(either([ROLES | heads | {"top_k.old": 1}])).top_k["old"].ids.tolist() == [[5], [6]]


def test_ids_may_come_as_floats(either):
    one = only(either([ROLES | {"tokens": [5.0, None]}]))
    assert one.tokens is not None
    assert one.tokens.dtype == np.int64
    assert one.tokens.tolist() == [5, -1]


def test_all_chunks_of_a_file_are_cut_to_the_same_k(either):
    size = 50_000
    first = {"log_probs.a": [-1.0] * size, "log_probs.b": [-2.0] * size, "tokens": [1] * size}
    first |= {"top_ids.a": [[1, 2]] * size, "top_log_probs.a": [[-0.5, -1.5]] * size}
    second = first | {"tokens": [9] * size, "top_ids.a": [[1, 2, 9]] * size}
    second |= {"top_log_probs.a": [[-0.5, -1.5, -4.0]] * size}
    chunks = list(read(either([first, first, second, first])))
    assert [chunk.top_k["a"].ids.shape[1] for chunk in chunks] == [2, 2]
    assert chunks[1].top_k["a"].ids[0].tolist() == [1, 2]
