"""What is written of the estimates from better data: heads, an exact KL at places or at all."""

from __future__ import annotations

import numpy as np

from kullback.estimation.rungs import FEWEST_KNOWN, FEWEST_OUTSIDE, FEWEST_SAMPLED
from kullback.explaining.enumerated import WHO, Tokens, exact, world
from kullback.explaining.metrics import Metric, Worked
from kullback.formulas import k_family, partial
from kullback.worlds.tables import head

_PER_TOKEN = "Nats per token, or per sequence where the question says so."
SUBSET = 0.05  # the share of positions with an exact KL, in the example


def _known(listed: int) -> tuple[partial.Head, np.ndarray]:
    """The head at the prefix of each token, and whether the token is in it."""
    small = world()
    context, drawn = small.tree.context[small.tree.alive], small.tree.tokens[small.tree.alive]
    ids, log_p = head(small.log_probs["current"], listed)
    log_q = np.take_along_axis(small.log_probs["reference"], ids, axis=-1)
    known = partial.head(log_p=log_p[context], log_q=log_q[context])
    return known, (ids[context] == drawn[:, None]).any(axis=1)


def _lists(listed: int) -> str:
    which = "likeliest token" if listed == 1 else f"{listed} likeliest tokens"
    return f"{WHO} Both log-probs of p's {which} are known at each prefix."


def _partial() -> Worked:
    tokens, (known, inside) = Tokens.of(), _known(2)
    form = partial.conditional(log_q_over_p=tokens.log_q_over_p, inside=inside, head=known)
    numbers = {
        "kl": exact("KL(current||reference)"),
        "mean": tokens.mean(form),
        "deviation": tokens.deviation(form),
        "deviation_k1": tokens.deviation(k_family.k1(tokens.log_q_over_p)),
        "outside": tokens.mean(~inside),
    }
    return (
        f"{_lists(2)} {numbers['outside']:.0%} of p's tokens are others. The mean over "
        f"all tokens is the KL, {numbers['mean']:.4f}; one token has a standard deviation of "
        f"{numbers['deviation']:.3f}, that of k1 is {numbers['deviation_k1']:.3f}.",
        numbers,
    )


def _fixed(name: str, listed: int) -> Worked:
    tokens, (known, _) = Tokens.of(), _known(listed)
    numbers = {
        "kl": exact("KL(current||reference)"),
        "mean": tokens.mean(getattr(partial, name)(known)),
    }
    return (
        f"{_lists(listed)} The KL is {numbers['kl']:.4f} nats per token, and this "
        f"{numbers['mean']:.4f}, however many tokens there are.",
        numbers,
    )


def _subset() -> Worked:
    tokens, (known, _) = Tokens.of(), _known(1)
    bound = partial.lower_bound(known)
    best = tokens.mean((tokens.kl - tokens.mean(tokens.kl)) * bound) / tokens.deviation(bound) ** 2
    spread, left = (tokens.deviation(x) ** 2 for x in (tokens.kl, tokens.kl - best * bound))
    numbers = {
        "kl": exact("KL(current||reference)"),
        "alone": spread / SUBSET,
        "with_bound": spread + left * (1 / SUBSET - 1),
        "rao_blackwell": spread,
    }
    return (
        f"{_lists(1)} The KL is {numbers['kl']:.4f}. Known at {SUBSET:.0%} of the tokens, it has "
        f"{numbers['alone'] / spread:.0f} times the variance that it has known at all; with the "
        f"bound known at all, {numbers['with_bound'] / spread:.1f} times.",
        numbers,
    )


def _rao_blackwell() -> Worked:
    tokens = Tokens.of()
    numbers = {
        "kl": exact("KL(current||reference)"),
        "mean": tokens.mean(tokens.kl),
        "deviation": tokens.deviation(tokens.kl),
        "deviation_k1": tokens.deviation(k_family.k1(tokens.log_q_over_p)),
    }
    return (
        f"{WHO} The mean over all prefixes is the KL, {numbers['mean']:.4f}; from prefix to prefix "
        f"the standard deviation is {numbers['deviation']:.3f}, that of k1 from token to token "
        f"{numbers['deviation_k1']:.3f}.",
        numbers,
    )


