"""KL terms that are wrong in the ways they are wrong in practice, and right ones, as data.

Each with what the auditor has to find: of its value, of its expected gradients, and in words.
"""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from .cases import AHEAD, APART, BACK, TOKEN, WHOLE, Case, on_policy, reward, stale

torch = pytest.importorskip("torch")
F = torch.nn.functional


def k2(x: Any) -> Any:
    return x**2 / 2


def k3(x: Any) -> Any:
    """Of x = log q/p."""
    return torch.exp(x) - 1 - x


def token_mean(values: Any, mask: Any) -> Any:
    return (values * mask).sum() / mask.sum()


def each(values: Any) -> Any:
    """The mean over sequences of their sums."""
    return values.sum(-1).mean()


# --- differentiated, and it is another gradient


def k1_as_loss(log_prob, ref_log_prob, response_mask):
    return token_mean(log_prob - ref_log_prob, response_mask)


def k3_as_loss(per_token_logps, ref_per_token_logps, completion_mask):
    return token_mean(k3(ref_per_token_logps - per_token_logps), completion_mask)


def k3_inverted(log_probs, log_probs_base, action_mask):
    return token_mean(k3(log_probs - log_probs_base), action_mask)


def detached_ratio_times_k3(current, reference, old, mask):
    return token_mean((current - old).exp().detach() * k3(reference - current), mask)


def attached_ratio_times_k2(current, reference, old, mask):
    return token_mean((current - old).exp() * k2(reference - current), mask)


def doubled(current, reference, mask):
    return token_mean(2 * k3(reference - current), mask)


def squared(current, reference, mask):
    return token_mean((current - reference) ** 2, mask)


def minus_k2(current, reference, mask):
    return -token_mean(k2(reference - current), mask)


def swapped_k1(current, reference, mask):
    return token_mean(reference - current, mask)


def detached(current, reference, mask):
    return token_mean(k2(reference - current).detach(), mask)


def reference_differentiated(current, reference, mask):
    return token_mean(k2(reference - current.detach()), mask)


def absolute_as_loss(current, reference, mask):
    return token_mean((current - reference).abs(), mask)


def to_old(log_prob, old_log_prob, ref_log_prob, mask):
    return token_mean(k2(old_log_prob - log_prob), mask)


def k3_to_old_inverted(current, old, mask):
    return token_mean(k3(old - current), mask)


def token_weight_for_a_sequence(current, reference, old, mask):
    return each((current - old).exp() * k3(reference - current) * mask)


def weight_inverted(current, reference, old, mask):
    return each((old - current).exp().detach() * k2(reference - current) * mask)


def wrong_sampler(current, reference, old, rollout, mask):
    """Weighted by current/old, where the rollout engine sampled."""
    return each((current - old).exp() * k3(reference - current) * mask + 0 * rollout)


# --- clamps


def clamped_output(log_prob, ref_log_prob, response_mask):
    return token_mean(k3(ref_log_prob - log_prob).clamp(-10, 10), response_mask)


def clamped_input(log_prob, ref_log_prob, response_mask):
    return token_mean(k3((ref_log_prob - log_prob).clamp(-20, 20)), response_mask)


def clamped_weight(current, reference, old, mask):
    return token_mean(
        (current - old).exp().clamp(max=10.0).detach() * k2(reference - current), mask
    )


# --- averages


def mean_over_padding(current, reference, mask):
    return (k2(reference - current) * mask).mean()


def mean_of_means(current, reference, mask):
    return ((k2(reference - current) * mask).sum(-1) / mask.sum(-1)).mean()


def prefix_weights_mean_of_means(current, reference, old, mask):
    terms = (current - old).cumsum(-1).exp().detach() * k2(reference - current) * mask
    return (terms.sum(-1) / mask.sum(-1)).mean()


def k1_mean_of_means(current, reference, mask):
    return (((current - reference) * mask).sum(-1) / mask.sum(-1)).mean()


def constant_divisor(current, reference, mask):
    return (k2(reference - current) * mask).sum(-1).mean() / 1024


def forgotten_mask(current, reference, mask):
    return k2(reference - current).mean()


def sum_over_batch(current, reference, mask):
    return (k2(reference - current) * mask).sum()


# --- sequences


def sequence_k3(current, reference, mask):
    return k3(((reference - current) * mask).sum(-1)).mean()


def geometric_ratio(current, reference, old, mask):
    weight = (((current - old) * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)).exp()
    return each(weight * k3(reference - current) * mask)


