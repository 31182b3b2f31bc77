from __future__ import annotations

import pytest

from kullback.dictionary import FRAMEWORKS, METRICS, find
from kullback.dictionary.find import framework_name, near


def frameworks(name: str, framework: str | None = None) -> set[str]:
    return {one.framework for one in find(name, framework)}


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_every_entry_is_found_by_each_of_its_names(one):
    for name in one.names:
        assert one in find(name, one.framework)
        assert one in find(name)
        assert one in find(f"train/{name}/mean", one.framework)


def test_a_bare_name_is_that_of_all_who_log_it():
    assert frameworks("kl") >= {"trl", "openrlhf", "tunix", "torchrl", "ms-swift", "spinningup"}
    assert frameworks("ppo_kl") == {"verl", "openrlhf", "slime", "tunix"}
    assert len(find("kl", "trl")) == 5


def test_a_name_with_a_prefix_is_that_of_its_owner():
    assert frameworks("train/approx_kl") == {"stable-baselines3"}
    assert frameworks("actor/ppo_kl") == {"verl"}
    assert {one.name for one in find("train/objective/kl")} == {"objective/kl"}


@pytest.mark.parametrize(
    ("name", "framework", "known"),
    [
        ("Actor/PPO_KL", "verl", "actor/ppo_kl"),
        ("train/actor/kl_loss", "verl", "actor/kl_loss"),
        ("kl-loss", "verl", "actor/kl_loss"),
        ("critic/kl_loss", "verl", "actor/kl_loss"),
        ("actor.kl_loss", "verl", "actor/kl_loss"),
        ("mismatch_kl/all/mean", "prime-rl", "mismatch_kl"),
        ("train/kl", "trl", "kl"),
        ("train/objective/kl", "trl", "objective/kl"),
        ("sampling_logp_difference/mean", "trl", "sampling/sampling_logp_difference/mean"),
    ],
)
def test_other_spellings_lead_to_it(name, framework, known):
    assert find(name, framework)[0].name == known


def test_nobody_has_it():
    assert find("loss/entropy_bonus") == find("") == find("kl_approx", "verl") == ()


def test_what_a_release_dropped_is_not_found_in_it():
    assert [one.name for one in find("policy/approxkl_avg", "trl", "0.12.1")]
    assert find("policy/approxkl_avg", "trl", "1.16.0") == ()
    assert len(find("objective/kl", "trl")) == 2
    assert len(find("objective/kl", "trl", "1.16")) == 1


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("SB3", "stable-baselines3"),
        ("nemo_rl", "nemo-rl"),
        (" TRL ", "trl"),
        ("spinup", "spinningup"),
    ],
)
def test_a_framework_may_be_spelled_otherwise(said, known):
    assert framework_name(said) == known
    assert known in FRAMEWORKS


def test_an_unknown_framework_gets_the_nearest():
    with pytest.raises(ValueError, match=r"no framework 'verll' is known; did you mean verl\?"):
        find("kl", "verll")
    with pytest.raises(ValueError, match="Known are trl, liger"):
        framework_name("xyzzy")


def test_names_that_are_spelled_nearly_so():
    assert near("aprox_kl", "sb3") == ("train/approx_kl",)
    assert "actor/kl_loss" in near("actor/kl_los")
    assert near("xyzzy") == ()
