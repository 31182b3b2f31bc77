from __future__ import annotations

import numpy as np
import pytest

from kullback.losses.tokens import tokens_of

LOGS = {
    "log_p": np.array([[-1.0, -2.0, np.nan], [-0.5, -0.25, -3.0]]),
    "log_q": np.array([[-1.5, -1.0, np.inf], [-0.75, -0.5, -1.0]]),
    "log_sampler": np.array([[-1.25, -1.5, np.nan], [-1.0, -0.5, -2.0]]),
    "mask": np.array([[1, 1, 0], [1, 1, 1]]),
}


def tokens(weights="token", **changed):
    return tokens_of(**{**LOGS, "lengths": None, "clamp": None, "weights": weights, **changed})


SINGLE = np.array([[0.25, -0.5, 0.0], [0.5, 0.25, -1.0]])


@pytest.mark.parametrize(
    ("weights", "here", "before"),
    [
        ("none", 0 * SINGLE, 0 * SINGLE),
        ("token", SINGLE, 0 * SINGLE),
        ("prefix", SINGLE.cumsum(1), SINGLE.cumsum(1) - SINGLE),
        ("sequence", *2 * (SINGLE.sum(1, keepdims=True) + 0 * SINGLE,)),
    ],
)
def test_a_token_counts_by_the_question(weights, here, before):
    found = tokens(weights)
    assert found.log_weight.tolist() == here.tolist()
    assert found.log_weight_before.tolist() == before.tolist()


def test_what_stands_outside_the_mask_is_never_read():
    found = tokens()
    assert found.log_q_over_p.tolist() == [[-0.5, 1.0, 0.0], [-0.25, -0.25, 2.0]]
    assert found.counted.tolist() == LOGS["mask"].tolist()


def test_a_clamp_holds_at_both_ends():
    assert tokens(clamp=0.5).log_q_over_p.tolist() == [[-0.5, 0.5, 0.0], [-0.25, -0.25, 0.5]]


def test_what_p_cannot_draw_ends_what_its_sequence_counts():
    log_p = np.where(np.array([[0, 0, 0], [0, 1, 0]]), -np.inf, LOGS["log_p"])
    found = tokens("prefix", log_p=log_p)
    assert np.exp(found.log_weight[1]).tolist() == [np.exp(0.5), 0.0, 0.0]
    assert np.exp(found.log_weight_before[1]).round(9).tolist() == [1.0, np.exp(0.5).round(9), 0.0]
    assert found.q_alone[1].round(9).tolist() == [0.0, np.exp(0.5 + 0.0).round(9), 0.0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"log_q": LOGS["log_q"][:, :2]}, r"log_q has shape \(2, 2\), log_p \(2, 3\)"),
        ({"mask": LOGS["mask"][0]}, r"mask has shape \(3,\)"),
        ({"mask": LOGS["mask"] * 0.5}, "other values than 0 and 1"),
        ({"lengths": [3, 3]}, "lengths go with flat values"),
        ({name: LOGS[name][0] for name in LOGS}, "flat values and lengths"),
    ],
)
def test_what_does_not_line_up_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        tokens(**changed)
