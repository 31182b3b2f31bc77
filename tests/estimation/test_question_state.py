from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.clusters import cluster_keys
from kullback.columns import Columns, pack
from kullback.estimation import terms
from kullback.estimation.question_state import (
    GROUP_TERMS,
    LAGS,
    ROW,
    QuestionState,
)
from kullback.estimation.terms import PRODUCTS
from kullback.question import Question

PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)
JUNK = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, -9999.0]
ASKED = [Question("p", "q"), Question("p", "q", "s"), Question("p", "q", "s", "p")]
NAN = float("nan")

tokens = st.tuples(st.floats(-30, 0), st.floats(-30, 0), st.floats(-30, 0))
sequences = st.lists(st.tuples(st.integers(0, 2), st.lists(tokens, max_size=4)), max_size=5)


def packed(rows: list[tuple[int, list[tuple[float, float, float]]]], question: Question) -> Columns:
    flat = np.array([token for _, row in rows for token in row]).reshape(-1, 3)
    return pack(
        {role: flat[:, i] for i, role in enumerate("pqs") if role in question.roles},
        lengths=[len(row) for _, row in rows],
        clusters=np.array([cluster for cluster, _ in rows], dtype=np.int64),
    )


def same(a: QuestionState, b: QuestionState) -> None:
    assert a.groups.keys.tolist() == b.groups.keys.tolist()
    assert a.groups.sums == pytest.approx(b.groups.sums, rel=1e-9, abs=1e-9)
    assert a.products == pytest.approx(b.products, rel=1e-9, abs=1e-9)
    assert np.array_equal(a.log_q_over_p.counts, b.log_q_over_p.counts)
    assert a.of_sequences.counts.sum() == b.of_sequences.counts.sum()
    assert a.lags == pytest.approx(b.lags, rel=1e-9, abs=1e-9)
    for name in ("missing", "infinite", "shortest", "longest"):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.weight_max, a.size_k1) == pytest.approx((b.weight_max, b.size_k1), rel=1e-9)
    assert [c.size for c in a.top_k1] == pytest.approx([c.size for c in b.top_k1], rel=1e-9)


@pytest.mark.parametrize("question", ASKED, ids=str)
@PROPERTY
@given(rows=sequences, order=st.randoms(use_true_random=False), junk=st.sampled_from(JUNK))
def test_padding_order_and_junk_change_nothing(question, rows, order, junk: float) -> None:
    plain = packed(rows, question)
    expected = QuestionState.of(plain, question)
    order.shuffle(rows)
    padded = {role: np.full((len(rows), 6), junk) for role in plain.log_probs}
    mask = np.zeros((len(rows), 6))
    for i, (_, row) in enumerate(rows):
        place = slice(6 - len(row), 6) if i % 2 else slice(len(row))
        mask[i, place] = 1
        for j, role in enumerate(plain.log_probs):
            padded[role][i, place] = [token[j] for token in row]
    found = QuestionState.of(
        pack(padded, mask=mask, clusters=np.array([c for c, _ in rows], dtype=np.int64)), question
    )
    same(found, expected)
    assert found.masked == mask.size - expected.tokens


def test_sums_are_grouped_by_cluster_and_means_are_of_sequences() -> None:
    columns = pack(
        {"p": [-1.0, -1, -1, -1, -1, -1], "q": [-2.0, -4, -1, -3, -6, NAN]},
        lengths=[2, 0, 1, 2, 1],
        clusters=[8, 8, 8, 5, 5],
    )
    state = QuestionState.of(columns, Question("p", "q"))
    order = np.argsort(cluster_keys([8, 5]))

    def by_cluster(term: str) -> list[float]:
        return state.by_group(term)[np.argsort(order)].tolist()

    assert by_cluster("sequences") == [2, 1]
    assert by_cluster("tokens") == [3, 2]
    assert by_cluster("k1") == [1 + 3 + 0, 2 + 5]
    assert by_cluster("k2") == [5, 14.5]
    assert by_cluster("mean_of_k1") == [2 + 0, 3.5]
    assert (state.tokens, state.sequences, state.missing) == (5, 3, 1)
    assert (state.shortest, state.longest) == (1, 2)
    assert state.size_k1 == 11
    assert state.total("weight") == state.total("weight_squared") == 5


