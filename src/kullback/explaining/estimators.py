"""What is written of the KL, its estimators, its interval and its levels."""

from __future__ import annotations

import numpy as np

from kullback.estimation.conditions import FEW_CLUSTERS
from kullback.estimation.tapered import tapered
from kullback.explaining.enumerated import WHO, Tokens, coverage, exact, sums, world
from kullback.explaining.metrics import Metric, Worked
from kullback.explaining.rungs import RUNGS
from kullback.explaining.scalar import ROUNDED
from kullback.formulas import k_family
from kullback.question import LEVELS

_PER_TOKEN = "Nats per token, or per sequence where the question says so."


def _kl() -> Worked:
    numbers = {
        "kl": exact("KL(current||reference)"),
        "other_way": exact("KL(reference||current)"),
        "negative_batches": float(
            world().probability("current") @ (sums(Tokens.of().log_q_over_p) > 0)
        ),
    }
    return (
        f"{WHO} KL(p‖q) = {numbers['kl']:.4f}, the other way round KL(q‖p) = "
        f"{numbers['other_way']:.4f} nats per token. Of batches of one sequence "
        f"{numbers['negative_batches']:.0%} show a negative mean of k1, with an honest sampler.",
        numbers,
    )


def _term(name: str) -> Worked:
    tokens, formula = Tokens.of(), getattr(k_family, name)
    terms = formula(tokens.log_q_over_p)
    numbers = {
        "kl": exact("KL(current||reference)"),
        "mean": tokens.mean(terms),
        "deviation": tokens.deviation(terms),
        "lowest": float(terms.min()),
        "negative_share": tokens.mean(terms < 0),
    }
    return (
        f"{WHO} KL(p‖q) = {numbers['kl']:.4f} nats per token, the mean of {name} over all tokens "
        f"of p is {numbers['mean']:.4f}. One token has a standard deviation of "
        f"{numbers['deviation']:.3f}; the lowest is {numbers['lowest']:.3f}, and "
        f"{numbers['negative_share']:.0%} of p's tokens are below 0.",
        numbers,
    )


def _k_lambda() -> Worked:
    tokens = Tokens.of()
    log_r = tokens.log_q_over_p
    k1 = k_family.k1(log_r)
    control = np.expm1(log_r)
    best = -tokens.mean((k1 - tokens.mean(k1)) * control) / tokens.mean(control**2)
    numbers = {"kl": exact("KL(current||reference)"), "best": best}
    parts = []
    for lam in (0.0, 1.0, best):
        terms = k_family.k_lambda(log_r, lam)
        numbers[f"deviation_{lam:.2f}"] = tokens.deviation(terms)
        parts.append(f"{tokens.deviation(terms):.3f} at λ = {lam:.2f}")
        numbers[f"mean_{lam:.2f}"] = tokens.mean(terms)
    return (
        f"{WHO} The mean is {numbers['kl']:.4f} at every λ; the standard deviation of a token is "
        f"{', '.join(parts)}.",
        numbers,
    )


def _auto() -> Worked:
    """A close pair and one with a hole, each the same 400 draws at even quantiles."""
    numbers, said = {}, []
    ones = np.ones(400)
    place = (np.arange(400) + 0.5) / 400
    smooth = np.where(place < 0.5, np.log(1.1), np.log(0.9))
    hole = np.log(0.9) + 0.05 * (place - 0.5)  # the tenth of q that p dropped was never drawn
    for name, log_r in (("smooth", smooth), ("hole", hole)):
        k1, k3 = k_family.k1(log_r), k_family.k3(log_r)
        found = tapered(k1, k3, ones, effective=400)
        numbers |= {f"{name}_k1": float(k1.mean()), f"{name}_k3": float(k3.mean())}
        numbers |= {f"{name}_auto": float(found.above.mean()), f"{name}_lam": found.lam}
        said.append(
            f"{numbers[f'{name}_auto']:.4f} (λ = {found.lam:.2f}; k1 {k1.mean():.4f}, k3 "
            f"{k3.mean():.4f})"
        )
    return (
        f"400 draws of two halves that q finds 1.1 and 0.9 times as likely: auto = {said[0]}. "
        f"Where a tenth of q's mass was never drawn: {said[1]}.",
        numbers,
    )


