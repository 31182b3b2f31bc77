"""The auditor, which knows nothing of our losses, finds in them what they claim."""

from __future__ import annotations

from typing import Any

import pytest

import kullback as kb

torch = pytest.importorskip("torch")
AHEAD, BACK = "KL(current||reference)", "KL(reference||current)"
PER_TOKEN = f"{AHEAD} per token (E sum / E length)"
TOKEN, WHOLE = "token", "whole"


def of(stale: bool = False, **options: Any) -> Any:
    """kb.loss of the current policy, as somebody would pass it in."""

    def from_the_policy(current, reference, mask):
        return kb.loss(log_p=current, log_q=reference, mask=mask, **options)

    def from_a_sampler(current, reference, rollout, mask):
        return kb.loss(log_p=current, log_q=reference, log_sampler=rollout, mask=mask, **options)

    return from_a_sampler if stale else from_the_policy


def of_logits(current, reference, logits, reference_logits, mask):
    counted = [torch.where(mask[..., None] > 0, one, 0.0) for one in (logits, reference_logits)]
    exact = kb.exact(logits_p=counted[0], logits_q=counted[1])
    logs: dict[str, Any] = {"log_p": current, "log_q": reference, "mask": mask}
    return kb.loss(**logs, exact=exact, gradient="sequence", aggregate="sequence_sum")


def learning_q(current, reference, rollout, mask):
    logs: dict[str, Any] = {"log_p": reference, "log_q": current, "log_sampler": rollout}
    return kb.loss(**logs, mask=mask, learn="q")


SUM: dict[str, Any] = {"aggregate": "sequence_sum"}
# The loss, and what it descends.
ON = [
    (of(), (AHEAD, TOKEN)),
    (of(**SUM), (AHEAD, TOKEN)),
    (of(form="ratio_k1"), (AHEAD, TOKEN)),
    (of(form="ratio_k3", **SUM), (AHEAD, TOKEN)),
    (of(gradient="sequence", **SUM), (AHEAD, WHOLE)),
    (of(gradient="sequence", form="ratio_k3", **SUM), (AHEAD, WHOLE)),
    (of(gradient="sequence", form="k2", **SUM), (AHEAD, WHOLE)),
    (of(gradient="sequence"), (PER_TOKEN, WHOLE)),
    (of(gradient="sequence", form="ratio_k1"), (PER_TOKEN, WHOLE)),
    (of_logits, (AHEAD, WHOLE)),
    (learning_q, (BACK, TOKEN)),
    (of(form="k1", biased=True), ("zero", WHOLE)),
    (of(form="k3", biased=True), (BACK, TOKEN)),
    (of(gradient="sequence", form="k3", biased=True, **SUM), (BACK, WHOLE)),
]
STALE = [
    (of(stale=True), (AHEAD, TOKEN)),
    (of(stale=True, form="ratio_k3", **SUM), (AHEAD, TOKEN)),
    (of(stale=True, gradient="sequence", **SUM), (AHEAD, WHOLE)),
    (of(stale=True, gradient="sequence", form="ratio_k1", **SUM), (AHEAD, WHOLE)),
    (of(stale=True, gradient="sequence", weights="sequence", **SUM), (AHEAD, WHOLE)),
    (of(stale=True, gradient="sequence"), (PER_TOKEN, WHOLE)),
    (learning_q, (BACK, TOKEN)),
]


@pytest.mark.parametrize(("loss", "found"), ON)
def test_on_policy_it_descends_what_it_claims(loss, found):
    probe = kb.audit.probe(loss)
    gradient = probe.gradient("on-policy")
    assert (gradient.of, gradient.part) == found
    assert gradient.factor == pytest.approx(0.0 if gradient.of == "zero" else 1.0)
    assert probe.is_kl
    assert not any("-inf" in one for one in probe.warnings)  # a mask is a mask


@pytest.mark.parametrize(("loss", "found"), STALE)
def test_on_tokens_of_an_older_policy_too(loss, found):
    gradient = kb.audit.probe(loss).gradient("stale")
    assert (gradient.of, gradient.part) == found
    assert gradient.factor == pytest.approx(1.0)


def test_its_value_is_k3_and_needs_no_advice():
    probe = kb.audit.probe(of(stale=True, gradient="sequence", **SUM))
    assert probe.value.form
    assert probe.value.form.method == "k3"
    assert probe.advice.startswith("Nothing")


def test_a_penalty_in_the_reward_descends_the_kl_of_sequences():
    def penalty(current, reference, mask):
        return kb.penalty(log_p=current, log_q=reference, mask=mask)

    probe = kb.audit.probe(penalty)
    assert probe.detached
    gradient = probe.gradient(use="reward_to_go")
    assert (gradient.of, gradient.part) == (AHEAD, WHOLE)
    immediate = probe.gradient(use="immediate")
    assert (immediate.of, immediate.part) == (AHEAD, TOKEN)


def test_in_jax_as_in_torch():
    pytest.importorskip("jax")
    gradient = kb.audit.probe(of(gradient="sequence", **SUM), library="jax").gradient()
    assert (gradient.of, gradient.part) == (AHEAD, WHOLE)
