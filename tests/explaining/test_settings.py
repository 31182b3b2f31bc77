from __future__ import annotations

import json
import sys

import pytest

from kullback.dictionary import METRICS, find
from kullback.explaining.settings import deciding, read_settings, settle

VERL = find("actor/kl_loss", "verl")[0]
YAML = """
actor_rollout_ref:
  actor:
    use_kl_loss: true
    kl_loss_coef: ${algorithm.kl_ctrl.kl_coef}
    kl_loss_type: low_var_kl+
    loss_agg_mode: ${oc.select:nowhere,token-mean}
    policy_loss: {loss_mode: kl_cov}
algorithm:
  kl_ctrl: {kl_coef: 0.005}
"""


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_of_hydra_is_read_with_its_references(tmp_path):
    flat = read_settings(written(tmp_path, "run.yaml", YAML))
    assert settle(VERL, flat) == {
        "actor.use_kl_loss": True,
        "actor.kl_loss_coef": 0.005,
        "actor.kl_loss_type": "low_var_kl+",
    }
    assert settle(find("actor/ppo_kl")[0], flat) == {"policy_loss.loss_mode": "kl_cov"}


def test_a_list_of_overrides_is_read(tmp_path):
    text = (
        "- actor_rollout_ref.actor.kl_loss_type=k1\n- +actor_rollout_ref.actor.use_kl_loss=True\n"
    )
    flat = read_settings(written(tmp_path, "overrides.yaml", text))
    assert settle(VERL, flat) == {"actor.kl_loss_type": "k1", "actor.use_kl_loss": "True"}
    assert VERL.under(settle(VERL, flat))[0].gradient == "zero"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("args.json", json.dumps({"beta": 0.04, "use_bias_correction_kl": False})),
        ("args.toml", "beta = 0.04\nuse_bias_correction_kl = false\n"),
        ("args.yml", "beta: 0.04\nuse_bias_correction_kl: false\n"),
    ],
)
def test_flat_arguments_are_read(tmp_path, name, text):
    flat = read_settings(written(tmp_path, name, text))
    held = settle(find("kl", "trl/GRPO")[0], flat)
    assert held == {"beta": 0.04, "use_bias_correction_kl": False}


def test_parts_may_be_joined_and_dashes_are_no_difference():
    kl = find("kl", "openrlhf")[0]
    assert settle(kl, {"algo.kl-estimator": "k2"}) == {"kl.estimator": "k2"}
    assert settle(kl, {"kl_use_loss": True}) == {"kl.use_loss": True}


def test_a_part_of_the_settings_may_leave_out_where_it_stands():
    assert settle(VERL, {"kl_loss_type": "k1"}) == {"actor.kl_loss_type": "k1"}
    assert settle(VERL, {"critic.kl_loss_type": "k1"}) == {}
    assert settle(find("actor/reward_kl_penalty")[0], {"type": "adaptive"}) == {}
    both = {"kl_loss_type": "k1", "actor.kl_loss_type": "k2"}
    assert settle(VERL, both) == {"actor.kl_loss_type": "k2"}


def test_the_end_of_another_name_is_not_it():
    assert settle(find("kl", "trl/GRPO")[0], {"adam_beta": 0.9, "optim.adam_beta": 0.9}) == {}


def test_the_highest_counts_and_equals_may_not_disagree():
    kl = find("kl", "trl/GRPO")[0]
    assert settle(kl, {"beta": 0.1, "loss.beta": 0.2}) == {"beta": 0.1}
    assert settle(kl, {"a.beta": 0.1, "b.beta": 0.1}) == {"beta": 0.1}
    with pytest.raises(ValueError, match=r"a\.beta and b\.beta disagree"):
        settle(kl, {"a.beta": 0.1, "b.beta": 0.2})


def test_a_ring_of_references_is_left_out(tmp_path):
    flat = read_settings(written(tmp_path, "ring.yaml", "a: ${b}\nb: ${a}\nc: 1\n"))
    assert flat == {"c": 1}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("run.txt", "beta=1", "is none of .json"),
        ("run.yaml", "a: [1", "is no YAML"),
        ("run.json", "{", "is no JSON"),
        ("run.toml", "=", "is no TOML"),
        ("run.json", "[1, 2]", "holds no settings"),
        ("run.yaml", "", "holds no settings"),
    ],
)
def test_what_is_no_settings_file_is_refused_in_one_sentence(tmp_path, name, text, told):
    with pytest.raises(ValueError, match=told) as raised:
        read_settings(written(tmp_path, name, text))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read_settings(tmp_path / "nowhere.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="no UTF-8"):
        read_settings(tmp_path / "binary.json")


def test_without_pyyaml_the_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match=r"pip install 'kullback\[yaml\]'"):
        read_settings(written(tmp_path, "run.yaml", YAML))


@pytest.mark.parametrize(
    "one", METRICS, ids=lambda one: f"{one.framework}:{one.name}:{one.trainer}"
)
def test_all_that_decides_can_be_given(one):
    flat = {f"deep.er.{key}": 1 for key in deciding(one)}
    assert settle(one, flat) == dict.fromkeys(deciding(one), 1)
