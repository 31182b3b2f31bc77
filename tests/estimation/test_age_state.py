from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from kullback.columns import pack
from kullback.estimation.age_state import OLDEST, AgeState


def of(versions, step=None, mask=None, **labels) -> AgeState:
    columns = pack({"rollout": np.full(np.shape(versions), -1.0)}, mask=mask)
    labels |= {} if step is None else {"step": step}
    return AgeState.of(
        replace(
            columns,
            versions=np.array(versions).ravel(),
            labels={name: np.array(values) for name, values in labels.items()},
        )
    )


def test_tokens_are_counted_by_their_age_inside_the_mask() -> None:
    state = of([[3, 3], [5, 4]], step=[5, 5], mask=[[1, 1], [1, 1]])
    assert state.ages == Counter({2: 2, 0: 1, 1: 1})
    assert (state.versioned, state.sequences, state.several, state.span) == (4, 2, 1, 1)
    assert str(state.first) == "row 1, token 1"
    assert of([[3, 3], [5, 4]], step=[5, 5], mask=[[1, 1], [1, 0]]).several == 0


def test_a_version_that_was_not_logged_is_none() -> None:
    state = of([[-1, 3, 3], [-1, -1, -1]], step=[4, 4])
    assert (state.versioned, state.sequences, state.several) == (2, 1, 0)
    assert state.ages == Counter({1: 2})


def test_versions_above_the_step_are_counted_apart() -> None:
    state = of([[3, 4, 7]], step=[4])
    assert (state.ages, state.early, state.span) == (Counter({1: 1, 0: 1}), 1, 4)


def test_without_steps_only_the_spread_inside_a_sequence_is_seen() -> None:
    state = of([[3, 3], [3, 9]])
    assert (state.ages, state.several, state.span) == (Counter(), 1, 6)
    assert of([[3, 3]], step=["a"]).ages == Counter()


def test_a_label_may_say_the_age() -> None:
    columns = pack({"rollout": [[-1.0, -1.0], [-1.0, -1.0]]}, mask=[[1, 1], [1, 0]])
    columns = replace(columns, labels={"staleness": np.array([2.0, np.nan])})
    assert AgeState.of(columns).ages == Counter({2: 2})
    assert of([[3, 3]], staleness=[2]).ages == Counter({2: 2})


def test_very_old_ones_count_alike() -> None:
    assert of([[0, 0], [0, 0]], step=[5000, 9000]).ages == Counter({OLDEST: 4})


def test_adding_counts_both() -> None:
    one, other = of([[3, 4]], step=[5]), of([[5, 5]], step=[5])
    both = other + one + one
    assert both.ages == Counter({0: 2, 2: 2, 1: 2})
    assert (both.versioned, both.several, both.span) == (6, 2, 1)
    assert both.first == one.first
    nothing = AgeState.of(pack({"rollout": np.zeros((0, 0))}))
    assert one + nothing == one
