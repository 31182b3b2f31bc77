from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from kullback.formulas.shape import Shape, shape
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, Mixture, World

QUESTION = Question("rollout", "reference")
MIXTURES = [
    name for name in CLEAN_WORLDS if name not in {"shifted_normals", "three_token_language"}
]


@cache
def world_of(name: str, prompts: int = 64) -> World:
    return CLEAN_WORLDS[name](prompts)


@cache
def shape_of(name: str) -> Shape:
    world = world_of(name)
    assert isinstance(world, Mixture)
    return shape(world.joint("rollout"), world.joint("reference"))


every_world = pytest.mark.parametrize("name", CLEAN_WORLDS)


@every_world
@pytest.mark.parametrize("prompts", [16, 64])
def test_samples_are_clean_and_have_the_prompts_asked_for(name, prompts):
    world = world_of(name, prompts)
    columns = world.sample(np.random.default_rng(0))
    assert len(columns.lengths) == 8 * prompts
    assert world.sampler == "rollout"
    assert {"rollout", "reference"} <= set(world.roles) == set(columns.log_probs)
    assert columns.mask.all()
    for log_probs in columns.log_probs.values():
        assert np.isfinite(log_probs).all()
        assert log_probs.max() < 0
    clusters = len(np.unique(columns.clusters))
    assert clusters == (prompts if isinstance(world, Mixture) else 8 * prompts)


@every_world
def test_tables_never_change(name):
    again, question = CLEAN_WORLDS[name](16), Question("reference", "rollout", sampler="rollout")
    assert again.exact(QUESTION) == world_of(name).exact(QUESTION) > 0
    assert again.exact(question) == world_of(name).exact(question) > 0


@pytest.mark.parametrize("name", MIXTURES)
def test_k1_and_surprise_around_what_is_known_before_the_draw_have_mean_zero(name):
    world = world_of(name)
    assert isinstance(world, Mixture)
    columns = world.sample(np.random.default_rng(1), exact=True)
    k1 = columns.log_probs["rollout"] - columns.log_probs["reference"]
    known = columns.exact["KL(rollout||reference)"]
    surprise = -columns.log_probs["rollout"] - columns.entropy["rollout"]
    # Martingales: the variance of a sum is the sum of the variances at each prefix.
    variance_k1 = shape_of(name).variance_k1 - world.kl("rollout", "reference").var()
    table, entropy = world.log_probs["rollout"], world.entropy["rollout"]
    variance = np.mean((np.exp(table) * table**2).sum(axis=1) - entropy**2)
    assert abs((k1 - known).sum()) < 5 * np.sqrt(variance_k1 * len(columns))
    assert abs(surprise.sum()) < 5 * np.sqrt(variance * len(columns))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("light_drift", 0.5, 0.51),
        ("smooth", 0.5, 0.55),
        ("strong_drift", 0.7, 1.0),
        ("holes_in_policy", 100, np.inf),
        ("deep_holes_in_policy", 100, np.inf),
        ("holes_in_reference", 0, 0.2),
        ("peaked_policy", 0.5, 1.0),
        ("peaked_policy_with_holes", 100, np.inf),
        ("flat_reference", 1.0, 2.0),
    ],
)
def test_shapes_are_what_the_captions_say(name, low, high):
    assert low < shape_of(name).S < high
    assert (shape_of(name).variance_k3 < shape_of(name).variance_k1) == (shape_of(name).S < 1)


def test_holes_in_the_reference_carry_its_k1():
    world = world_of("holes_in_reference")
    assert isinstance(world, Mixture)
    p, q = world.joint("rollout"), world.joint("reference")
    forbidden = np.log(p / q) > 5
    assert 1e-3 < p[forbidden].sum() < 1e-2
    assert (p * np.log(p / q))[forbidden].sum() > 0.9 * world.exact(QUESTION)


def test_few_prefixes_of_the_very_peaked_policy_can_be_tested():
    world = world_of("very_peaked_policy")
    assert isinstance(world, Mixture)
    assert (world.entropy["rollout"] >= 0.3).mean() < 0.01
    assert (world_of("peaked_policy").entropy["rollout"] >= 0.3).mean() > 0.5  # type: ignore


def test_policies_that_differ_in_the_end_alone():
    p, q = 0.02, 0.01
    kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    assert world_of("differing_ends").exact(QUESTION) == pytest.approx(kl, rel=1e-10)


def test_prompt_effects_are_log_normal():
    world = world_of("prompt_effects")
    assert isinstance(world, Mixture)
    by_kind = np.log(world.kl("rollout", "reference").reshape(32, 8).mean(axis=1))
    assert by_kind.std() == pytest.approx(1.2, abs=0.15)


def test_training_loop_moves_from_engine_noise_to_the_reference():
    world = world_of("training_loop")
    drifts = [world.exact(Question("rollout", role)) for role in ("old", "current", "reference")]
    assert drifts == sorted(drifts)
    assert drifts[0] < 1e-4
    assert drifts[2] > 0.05
