from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.clusters import cluster_keys
from kullback.columns import Columns, Place, TopK, floating, pack
from kullback.estimation.estimate import estimate

PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)


def batch(lengths: list[int], **changes) -> Columns:
    """Tokens numbered 0, 1, 2, …, whose log-prob is minus their number."""
    tokens, sequences = int(sum(lengths)), len(lengths)
    plain = Columns(
        lengths=np.array(lengths, dtype=np.int64),
        mask=np.arange(tokens) % 3 > 0,
        log_probs={"old": -np.arange(tokens, dtype=np.float64)},
        clusters=cluster_keys(np.arange(sequences)),
        entropy={"old": np.arange(tokens) / 8},
        top_k={"old": TopK(np.arange(2 * tokens).reshape(-1, 2), np.zeros((tokens, 2)))},
        exact={"KL(old||current)": np.arange(tokens) / 4},
        tokens=np.arange(tokens),
        token_bytes=[bytes([97 + token]) for token in range(tokens)],
        text=[f"text {sequence}" for sequence in range(sequences)],
        versions=np.arange(tokens) // 2,
        labels={"step": 10 * np.arange(sequences)},
        source="rollouts.parquet",
        rows=100 + np.arange(sequences),
    )
    return replace(plain, **changes)


def test_padded_and_packed_arrays_are_the_same_tokens() -> None:
    padded = pack({"p": [[-1, -2, 0], [-3, 0, 0]]}, mask=[[1, 1, 0], [1, 0, 0]])
    packed = pack({"p": [-1, -2, -3]}, lengths=[2, 1])
    assert padded.lengths.tolist() == [3, 3]
    assert packed.lengths.tolist() == [2, 1]
    kept = padded.log_probs["p"][padded.mask]
    assert kept.tolist() == packed.log_probs["p"][packed.mask].tolist() == [-1, -2, -3]


def test_length_one_means_independent_samples() -> None:
    independent = pack({"p": [-1.0, -2.0, -3.0, -4.0]}, lengths=1)
    assert independent.lengths.tolist() == [1, 1, 1, 1]
    assert len(set(independent.clusters.tolist())) == 4
    assert pack({"p": [-1.0, -2.0, -3.0, -4.0]}, lengths=2).lengths.tolist() == [2, 2]


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4"])
def test_a_mask_is_zero_or_one_of_any_type(dtype: str) -> None:
    mask = np.array([[1, 0]], dtype=dtype)
    assert pack({"p": [[-1.0, -2.0]]}, mask=mask).mask.tolist() == [True, False]


