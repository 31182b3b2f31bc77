from __future__ import annotations

import json

import pytest

from kullback.dictionary import FRAMEWORKS, METRICS, find
from kullback.explaining.trainer_numbers import as_data, explain_logged, listed
from kullback.question import Question


def told(said) -> dict[str, str]:
    return {section.label: section.text for section in said.sections}


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_every_entry_is_explained_on_a_screen(one):
    said = explain_logged(one.name, f"{one.framework}/{one.trainer}")
    assert said.kind == "logged"
    assert max(map(len, said.lines(80))) <= 80
    assert json.dumps(said.as_data())
    assert as_data(one) in said.numbers["entries"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_lists_its_numbers(framework):
    rows = told(listed(framework))["Numbers"].splitlines()
    assert len(rows) == len([one for one in METRICS if one.framework == framework])


def test_one_number_is_told_whole():
    said = told(explain_logged("actor/kl_loss", "verl"))
    assert list(said) == [
        *("Is", "Formula", "Negative?", "Unbiased", "Held", "Trains", "Settings", "Mind", "Known"),
        *("Elsewhere", "Ask"),
    ]
    assert said["Is"] == "It is named after KL(current||reference) ~ old, in nats per token."
    assert "no weight current/old" in said["Unbiased"]
    assert said["Trains"].startswith("As a loss it descends KL(reference||current)")
    assert "slime train/kl_loss" in said["Elsewhere"]


def test_the_question_can_be_asked():
    for one in METRICS:
        text = told(explain_logged(one.name, f"{one.framework}/{one.trainer}")).get("Ask", "")
        if "--question" in text:
            assert Question.parse(text.split("'")[1]) == one.question or len(find(one.name)) > 1


def test_one_name_of_several_numbers_lists_them():
    said = explain_logged("kl", "trl")
    assert said.caption == "5 numbers of trl have this name"
    assert len(told(said)["trl"].splitlines()) == 5
    assert told(said)["Ask"] == "kullback explain kl --framework trl/GRPOTrainer"
    across = explain_logged("approx_kl")
    assert across.caption == "3 numbers of 3 projects have this name"
    assert told(across)["areal"].endswith("Negative on average.")


def test_settings_change_what_is_told():
    flat = {"actor_rollout_ref.actor.kl_loss_type": "k1"}
    said = told(explain_logged("actor/kl_loss", "verl", config=flat))
    assert said["Formula"].startswith("log current − log reference")
    assert "nothing: its mean gradient is zero" in said["Trains"]
    assert "actor.kl_loss_type is k1, as the file says." in said["Settings"]
    assert "It is not computed: use_kl_loss is False." in said["Settings"]
    assert "actor.use_kl_loss is not in the file; the default is False." in said["Settings"]


def test_a_coefficient_of_0_is_not_used():
    flat = {"kl_loss_coef": 0.0, "use_kl_loss": True, "actor.kl_loss_coef": 0.0}
    said = told(explain_logged("actor/kl_loss", "verl", config=flat))
    assert "Nothing is trained on it: actor.kl_loss_coef is 0." in said["Settings"]


def test_an_empty_file_of_settings_says_the_defaults():
    said = told(explain_logged("ppo_kl", "openrlhf", config={}))
    assert "Settings" not in said


def test_another_release_was_not_looked_at():
    said = told(explain_logged("actor/ppo_kl", "verl", "0.7.0"))
    assert said["Known"].endswith("verl 0.9.1; what 0.7.0 does was not looked at.")
    assert told(explain_logged("actor/ppo_kl", "verl", "0.9.1"))["Known"].endswith("verl 0.9.1.")


def test_what_is_not_verified_says_so():
    said = told(explain_logged("policy/approxkl_avg", "trl", "0.11"))
    assert said["Known"].startswith("Not verified")
    assert "Not verified." in told(listed("martingale"))["Numbers"]


@pytest.mark.parametrize(
    ("name", "framework", "label", "text"),
    [
        ("ref_kl", "prime-rl", "Unbiased", "Only while current is still rollout"),
        ("actor/policykl", "roll", "Unbiased", "Its mean is minus KL(old||current)."),
        ("kl", "trl/GRPO", "Unbiased", "Its mean is KL(current||reference)."),
        ("actor/approxkl", "roll", "Unbiased", "No: it is near KL(old||current)"),
        ("actor/ppo_kl", "verl", "Unbiased", "but for what is clamped"),
        ("train/ppo_kl", "slime", "Unbiased", "if all sequences have one length"),
        ("actor/kl_coef", "verl", "Is", "A coefficient, and no KL."),
        ("kl", "trl/KTO", "Is", "No KL of two policies."),
        (
            "train/tis",
            "slime",
            "Is",
            "No KL. It compares rollout with old, over tokens of rollout.",
        ),
        ("train/approx_kl", "sb3", "Trains", "an update may be stopped by it"),
        ("rollout_corr/k3_kl", "verl", "Trains", "As a loss of rollout it would descend"),
        ("mean_kl_loss", "rllib", "Ask", 'method="rao_blackwell"'),
    ],
)
def test_particular_numbers(name, framework, label, text):
    assert text in told(explain_logged(name, framework))[label]


def test_a_weight_that_is_none_is_told():
    flat = {"importance_sampling_level": "sequence", "beta": 0.1}
    said = told(explain_logged("kl", "trl/GRPO", config=flat))
    assert said["Unbiased"].startswith("No: its weight, geometric mean")


def test_nobody_logs_this():
    with pytest.raises(ValueError, match=r"nothing is called 'actor/kl_los' in verl; did you mean"):
        explain_logged("actor/kl_los", "verl")
    with pytest.raises(ValueError, match="kullback explain --framework verl lists what is known"):
        explain_logged("xyzzy", "verl")
    with pytest.raises(ValueError, match="kullback explain lists what is known"):
        explain_logged("xyzzy")
