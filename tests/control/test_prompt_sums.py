from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kullback as kb
from kullback.clusters import cluster_keys
from kullback.control.prompt_sums import PromptSums, prompt_sums
from kullback.estimation.question_state import QuestionState

LOG_P = np.array([[-1.0, -2.0, -0.5], [-0.1, -3.0, -1.0], [-2.0, -2.0, -2.0]])
LOG_Q = np.array([[-1.5, -2.0, -0.7], [-0.2, -2.0, -1.0], [-1.0, -2.5, -3.0]])
MASK = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0]])
ROWS = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e6), st.integers(0, 999)), max_size=12)


def of_rows(rows: list[tuple[int, float, int]]) -> PromptSums:
    ids, sums, tokens = ([row[i] for row in rows] for i in range(3))
    return PromptSums.of_ids(np.array(ids, dtype=int), k3=sums, tokens=tokens)


def of(sums: PromptSums, prompt: object) -> tuple[float, int]:
    """What stands for a prompt."""
    place = int(np.flatnonzero(sums.keys == cluster_keys([prompt]))[0])
    return float(sums.k3[place]), int(sums.tokens[place])


def test_all_completions_of_a_prompt_are_one_row():
    sums = prompt_sums(log_p=LOG_P, log_q=LOG_Q, mask=MASK, clusters=["a", "a", "b"])
    terms = kb.k3(LOG_Q - LOG_P)
    assert len(sums) == 2
    assert of(sums, "a") == pytest.approx((terms[0, :2].sum() + terms[1].sum(), 5), rel=1e-15)
    assert of(sums, "b") == (0.0, 0)


def test_without_prompt_ids_each_sequence_stands_alone():
    sums = prompt_sums(log_p=LOG_P, log_q=LOG_Q)
    terms = kb.k3(LOG_Q - LOG_P).sum(axis=1)
    assert np.sort(sums.k3) == pytest.approx(np.sort(terms), rel=1e-15)
    assert sums.tokens.tolist() == [3, 3, 3]


def test_they_are_those_of_the_estimate():
    columns = kb.worlds.CLEAN_WORLDS["prompt_effects"](8).sample(np.random.default_rng(0))
    sums = PromptSums.of(columns, "rollout", "reference")
    state = QuestionState.of(columns, kb.Question("rollout", "reference"))
    assert sums.keys.tolist() == state.groups.keys.tolist()
    assert sums.k3 == pytest.approx(state.by_group("k3"), rel=1e-9)
    assert sums.tokens.tolist() == state.by_group("tokens").tolist()


def test_what_is_masked_is_never_read():
    p, q = np.where(MASK, LOG_P, np.nan), np.where(MASK, LOG_Q, -np.inf)
    found = prompt_sums(log_p=p, log_q=q, mask=MASK, clusters=[1, 1, 2])
    same = prompt_sums(log_p=LOG_P, log_q=LOG_Q, mask=MASK, clusters=[1, 1, 2])
    assert found.k3.tolist() == same.k3.tolist()


def test_single_precision_is_widened_before_the_subtraction():
    p, q = LOG_P.astype(np.float32), (LOG_P + 1e-3).astype(np.float32)
    found = prompt_sums(log_p=p, log_q=q, clusters=[0, 0, 0])
    assert found.k3[0] == kb.k3(q.astype(float) - p.astype(float)).reshape(-1).sum()


def test_a_token_that_q_forbids_makes_its_prompt_infinite():
    q = LOG_Q.copy()
    q[0, 0] = -np.inf
    sums = prompt_sums(log_p=LOG_P, log_q=q, clusters=["a", "b", "b"])
    assert of(sums, "a")[0] == np.inf
    assert np.isfinite(of(sums, "b")[0])