# --- what stands in the formula


def of_probabilities(current, reference, mask):
    return token_mean(k3(reference.exp() - current.exp()), mask)


def in_bits(current, reference, mask):
    return token_mean((current - reference) / log(2), mask)


def k3_in_bits(current, reference, mask):
    return token_mean(k3((reference - current) / log(2)), mask)


def of_the_ratio(current, reference, mask):
    return token_mean(k3((reference - current).exp()), mask)


def without_its_one(current, reference, mask):
    return token_mean((reference - current).exp() - (reference - current), mask)


def sampled_f_kl_div(log_prob, ref_log_prob):
    """F.kl_div of sampled log-probs, as if they were distributions."""
    return F.kl_div(log_prob, ref_log_prob, log_target=True, reduction="batchmean")


# --- whole vocabularies


def kl_div_swapped(logits, ref_logits, mask):
    """Meant: KL(current||reference); but the target comes first in the KL."""
    kl = F.kl_div(
        logits.log_softmax(-1), ref_logits.log_softmax(-1), log_target=True, reduction="none"
    )
    return token_mean(kl.sum(-1), mask)


def kl_div_batchmean(student_logits, teacher_logits):
    log_s, log_t = student_logits.log_softmax(-1), teacher_logits.log_softmax(-1)
    return F.kl_div(log_s, log_t, log_target=True, reduction="batchmean")


def kl_div_mean(student_logits, teacher_logits):
    log_s, log_t = student_logits.log_softmax(-1), teacher_logits.log_softmax(-1)
    return F.kl_div(log_s, log_t, log_target=True, reduction="none").mean()


def jensen_shannon(student_logits, teacher_logits, mask):
    s, t = student_logits.softmax(-1), teacher_logits.softmax(-1)
    m = (s + t) / 2
    return token_mean((s * (s / m).log() + t * (t / m).log()).sum(-1) / 2, mask)


# --- no KL


def entropy_as_kl(logits, ref_logits, mask):
    p = logits.softmax(-1)
    return token_mean((p * p.log()).sum(-1), mask)


def policy_gradient(log_prob, old_log_prob, mask):
    return -token_mean((log_prob - old_log_prob).exp(), mask)


def probabilities_apart(logits, ref_logits, mask):
    return token_mean(((logits.softmax(-1) - ref_logits.softmax(-1)) ** 2).sum(-1), mask)


def cross_entropy(log_prob, ref_log_prob, mask):
    return -token_mean(log_prob, mask)


# --- in the reward


def k3_reward(log_prob, ref_log_prob):
    return k3(ref_log_prob - log_prob).detach()


def k2_reward(log_prob, ref_log_prob):
    return k2(ref_log_prob - log_prob).detach()


def absolute_reward(log_prob, ref_log_prob):
    return (log_prob - ref_log_prob).abs().detach()


def k1_reward(log_prob, ref_log_prob):
    return (log_prob - ref_log_prob).detach()


def minus_k1_reward(log_prob, ref_log_prob):
    return (ref_log_prob - log_prob).detach()


def k1_reward_of_sequences(log_prob, ref_log_prob, mask):
    return ((log_prob - ref_log_prob) * mask).sum(-1).detach()


def reward_and_loss(current, reference, mask):
    """k1 as a cost of the same token beside the log-prob, and k2 differentiated as well."""
    x = current - reference
    return each((x.detach() * current + k2(x)) * mask)


