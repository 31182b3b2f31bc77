from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.gradients import gradients
from kullback.audit.scenes import staged
from kullback.audit.targets import scored

ROLES = ("current", "reference")


def log_ratio(scenario, ends, other="reference"):
    world = staged(scenario, ends=ends)
    return world, world.by_token("current") - world.by_token(other)


def named(coefficient, scenario="on-policy", roles=ROLES, other="reference"):
    both = []
    for ends in (False, True):
        world, x = log_ratio(scenario, ends, other)
        both.append(scored(world, coefficient(x, world)))
    return gradients(*both, scenario=scenario, use="loss", roles=roles, other=other)


def test_k2_differentiated_is_the_gradient_of_the_kl_token_by_token():
    for one, lengths in zip(named(lambda x, _: x), ("fixed", "random"), strict=True):
        assert (one.of, one.part, one.prefixes) == ("KL(current||reference)", "token", "current")
        assert one.factor == pytest.approx(1)
        assert one.lengths == lengths
        assert one.distances["KL(current||reference)"][0] < 0.97


def test_a_factor_is_told():
    _, one = named(lambda x, _: -0.5 * x.sum(axis=1, keepdims=True) + 0 * x)
    assert (one.of, one.part) == ("KL(current||reference)", "whole")
    assert one.factor == pytest.approx(-0.5)


def test_zero_has_no_direction():
    _, one = named(lambda x, _: np.ones_like(x))
    assert (one.of, one.factor, one.cosine, one.relative_error) == ("zero", 0.0, 0.0, 1.0)


def test_what_is_none_is_measured():
    _, one = named(lambda x, _: np.sin(3 * x))
    assert (one.of, one.part, one.factor) == (None, None, None)
    assert one.distances[one.nearest] == (one.cosine, one.relative_error)
    assert one.cosine == max(cosine for cosine, _ in one.distances.values())


def test_what_holds_in_one_world_only_is_its_doing():
    # The log-ratios of the world whose sequences end have two values at a context, and there the
    # sign of the log-ratio has the gradient of the KL, times 0.95.
    fixed, random = named(lambda x, _: np.sign(x))
    assert (fixed.of, random.of) == (None, None)


def test_the_sampler_is_called_what_the_function_calls_it():
    roles = ("current", "rollout")
    _, one = named(lambda x, _: np.ones_like(x), "stale", roles, other="rollout")
    assert (one.of, one.factor) == ("KL(rollout||current)", pytest.approx(-1))
    assert all("old" not in name for name in one.distances)


def test_a_gradient_as_data():
    data = named(lambda x, _: x)[1].as_data()
    assert data["of"] == "KL(current||reference)"
    assert data["distances"]["KL(current||reference)"]["cosine"] == pytest.approx(0.9468, abs=1e-4)
