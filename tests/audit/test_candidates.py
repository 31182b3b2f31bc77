from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.audit.candidates import LEVELS, METHODS, Candidate, Tokens, candidates, counted

GRID = {"p": [[-1.0, -2.0, 0.0], [-0.5, 0.0, 0.0]], "q": [[-1.5, -1.0, 0.0], [-0.25, 0.0, 0.0]]}
MASK = [[1, 1, 0], [1, 0, 0]]


def valued(tokens: Tokens) -> dict[Candidate, float]:
    return {one.candidate: one.value for one in candidates(tokens)}


def test_each_level_of_k1_by_hand():
    found = valued(counted(kb.pack(GRID, mask=MASK), [1, 1]))
    told = {level: found[Candidate("k1", "p", "q", level)] for level in LEVELS[:-1]}
    assert told == pytest.approx(
        {
            "token_mean": -0.75 / 3,
            "sequence_sum": -0.75 / 2,
            "sequence_mean": (-0.25 - 0.25) / 2,
            "sum": -0.75,
            "padded_mean": -0.75 / 6,
            "sum over the width": -0.75 / 3,
            "mean of micro-batches": (-0.25 - 0.25) / 2,
        }
    )


def test_each_method_of_one_token_by_hand():
    found = valued(counted(kb.pack({"p": [[0.0]], "q": [[np.log(0.5)]]})))
    told = {name: found[Candidate(name, "p", "q", "token_mean")] for name in METHODS}
    log2 = np.log(2)
    assert told == pytest.approx(
        {
            "k1": log2,
            "k2": log2**2 / 2,
            "k3": 0.5 - 1 + log2,
            "|log r|": log2,
            "r log r - (r - 1)": -0.5 * log2 + 0.5,
            "r": 0.5,
            "k3 of the ratio": np.exp(0.5) - 1 - 0.5,
        }
    )


def test_weights_by_hand():
    logs = {"p": [[-1.0, -2.0]], "q": [[-1.5, -1.0]], "s": [[-1.25, -1.5]]}
    found = valued(counted(kb.pack(logs)))
    k1, log_w = np.array([0.5, -1.0]), np.array([0.25, -0.5])
    by_token = found[Candidate("k1", "p", "q", "token_mean", "p/s")]
    by_sequence = found[Candidate("k1", "p", "q", "token_mean", "p/s by sequence")]
    assert by_token == pytest.approx(np.mean(np.exp(log_w) * k1))
    assert by_sequence == pytest.approx(np.exp(log_w.mean()) * k1.mean())


def test_clamps_are_there_where_they_bind():
    far = valued(counted(kb.pack({"p": [[-30.0, -1.0]], "q": [[-1.0, -1.5]]})))
    clamps = {one.clamp for one in far if (one.method, one.p, one.weight) == ("k3", "p", "")}
    assert clamps == {"", "log-ratio at 20", "term at 10", "log-ratio at 20, term at 10"}
    held = far[Candidate("k3", "p", "q", "sum", clamp="term at 10")]
    assert held == pytest.approx(10 + np.exp(-0.5) - 0.5)
    near = valued(counted(kb.pack(GRID, mask=MASK)))
    assert {one.clamp for one in near} == {""}


def test_a_clamp_behind_the_weight_is_another_number():
    logs = {"p": [[-4.0, -1.0]], "q": [[-1.0, -1.5]], "s": [[-4.5, -1.0]]}
    found = valued(counted(kb.pack(logs)))
    before = found[Candidate("k3", "p", "q", "sum", "p/s", "term at 10")]
    behind = found[Candidate("k3", "p", "q", "sum", "p/s", "weighted term at 10")]
    rest = np.exp(-0.5) - 0.5
    assert before == pytest.approx(np.exp(0.5) * 10 + rest)
    assert behind == pytest.approx(10 + rest)


def test_formulas_of_whole_sequences():
    found = valued(counted(kb.pack(GRID, mask=MASK)))
    sums = found[Candidate("k3", "p", "q", LEVELS[-1], unit="sequence")]
    averages = found[Candidate("k3", "p", "q", LEVELS[-1], unit="average")]
    assert sums == pytest.approx(np.mean(kb.k3(np.array([0.5, 0.25]))))
    assert averages == pytest.approx(np.mean(kb.k3(np.array([0.25, 0.25]))))


def test_an_exact_column_is_a_candidate():
    batch = kb.pack({"p": [[-1.0, -2.0]]}, exact={"KL(p||q)": [[0.1, 0.3]]})
    assert valued(counted(batch))[Candidate("exact", "p", "q", "token_mean")] == pytest.approx(0.2)


def test_what_is_not_finite_is_left_out():
    found = valued(counted(kb.pack({"p": [[-1.0, -800.0]], "q": [[-1.0, -np.inf]]})))
    assert all(np.isfinite(value) for value in found.values())


def test_sequences_without_a_token_are_not_counted_by_sequence():
    logs = {"p": [[-1.0, -2.0], [0.0, 0.0]], "q": [[-1.5, -1.0], [0.0, 0.0]]}
    found = valued(counted(kb.pack(logs, mask=[[1, 1], [0, 0]])))
    assert found[Candidate("k1", "p", "q", "sequence_sum")] == pytest.approx(-0.5)
    assert found[Candidate("k1", "p", "q", "padded_mean")] == pytest.approx(-0.5 / 4)


@pytest.mark.parametrize(
    ("given", "microbatches", "told"),
    [
        ({"mask": [[0, 0, 0], [0, 0, 0]]}, None, "no token counts"),
        ({"mask": MASK}, 3, "2 sequences are not 3 equal micro-batches"),
        ({"mask": MASK}, 0, "2 sequences are not 0 equal micro-batches"),
        ({"mask": MASK}, [1, 2], r"micro-batches of \[1, 2\] are not 2 sequences"),
        ({"mask": MASK}, [2, 0], r"micro-batches of \[2, 0\] are not 2 sequences"),
    ],
)
def test_what_cannot_be_counted_is_refused(given, microbatches, told):
    with pytest.raises(ValueError, match=told):
        counted(kb.pack(GRID, **given), microbatches)


@pytest.mark.parametrize("missing", [np.nan, -9999.0])
def test_a_missing_log_prob_is_refused(missing):
    with pytest.raises(ValueError, match="log-probs of p are missing at 1 of 2 tokens"):
        counted(kb.pack({"p": [[missing, -1.0]], "q": [[-1.0, -1.0]]}))
