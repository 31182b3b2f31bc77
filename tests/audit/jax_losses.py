"""Some of the wrong and the right terms as people write them in JAX."""

from __future__ import annotations

import pytest

from .cases import AHEAD, APART, BACK, TOKEN, WHOLE, Case, on_policy, reward, stale

jax = pytest.importorskip("jax")
jnp = jax.numpy


def token_mean(values, mask):
    return jnp.sum(values * mask) / jnp.sum(mask)


def k3(x):
    return jnp.exp(x) - 1 - x


def k1_as_loss(per_token_logps, ref_per_token_logps, completion_mask):
    return token_mean(per_token_logps - ref_per_token_logps, completion_mask)


def k3_as_loss(per_token_logps, ref_per_token_logps, completion_mask):
    kl = k3(ref_per_token_logps - per_token_logps)
    return token_mean(kl, completion_mask), {"kl": kl}


def clamped(per_token_logps, ref_per_token_logps, completion_mask):
    return token_mean(jnp.clip(k3(ref_per_token_logps - per_token_logps), -10, 10), completion_mask)


def straight_through(logp, ref_logp, mask):
    x = ref_logp - logp
    k2 = x**2 / 2
    return token_mean(k2 + jax.lax.stop_gradient(k3(x) - k2), mask)


def held_ratio(logp, old_logp, ref_logp, mask):
    return token_mean(jax.lax.stop_gradient(jnp.exp(logp - old_logp)) * k3(ref_logp - logp), mask)


def attached_ratio(logp, old_logp, ref_logp, mask):
    return token_mean(jnp.exp(logp - old_logp) * k3(ref_logp - logp), mask)


def held(logp, ref_logp, mask):
    return jax.lax.stop_gradient(token_mean((logp - ref_logp) ** 2 / 2, mask))


def penalty(logp, ref_logp):
    return jax.lax.stop_gradient(logp - ref_logp)


def k3_penalty(logp, ref_logp):
    return jax.lax.stop_gradient(k3(ref_logp - logp))


def to_teacher(student_logits, teacher_logits, mask):
    log_s, log_t = jax.nn.log_softmax(student_logits), jax.nn.log_softmax(teacher_logits)
    return token_mean(jnp.sum(jnp.exp(log_t) * (log_t - log_s), axis=-1), mask)


def masked_inside(logp, ref_logp, mask):
    x = jnp.where(mask, logp - ref_logp, 0.0)
    return jnp.sum(x**2 / 2) / jnp.maximum(jnp.sum(mask), 1)


def no_mask(logp, ref_logp, mask):
    return jnp.mean((logp - ref_logp) ** 2 / 2)


K1, K2, K3 = ((name, "current", "reference") for name in ("k1", "k2", "k3"))

CASES: dict[str, Case] = {
    "k1 as loss": Case(
        k1_as_loss, K1, on_policy("zero", WHOLE) | stale("KL(old||current)", WHOLE, -1.0)
    ),
    "k3 as loss": Case(k3_as_loss, K3, on_policy(BACK, TOKEN) | stale(), level="token_mean"),
    "clamped at 10": Case(
        clamped, K3, on_policy(BACK, TOKEN), says=("clamped at 10", "no gradient there")
    ),
    "straight-through": Case(straight_through, K3, on_policy(AHEAD, TOKEN), says=("That of k2",)),
    "a ratio held constant": Case(held_ratio, K3, on_policy(BACK, TOKEN) | stale(BACK, TOKEN)),
    "a ratio attached": Case(attached_ratio, K3, on_policy(AHEAD, TOKEN) | stale(AHEAD, TOKEN)),
    "held constant": Case(held, K2, reward("full_return"), says=("carries no gradient",)),
    "k1 in the reward": Case(penalty, K1, reward("reward_to_go", AHEAD, WHOLE)),
    "k3 in the reward": Case(k3_penalty, K3, reward("reward_to_go", APART, "mixed")),
    "to a teacher": Case(
        to_teacher, ("KL", "reference", "current"), on_policy(BACK, TOKEN), level="token_mean"
    ),
    "masked inside": Case(masked_inside, K2, on_policy(AHEAD, TOKEN), level="token_mean"),
    "the mask forgotten": Case(no_mask, K2, on_policy(AHEAD, TOKEN), says=("Keep masked",)),
}