WRONG: dict[str, Case] = {
    "k1 as loss": Case(
        k1_as_loss,
        ("k1", "current", "reference"),
        on_policy("zero", WHOLE) | stale("KL(old||current)", WHOLE, -1.0),
        level="token_mean",
        says=("moves nothing on average", "ascends KL(old||current)"),
    ),
    "k3 as loss": Case(
        k3_as_loss,
        ("k3", "current", "reference"),
        on_policy(BACK, TOKEN) | stale(),
        level="token_mean",
        says=("Its mean is KL(current||reference)", "descends KL(reference||current)"),
    ),
    "k3 with its ratio inverted": Case(
        k3_inverted,
        ("k3", "reference", "current"),
        on_policy(),
        says=("its ratio is inverted",),
    ),
    "a detached ratio times k3": Case(
        detached_ratio_times_k3,
        ("k3", "current", "reference"),
        on_policy(BACK, TOKEN) | stale(BACK, TOKEN),
    ),
    "an attached ratio times k2": Case(
        attached_ratio_times_k2, ("k2", "current", "reference"), on_policy() | stale()
    ),
    "unweighted on stale tokens": Case(
        lambda current, reference: each(k2(reference - current)),
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(),
        says=("needs the weight current/sampler",),
    ),
    "a token weight for the sequence's question": Case(
        token_weight_for_a_sequence,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
        says=("at the sampler's prefixes",),
    ),
    "the weight inverted": Case(
        weight_inverted,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(),
        says=("Turn its weight: current/old",),
    ),
    "the weight of another sampler": Case(
        wrong_sampler,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN) | {("engine", "loss"): None},
        says=("Weight it by current/rollout, not by current/old",),
    ),
    "doubled": Case(
        doubled, ("k3", "current", "reference"), on_policy(BACK, TOKEN, 2.0), factor=2.0
    ),
    "k2 without its half": Case(
        squared,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN, 2.0),
        factor=2.0,
        says=("squared log-ratio", "factor 2"),
    ),
    "the sign turned": Case(
        minus_k2,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN, -1.0),
        factor=-1.0,
        says=("Turn its sign",),
    ),
    "k1 with its sign turned": Case(
        swapped_k1, ("k1", "current", "reference"), on_policy("zero", WHOLE), factor=-1.0
    ),
    "detached": Case(
        detached,
        ("k2", "current", "reference"),
        reward("full_return"),
        says=("carries no gradient",),
    ),
    "the reference differentiated": Case(
        reference_differentiated,
        ("k2", "current", "reference"),
        reward("full_return"),
        says=("carries no gradient to the current policy, though one flows to reference",),
    ),
    "|log r| as loss": Case(absolute_as_loss, ("|log r|", "current", "reference"), on_policy()),
    "to old in place of the reference": Case(
        to_old,
        ("k2", "current", "old"),
        on_policy("zero", WHOLE) | stale(),
        says=("does not depend on reference",),
    ),
    "a trust region's k3 with its ratio inverted": Case(
        k3_to_old_inverted, ("k3", "current", "old"), on_policy("zero", WHOLE) | stale()
    ),
    "clamped at 10": Case(
        clamped_output,
        ("k3", "current", "reference"),
        on_policy(BACK, TOKEN),
        says=(
            "clamped at 10",
            "reference/current is above 13.6 (no gradient there)",
            "clamp the log-ratio, far out",
        ),
    ),
    "its log-ratio clamped at 20": Case(
        clamped_input,
        ("k3", "current", "reference"),
        on_policy(BACK, TOKEN),
        says=("its log-ratio clamped at 20",),
    ),
    "its weight clamped at 10": Case(
        clamped_weight,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
        says=("its weight clamped at 10",),
    ),
    "a mean over padding": Case(
        mean_over_padding,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        level="padded_mean",
        says=("shrinks with the padding", "not by all positions"),
    ),
    "a mean of means": Case(
        mean_of_means,
        ("k2", "current", "reference"),
        on_policy(),
        level="sequence_mean",
        says=(
            "As a loss it descends KL(current||reference), token by token",
            "where all sequences have one length; where lengths are random it has",
            "Do Count each token alike",
        ),
    ),
    "prefix weights and a mean of means": Case(
        prefix_weights_mean_of_means,
        ("k2", "current", "reference"),
        on_policy() | stale(),
        level="sequence_mean",
    ),
    "k1 as a mean of means": Case(
        k1_mean_of_means,
        ("k1", "current", "reference"),
        on_policy("E[1 / length]", WHOLE),
        level="sequence_mean",
        says=(
            "it descends E[1 / length]: it makes sequences longer, and does nothing else",
            "where all sequences have one length it has an expected gradient of zero",
        ),
    ),
    "a constant divisor": Case(
        constant_divisor,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN, 1 / 1024),
        factor=1 / 1024,
        level="sequence_sum",
        says=("1/1024",),
    ),
    "the mask forgotten": Case(
        forgotten_mask,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        says=("What stands at masked positions changes it", "Keep masked positions out"),
    ),
    "summed over the batch": Case(
        sum_over_batch,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        level="sum",
        says=("grows with the number of sequences", "Divide by the number of sequences"),
    ),
    "k3 of summed log-ratios": Case(
        sequence_k3,
        ("k3", "current", "reference"),
        on_policy(BACK, WHOLE),
        also={"unit": "sequence"},
    ),
    "a geometric mean for the sequence's ratio": Case(
        geometric_ratio, ("k3", "current", "reference"), on_policy() | stale()
    ),
    "probabilities for log-probabilities": Case(
        of_probabilities,
        ("k3", "current", "reference"),
        on_policy(),
        also={"scale": "probabilities"},
        says=("of probabilities where log-probabilities belong",),
    ),
    "in bits": Case(
        in_bits,
        ("k1", "current", "reference"),
        on_policy("zero", WHOLE),
        factor=1 / log(2),
        says=("1/log 2",),
    ),
    "k3 of bits": Case(
        k3_in_bits,
        ("k3", "current", "reference"),
        on_policy(),
        also={"scale": "bits"},
    ),
    "the ratio for its log": Case(
        of_the_ratio,
        ("k3", "current", "reference"),
        on_policy(),
        also={"scale": "ratios"},
        says=("Where all policies agree it is 0.7183 and not 0",),
    ),
    "k3 without its one": Case(
        without_its_one,
        ("exp(x) - x", "current", "reference"),
        on_policy(BACK, TOKEN),
        says=("Where all policies agree it is 1 and not 0",),
    ),
    "F.kl_div of sampled tokens": Case(
        sampled_f_kl_div, ("p log p/q", "reference", "current"), on_policy()
    ),
    "F.kl_div with its arguments exchanged": Case(
        kl_div_swapped,
        ("KL", "reference", "current"),
        on_policy(BACK, TOKEN) | stale(BACK, TOKEN),
        says=("exchange the two sides",),
    ),
    "F.kl_div with batchmean": Case(
        kl_div_batchmean,
        ("KL", "reference", "current"),
        on_policy(BACK, TOKEN),
        level="sequence_sum",
    ),
    "F.kl_div with mean": Case(
        kl_div_mean,
        ("KL", "reference", "current"),
        on_policy(BACK, TOKEN, 1 / 3),
        factor=1 / 3,
        says=("Sum over the vocabulary",),
    ),
    "Jensen-Shannon for KL": Case(jensen_shannon, ("JS", "current", "reference"), on_policy()),
    "an entropy for a KL": Case(
        entropy_as_kl,
        ("entropy", "current", "current"),
        on_policy("the entropy of current", TOKEN, -1.0),
        factor=-1.0,
        is_kl=False,
        says=("not a KL term",),
    ),
    "a policy gradient": Case(
        policy_gradient,
        ("r", "old", "current"),
        on_policy("zero", WHOLE),
        factor=-1.0,
        is_kl=False,
        says=("not a KL term",),
    ),
    "squared differences of probabilities": Case(
        probabilities_apart,
        ("squared difference", "current", "reference"),
        on_policy(),
    ),
    "a cross-entropy of sampled tokens": Case(
        cross_entropy,
        ("log-prob", "current", "current"),
        on_policy("zero", WHOLE),
        factor=-1.0,
        is_kl=False,
    ),
    "k3 in the reward": Case(
        k3_reward,
        ("k3", "current", "reference"),
        reward("reward_to_go", APART, "mixed") | reward("immediate", APART, TOKEN),
        says=("In the reward put k1",),
    ),
    "k2 in the reward": Case(
        k2_reward, ("k2", "current", "reference"), reward("reward_to_go"), says=("put k1",)
    ),
    "|log r| in the reward": Case(
        absolute_reward, ("|log r|", "current", "reference"), reward("full_return")
    ),
    "k1 in the reward with immediate credit": Case(
        k1_reward, ("k1", "current", "reference"), reward("immediate", AHEAD, TOKEN)
    ),
    "minus k1 as a cost": Case(
        minus_k1_reward,
        ("k1", "current", "reference"),
        reward("full_return", AHEAD, WHOLE, -1.0),
        factor=-1.0,
        says=("Turn its sign",),
    ),
    "in the reward and in the loss": Case(
        reward_and_loss, None, on_policy(AHEAD, TOKEN, 2.0), says=("times 2",)
    ),
}