def test_nothing_has_no_prompts():
    none = PromptSums.of_ids(np.zeros(0, dtype=int), k3=[], tokens=[])
    assert len(none) == 0
    assert len(prompt_sums(log_p=np.zeros((0, 5)), log_q=np.zeros((0, 5)))) == 0
    some = of_rows([(1, 2.0, 3)])
    assert (none + some).k3.tolist() == (some + none).k3.tolist() == [2.0]


def test_whole_numbers_of_any_type_are_tokens():
    floats = PromptSums.of_ids([1, 2], k3=[1, 2], tokens=np.array([3.0, 4.0], dtype=np.float32))
    assert floats.tokens.dtype == np.int64
    assert floats.tokens.sum() == 7


@given(ROWS, st.integers(0, 12))
def test_adding_parts_is_adding_rows(rows: list[tuple[int, float, int]], cut: int):
    whole, parts = of_rows(rows), of_rows(rows[:cut]) + of_rows(rows[cut:])
    assert whole.keys.tolist() == parts.keys.tolist()
    assert whole.tokens.tolist() == parts.tokens.tolist()
    assert whole.k3 == pytest.approx(parts.k3, rel=1e-12)
    back = of_rows(rows[cut:]) + of_rows(rows[:cut])
    assert back.tokens.tolist() == whole.tokens.tolist()


@pytest.mark.parametrize(
    ("role", "value", "says"),
    [
        ("p", np.nan, "row 1, token 2: the log-prob of p is nan"),
        ("q", np.nan, "row 1, token 2: the log-prob of q is nan"),
        ("q", -9999.0, "row 1, token 2: the log-prob of q is -9999"),
        ("p", -np.inf, "row 1, token 2: the log-prob of p is -inf"),
        ("q", np.inf, "row 1, token 2: the log-prob of q is inf"),
    ],
)
def test_a_log_prob_that_is_missing_is_refused_with_its_place(role: str, value: float, says: str):
    arrays = {"p": LOG_P.copy(), "q": LOG_Q.copy()}
    arrays[role][1, 2] = value
    with pytest.raises(ValueError, match=says):
        prompt_sums(log_p=arrays["p"], log_q=arrays["q"], mask=MASK)


@pytest.mark.parametrize(
    ("k3", "tokens", "says"),
    [
        ([1.0, -0.1], [1, 1], "a sum of k3 is -0.1: k3 is never negative"),
        ([1.0, np.nan], [1, 1], "a sum of k3 is nan"),
        ([1.0, 1.0], [1, -1], "tokens are whole numbers"),
        ([1.0, 1.0], [1.5, 1], "tokens are whole numbers"),
        ([1.0, 1.0], [np.nan, 1], "tokens are whole numbers"),
        ([1.0], [1, 1], r"prompts have shape \(2,\), sums of k3 \(1,\)"),
        ([[1.0, 1.0]], [[1, 1]], "give flat arrays"),
    ],
)
def test_sums_that_are_none_are_refused(k3: list, tokens: list, says: str):
    with pytest.raises(ValueError, match=says):
        PromptSums.of_ids(["a", "a"], k3=k3, tokens=tokens)


def test_keys_that_do_not_ascend_are_refused():
    sums = of_rows([(1, 1.0, 1), (2, 1.0, 1)])
    for wrong in (sums.keys[::-1], sums.keys[[0, 0]]):
        with pytest.raises(ValueError, match="each prompt once"):
            replace(sums, keys=wrong)


def test_a_role_without_log_probs_is_refused():
    batch = kb.pack({"old": LOG_P, "current": LOG_Q})
    with pytest.raises(ValueError, match="there are no log-probs of new: old, current"):
        PromptSums.of(batch, "old", "new")


def test_lists_of_sums_can_be_summed():
    parts = [
        prompt_sums(log_p=[[-1.0, -2.0]], log_q=[[-1.5, -1.0]], clusters=[i]) for i in range(3)
    ]
    total = sum(parts)
    assert isinstance(total, PromptSums)
    assert len(total) == 3