def _exact() -> Worked:
    tokens = Tokens.of()
    numbers = {
        "kl": exact("KL(current||reference)"),
        "lowest": float(tokens.kl.min()),
        "highest": float(tokens.kl.max()),
        "deviation": tokens.deviation(tokens.kl),
        "deviation_k1": tokens.deviation(tokens.log_q_over_p),
    }
    return (
        f"{WHO} The KL at a prefix is {numbers['lowest']:.3f} to {numbers['highest']:.3f} nats, on "
        f"average {numbers['kl']:.4f}. Between tokens its standard deviation is "
        f"{numbers['deviation']:.3f}, that of k1 {numbers['deviation_k1']:.3f}.",
        numbers,
    )


def _interval() -> Worked:
    numbers = {f"coverage_{n}": coverage(n) for n in (2, 4)}
    return (
        f"{WHO} Over all batches of 2 sequences the 95% interval holds the KL in "
        f"{numbers['coverage_2']:.1%}, over all of 4 in {numbers['coverage_4']:.1%}. In "
        "simulations of prompts see results/coverage.json.",
        numbers,
    )


def _levels() -> Worked:
    words = {
        "token_mean": "",
        "sequence_sum": " per sequence",
        "sequence_mean": " per sequence-mean",
    }
    asked = {level: f"KL(current||reference){words[level]}" for level in LEVELS}
    numbers = {level: exact(text) for level, text in asked.items()}
    lengths = world().lengths
    k1 = -sums(Tokens.of().log_q_over_p)
    numbers["k1_at_sequence_mean"] = world().mean(k1 / lengths, by="current")
    return (
        f"{WHO} The KL is {numbers['token_mean']:.4f} per token, {numbers['sequence_sum']:.4f} per "
        f"sequence, and {numbers['sequence_mean']:.4f} as a mean over sequences. There the mean of "
        f"k1 is {numbers['k1_at_sequence_mean']:.4f}, for ever: it is off.",
        numbers,
    )


