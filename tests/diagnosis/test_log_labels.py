from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.diagnosis.log_labels import guessed, labelled

STEPS = np.arange(20)


def one(name: str, values, framework: str | None = None):
    found = labelled(kb.StepLog.of({name: np.broadcast_to(values, 20).copy()}), framework)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("actor/kl_loss", "kl"),
        ("objective/kl", "kl"),
        ("my_kl", "kl"),
        ("KL", "kl"),
        ("mean_kld", "kl"),
        ("train/approx_kl", "kl"),
        ("actor/kl_coef", "coefficient"),
        ("kl_ctl/value", "coefficient"),
        ("actor/kl_loss/max", None),
        ("kl_std", None),
        ("loss", None),
        ("weekly_total", None),
        ("pickle_size", None),
        ("adam_beta1", None),
    ],
)
def test_a_series_is_known_by_its_name(name, kind):
    found = one(name, 0.5)
    assert (found.kind if found else None) == kind


def test_negative_values_exclude_what_cannot_be():
    found = one("kl", -0.5)
    assert found is not None
    assert found.metrics
    assert all(metric.can_be_negative for metric in found.metrics)
    assert {metric.method for metric in found.excluded} >= {"k3"}
    assert "not " in found.said


def test_trainers_of_one_framework_are_told_apart():
    found = one("kl", -0.5, "trl")
    assert found is not None
    assert found.said.startswith("k1 of KL(old||reference) (trl); not k3 of KL(current||reference)")
    assert "(trl GRPOTrainer, trl GMPOTrainer)" in found.said
    both = one("kl", 0.5, "trl")
    assert both is not None
    assert "k1 of KL(old||reference) (trl RLOOTrainer)" in both.said


def test_what_is_called_a_kl_and_is_none_is_said():
    found = one("train/kl", 3.0, "trl/KTO")
    assert found is not None
    assert found.said.startswith("a baseline that is no KL")
    log = kb.StepLog.of({"train/kl": np.full(20, 3.0)})
    assert kb.judge_log(log, framework="trl/KTO").findings == ()
    mine = one("kl", 3.0, "rldoctor")  # which has whatever the trainer logged
    assert mine is not None
    assert mine.said == "not in the dictionary: called a KL by its name alone"


def test_settings_may_make_of_an_entry_one_that_can():
    found = one("actor/kl_loss", -0.5, "verl")
    assert found is not None
    assert [metric.method for metric in found.metrics] == ["k1"]


def test_the_framework_decides_what_a_name_means():
    found = one("kl_loss", 0.5, "torchtune")
    assert found is not None
    assert found.said == "k3 of KL(current||reference) ~ old (torchtune)"
    assert found.agreed("q") == "reference"
    with pytest.raises(ValueError, match="no framework 'nobody' is known"):
        one("kl", 0.5, "nobody")


def test_a_name_alone_says_little():
    found = one("my_kl", 0.5)
    assert found is not None
    assert found.said == "not in the dictionary: called a KL by its name alone"
    assert found.agreed("method") is None
    mine = one("my_kl_k3", 0.5)
    assert mine is not None
    assert mine.said == "by its name a k2, k3 or absolute value"


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (("actor/kl_loss", "actor/ppo_kl"), "verl"),
        (("actor/kl_loss", "actor/policykl"), "roll"),
        (("actor/kl_loss",), None),
        (("train/approx_kl", "loss"), None),
        (("my_kl", "other_kl"), None),
        ((), None),
    ],
)
def test_two_whole_names_tell_the_framework(names, framework):
    log = kb.StepLog.of({name: [0.1, 0.2] for name in names})
    assert guessed(log) == framework
    judged = kb.judge_log(log)
    assert (judged.framework, judged.guessed) == (framework, framework is not None)
    assert not kb.judge_log(log, framework="trl").guessed
