from __future__ import annotations

import numpy as np
import pytest

from kullback.worlds.gaussian import Gaussian

NORMALS = {"rollout": (0.0, 1.0), "current": (0.1, 1.0), "reference": (0.3, 1.5)}
WORLD = Gaussian(NORMALS, sequences=4000, length=5)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("KL(rollout||current)", 0.005),
        ("KL(current||rollout)", 0.005),
        ("KL(rollout||current) per sequence", 0.025),
        ("KL(rollout||current) per sequence-mean", 0.005),
        ("KL(rollout||reference)", np.log(1.5) + 1.09 / 4.5 - 0.5),
        ("KL(reference||rollout) ~ rollout", -np.log(1.5) + 2.34 / 2 - 0.5),
    ],
)
def test_answers_are_the_closed_forms(asked, expected):
    assert WORLD.exact(asked) == pytest.approx(expected, rel=1e-12)


def test_sample_agrees_with_the_closed_forms():
    columns = WORLD.sample(np.random.default_rng(0), exact=True)
    log_p, log_q = columns.log_probs["rollout"], columns.log_probs["current"]
    error = 1 / np.sqrt(len(columns))
    assert abs((log_p - log_q).mean() - 0.005) < 5 * 0.1 * error
    assert abs(np.expm1(log_q - log_p).mean()) < 5 * np.sqrt(np.expm1(0.01)) * error
    # Var(−log p) of a normal is ½: half a chi-square of one degree of freedom.
    assert abs((-log_p - columns.entropy["rollout"]).mean()) < 5 * np.sqrt(0.5) * error
    assert set(columns.exact["KL(rollout||current)"]) == {WORLD.kl("rollout", "current")}


def test_episodes_are_clusters():
    columns = WORLD.sample(np.random.default_rng(1))
    assert columns.lengths.tolist() == [5] * 4000
    assert len(np.unique(columns.clusters)) == 4000
    assert columns.exact == {}