RUNGS = {
    "partial": Metric(
        caption="the tokens that both lists hold summed exactly, the rest by k1",
        means="Where the sampled token is one that both policies list among their largest, k1 "
        "there is replaced by its mean over all that both list; elsewhere it stays. Then multiples "
        "of two numbers of mean 0 are taken off, fitted to the other half of the clusters; none "
        f"under {FEWEST_OUTSIDE:g} expected tokens outside the lists.",
        formula="1[x in K] Σ over K of p log(p/q) / P(K) + 1[x not in K] k1(x), with K the ids "
        "that both list",
        unit=_PER_TOKEN,
        unbiased=partial.CLAIMS["conditional"],
        negative="Its mean seldom: only the tokens outside the lists are left to chance.",
        blind="What is outside the lists and was not sampled, as k1 is. And lists to which the "
        "drawn token was appended: give the ids (tokens), by which it is told and left out.",
        worked=_partial,
    ),
    "bound": Metric(
        caption="what the KL is at least, from two lists: no estimate of it",
        means="All tokens outside the lists are taken for one. Whatever they are, the KL at that "
        "prefix is no smaller. Its interval is that of the bound: the low end is one of the KL, "
        "the high end is not.",
        formula="Σ over K of p log(p/q) + P(T) log(P(T)/Q(T)), with T all tokens but those of K",
        unit=_PER_TOKEN,
        unbiased="For the bound, over prefixes of p. For the KL it is too low, by what the tokens "
        "outside the lists differ among themselves.",
        negative="Never, beyond rounding.",
        blind="All differences among the tokens outside the lists: a hole there does not show.",
        worked=lambda: _fixed("lower_bound", 1),
    ),
    "subset": Metric(
        caption="the exact KL at some positions, chosen at random",
        means="The logits of a few positions in a hundred tell nearly as much as all of them. "
        "With lists at all positions, what the bound says at all of them and at the chosen ones "
        f"steadies the mean; under {FEWEST_KNOWN} positions or {FEWEST_SAMPLED:g} effective "
        "clusters, and without lists, the chosen ones stand alone.",
        formula="mean over S of the exact KL − b (mean over S − mean over all) of the bound, b "
        "fitted to the other half of the clusters",
        unit=_PER_TOKEN,
        unbiased="If the positions were chosen at random, whatever was drawn there: a share of "
        "all tokens, not those that look odd. Then for new clusters, to first order.",
        negative="The mean of the exact KL never; less the correction it hardly can be.",
        blind="Positions chosen for how they look; nothing in the numbers shows it.",
        worked=_subset,
    ),
    "rao_blackwell": Metric(
        caption="the exact KL at every prefix, as an estimate for new prompts",
        means="No sampled token is in it, only the prefixes. The same mean as exact, with the "
        "error that it has for other prompts.",
        formula="Σ over x of p(x) (log p(x) − log q(x)) at each prefix, averaged over prefixes; "
        "the interval from cluster to cluster",
        unit=_PER_TOKEN,
        unbiased="For prefixes of the sampler, whatever was drawn, at every level.",
        negative="Never, beyond rounding; if it is, a side is not normalized.",
        blind="Prefixes that were not sampled, and a column of other policies than it says.",
        worked=_rao_blackwell,
    ),
    "biased_head": Metric(
        caption="the sum over two lists as if nothing were outside: biased",
        means="What is left when the tokens outside the lists are forgotten. Shown because others "
        "log it under the name of KL.",
        formula="Σ over K of p log(p/q), with K the ids that both list",
        unit=_PER_TOKEN,
        unbiased="Not for the KL, and no bound of it either.",
        negative="It can be: q may have more mass on the lists than p.",
        blind="All that is outside the lists, and more data do not help.",
        worked=lambda: _fixed("biased_head", 2),
    ),
    "biased_head_renormalized": Metric(
        caption="the KL of two lists, each scaled to sum to 1: biased",
        means="The KL of two other policies: p and q if they could say nothing but what both list. "
        "Shown because others log it under the name of KL.",
        formula="Σ over K of p log(p/q) / P(K) − log(P(K)/Q(K)), with K the ids that both list",
        unit=_PER_TOKEN,
        unbiased="Not for the KL; it can be above or below.",
        negative="Never, beyond rounding.",
        blind="All that is outside the lists, and more data do not help.",
        worked=lambda: _fixed("biased_head_renormalized", 2),
    ),
}
