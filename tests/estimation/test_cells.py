"""Cells: sums that add up to the whole, estimates of what they say, marks where they cannot."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kullback.clusters import cluster_keys
from kullback.columns import Columns, pack
from kullback.estimation.cells import AxisState, Row, cell_terms, split
from kullback.estimation.question_state import QuestionState
from kullback.estimation.terms import INDEX, Usable, blocks
from kullback.formulas.categorical import log_softmax
from kullback.question import Question
from kullback.worlds import Tabular, three_tokens

AXES = ("position", "step", "staleness", "length", "task", "reward")
QUESTIONS = [
    Question("p", "q"),
    Question("p", "q", level="sequence_sum"),
    Question("p", "q", level="sequence_mean"),
    Question("p", "q", "s"),
    Question("p", "q", "s", "p", "sequence_sum"),
]


def a_dump(sequences: int = 300, clusters: int = 60) -> Columns:
    """Uneven sequences with gaps, infinities, exact KLs and every kind of label."""
    rng = np.random.default_rng(sequences)
    lengths = rng.integers(0, 40, size=sequences)
    tokens = int(lengths.sum())
    log_probs = {role: -rng.gamma(0.5, 2.0, size=tokens) for role in "pqs"}
    log_probs["p"][rng.random(tokens) < 0.03] = np.nan
    log_probs["q"][rng.random(tokens) < 0.02] = -np.inf
    packed = pack(
        log_probs,
        mask=rng.random(tokens) < 0.9,
        lengths=lengths,
        clusters=rng.integers(0, clusters, size=sequences),
        exact={"KL(p||q)": rng.random(tokens)},
    )
    reward = rng.normal(size=sequences)
    reward[rng.random(sequences) < 0.1] = np.nan
    task = rng.choice(np.array(["code", "math", None]), size=sequences)
    labels = {"step": 200 + np.arange(sequences) // 2, "reward": reward, "task": task}
    return replace(packed, versions=rng.integers(0, 200, size=tokens), labels=labels)


def one(columns: Columns, question: Question, axis: str) -> AxisState:
    return split(columns, [question], [axis])[0][question][axis]


def shards(columns: Columns, seed: int) -> list[Columns]:
    part = np.random.default_rng(seed).integers(0, 9, size=len(columns.lengths))
    return [columns.take(np.flatnonzero(part == i)) for i in range(10)]  # the last is empty


def merged(parts: list[Any], seed: int) -> Any:
    order, parts = random.Random(seed), list(parts)
    order.shuffle(parts)
    while len(parts) > 1:
        i = order.randrange(len(parts) - 1)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0]


def sizes(columns: Columns, question: Question) -> np.ndarray:
    """Σ|x| of every term, against which rounding is measured."""
    usable = Usable.of(columns, question)
    return sum(np.abs(b.rows).sum(axis=1) for b in blocks(columns, question, usable))  # type: ignore[return-value]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_cells_add_up_to_the_question(question: Question) -> None:
    columns = a_dump()
    whole, size = QuestionState.of(columns, question), sizes(columns, question)
    for axis, state in split(columns, [question], AXES)[0][question].items():
        cells = list(state.cells.values())
        assert len(cells) > 2
        assert sum(cell.missing for cell in cells) == whole.missing > 0
        assert sum(cell.infinite for cell in cells) == whole.infinite > 0
        for row, term in enumerate(cell_terms(state.question)):
            if axis in ("position", "staleness") and term == "sequences":
                continue  # a sequence is in several cells
            total = sum(cell.groups.sums[row].sum() for cell in cells)
            room = 1e-12 * size[INDEX[term.removeprefix("mean_of_")]] if term in INDEX else 1e-9
            assert abs(total - whole.total(term)) <= room, (axis, term)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("axis", AXES)
def test_any_grouping_of_shards_is_one_pass(question: Question, axis: str) -> None:
    columns = a_dump()
    whole, size = one(columns, question, axis), sizes(columns, question)
    for seed in range(2):
        state = merged([one(c, question, axis) for c in shards(columns, seed)], seed)
        assert (state.width, state.whole) == (whole.width, whole.whole)
        assert list(state.cells) == list(whole.cells)
        for key, cell in state.cells.items():
            other = whole.cells[key]
            assert np.array_equal(cell.groups.keys, other.groups.keys)
            assert (cell.missing, cell.infinite) == (other.missing, other.infinite)
            assert (cell.shortest, cell.longest) == (other.shortest, other.longest)
            assert cell.groups.sums == pytest.approx(
                other.groups.sums, rel=0, abs=1e-12 * size.max()
            )


def test_a_column_of_many_numbers_goes_by_powers_of_two_of_one_width():
    columns = a_dump()
    step, reward = (one(columns, QUESTIONS[0], axis) for axis in ("step", "reward"))
    assert (step.width, step.whole, len(step.cells)) == (2, True, 38)
    assert [row.name for row in step.rows()][:2] == ["200–203", "204–207"]
    assert (step.rows()[0].low, step.rows()[0].high) == (200, 203)
    assert (reward.width, reward.whole) == (-3, False)
    names = [row.name for row in reward.rows()]
    assert "[-0.125, 0)" in names
    assert "[0.5, 0.625)" in names
    assert names[-1] is None  # not logged
    few = one(columns.take(slice(0, 20)), QUESTIONS[0], "reward")
    assert few.width is None
    assert few.rows()[0].low == few.rows()[0].high == few.rows()[0].low


def test_below_zero_whole_bins_keep_their_minus_apart():
    columns = pack({"p": np.zeros((70, 1)), "q": np.zeros((70, 1))})
    state = one(replace(columns, labels={"x": np.arange(70) - 35}), Question("p", "q"), "x")
    assert [row.name for row in state.rows()][:2] == ["-36 … -35", "-34 … -33"]


def test_numbers_that_six_digits_do_not_tell_apart_are_spelled_out():
    columns = pack({"p": np.zeros((2, 1)), "q": np.zeros((2, 1))})
    state = one(
        replace(columns, labels={"x": np.array([0.1, 0.1 + 1e-9])}), Question("p", "q"), "x"
    )
    assert [row.name for row in state.rows()] == ["0.1", "0.100000001"]


def test_sides_that_do_not_fit_are_refused():
    columns, question = a_dump(), QUESTIONS[0]
    position, step = (one(columns, question, axis) for axis in ("position", "step"))
    with pytest.raises(ValueError, match="different questions or axes"):
        _ = position + step
    texts = replace(columns, labels={"step": np.array(["a"] * len(columns.lengths))})
    with pytest.raises(ValueError, match="by step: it holds numbers in some rows and texts"):
        _ = step + one(texts, question, "step")
    names = [np.array([f"{side}{i % 40}" for i in range(len(columns.lengths))]) for side in "ab"]
    a, b = (one(replace(columns, labels={"task": n}), question, "task") for n in names)
    with pytest.raises(ValueError, match="by task: it holds more than 64"):
        _ = a + b


def test_a_cell_of_one_cluster_has_a_mean_and_no_interval():
    columns = replace(a_dump(), labels={"task": np.array(["a"] + ["b"] * 299)})
    columns = columns.take(np.flatnonzero(columns.lengths > 0))
    row = one(columns, Question("s", "p"), "task").rows()[0]
    found = row.estimates["k1"]
    assert (row.name, row.clusters, row.sequences) == ("a", 1, 1)
    assert np.isfinite(found.mean)
    assert np.isnan([found.low, found.high, found.standard_error]).all()
    assert found.reason == "one effective cluster: no error can be told from fewer than two"


def test_a_cell_without_a_usable_token_says_so():
    columns = pack({"p": [[np.nan, -1.0]], "q": [[-1.0, -1.0]]})
    first, second = one(columns, Question("p", "q"), "position").rows()
    assert (first.tokens, first.missing, first.clusters) == (0, 1, 0)
    assert first.estimates["k1"].reason == "no token has both log-probs"
    assert (second.tokens, second.estimates["k1"].mean) == (1, 0.0)


@pytest.mark.parametrize("level", ["token_mean", "sequence_sum", "sequence_mean"])
def test_parts_of_sequences_are_answered_per_token_and_whole_ones_as_asked(level):
    found, _ = split(a_dump(), [Question("p", "q", level=level)], AXES)
    for axis, state in found[Question("p", "q", level=level)].items():
        by_token = axis in ("position", "staleness")
        assert state.question.level == ("token_mean" if by_token else level)


def test_an_infinite_token_leaves_the_other_cells_their_numbers():
    columns = pack({"p": [[-1.0, -1.0]] * 3, "q": [[-1.0, -np.inf]] + [[-1.5, -1.5]] * 2})
    first, second = one(columns, Question("p", "q"), "position").rows()
    assert first.estimates["k1"].mean == pytest.approx(1 / 3)
    assert second.estimates["k1"].reason == "infinite: 1 tokens outside a support"


def test_a_gap_spoils_every_cell_where_weights_of_prefixes_run_through_it():
    columns = pack(
        {"p": [[np.nan, -1.0]] + [[-1.0, -1.0]] * 2, "q": [[-1.0] * 2] * 3, "s": [[-1.0] * 2] * 3}
    )
    rows = one(columns, Question("p", "q", "s", "p"), "position").rows()
    assert [row.missing for row in rows] == [1, 0]
    for row in rows:
        assert row.estimates["k1"].reason == (
            "1 missing log-probs break the weights of the prefixes behind them"
        )


# Worlds whose truth in each cell is a sum over all sequences.

THIRD = [
    Question("current", "reference"),
    Question("old", "reference", "current"),
    Question("old", "reference", "current", "old"),
]


def by_position(world: Tabular, question: Question) -> list[float]:
    """KL per token at positions 0, 1 and 2–3, over the prefixes in question."""
    along = world.by_context(world.kl(question.p, question.q))
    alive = world.tree.alive.astype(float)
    return [
        world.mean(along[:, at].sum(axis=1), by=question.prefixes)
        / world.mean(alive[:, at].sum(axis=1), by=question.prefixes)
        for at in ([0], [1], [2])
    ]


def assert_near(rows: list[Row], truth: list[float], method: str) -> None:
    """Within five standard errors; exactly, where nothing varies."""
    for row, true in zip(rows, truth, strict=True):
        found = row.estimates[method]
        assert abs(found.mean - true) <= 5 * found.standard_error + 1e-12, row.name


@pytest.mark.parametrize("question", THIRD, ids=str)
@pytest.mark.parametrize("method", ["k1", "k3"])
def test_by_position_an_honest_sampler_finds_the_truth_of_every_cell(question, method):
    world = replace(three_tokens(ends=True), sequences=4000)
    rows = one(world.sample(np.random.default_rng(3)), question, "position").rows()
    assert [row.name for row in rows] == ["0", "1", "2–3"]
    assert rows[0].sequences == 4000
    assert_near(rows, by_position(world, question), method)
    assert all(row.estimates[method].marks == () for row in rows)


def only_the_end_differs() -> Tabular:
    """Two tokens, the second ends: 0.3 against 0.15, so that every prefix has the same KL."""
    rates = {"rollout": 0.3, "reference": 0.15}
    tables = {
        role: log_softmax(np.tile(np.log([1 - end, end]), (12, 1))) for role, end in rates.items()
    }
    return Tabular(tables, sampler="rollout", max_length=12, eos=1, sequences=6000)


def test_by_length_the_same_sampler_is_biased_for_ever_and_the_mark_says_so():
    world, question = only_the_end_differs(), Question("rollout", "reference")
    truth = world.exact(question)
    columns = world.sample(np.random.default_rng(0), exact=True)
    found = split(columns, [question], ["position", "length"])[0][question]
    plain, biased = found["position"].rows(), found["length"].rows()
    assert_near(plain, [truth] * len(plain), "k1")
    assert not any("selected-on-outcome" in row.estimates["k1"].marks for row in plain)
    # E[k1 | length n] is exact: n − 1 tokens that go on, one that ends (but for the longest).
    short = next(row for row in biased if row.name == "1")
    assert short.estimates["k1"].mean == pytest.approx(np.log(0.3 / 0.15))
    medium = next(row for row in biased if row.name == "4–7")
    assert abs(medium.estimates["k1"].mean - truth) > 5 * medium.estimates["k1"].standard_error
    for row in biased:
        assert "selected-on-outcome" in row.estimates["k1"].marks
        assert "selected-on-outcome" in row.estimates["k3"].marks
        assert "selected-on-outcome" not in row.estimates["exact"].marks
        assert row.estimates["exact"].mean == pytest.approx(truth)


def test_every_sequence_once_gives_the_sums_of_the_tree():
    world, question = three_tokens(ends=True), Question("current", "reference")
    alive = world.tree.alive
    logs = {role: world.by_token(role) for role in ("current", "reference")}
    columns = Columns(
        lengths=world.lengths,
        mask=np.ones(int(alive.sum()), dtype=bool),
        log_probs={role: values[alive] for role, values in logs.items()},
        clusters=cluster_keys(np.arange(len(alive))),
    )
    k1 = np.where(alive, logs["current"] - logs["reference"], 0.0)
    rows = one(columns, question, "position").rows()
    means = [k1[:, at].sum() / alive[:, at].sum() for at in range(3)]
    assert [row.estimates["k1"].mean for row in rows] == pytest.approx(means, rel=1e-13)
    rows = one(columns, replace(question, level="sequence_sum"), "length").rows()
    lengths = [world.lengths == 1, world.lengths >= 2]
    means = [k1[chosen].sum() / chosen.sum() for chosen in lengths]
    assert [row.estimates["k1"].mean for row in rows] == pytest.approx(means, rel=1e-13)
