from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import pack
from kullback.estimation.outcome_state import OutcomeState


def of(prompts, **labels) -> OutcomeState:
    columns = pack({"rollout": np.full((len(prompts), 2), -1.0)}, clusters=prompts)
    return OutcomeState.of(
        replace(columns, labels={name: np.array(values) for name, values in labels.items()})
    )


def test_reasons_and_rewards_are_counted_where_they_are_logged() -> None:
    state = of([7, 7, 8], finish_reason=["stop", "length", "stop"], reward=[1.0, 0.0, np.nan])
    assert state.reasons == Counter(stop=2, length=1)
    assert state.values == (0.0, 1.0)
    assert state.rewards.sums.tolist() == [[2.0], [1.0], [1.0]]
    nothing = of([7, 7])
    assert (nothing.reasons, nothing.values, len(nothing.rewards.keys)) == (Counter(), (), 0)


@pytest.mark.parametrize("rewards", [[True, False], np.array([1, None], dtype=object), [3, 4]])
def test_rewards_may_be_flags_or_hold_gaps(rewards) -> None:
    state = of([7, 7], reward=rewards)
    assert state.rewards.sums[0].sum() == (1 if rewards[1] is None else 2)


def test_texts_are_no_rewards() -> None:
    assert of([7, 7], reward=["good", "bad"]).values == ()


def test_adding_counts_both() -> None:
    one = of([7, 7], reward=[1.0, 0.0], finish_reason=["stop", "stop"])
    both = one + of([7, 9], reward=[0.5, 2.0], finish_reason=["length", "stop"])
    assert both.values == (0.0, 0.5, 1.0)
    assert both.reasons == Counter(stop=3, length=1)
    assert sorted(both.rewards.sums[0].tolist()) == [1.0, 3.0]