@pytest.mark.parametrize("question", ASKED, ids=str)
def test_products_are_of_tokens(question: Question) -> None:
    rng = np.random.default_rng(0)
    log_probs = {role: -rng.gamma(1, 1, size=(6, 9)) for role in "pqs"}
    columns = pack(log_probs)
    usable = terms.Usable.of(columns, question)
    (block,) = terms.blocks(columns, question, usable)
    state = QuestionState.of(columns, question)
    for a, b in PRODUCTS:
        expected = (block.rows[terms.INDEX[a]] * block.rows[terms.INDEX[b]]).sum()
        assert state.product(a, b) == pytest.approx(expected, rel=1e-12)
    assert state.weight_max == block.rows[terms.INDEX["weight"]].max()
    assert state.size_k1 == pytest.approx(np.abs(block.rows[terms.INDEX["k1"]]).sum(), rel=1e-12)


def test_many_blocks_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    log_probs = {role: -rng.gamma(1, 1, size=120) for role in "pqs"}
    columns = pack(log_probs, lengths=[50, 0, 1, 9, 60], clusters=[1, 2, 1, 3, 3])
    for question in ASKED:
        whole = QuestionState.of(columns, question)
        monkeypatch.setattr(terms, "BLOCK", 7)
        same(QuestionState.of(columns, question), whole)
        monkeypatch.undo()


def test_lags_compare_p_with_the_q_of_a_neighbor_in_the_same_sequence() -> None:
    rng = np.random.default_rng(2)
    lengths = [4, 1, 0, 9, 2]
    p, q = 3 * rng.normal(size=16), rng.normal(size=16)
    mask = np.ones(16)
    mask[7] = 0
    p[13] = NAN
    state = QuestionState.of(pack({"p": p, "q": q}, lengths=lengths, mask=mask), Question("p", "q"))
    used = (mask == 1) & ~np.isnan(p)
    sequence = np.repeat(np.arange(5), lengths)
    inner = [
        t
        for t in range(1, 15)
        if used[t - 1 : t + 2].all() and len(set(sequence[t - 1 : t + 2])) == 1
    ]
    assert inner == [1, 2, 9, 10, 11]
    for row, lag in enumerate(LAGS):
        differences = np.array([p[t] - q[t + lag] for t in inner])
        squares = differences**2
        cut = np.minimum(squares, 4).sum()
        expected = len(inner), differences.sum(), squares.sum(), cut
        assert state.lags[0, row] == pytest.approx(expected, rel=1e-12)
        differences = np.array([p[t - lag] - q[t] for t in inner])
        assert state.lags[1, row, 1] == pytest.approx(differences.sum(), rel=1e-12)
        assert state.lags[1, row, 2] == pytest.approx((differences**2).sum(), rel=1e-12)


def test_the_correlation_is_of_what_both_logged_cut_at_four_nats() -> None:
    rng = np.random.default_rng(0)
    p, q = -rng.gamma(1.0, 3.0, size=(2, 5, 40))
    q[0] = p[0] - 0.1
    state = QuestionState.of(pack({"p": p, "q": q, "s": q}), Question("p", "q"))
    expected = np.corrcoef(np.maximum(p, -4).ravel(), np.maximum(q, -4).ravel())[0, 1]
    assert state.correlation == pytest.approx(expected, rel=1e-9)
    # Of the sampler with q, whoever p is.
    assert QuestionState.of(
        pack({"p": q, "q": q - 0.1, "s": p}), Question("p", "q", "s")
    ).correlation == pytest.approx(
        np.corrcoef(np.maximum(p, -4).ravel(), np.maximum(q - 0.1, -4).ravel())[0, 1], rel=1e-9
    )
    constant = QuestionState.of(
        pack({"p": [[-1.0, -1.0]], "q": [[-1.0, -2.0]]}), Question("p", "q")
    )
    assert np.isnan(constant.correlation)


def test_tokens_are_counted_as_usable_masked_missing_or_infinite() -> None:
    p = [[-1.0, -1, NAN, -1, -1, -np.inf, -9999]]
    q = [[-1.0, -np.inf, -1, -9999, NAN, -1, -1]]
    state = QuestionState.of(pack({"p": p, "q": q}, mask=[[1, 1, 1, 1, 0, 1, 1]]), ASKED[0])
    assert (state.tokens, state.masked, state.missing, state.infinite) == (1, 1, 3, 2)
    assert state.log_q_over_p.counts.sum() == 1


