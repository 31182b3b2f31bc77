from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from kullback.columns import Columns, TopK, pack
from kullback.estimation.summary import Summary, summarize
from kullback.question import Question

ROLES = ("rollout", "old", "current", "reference")


def batch(seed: int, sequences: int = 12, longest: int = 30) -> Columns:
    """Uneven sequences of four roles with everything that a dump can log."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, size=sequences)
    tokens = int(lengths.sum())
    log_probs = {role: -rng.gamma(1, 1, size=tokens).astype(np.float32) for role in ROLES}
    log_probs["reference"][rng.random(tokens) < 0.02] = np.nan
    plain = pack(
        log_probs,
        mask=rng.random(tokens) < 0.9,
        lengths=lengths,
        clusters=rng.integers(0, 40, size=sequences),
        exact={"KL(old||current)": rng.random(tokens)},
    )
    return replace(
        plain,
        entropy={"rollout": rng.gamma(1, 1, size=tokens)},
        top_k={"rollout": TopK(rng.integers(0, 9, (tokens, 2)), np.full((tokens, 2), -2.0))},
        tokens=rng.integers(0, 9, size=tokens),
        token_bytes=[b"abcdefghi"[i : i + 1] for i in rng.integers(0, 9, size=tokens)],
        text=["abc"] * sequences,
        source=f"step {seed}",
        rows=np.arange(sequences),
    )


def assert_identical(a: Any, b: Any) -> None:
    """To the last bit, everywhere."""
    assert type(a) is type(b)
    if is_dataclass(a):
        for field in fields(a):
            assert_identical(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_identical(a[key], b[key])
    else:
        assert a == b


BATCHES = [batch(seed, sequences=1 + 7 * seed % 23) for seed in range(20)]


@cache
def in_one_thread() -> Summary:
    return summarize(BATCHES)


@pytest.mark.parametrize("jobs", [2, 5])
def test_the_number_of_workers_changes_no_bit(jobs: int) -> None:
    assert_identical(summarize(BATCHES, jobs=jobs), in_one_thread())


def test_a_summary_holds_every_question_role_and_sequence() -> None:
    summary = in_one_thread()
    assert [str(question) for question in summary.questions] == [
        "KL(rollout||old)",
        "KL(rollout||current)",
        "KL(rollout||reference)",
        "KL(current||reference) ~ rollout",
    ]
    assert list(summary.columns) == list(ROLES)
    assert list(summary.samplers) == ["rollout"]
    assert summary.cluster_kind == "prompt"
    inside = sum(int(columns.mask.sum()) for columns in BATCHES)
    assert summary.columns["old"].tokens == inside
    reference = summary.columns["reference"]
    first = next(columns for columns in BATCHES if np.isnan(columns.log_probs["reference"]).any())
    assert (reference.nan > 0, reference.first["nan"].source) == (True, first.source)
    for question, state in summary.questions.items():
        assert state.tokens + state.missing == inside
        assert (state.missing > 0) == ("reference" in question.roles)
    assert summary.padding.sequences == sum(len(columns.lengths) for columns in BATCHES)
    assert summary.questions[Question("rollout", "old")].groups.clusters == 40


def test_questions_and_sampler_can_be_chosen() -> None:
    asked = [Question("current", "old", "rollout", "current")]
    assert list(summarize(BATCHES[:2], questions=asked).questions) == asked
    by_old = summarize(BATCHES[:2], sampler="old").questions
    assert str(list(by_old)[-1]) == "KL(current||reference) ~ old"


def test_misspelled_sequences_are_summed_apart() -> None:
    columns = replace(
        pack({"old": [-1.0, -2.0, -3.0], "current": [-1.0, -2.5, -9.0]}, lengths=1),
        token_bytes=[b"a", b"b", b"c"],
        text=["a", "x", "c"],
    )
    question = Question("old", "current")
    summary = summarize([columns.take(np.array([0])), columns])
    part = summary.misspelled[question]
    assert (part.tokens, part.total("k1")) == (1, 0.5)
    assert [str(c.place) for c in part.top_k1] == ["row 1, token 0"]
    assert summary.questions[question].tokens == 4
    assert summarize([columns.take(np.array([0, 2]))]).misspelled == {}


def test_each_batch_is_announced_once_and_in_order() -> None:
    seen: list[str] = []
    for jobs in (1, 3):
        summarize(BATCHES[:9], jobs=jobs, on_batch=lambda columns: seen.append(columns.source))
    assert seen == 2 * [f"step {seed}" for seed in range(9)]


def test_batches_are_read_no_faster_than_they_are_summed() -> None:
    """Peak memory does not grow with the number of batches."""

    def read(count: int) -> Iterator[Columns]:
        for _ in range(count):
            yield pack({role: np.full(20_000, -1.0) for role in ("old", "current")}, lengths=200)

    def peak(count: int, jobs: int) -> int:
        tracemalloc.start()
        summarize(read(count), jobs=jobs)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    for jobs in (1, 2):
        assert peak(25, jobs) < 2 * peak(5, jobs)


def test_nothing_to_summarize_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no sequence to summarize"):
        summarize([])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_role_without_log_probs_is_refused_in_any_batch(jobs: int) -> None:
    asked = [Question("old", "current")]
    plain = batch(0)
    lacking = replace(plain, log_probs={"old": plain.log_probs["old"]})
    with pytest.raises(ValueError, match=r"\|\|current\) needs log-probs of current; .* old"):
        summarize([plain, lacking], questions=asked, jobs=jobs)


def test_prompts_and_sequences_are_not_added() -> None:
    columns = {"old": [[-1.0]], "current": [[-2.0]]}
    asked = [Question("old", "current")]
    by_prompt = Summary.of(pack(columns, clusters=["a"]), asked)
    with pytest.raises(ValueError, match="one side is clustered by prompt and the other by seq"):
        _ = by_prompt + Summary.of(pack(columns), asked)


def test_roles_that_only_some_batches_have_are_kept() -> None:
    asked = [Question("old", "current")]
    few = {"old": [[-1.0]], "current": [[-2.0]]}
    a, b = Summary.of(pack(few), asked), Summary.of(pack(few | {"teacher": [[-3.0]]}), asked)
    assert (a + b).columns.keys() == (b + a).columns.keys() == {"old", "current", "teacher"}
    assert (a + b).columns["teacher"] == b.columns["teacher"]


def test_sequences_of_two_batches_are_two_clusters() -> None:
    batches = [pack({"old": [[-1.0]], "current": [[x]]}) for x in (-2.0, -3.0)]
    assert summarize(batches).questions[Question("old", "current")].groups.clusters == 2


def test_questions_may_be_text_and_unlike_summaries_do_not_add() -> None:
    one = summarize(BATCHES[:2], questions=["KL(rollout||old)"])
    assert [str(question) for question in one.questions] == ["KL(rollout||old)"]
    with pytest.raises(ValueError, match="answer different questions"):
        _ = one + summarize(BATCHES[:2], questions=["KL(old||rollout)"])


AXES = ("position", "step", "reward", "length", "task")


def labelled(columns: Columns, seed: int) -> Columns:
    rng, size = np.random.default_rng(seed), len(columns.lengths)
    labels = {
        "step": rng.integers(0, 300, size),
        "reward": rng.normal(size=size),
        "task": rng.choice(np.array(["code", "math"]), size),
    }
    return replace(columns, labels=labels)


def test_the_number_of_workers_changes_no_bit_of_a_cell() -> None:
    batches = [labelled(columns, seed) for seed, columns in enumerate(BATCHES)]
    alone = summarize(batches, by=AXES)
    assert {state.width for state in alone.by[Question("rollout", "old")].values()} > {None}
    assert_identical(summarize(batches, by=AXES, jobs=3), alone)
    assert_identical(alone.questions, in_one_thread().questions)


def test_axes_are_marginal_and_each_is_there_once() -> None:
    summary = summarize([labelled(BATCHES[1], 0)], by=["step", "position", "step"])
    for question, axes in summary.by.items():
        assert list(axes) == ["step", "position"]
        for state in axes.values():
            tokens = sum(row.tokens for row in state.rows())
            assert tokens == summary.questions[question].tokens > 0
    assert list(summarize(BATCHES[1:2], by="position").by[Question("rollout", "old")]) == [
        "position"
    ]
    assert summarize(BATCHES[1:2]).by == {}


def test_an_axis_that_is_not_there_is_refused_before_anything_is_summed() -> None:
    with pytest.raises(ValueError, match="by task: it is neither position"):
        summarize(BATCHES, by=["task"])


def test_summaries_split_by_different_axes_do_not_add() -> None:
    a, b = (summarize(BATCHES[1:2], by=by) for by in ("position", "length"))
    for one, other in ((a, b), (a, summarize(BATCHES[1:2])), (summarize(BATCHES[1:2]), a)):
        with pytest.raises(ValueError, match="split by different axes"):
            _ = one + other


def test_an_axis_that_is_wished_for_is_left_out_with_the_reason() -> None:
    batch = pack({"p": [[-1.0, -2.0]], "q": [[-1.5, -1.0]]})
    stepped = replace(batch, labels={"step": np.array([3])})
    early = replace(stepped, versions=np.array([2, 4]))
    summary = summarize([early], also=["step", "staleness", "position"])
    [axes] = summary.by.values()
    assert set(axes) == {"step", "position"}
    assert "step 3 comes before version 4" in summary.refused["staleness"]
    with pytest.raises(ValueError, match="step 3 comes before version 4"):
        summarize([early], by=["staleness"])


def test_an_axis_that_one_batch_refuses_is_had_by_none() -> None:
    batch = pack({"p": [[-1.0, -2.0]], "q": [[-1.5, -1.0]]})
    stepped = replace(batch, labels={"step": np.array([3])})
    for batches in ([batch, stepped], [stepped, batch]):
        summary = summarize(batches, by=["position"], also=["step"])
        [axes] = summary.by.values()
        assert set(axes) == {"position"}
        assert axes["position"].rows()[0].tokens == 2
        assert "no step was read" in summary.refused["step"]


def test_onto_is_one_pass_to_the_last_bit():
    """A sum of two summaries adds in another order; this one does not."""
    from kullback.estimation.stored import store

    batches = [batch(seed) for seed in range(6)]
    whole = summarize(batches, by=["position"])
    for jobs in (1, 3):
        first = summarize(batches[:2], by=["position"], jobs=jobs)
        assert store(summarize(batches[2:], by=["position"], jobs=jobs, onto=first)) == store(whole)
    assert store(first + summarize(batches[2:], by=["position"])) != store(whole)
    with pytest.raises(ValueError, match="different questions"):
        summarize(batches, questions=["KL(old||current)"], onto=whole)


def test_lists_of_summaries_can_be_summed():
    parts = [
        summarize([pack({"old": [[-1.0, -i]], "current": [[-1.1, -0.25]]})]) for i in (1, 2, 3)
    ]
    total = sum(parts)
    assert isinstance(total, Summary)
    assert total.questions[Question("old", "current")].tokens == 6
