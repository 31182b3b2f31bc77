from __future__ import annotations

import pytest

from kullback.diagnosis.doubt import doubted_by_a_copy, means_of
from kullback.estimation.role_sums import Logged


def test_who_scored_most_of_some_tokens_has_a_mean_of_them():
    others = {"old": Logged(10, -20.0), "reference": Logged(5, -1.0), "teacher": Logged(0, 0.0)}
    assert means_of(others, 10) == {"old": pytest.approx(-2.0)}
    assert means_of({}, 0) == {}


def test_a_copy_has_the_weights_of_the_role_or_nearly():
    assert doubted_by_a_copy("rollout", {"old": -1.0, "reference": -2.0})
    assert not doubted_by_a_copy("rollout", {"reference": -2.0})
    assert not doubted_by_a_copy("reference", {"old": -1.0})