@pytest.mark.parametrize("weight", [0.5, 2, -1, float("nan")])
def test_a_mask_of_other_values_is_refused(weight) -> None:
    with pytest.raises(ValueError, match="other values than 0 and 1: it is no weight"):
        pack({"p": [[-1.0, -2.0]]}, mask=[[1, weight]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"log_probs": {"p": np.zeros((2, 3)), "q": np.zeros((3, 2))}},
            r"p has shape \(2, 3\), q \(3, 2\): give both for the same tokens",
        ),
        (
            {"log_probs": {"p": np.zeros((2, 3))}, "exact": {"KL(p||q)": np.zeros(6)}},
            r"p has shape \(2, 3\), KL\(p\|\|q\) \(6,\)",
        ),
        (
            {"log_probs": {"p": np.zeros((2, 3))}, "mask": np.ones((2, 4))},
            r"the mask has shape \(2, 4\), the log-probs \(2, 3\)",
        ),
        ({"log_probs": {"p": np.zeros(3)}}, "flat log-probs need lengths=: .* or 1 for independ"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": [2, 2]}, "add up to 4, .* are 3 tokens"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": [0, 2, 3]}, "cu_seqlens.*their differences"),
        ({"log_probs": {"p": np.zeros((1, 3))}, "lengths": [2, 1]}, r"a packed row .* its \[0\]"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": 2}, "3 tokens are no whole number of .* 2"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": [4, -1]}, "whole numbers"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": 0}, "lengths|sequences of 0"),
        ({"log_probs": {"p": np.zeros(3)}, "lengths": 1.5}, "lengths|sequences of 1.5"),
        ({"log_probs": {"p": np.zeros((2, 3))}, "lengths": [3, 3]}, "lengths go with flat arrays"),
        ({"log_probs": {"p": np.zeros((1, 2, 3))}}, r"or flat, not \(1, 2, 3\)"),
        ({"log_probs": {"p": np.zeros((2, 3))}, "clusters": [7]}, "clusters has 1 entries for 2"),
        (
            {"log_probs": {"p": np.zeros((2, 3))}, "clusters": [[7], [8]]},
            r"one id per sequence, not an array of shape \(2, 1\)",
        ),
        ({"log_probs": {"p": [["-1"]]}}, "p holds <U2, not numbers"),
        ({"log_probs": {"p": [[True]]}}, "p holds bool, not numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        pack(**arguments)


@pytest.mark.parametrize(
    ("given", "held"),
    [("f2", "f4"), ("f4", "f4"), (">f4", "f4"), ("f8", "f8"), (">f8", "f8"), ("i4", "f8")],
)
def test_log_probs_are_held_in_single_or_double_precision(given: str, held: str) -> None:
    array = floating(np.array([-2, -1], dtype=given), "p")
    assert array.dtype == np.dtype(held)
    assert array.tolist() == [-2, -1]


def test_half_precision_is_widened_before_anything_is_computed() -> None:
    # The difference, −1499.5, is no half-precision number.
    p, q = np.array([[-1500.0]], np.float16), np.array([[-0.5]], np.float16)
    assert estimate(log_p=p, log_q=q).mean == -1499.5


def test_a_place_is_a_file_a_row_and_a_position() -> None:
    columns = batch([2, 0, 3])
    places = [columns.place(token) for token in range(5)]
    assert [(place.row, place.position) for place in places] == [
        (100, 0),
        (100, 1),
        (102, 0),
        (102, 1),
        (102, 2),
    ]
    assert str(places[3]) == "rollouts.parquet, row 102, token 1"
    assert str(Place("", 4, 2)) == "row 4, token 2"


def test_the_context_of_a_token_stays_in_its_sequence() -> None:
    columns = batch([2, 0, 5])
    assert columns.context(4, width=1) == ("d", "e", "f")
    assert columns.context(2) == ("", "c", "defg")
    assert columns.context(6, width=2) == ("ef", "g", "")
    special = batch([3], token_bytes=[b"\xe4\xbd", b"\xa0", None])
    assert special.context(2) == ("你", "", "")
    assert special.context(1) == ("\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}", "")
    assert batch([3], token_bytes=None).context(1) is None


@PROPERTY
@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=6))
def test_outside_are_the_tokens_before_the_first_and_behind_the_last_flag(sequences) -> None:
    flags = np.array([flag for sequence in sequences for flag in sequence], dtype=bool)
    before, behind = batch([len(sequence) for sequence in sequences]).outside(flags)
    assert before.tolist() == [not any(s[: i + 1]) for s in sequences for i in range(len(s))]
    assert behind.tolist() == [not any(s[i:]) for s in sequences for i in range(len(s))]


def test_each_token_knows_its_sequence_and_its_place_in_it() -> None:
    columns = batch([2, 0, 3])
    assert columns.sequence_of_token.tolist() == [0, 0, 2, 2, 2]
    assert columns.position_of_token.tolist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize("chosen", [[4, 0, 2], [1], [], slice(1, 4)])
