"""What is written of the numbers that say whether to trust another: masses, weights, shapes."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.sampler_tests import FEWEST_CLUSTERS, FEWEST_PREFIXES, FLOAT32_FLOOR
from kullback.estimation.conditions import FEW_CLUSTERS, FEW_LEFT
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.estimation.terms import CLIP_BAND, TRUNCATED_AT
from kullback.explaining.enumerated import WHO, Tokens, after_first, sums, world
from kullback.explaining.metrics import Metric, Worked
from kullback.formulas import weights
from kullback.formulas.categorical import entropy
from kullback.formulas.shape import Shape, shape
from kullback.worlds.tables import kept_top_k, tempered

_BAND = f"{CLIP_BAND[0]:g} to {CLIP_BAND[1]:g}"
_SAMPLERS = {"old": "an older copy of p", "reference": "a policy far away"}
_OF_BATCH = (
    "It describes the weights of this batch. Until the large ones are sampled, it looks better "
    "than it is."
)


def _missing_mass() -> Worked:
    tokens = Tokens.of()
    lost = -np.expm1(tokens.log_q_over_p)
    drawn = np.exp(kept_top_k(after_first("current")[None], 2))[0]
    numbers = {
        "mean": abs(tokens.mean(lost)),  # 0 but for rounding, of either sign
        "deviation": tokens.deviation(lost),
        "positive_share": tokens.mean(lost > 0),
        "top_2": float(drawn @ -np.expm1(after_first("reference") - after_first("current"))),
    }
    return (
        f"{WHO} With p as the sampler the mean is {numbers['mean']:.4f}, but one token has a "
        f"standard deviation of {numbers['deviation']:.2f}, and {numbers['positive_share']:.0%} "
        "are above 0. If the token after a 0 is drawn from p's two likeliest, and p's raw "
        f"log-probs are logged, it is {numbers['top_2']:+.3f}.",
        numbers,
    )


def _log_bound() -> Worked:
    k1 = -sums(Tokens.of().log_q_over_p)
    chances = world().probability("current")
    numbers = {
        "product": float(chances @ np.exp(-k1)),
        "chance": float(chances[k1 <= -1.0].sum()),
        "bound": float(np.exp(-1.0)),
    }
    return (
        f"{WHO} The product of q/p over a sequence has mean {numbers['product']:.4f}. A sequence's "
        f"k1 sum to −1 or less with probability {numbers['chance']:.3f}; the bound says "
        f"{numbers['bound']:.3f} at most.",
        numbers,
    )


def _entropy_test() -> Worked:
    log_p = after_first("current")
    sharp = np.exp(tempered(log_p[None], 0.8))[0]
    h = float(entropy(log_probs=log_p))
    numbers = {
        "entropy": h,
        "honest": float(np.exp(log_p) @ -log_p) - h,
        "sharper": float(sharp @ -log_p) - h,
    }
    return (
        f"{WHO} After token 0 H = {h:.3f} nats. Drawn from p, −log p − H has mean "
        f"{abs(numbers['honest']):.4f}; drawn at temperature 0.8, {numbers['sharper']:+.4f}.",
        numbers,
    )


def _of_weights(what: str) -> Worked:
    numbers, parts = {}, []
    for sampler, who in _SAMPLERS.items():
        tokens = Tokens.of(sampler)
        weight = np.exp(tokens.log_weight(sampler))
        square = tokens.mean(weight**2)
        low, high = CLIP_BAND
        numbers[sampler] = {
            "ess": tokens.mean(weight) ** 2 / square,
            "chi2": tokens.deviation(weight) ** 2,
            "clip-fraction": tokens.mean((weight < low) | (weight > high)),
            "truncated-share": tokens.mean(weight > TRUNCATED_AT),
        }[what]
        parts.append(f"{numbers[sampler]:.4f} if s is {who} ({sampler})")
    return f"{WHO} Over all tokens of a sampler s it is {', '.join(parts)}.", numbers


def _pairs() -> tuple[Shape, Shape]:
    """All tokens of p, prefix and all, and a pair with a hole."""
    tokens = Tokens.of()
    smooth = shape(tokens.weight, tokens.weight * np.exp(tokens.log_q_over_p))
    return smooth, shape([0.001, 0.4995, 0.4995], [0.1, 0.45, 0.45])


def _shape() -> Worked:
    near, hole = _pairs()
    numbers = {"near": float(near.S), "hole": float(hole.S)}
    return (
        f"{WHO} Over all tokens of p S = {near.S:.3f}: k3 has the variance {near.variance_k3:.3f}, "
        f"k1 {near.variance_k1:.3f}. Where p has 0.001 and q has 0.1 on one of three tokens, "
        f"S = {hole.S:.2f}: k3 {hole.variance_k3:.2f}, k1 {hole.variance_k1:.3f}.",
        numbers,
    )


def _lambda() -> Worked:
    near, hole = _pairs()
    numbers = {"near": float(near.lambda_star), "hole": float(hole.lambda_star)}
    return (
        f"{WHO} Over all tokens of p λ* = {near.lambda_star:.3f}, and the variance falls from "
        f"{near.variance_k1:.3f} (k1) to {near.variance_k_lambda:.3f}. Where p has 0.001 and q has "
        f"0.1 on one of three tokens, λ* = {hole.lambda_star:.3f}.",
        numbers,
    )


def _unweighted() -> Worked:
    tokens = Tokens.of("reference")
    k1, weight = -tokens.log_q_over_p, np.exp(tokens.log_weight("reference"))
    numbers = {"without": tokens.mean(k1), "with": tokens.mean(weight * k1)}
    return (
        f"{WHO} If q itself sampled, the plain mean of log p − log q is {numbers['without']:.4f}, "
        f"and with the weight p/q {numbers['with']:.4f}, the KL(p‖q) at q's prefixes.",
        numbers,
    )


def _effective() -> Worked:
    small = world()
    first, second = (small.mean(small.lengths**n, by="current") for n in (1, 2))
    numbers = {"of_100": 100 * first**2 / second}
    return (
        f"{WHO} 100 of p's sequences, {first:.2f} tokens long on average, are worth "
        f"{numbers['of_100']:.1f} of equal length.",
        numbers,
    )


TRUST = {
    "missing-mass": Metric(
        caption="the mass of q that the sampled tokens did not show",
        means="If the sampler is honest and has all of q's tokens, q/s has mean 1. What lacks was "
        "not sampled: by chance, by a truncation, or because s is not the sampler.",
        formula="1 − mean(q/s); with s = p this is mean(k1) − mean(k3)",
        unit="A share, with its clustered error.",
        unbiased=weights.CLAIMS["control"],
        negative="Then a hole was hit, where q/s is huge.",
        blind="It accuses nobody: honest samplers with holes have it at |z| > 3 often. Masses on "
        "tokens that are never sampled keep it positive without an error that says so.",
        worked=_missing_mass,
    ),
    "log-bound": Metric(
        caption="the log of how likely so low a sum of k1 is, at most, under its sampler",
        means="The price of a negative KL. Near 0 nothing speaks against the sampler; at −50 it "
        "did not sample these tokens, or q was fitted to them.",
        formula="log P(Σ k1 ≤ −c) ≤ −c, with c = −Σ k1 over all tokens, since the product of q/p "
        "has mean 1 at most",
        unit="The logarithm of a probability.",
        unbiased="It holds for any dependence of the tokens, if q was fixed before and none was "
        "selected. Both sides are of the same sampler.",
        negative="It is 0 or below, always; the more, the worse.",
        blind="Wrong samplers whose sum stays positive, and columns of other rows. Rounding: "
        f"{FLOAT32_FLOOR:g} nats per token are given to it before anybody is accused.",
        worked=_log_bound,
    ),
    "entropy-test": Metric(
        caption="do the sampled tokens surprise the sampler as much as its entropy says?",
        means="entropy_z of a report: the mean of −log s − H in standard errors. Below 0 the "
        "tokens are likelier than drawn: a lower temperature or a truncation. Above 0: a flatter "
        "policy drew.",
        formula=f"mean(−log s(x) − H) / error, over prefixes with H ≥ {ENTROPY_FLOOR:g} nats",
        unit="Standard errors.",
        unbiased="For 0 under an honest sampler, whatever the policies.",
        negative="Either sign, as above.",
        blind="It needs the sampler's entropy per token, of the distribution that its log-probs "
        f"are of; {FEWEST_PREFIXES} such prefixes, {FEWEST_CLUSTERS} effective clusters. If both "
        "were logged after the temperature, all is well, and it says so.",
        worked=_entropy_test,
    ),
    "ess": Metric(
        caption="weights left: the share of the tokens that the weights leave",
        means="n weighted tokens tell as much as this share of n tokens of p itself. In JSON "
        f"ess_fraction. Below {FEW_LEFT:.0%}: kullback explain weights-degenerate.",
        formula="(Σ w)² / (n Σ w²), with w = p/s; in the long run 1 / (1 + χ²)",
        unit="A share, from 1/n to 1.",
        unbiased=_OF_BATCH,
        negative="Never.",
        blind="What s never sampled. Without a weight (on-policy) it is told of q/s.",
        worked=lambda: _of_weights("ess"),
    ),
    "chi2": Metric(
        caption="the variance of the importance weight",
        means="How far the target is from the sampler, as the weights see it: 0 if they are the "
        "same.",
        formula="χ² = Var_s(w) = mean(w²) − 2 mean(w) + 1, with w = p/s (on-policy q/s)",
        unit="No unit.",
        unbiased="For χ²(target‖s), if the target was fixed before. " + _OF_BATCH,
        negative="Never.",
        blind="Tails: a few weights decide it, and it may be infinite.",
        worked=lambda: _of_weights("chi2"),
    ),
    "clip-fraction": Metric(
        caption="how many tokens have a weight outside the usual clip band",
        means="The tokens whose ratio a clipped policy loss with the usual band would cut off (it "
        "depends on the sign of the advantage which are).",
        formula=f"the share of tokens with w outside {_BAND}, w = p/s (on-policy q/s)",
        unit="A share.",
        unbiased="For that share, over tokens that s sampled.",
        negative="Never.",
        blind="How far outside. Your own band, if it is another one.",
        worked=lambda: _of_weights("clip-fraction"),
    ),
    "truncated-share": Metric(
        caption="how many tokens have a weight that truncation would cut",
        means="With truncated importance sampling these weights count as the ceiling. What is cut "
        "off is a bias: truncated_mean says what is left of a mean weight of 1.",
        formula=f"the share of tokens with w > {TRUNCATED_AT:g}, w = p/s (on-policy q/s)",
        unit="A share.",
        unbiased="For that share, over tokens that s sampled.",
        negative="Never.",
        blind="Weights that were truncated before they were logged: then it is 0.",
        worked=lambda: _of_weights("truncated-share"),
    ),
    "S": Metric(
        caption="the shape of a pair of distributions: which of k1 and k3 is less noisy",
        means="Below 1 k3 has the smaller variance (smooth difference), above 1 k1 (holes, or a "
        "flatter q). In a report it is null: it cannot be read off sampled tokens.",
        formula="S = χ²(q‖p) / (2 J), J = KL(p‖q) + KL(q‖p); kb.shape(p, q)",
        unit="No unit.",
        unbiased="Exact, from whole distributions.",
        negative="Never.",
        blind="Sums of dependent tokens, where covariances count, too. Estimated from a sample "
        "without the holes it says smooth.",
        worked=_shape,
    ),
    "lambda": Metric(
        caption="λ*, the share of the control that leaves least noise",
        means="k_lambda at λ* has the smallest variance: 1 is k3, 0 is k1. In a report it is null, "
        "as S is.",
        formula="λ* = J / χ²(q‖p) = 1 / (2 S), J = KL(p‖q) + KL(q‖p); kb.shape(p, q)",
        unit="No unit.",
        unbiased="Exact, from whole distributions. One that is fitted to the sample makes k_lambda "
        "biased.",
        negative="Never.",
        blind="What S is blind to.",
        worked=_lambda,
    ),
    "unweighted-k1": Metric(
        caption="what a log shows that forgets who sampled",
        means="If s sampled and neither weight nor s is in the formula, the mean of log p − log q "
        "is KL(s‖q) − KL(s‖p), a difference of two KLs. It may be negative for ever. In JSON "
        "unweighted_k1.",
        formula="mean(log p(x) − log q(x)) over tokens x that s sampled",
        unit="Nats per token.",
        unbiased="For that difference at the prefixes of s, not for KL(p‖q).",
        negative="Yes, and it means no bug: q is nearer to the sampler than p is.",
        blind="The weight p/s.",
        worked=_unweighted,
    ),
    "effective-clusters": Metric(
        caption="how many clusters of equal size these are worth",
        means="Clusters are prompts if known, else sequences. If one has most of the tokens, there "
        f"are few in effect. Below {FEW_CLUSTERS}: kullback explain too-few-clusters.",
        formula="(Σ n)² / Σ n², with n the tokens of a cluster (Kish)",
        unit="Clusters.",
        unbiased="Counted, not estimated; beyond 1024 clusters from hashes.",
        negative="From 1 to the number of clusters.",
        blind="Prompts that are alike, and prompts whose ids were not logged.",
        worked=_effective,
    ),
}
