from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.diagnosis.log_tokens import lengths_of, tokens_of

STEPS = np.arange(1.0, 6.0)


def log(**series):
    named = {name.replace("__", "/"): values for name, values in series.items()}
    return kb.StepLog.of(
        {name: np.broadcast_to(v, 5).copy() for name, v in named.items()}, steps=STEPS
    )


def counts(made) -> list[float]:
    assert made is not None
    return made.at(STEPS)[0].tolist()


def test_what_is_given_counts():
    made = tokens_of(log(response_length__mean=100.0), 4096)
    assert counts(made) == [4096.0] * 5
    assert made is not None
    assert made.at(STEPS)[1].tolist() == [100.0] * 5
    with pytest.raises(ValueError, match="tokens 0: give how many"):
        tokens_of(log(), 0)


def test_a_count_of_responses_is_taken():
    made = tokens_of(log(num_response_tokens=[10, 20, 15, 10, 5]), None)
    assert counts(made) == [10, 20, 15, 10, 5]
    assert made is not None
    assert not made.whole


def test_a_count_that_adds_up_is_cut_into_steps():
    made = tokens_of(log(num_tokens=[100, 210, 300, 420, 500]), None)
    assert made is not None
    assert made.whole
    np.testing.assert_array_equal(made.at(STEPS)[0], [np.nan, 110, 90, 120, 80])


def test_prompts_are_taken_off_by_their_length():
    made = tokens_of(
        log(perf__total_num_tokens=1000.0, prompt_length__mean=30.0, response_length__mean=70.0),
        None,
    )
    assert counts(made) == [700.0] * 5
    assert made is not None
    assert "less the prompts" in made.how
    assert not made.whole


def test_sequences_times_their_length_are_tokens():
    made = tokens_of(log(train_batch_size=8.0, completions__mean_length=50.0), None)
    assert counts(made) == [400.0] * 5


def test_nothing_is_known_of_other_names():
    assert tokens_of(log(reward=1.0, tokens_per_second=5.0), None) is None
    assert tokens_of(log(response_tokens=-1.0), None) is None


@pytest.mark.parametrize(
    "name",
    ["response_length/mean", "response_length", "completions/mean_length", "mean_response_length",
     "rollout/response_len/mean", "completion_length", "train/response_length/mean"],
)  # fmt: skip
def test_lengths_have_many_names(name):
    found = lengths_of(kb.StepLog.of({name: [1.0, 2.0]}))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("more", [{}, {"num_tokens": 5000.0}])
def test_of_a_length_alone_a_step_has_one_sequence_at_least(more):
    made = tokens_of(log(completions__mean_length=128.0, **more), None)
    assert counts(made) == [128.0] * 5
    assert made is not None
    assert "one at least" in made.how
    assert not made.whole