# --- right ones


def k2_on_policy(log_prob, ref_log_prob, response_mask):
    return token_mean(k2(ref_log_prob - log_prob), response_mask)


def straight_through(log_prob, ref_log_prob, response_mask):
    """The value of k3, the gradient of k2."""
    x = ref_log_prob - log_prob
    return token_mean(k2(x) + (k3(x) - k2(x)).detach(), response_mask)


def k1_with_its_ratio(current, reference, old, mask):
    return token_mean((current - old).exp() * (current - reference), mask)


def k3_with_its_ratio(current, reference, old, mask):
    return token_mean((current - old).exp() * k3(reference - current), mask)


def k3_with_its_own_ratio(current, reference, mask):
    return token_mean((current - current.detach()).exp() * k3(reference - current), mask)


def prefix_weights_attached(current, reference, old, mask):
    return each((current - old).cumsum(-1).exp() * k3(reference - current) * mask)


def prefix_weights_token_mean(current, reference, old, mask):
    return token_mean((current - old).cumsum(-1).exp() * k3(reference - current), mask)


def sequence_weight_attached(current, reference, rollout, mask):
    weight = ((current - rollout) * mask).sum(-1, keepdim=True).exp()
    return each(weight * (current - reference) * mask)


def k2_with_a_held_weight(current, reference, rollout, mask):
    return token_mean((current - rollout).exp().detach() * k2(reference - current), mask)


