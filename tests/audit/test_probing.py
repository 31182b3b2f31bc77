from __future__ import annotations

import json

import numpy as np
import pytest

import kullback as kb


def k1(log_prob, ref_log_prob):
    return log_prob - ref_log_prob


def test_it_says_what_it_was_called_with():
    found = kb.audit.probe(k1, library="numpy")
    assert (found.name, found.library) == ("k1", "numpy")
    assert found.parameters == {"log_prob": "current", "ref_log_prob": "reference"}
    assert str(found).endswith("In numpy, with log_prob = current, ref_log_prob = reference.")


def test_the_text_fits_a_terminal_and_its_labels_stand_apart():
    lines = str(kb.audit.probe(k1, library="numpy")).splitlines()
    assert max(map(len, lines)) <= 80
    labels = [line[:12].strip() for line in lines if line and not line.startswith(" ")]
    assert labels[-4:] == ["Value", "Gradient", "Do", "Called"]


def test_numpy_has_no_gradient_so_it_is_a_cost():
    found = kb.audit.probe(k1, library="numpy")
    assert found.detached
    assert {one.use for one in found.gradients} == {"reward_to_go", "full_return", "immediate"}
    assert found.gradient(use="immediate").part == "token"
    with pytest.raises(KeyError, match="no gradient for on-policy, loss, random"):
        found.gradient()


def test_one_credit_alone():
    found = kb.audit.probe(k1, library="numpy", credit="full_return")
    assert {one.use for one in found.gradients} == {"full_return"}


def test_a_loss_is_a_cost_if_it_is_asked_for(traceable):
    loss = kb.audit.probe(k1, library=traceable.name)
    assert loss.gradient().of == "zero"
    cost = kb.audit.probe(k1, library=traceable.name, style="reward")
    assert cost.gradient(use="full_return").of == "KL(current||reference)"


def test_a_detached_term_as_a_loss_has_no_gradients():
    found = kb.audit.probe(k1, library="numpy", style="loss")
    assert found.gradients == ()
    assert "no gradient to the current policy" in found.verdict


def test_the_engine_is_a_scenario_where_rollout_is_told_from_old():
    def both(current, reference, old, rollout):
        return np.exp(old - rollout) * (current - reference)

    found = kb.audit.probe(both, library="numpy")
    assert {one.scenario for one in found.gradients} == {"on-policy", "stale", "engine"}
    assert {one.scenario for one in kb.audit.probe(k1, library="numpy").gradients} == {
        "on-policy",
        "stale",
    }


def test_torch_and_jax_find_one_thing():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")

    def written(xp):
        def loss(current, reference, old, mask):
            x = reference - current
            terms = xp.exp(current - old) * (xp.exp(x) - 1 - x)
            return (terms * mask).sum() / mask.sum()

        return loss

    one = kb.audit.probe(written(torch), library="torch").as_data()
    two = kb.audit.probe(written(jax.numpy), library="jax").as_data()
    assert (one.pop("library"), two.pop("library")) == ("torch", "jax")
    assert one["verdict"] == two["verdict"]
    for mine, theirs in zip(one["gradients"], two["gradients"], strict=True):
        assert mine["of"] == theirs["of"]
        for name, far in mine["distances"].items():
            assert far == pytest.approx(theirs["distances"][name], abs=1e-12)


def test_jax_is_left_as_it_was():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    kb.audit.probe(k1, library="jax")
    assert jax.config.jax_enable_x64 == before


def test_as_data_is_json_without_more():
    data = kb.audit.probe(k1, library="numpy").as_data()
    assert data["schema"] == "kullback.probe/1"
    assert json.loads(json.dumps(data)) == data
    assert set(data) >= {"name", "value", "gradients", "verdict", "warnings", "advice", "is_kl"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"style": "metric"}, "neither 'loss' nor 'reward'"),
        ({"credit": "some"}, "none of reward_to_go, full_return, immediate"),
        ({"library": "tensorflow"}, "none of torch, jax, numpy"),
        ({"arguments": {"x": "current"}}, "has no parameter 'x'"),
    ],
)
def test_what_is_not_known_is_one_sentence(given, told):
    with pytest.raises(ValueError, match=told) as caught:
        kb.audit.probe(k1, **given)
    assert "\n" not in str(caught.value)


def test_it_needs_a_function():
    with pytest.raises(TypeError, match="takes a function"):
        kb.audit.probe("k1")  # pyright: ignore[reportArgumentType]


def test_a_gradient_that_depends_on_the_batch_is_that_of_a_whole_draw():
    torch = pytest.importorskip("torch")

    def of_the_ratio(current, reference, mask):
        """The gradient of E[sum] / E[length], of which a batch of one has nothing."""
        x = ((current - reference) * mask).sum(-1)
        lengths = mask.sum(-1).to(x.dtype)
        mean = x.mean() / lengths.mean()
        score = (current * mask).sum(-1)
        surrogate = ((x - mean * lengths).detach() * score).mean() / lengths.mean()
        return mean.detach() + surrogate - surrogate.detach()

    found = kb.audit.probe(of_the_ratio)
    assert found.gradient().of == "KL(current||reference) per token (E sum / E length)"
    assert found.gradient().factor == pytest.approx(1)
    assert found.advice.startswith("Nothing where the current policy sampled.")
    assert found.gradient(lengths="fixed").of == "KL(current||reference)"
    assert any("as often as it is drawn" in one for one in found.warnings)

    def weights_that_sum_to_one(current, reference, old, mask):
        weights = ((current - old) * mask).sum(-1).softmax(0).detach()
        return (weights * torch.square(((current - reference) * mask).sum(-1)) / 2).sum()

    found = kb.audit.probe(weights_that_sum_to_one)
    for scenario in ("on-policy", "stale"):
        one = found.gradient(scenario)
        assert (one.of, one.part) == ("KL(current||reference)", "whole")
        assert one.factor == pytest.approx(1)
    assert found.value.depends_on == ("current", "reference", "old")
