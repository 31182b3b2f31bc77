from __future__ import annotations

import pytest

import kullback as kb

torch = pytest.importorskip("torch")


def k3(x):
    return torch.exp(x) - 1 - x


def mean_of_means(current, reference, mask):
    return (((current - reference) ** 2 * mask).sum(-1) / mask.sum(-1)).mean()


def divergence(logits_p, logits_q):
    log_p, log_q = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def jensen_shannon(logits, teacher_logits):
    middle = ((logits.softmax(-1) + teacher_logits.softmax(-1)) / 2).log()
    return (divergence(logits, middle) + divergence(teacher_logits, middle)) / 2


ADVICE = {
    "no KL": (lambda log_prob: -log_prob, "compare the log-probs of two policies"),
    "zero": (lambda current, reference: current - reference, "Instead of it differentiate k2"),
    "other direction": (lambda current, reference: k3(reference - current), "differentiate k2"),
    "on policy": (
        lambda current, reference: (current - reference) ** 2 / 2,
        "Nothing where the current policy sampled. Where an older policy",
    ),
    "everywhere": (
        lambda current, reference, old: (current - old).exp() * k3(reference - current),
        "Nothing: it descends KL(current||reference) at the sampler's prefixes, whoever sampled",
    ),
    "factor": (lambda current, reference: (current - reference) ** 2, "Mind the factor 2"),
    "sign": (lambda current, reference: -((current - reference) ** 2), "Turn its sign"),
    "mean of means": (mean_of_means, "Count each token alike"),
    "distillation": (
        lambda logits, teacher_logits: divergence(teacher_logits, logits),
        "exchange the two sides",
    ),
    "Jensen-Shannon": (jensen_shannon, "Nothing if that is what is meant"),
    "trust region": (
        lambda current, old: k3(current - old),
        "Nothing if current is to stay near old",
    ),
    "trust region turned": (
        lambda current, old: k3(old - current),
        "differentiate k3 with r = current/old",
    ),
    "k1 in the reward": (
        lambda current, reference: (current - reference).detach(),
        "Nothing: subtract it from the reward",
    ),
    "k3 in the reward": (
        lambda current, reference: k3(reference - current).detach(),
        "In the reward put k1",
    ),
    "minus k1 in the reward": (
        lambda current, reference: (reference - current).detach(),
        "Turn its sign: as a cost",
    ),
    "twice k1 in the reward": (
        lambda current, reference: 2 * (current - reference).detach(),
        "Mind the factor 2",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_what_to_do(name):
    fn, told = ADVICE[name]
    assert told in kb.audit.probe(fn).advice


def test_what_to_do_depends_on_the_use():
    def k1(current, reference):
        return (current - reference).detach()

    assert "Let the gradient flow" in kb.audit.probe(k1, style="loss").advice
    at_once = kb.audit.probe(k1, style="reward", credit="immediate").advice
    assert "costs of the later ones" in at_once