def test_what_neither_policy_can_say_counts_nothing() -> None:
    """Both are cut by top-p, and a third policy sampled."""
    log_probs = {
        "p": [[-1.0, -1.0, -1.0, -np.inf]],
        "q": [[-1.0, -2.0, -1.0, -np.inf]],
        "s": [[-1.0, -1.0, -1.0, -1.0]],
    }
    state = QuestionState.of(pack(log_probs), Question("p", "q", "s"))
    assert (state.tokens, state.infinite) == (4, 0)
    assert (state.total("k1"), state.total("weight"), state.total("q_over_s")) == (
        1.0,
        3.0,
        pytest.approx(np.exp(-1) - 2),
    )
    assert state.log_q_over_p.counts.sum() == 3
    assert state.lags[:, 1].tolist() == [[1, 1, 1, 1]] * 2


@pytest.mark.parametrize("question", ASKED, ids=str)
@pytest.mark.parametrize("role", "pqs")
@pytest.mark.parametrize("value", [-500.0, -800.0, -1e300])
def test_no_value_of_a_log_prob_is_a_warning(question: Question, role: str, value: float) -> None:
    log_probs = {name: np.array([[-1.0, -2.0], [-2.0, -1.0]]) for name in "pqs"}
    log_probs["q"] = log_probs["q"][:, ::-1].copy()
    log_probs[role][0] = value
    state = QuestionState.of(pack(log_probs), question)
    assert (state + state).tokens == 8


def test_a_batch_without_tokens_is_an_empty_state() -> None:
    for columns in (
        pack({"p": np.zeros(0), "q": np.zeros(0)}, lengths=[]),
        pack({"p": [[-1.0]], "q": [[-1.0]]}, mask=[[0]]),
    ):
        state = QuestionState.of(columns, Question("p", "q"))
        assert (state.tokens, state.sequences, state.shortest, state.longest) == (0, 0, 0, 0)
        assert state.groups.sums.shape == (len(GROUP_TERMS), 0)


def test_two_questions_do_not_add() -> None:
    columns = pack({"p": [[-1.0]], "q": [[-2.0]]})
    one = QuestionState.of(columns, Question("p", "q"))
    for other in (Question("q", "p"), Question("p", "q", level="sequence_sum")):
        with pytest.raises(ValueError, match=r"KL\(p\|\|q\) and KL\(.* are two questions"):
            _ = one + QuestionState.of(columns, other)


def test_a_role_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="s"):
        QuestionState.of(pack({"p": [[-1.0]], "q": [[-2.0]]}), Question("p", "q", "s"))


def test_the_top_tokens_come_with_place_and_text() -> None:
    columns = pack({"p": [-1.0, -1, -1, -1], "q": [-2.0, -1, -9, -0.5]}, lengths=[1, 3])
    words = [b"one", b" two", b" three", b" four"]
    columns = replace(columns, tokens=np.arange(4), token_bytes=words, rows=np.array([3, 9]))
    top = QuestionState.of(columns, Question("p", "q")).top_k1
    assert [c.size for c in top] == [8.0, 1.0, 0.5]
    assert [str(c.place) for c in top] == ["row 9, token 1", "row 3, token 0", "row 9, token 2"]
    assert (top[0].log_p, top[0].log_q, top[0].token) == (-1.0, -9.0, 2)
    assert top[0].text == (" two", " three", " four")


def test_every_term_has_one_row() -> None:
    assert len(ROW) == len(GROUP_TERMS)


@pytest.mark.parametrize(
    ("level", "expected"),
    [("token_mean", [0.75, -1.0]), ("sequence_sum", [1.5, -1.0])],
)
def test_sequences_are_told_by_their_means_or_by_their_sums(level, expected) -> None:
    columns = pack(
        {
            "p": [[-1.0, -1.0], [-2.0, 0.0], [0.0, 0.0]],
            "q": [[-2.0, -1.5], [-1.0, 0.0], [0.0, 0.0]],
        },
        mask=[[1, 1], [1, 0], [0, 0]],
    )
    table = QuestionState.of(columns, Question("p", "q", level=level)).of_sequences
    assert (table.counts.sum(), table.low, table.high) == (2, min(expected), max(expected))