ESTIMATORS = {
    "kl": Metric(
        caption="how far p is from q, in the tokens that p samples",
        means="KL(P‖Q) answers one question: who is p, who is q, who sampled, whose prefixes, and "
        "per what. In a report it is estimated by auto: kullback explain auto.",
        formula="KL(P‖Q) = E over x from P of log P(x) − log Q(x)",
        unit=_PER_TOKEN,
        unbiased=k_family.CLAIMS["k1"],
        negative="The KL itself never; its estimate may be, and how far has a price: kullback "
        "explain kl --value V --tokens N.",
        blind="What p seldom samples. And a swap of p and q, which is another KL: look at the "
        "question.",
        worked=_kl,
    ),
    "auto": Metric(
        caption="the default estimate: k1, with as much of k3 as the data warrant",
        means="k1 with a share λ of the control r − 1: λ is the one with the least error, learned "
        "on the other clusters, and drawn back to 0 (k1) where k1 exceeds k3 by more "
        "than noise does, for then q has mass that was not sampled.",
        formula="auto = −log r + wλ (r − 1); λ = −Cov(k1, r − 1) / Var(r − 1); w falls from 1 to 0 "
        "as (k1 − k3) / se(k1) grows",
        unit=_PER_TOKEN,
        unbiased="As k1 while w = 1. Where q has mass that p never sampled it leans low, by at "
        "most 1.2, 1.9 or 2.5 standard errors of k1 where k1 is 7, 28 or 100 times noisier than "
        "k_λ.",
        negative="It can be, less far than k1.",
        blind="Holes too small to be told from the noise of k1: its upper end is k1's for that "
        "reason. And what k1 is blind to.",
        worked=_auto,
    ),
    "k1": Metric(
        caption="the plain estimate of KL(p‖q): log p − log q",
        means="How much likelier p finds a sampled token than q does, averaged. It is the number "
        "most logs call kl.",
        formula="k1 = log p(x) − log q(x) = −log r, with r = q/p; times p/s if a third s sampled",
        unit=_PER_TOKEN,
        unbiased=k_family.CLAIMS["k1"],
        negative="The mean, too, but seldom far: kullback explain log-bound.",
        blind="Order: columns of other rows leave its mean as it was. As a loss its mean gradient "
        "is 0.",
        worked=lambda: _term("k1"),
    ),
    "k2": Metric(
        caption="half the squared log-ratio: never negative, and biased",
        means="A calm number near the KL when p and q are close, and another one when they are "
        "not.",
        formula="k2 = ½ (log q(x) − log p(x))²",
        unit="Nats squared, read as nats.",
        unbiased=k_family.CLAIMS["k2"],
        negative="A negative mean is no mean of k2.",
        blind="Its own bias, which grows with the distance; and, like k3, who sampled.",
        worked=lambda: _term("k2"),
    ),
    "k3": Metric(
        caption="the estimate of KL(p‖q) that is never negative",
        means="k1 with a control that has mean 0, q/p − 1, so that no term is negative. It is less "
        "noisy than k1 where the policies differ smoothly, and far noisier where p dropped tokens "
        "of q.",
        formula="k3 = (r − 1) − log r, with r = q/p",
        unit=_PER_TOKEN,
        unbiased=k_family.CLAIMS["k3"],
        negative=f"A negative mean beyond rounding ({ROUNDED:.1g}) is a bug, or it is not k3.",
        blind="Tokens of q that p dropped and nobody sampled: their part is missing, and its small "
        "spread does not show it. A wrong sampler leaves it positive.",
        worked=lambda: _term("k3"),
    ),
    "k_lambda": Metric(
        caption="k1 with a share λ of the control: k1 at 0, k3 at 1",
        means="Every λ that was fixed beforehand gives the same mean; the noise is least at λ* = "
        "J / χ² for independent tokens.",
        formula="k_λ = −log r + λ (r − 1), with r = q/p",
        unit=_PER_TOKEN,
        unbiased=k_family.CLAIMS["k_lambda"],
        negative="At λ = 1 alone it is not.",
        blind="What k3 is blind to, in part λ. A λ chosen for the least spread of the sample "
        "picks k3 exactly where holes were not sampled.",
        worked=_k_lambda,
    ),
    "exact": Metric(
        caption="the KL over the whole vocabulary at each sampled prefix",
        means="No sampled token is in it, only the prefix: a sum over all tokens from the logits "
        "of both. Logged as a column, named by its question.",
        formula="Σ over x of p(x) (log p(x) − log q(x)) at each prefix, averaged over prefixes",
        unit=_PER_TOKEN,
        unbiased="Of these prefixes it is no estimate, and has no error. For new ones of the "
        "sampler it is unbiased whatever was drawn, at every level.",
        negative="Never, beyond rounding; if one is, a side is not normalized.",
        blind="Prefixes that were not sampled, and a column of other policies than it says.",
        worked=_exact,
    ),
    **RUNGS,
    "interval": Metric(
        caption="where the KL may lie, at 95% unless said otherwise",
        means="Of many such batches the interval should hold the KL in 95 of 100. Sequences of a "
        "prompt count together. Its scope says for what: new prompts, new sequences, these "
        "prefixes.",
        formula="m = Σ a / Σ b over clusters, se² = c/(c − 1) Σ (a − m b)² / (Σ b)², m ± t · se. "
        "Of auto: from k_λ − t' se − what can hide, to k1 + t' se; t' is t, widened for skewness.",
        unit="That of the mean.",
        unbiased="It holds as said with many clusters and no rare huge terms, on the conditions "
        "of its mean.",
        negative="Its low end can be, where terms can.",
        blind=f"Under {FEW_CLUSTERS} clusters it may be too narrow. What was not sampled is not in "
        "that of k1, k2 and k3: k3 beside a hole has a short interval at the wrong place. That of "
        "auto reckons with it below; above, log p/q there is taken to be no larger than was seen.",
        worked=_interval,
    ),
    "levels": Metric(
        caption="token_mean, sequence_sum, sequence_mean: per what",
        means="token_mean divides all nats by all tokens; sequence_sum is nats per sequence, the "
        "KL of the sequence policies; sequence_mean averages the token means of sequences, so a "
        "token of a short one counts more.",
        formula="token_mean = Σ values / Σ tokens; sequence_sum = mean over sequences of Σ values; "
        "sequence_mean = mean over sequences of (Σ values / length)",
        unit="Nats per token, per sequence, per token.",
        unbiased="k1 and k3 at sequence_sum and, to first order (it is a ratio), at token_mean. "
        "At sequence_mean neither, if lengths are random: a length is an outcome. exact is right "
        "at all three.",
        negative="As the term.",
        blind="A mean of micro-batch means is none of the three.",
        worked=_levels,
    ),
}