def rao_blackwell(logits, ref_logits, mask):
    log_p, log_q = logits.log_softmax(-1), ref_logits.log_softmax(-1)
    return token_mean((log_p.exp() * (log_p - log_q)).sum(-1), mask)


def score_of_the_rest(current, reference, mask):
    """k1, from each token on, as a cost beside its log-prob."""
    x = (current - reference).detach() * mask
    to_go = x.flip(-1).cumsum(-1).flip(-1)
    return each(to_go * current * mask)


def sequence_k2(current, reference, mask):
    return k2(((reference - current) * mask).sum(-1)).mean()


def trust_region_k3(current, old, mask):
    return each(k3(current - old) * mask)


def teacher_k3(student_log_probs, teacher_log_probs, rollout_log_probs, mask):
    weight = (student_log_probs - rollout_log_probs).exp()
    return token_mean(weight * k3(teacher_log_probs - student_log_probs), mask)


RIGHT: dict[str, Case] = {
    "k2 on policy": Case(
        k2_on_policy,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        says=("Nothing where the current policy sampled",),
    ),
    "straight-through k2 with k3's value": Case(
        straight_through,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        says=("That of k2",),
    ),
    "k1 with its ratio attached": Case(
        k1_with_its_ratio,
        ("k1", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
        says=("Nothing: it descends KL(current||reference)",),
    ),
    "k3 with its ratio attached": Case(
        k3_with_its_ratio,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
        says=("Nothing: it descends KL(current||reference)",),
    ),
    "k3 with its own ratio attached": Case(
        k3_with_its_own_ratio,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN),
        says=("That of k2",),
    ),
    "prefix weights attached": Case(
        prefix_weights_attached,
        ("k3", "current", "reference"),
        on_policy(AHEAD, WHOLE) | stale(AHEAD, WHOLE),
    ),
    "prefix weights attached, each token alike": Case(
        prefix_weights_token_mean,
        ("k3", "current", "reference"),
        on_policy(AHEAD, WHOLE) | stale(AHEAD, WHOLE),
        level="token_mean",
    ),
    "a sequence weight attached": Case(
        sequence_weight_attached,
        ("k1", "current", "reference"),
        on_policy(AHEAD, WHOLE) | stale(AHEAD, WHOLE),
    ),
    "k2 with a weight held constant": Case(
        k2_with_a_held_weight,
        ("k2", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
        says=("Nothing: it descends KL(current||reference)",),
    ),
    "the KL at every prefix": Case(
        rao_blackwell,
        ("KL", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
    ),
    "k1 as a cost beside the log-prob": Case(
        score_of_the_rest, None, on_policy(AHEAD, WHOLE), says=("from that token on",)
    ),
    "k2 of summed log-ratios": Case(
        sequence_k2,
        ("k2", "current", "reference"),
        on_policy(AHEAD, WHOLE),
        also={"unit": "sequence"},
    ),
    "k1 in the reward": Case(
        k1_reward,
        ("k1", "current", "reference"),
        reward("reward_to_go", AHEAD, WHOLE) | reward("full_return", AHEAD, WHOLE),
        says=("Nothing: subtract it from the reward",),
    ),
    "k1 of sequences in the reward": Case(
        k1_reward_of_sequences,
        ("k1", "current", "reference"),
        reward("full_return", AHEAD, WHOLE),
        says=("Nothing: subtract it from the reward",),
    ),
    "k3 of a trust region": Case(
        trust_region_k3,
        ("k3", "old", "current"),
        stale("KL(old||current)", WHOLE),
        says=("stay near old",),
    ),
    "a teacher's k3 with its ratio attached": Case(
        teacher_k3,
        ("k3", "current", "reference"),
        on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN),
    ),
}
