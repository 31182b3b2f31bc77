from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb

LOG_P: Any = np.array([[-4.0, -1.0, -0.5, np.nan], [-9.0, -0.25, -30.0, -1.0]])
LOG_Q: Any = np.array([[-1.0, -1.1, -0.75, np.nan], [-2.0, -0.5, -1.0, -1.0]])
MASK: Any = np.array([[1, 1, 1, 0], [1, 1, 1, 1]])


@pytest.mark.parametrize("form", ["k1", "k2", "k3"])
@pytest.mark.parametrize("log_ratio", [None, 5.0, 20.0])
@pytest.mark.parametrize("value", [None, 10.0])
def test_it_is_the_difference_of_two_means(form, log_ratio, value):
    found = kb.clamp_bias(
        log_p=LOG_P, log_q=LOG_Q, mask=MASK, form=form, log_ratio=log_ratio, value=value
    )
    x = (LOG_Q - LOG_P)[MASK == 1]
    formula = getattr(kb, form)
    cut = formula(x if log_ratio is None else np.clip(x, -log_ratio, log_ratio))
    cut = cut if value is None else np.clip(cut, -value, value)
    assert found.tokens == 7
    assert found.mean == pytest.approx(formula(x).mean(), rel=1e-12)
    assert found.clamped_mean == pytest.approx(cut.mean(), rel=1e-12)
    assert found.clamped == np.count_nonzero(cut != formula(x))
    assert found.bias == found.clamped_mean - found.mean


def test_the_clamp_at_10_begins_at_a_ratio_of_13_6():
    for ratio, clamped in ((13.6, 0), (13.7, 1)):
        logs = {"log_p": [[-5.0]], "log_q": [[-5.0 + np.log(ratio)]]}
        assert kb.clamp_bias(**logs, value=10.0).clamped == clamped


def test_a_sentence_says_what_it_does():
    said = str(kb.clamp_bias(log_p=LOG_P, log_q=LOG_Q, mask=MASK, value=10.0))
    assert "3 of 7 tokens (42.86%)" in said
    assert "no gradient" in said
    assert "changes none of 7 tokens" in str(kb.clamp_bias(log_p=LOG_P, log_q=LOG_Q, mask=MASK))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "k4"}, "is none of k1, k2, k3"),
        ({"value": -1.0}, "expected a number above 0"),
        ({"log_ratio": 0.0}, "expected a number above 0"),
        ({"mask": 0 * MASK}, "no token counts"),
        ({"log_q": LOG_Q[:, :2]}, "shape"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        kb.clamp_bias(**{"log_p": LOG_P, "log_q": LOG_Q, "mask": MASK, **options})


def test_a_clamp_makes_an_infinite_mean_finite_and_says_no_share_of_it():
    logs: dict[str, Any] = {"log_p": [[-1.0, -1.0]], "log_q": [[-np.inf, -1.0]]}
    said = str(kb.clamp_bias(**logs, form="k1", value=10.0))
    assert "5 nats per token rather than inf, and" in said
