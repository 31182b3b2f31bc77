from __future__ import annotations

from kullback.dictionary import find
from kullback.dictionary.trl import TRL


def test_kl_is_five_numbers():
    kinds = {one.trainer: (one.p, one.q, one.method) for one in find("kl", "trl")}
    assert kinds == {
        "GRPOTrainer": ("current", "reference", "k3"),
        "RLOOTrainer": ("old", "reference", "k1"),
        "AsyncGRPOTrainer": ("rollout", "current", "k3"),
        "KTOTrainer": ("", "", "other"),
        "GMPOTrainer": ("current", "reference", "k3"),
    }


def test_the_bias_correction_turns_the_gradient():
    grpo = TRL[0]
    assert grpo.is_estimate
    assert grpo.gradient.startswith("KL(current||reference)")
    off, _ = grpo.under({"use_bias_correction_kl": False})
    assert not off.weight
    assert off.gradient.startswith("KL(reference||current)")


def test_an_engine_is_not_corrected_for():
    assert not TRL[0].under({"use_vllm": True})[0].is_estimate


def test_the_weight_of_a_sequence_is_none_where_the_correction_is_off():
    both = {"use_bias_correction_kl": False, "importance_sampling_level": "sequence"}
    assert TRL[0].under(both)[0].weight == ""