def test_taken_sequences_keep_all_that_is_known_of_them(chosen) -> None:
    columns = batch([2, 0, 3, 1, 4])
    sequences = np.arange(5)[chosen]
    taken = columns.take(sequences if isinstance(chosen, list) else chosen)
    tokens = [t for s in sequences for t in np.flatnonzero(columns.sequence_of_token == s).tolist()]
    assert taken.lengths.tolist() == columns.lengths[sequences].tolist()
    assert taken.mask.tolist() == [token % 3 > 0 for token in tokens]
    assert taken.log_probs["old"].tolist() == [-token for token in tokens]
    assert taken.entropy["old"].tolist() == [token / 8 for token in tokens]
    assert taken.top_k["old"].ids.tolist() == [[2 * token, 2 * token + 1] for token in tokens]
    assert taken.top_k["old"].log_probs.shape == (len(tokens), 2)
    assert taken.exact["KL(old||current)"].tolist() == [token / 4 for token in tokens]
    assert taken.tokens is not None
    assert taken.versions is not None
    assert taken.tokens.tolist() == tokens
    assert taken.versions.tolist() == [token // 2 for token in tokens]
    assert taken.token_bytes == [bytes([97 + token]) for token in tokens]
    assert taken.text == [f"text {sequence}" for sequence in sequences]
    assert taken.labels["step"].tolist() == [10 * sequence for sequence in sequences]
    assert taken.clusters.tolist() == columns.clusters[sequences].tolist()
    assert taken.source == "rollouts.parquet"
    assert [taken.place(i) for i in range(len(tokens))] == [columns.place(t) for t in tokens]


def test_a_place_in_a_row_of_several_sequences_says_which() -> None:
    columns = batch([2, 1, 2], rows=np.array([7, 7, 8]), within=np.array([0, 1, 0]))
    places = [columns.place(token) for token in range(5)]
    assert str(places[2]) == "rollouts.parquet, row 7, sequence 1, token 0"
    shuffled = [places[i] for i in (3, 1, 4, 0, 2)]
    assert sorted(shuffled, key=lambda place: place.order) == places
    assert columns.take(np.array([2, 1])).place(2) == places[2]


def test_taken_sequences_keep_their_place_where_no_rows_are_named() -> None:
    columns = batch([2, 1, 3], rows=None)
    assert columns.take(np.array([2, 1])).place(0) == columns.place(3)


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("mask", np.ones(4, bool), "mask holds 4 tokens, but the lengths add up to 5"),
        ("log_probs", {"old": np.zeros(6)}, "log_probs of old holds 6 tokens"),
        ("entropy", {"old": np.zeros(6)}, "entropy of old holds 6 tokens"),
        (
            "top_k",
            {"old": TopK(np.zeros((4, 2), int), np.zeros((4, 2)))},
            "top_k of old holds 4 tokens",
        ),
        ("exact", {"KL(a||b)": np.zeros(6)}, r"exact of KL\(a\|\|b\) holds 6 tokens"),
        ("tokens", np.zeros(4), "tokens holds 4 tokens"),
        ("token_bytes", [b""] * 4, "token_bytes holds 4 tokens"),
        ("versions", np.zeros(4), "versions holds 4 tokens"),
        ("clusters", np.zeros(3), "clusters has 3 entries for 2 sequences"),
        ("labels", {"step": np.zeros(3)}, "step has 3 entries for 2 sequences"),
        ("text", ["a"], "text has 1 entries for 2 sequences"),
        ("rows", np.zeros(1), "rows has 1 entries for 2 sequences"),
        ("lengths", np.array([[2, 3]]), "lengths must be a flat array"),
        ("lengths", np.array([6, -1]), "lengths must be a flat array"),
    ],
)
def test_columns_of_different_length_are_refused(name: str, values, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(batch([2, 3]), **{name: values})


def test_an_exact_kl_below_0_is_refused_and_rounding_is_not() -> None:
    logs = {"p": [[-1.0, -2.0]], "q": [[-1.5, -1.0]]}
    with pytest.raises(ValueError, match=r"KL\(p\|\|q\) holds -0.3: a KL is never negative"):
        pack(logs, exact={"KL(p||q)": [[0.1, -0.3]]})
    assert pack(logs, exact={"KL(p||q)": [[-1e-6, float("nan")]]}).exact
    assert pack(logs, exact={"KL(p||q)": [[0.1, -0.3]]}, mask=[[1, 0]]).exact
