"""Which KL the numbers of a filtered sampler tell, what repairs them, and what nothing repairs."""

from __future__ import annotations

import numpy as np

from kullback.experiments.sampling.measure import (
    DRAWS,
    SAME_TAIL,
    Filter,
    Means,
    P,
    Q,
    Values,
    draw,
    means,
    relative_error,
    retailed,
    zipf,
)
from kullback.experiments.sampling.seen import LENGTH, SEQUENCES, accused, bet, checks
from kullback.reporting.curves import curves, dial, groups
from kullback.reporting.experiment import Experiment, Part, Table

TOP_P = tuple(round(0.01 * i, 2) for i in range(41, 101))
TEMPERATURES = tuple(round(0.01 * i, 2) for i in range(50, 151, 2))
SHARES = tuple(round(0.01 * i, 2) for i in range(1, 100))
CUT = Filter(top_p=0.9)
FOUR = "top-p 0.9, top-k 4 or min-p 0.2"
# Of the six tokens.
SIX = {
    "nothing": Filter(),
    "temperature 0.7": Filter(temperature=0.7),
    "temperature 1.3": Filter(temperature=1.3),
    FOUR: CUT,
    "top-k 3": Filter(top_k=3),
    "temperature 0.7, top-k 4": Filter(temperature=0.7, top_k=4),
    "top-k 1 (greedy)": Filter(top_k=1),
}
WIDE = {
    "nothing": Filter(),
    "temperature 0.7": Filter(temperature=0.7),
    "temperature 0.9": Filter(temperature=0.9),
    "temperature 1.3": Filter(temperature=1.3),
    "top-p 0.95": Filter(top_p=0.95),
    "top-p 0.9": CUT,
    "top-k 50": Filter(top_k=50),
    "min-p 0.05": Filter(min_p=0.05),
}
HEADS = {"six tokens": 3, "2,000 tokens": 20}
COLORS = {
    "q, the reference": "var(--dim)",
    "p, the policy": "var(--orange)",
    "s, what samples": "var(--blue)",
}
ERROR_OF = 10_000  # tokens


def run(seed: int) -> Experiment:
    """The experiment."""
    at = means(P, CUT(P), Q)
    return Experiment(
        name="sampling",
        source="Approximating KL Divergence",
        question="The sampler was filtered: whose KL do k1 and k3 estimate, and what repairs them?",
        claim="k1 and k3 are unbiased for samples of p. Of samplers with a temperature, top-k, "
        "top-p or min-p the document says nothing.",
        answer="With the policy's raw log-probs k1 and k3 tell nobody's KL: at top-p 0.9 of six "
        f"tokens they are {_off(at.raw_k1, at.policy)} and {_off(at.raw_k3, at.policy)}. With the "
        "sampler's own, k1 tells the sampler's; the policy's comes back after a temperature, and "
        "after a cut only a lower bound of it.",
        method="p is the policy as it is scored, s what the filter makes of it, q the reference; "
        "tokens are drawn from s. All means are exact sums over the tokens, six of them or 2,000. "
        f"{DRAWS:,} draws stand beside them with their distance in exact standard errors (z).",
        parts=(_cut(), _temperature(), _repair(seed), _unknown(), _wide(), _seen(seed)),
        printed=(),
        limits=(
            "One prefix. Where filters keep other masses at other prefixes all of this holds at "
            "each, and the means mix; a filter also changes which prefixes are reached.",
            "The 2,000 tokens are a power law with a smooth shift. A reference that likes what was "
            "cut off is worse, as the six tokens show.",
            "A filter in several steps (top-k, then top-p) depends on their order in the engine; "
            "only a temperature before one cut is looked at.",
        ),
        seed=seed,
    )


def _off(value: float, truth: float) -> str:
    side = "high" if value > truth else "low"
    return f"{abs(100 * (value / truth - 1)):.0f} % too {side}"


def _points(at: float, it: Means) -> list[dict]:
    """The same four series, in the same colors, in two figures."""
    return [
        {"at": at, "series": series, "value": value}
        for series, value in (
            ("KL(s‖q), the sampler", it.sampler),
            ("KL(p‖q), the policy", it.policy),
            ("mean of k1, raw", it.raw_k1),
            ("mean of k3, raw", it.raw_k3),
        )
    ]


def _bars(at: float, q: Values, s: Values) -> list[dict]:
    return [
        {"at": at, "name": f"{place + 1}", "series": series, "value": float(one[place])}
        for series, one in zip(COLORS, (q, P, s), strict=True)
        for place in range(len(P))
    ]


def _cut() -> Part:
    points, bars = [], []
    for top_p in TOP_P:
        s = Filter(top_p=top_p)(P)
        points += _points(top_p, means(P, s, Q))
        bars += _bars(top_p, Q, s)
    figure = dial(
        "Once a token is cut off, raw log-probs give a k1 and a k3 that are nobody's KL.",
        points, groups(bars, "probability", COLORS), "top-p", "nats",
        named="top-p", start=0.9,
        note="A cut takes whole tokens, hence the steps; at 1 nothing is cut and all four agree. "
        "That k1 meets the policy's KL where two tokens are left is chance.",
    )  # fmt: skip
    rows = []
    for name, filtered in SIX.items():
        it = means(P, filtered(P), Q)
        between = round(it.raw_k1 - it.raw_k3, 12)
        rows.append((name, it.kept_p, it.kept_q, it.sampler, it.raw_k1, it.raw_k3, between))
    heads = ("filter", "p(kept)", "q(kept)", "KL(s‖q)", "k1", "k3", "k1 − k3")
    policy = f"{means(P, P, Q).policy:.4f}"
    return Part(
        "Cut: top-k, top-p and min-p",
        "At one prefix all three keep the likeliest tokens: one filter by three names. Let Z be "
        "the mass that p keeps and q(kept) that of q. As the sampler's KL a raw k1 is wrong by "
        "log Z, a raw k3 by q(kept)/Z − 1 more. With q cut to the same tokens, "
        "k1 = KL(s‖q cut) + log(Z / q(kept)), and k3 has q(kept)/Z − 1 − log(q(kept)/Z) in place "
        "of that logarithm, about half its square. So a raw k3 tells mostly about the tokens that "
        "were kept, and little of how p and q differ on the others.",
        (
            figure,
            Table(f"Means with raw log-probs. KL(p‖q) is {policy} in every row.", heads, rows),
        ),
    )


def _temperature() -> Part:
    points = [
        point
        for temperature in TEMPERATURES
        for point in _points(temperature, means(P, Filter(temperature=temperature)(P), Q))
    ]
    figure = curves(
        "Below temperature 1 a raw k1 is too high and a raw k3 too low; above it the other way "
        "round.",
        points, "temperature of the sampler", "nats", marks={1.0: "as scored"},
        note="So in this pair. The signs are the pair's; that both miss is not.",
    )  # fmt: skip
    low, high = (means(P, Filter(temperature=at)(P), Q) for at in (0.7, 1.3))
    return Part(
        "Temperature",
        f"As KL(p‖q), a raw k1 at 0.7 is {_off(low.raw_k1, low.policy)} and a raw k3 "
        f"{_off(low.raw_k3, low.policy)}; at 1.3 they are {_off(high.raw_k1, high.policy)} and "
        f"{_off(high.raw_k3, high.policy)}. No token is cut, so the weight p/s repairs it: "
        "weighted k1 and k3 have the mean KL(p‖q) at every temperature.",
        (figure,),
    )


def _repair(seed: int) -> Part:
    rows = []
    for name, filtered in SIX.items():
        it = means(P, filtered(P), Q)
        rows.append((name, it.k1, it.k3, it.k3_fixed, it.weighted_k1, it.weighted_k3, it.both_cut,
                     it.bound))  # fmt: skip
    names = {
        "raw_k1": "k1, raw",
        "raw_k3": "k3, raw",
        "k1": "k1, processed",
        "k3": "k3, processed",
        "k3_fixed": "k3, repaired",
        "weighted_k1": "k1, weighted by p/s",
        "weighted_k3": "k3, weighted by p/s",
    }
    found = draw(P, CUT(P), Q, seed)
    drawn = [
        (said, found[name].exact, found[name].mean, found[name].z) for name, said in names.items()
    ]
    heads = ("filter", "k1", "k3", "k3, repaired", "k1, weighted", "k3, weighted", "KL(s‖q cut)",
             "KL(p‖q) ≥")  # fmt: skip
    return Part(
        "What repairs them",
        "Log what the engine drew from: the processed log-probs, log s. Then k1 has the mean "
        "KL(s‖q). k3 has not, if anything was cut: it lacks the reference's mass there, "
        "1 − q(kept), since q/s has the mean q(kept) and not 1; q/s − q(kept) − log(q/s) is the "
        "repaired form. If the reference is cut to the same tokens too, k1 and k3 agree and answer "
        "a third question, KL(s‖q cut). The weight p/s, if both are logged, makes KL(p‖q) of a "
        "temperature. Of a cut it makes the kept tokens' part of a sum: that of k1 is no bound; "
        "that of k3, whose terms are none below 0, is a lower bound of KL(p‖q), from the log-probs "
        "of drawn tokens alone. The last column adds the two masses that were cut.",
        (
            Table("Means: k1, k3 and repaired with processed log-probs, and what can be said of "
                  "KL(p‖q).", heads, rows),
            Table(f"{DRAWS:,} draws at top-p 0.9.", ("of", "mean", "drawn", "z"), drawn),
        ),
    )  # fmt: skip


def _unknown() -> Part:
    s = CUT(P)
    points, bars = [], []
    for share in SHARES:
        q = retailed(share, s)
        it = means(P, s, q)
        points += [
            {"at": share, "series": series, "value": value}
            for series, value in (
                ("KL(p‖q) is at least", it.bound),
                ("KL(p‖q), the policy", it.policy),
                ("mean of k1, raw", it.raw_k1),
                ("mean of k3, raw", it.raw_k3),
            )
        ]
        bars += _bars(share, q, s)
    figure = dial(
        "Move the reference's mass among the tokens that were cut off: what is logged stays, the "
        "policy's KL does not.",
        points, groups(bars, "probability", COLORS),
        "part of the reference's cut mass that token 5 has", "nats",
        named="token 5 has", start=0.05, marks={float(Q[4] / (Q[4] + Q[5])): "q as above"},
        note="Tokens 5 and 6 are never drawn. Toward 0 and 1 the KL grows without end.",
    )  # fmt: skip
    first, last = (means(P, s, retailed(share, s)) for share in (0.6, 0.01))
    return Part(
        "What nothing repairs",
        "Top-p 0.9 never draws tokens 5 and 6. References that differ there alone give the same "
        "log-probs of every token drawn, so every statistic of the log is the same, and KL(p‖q) "
        f"is {first.policy:.4f} or {last.policy:.4f}. What is known is a lower bound: the "
        "weighted k3, or better, with both cut masses (which take the logits of the kept tokens), "
        "Σ p log(p/q) over the kept + (1−Z) log((1−Z)/(1−q(kept))). There is no upper one. "
        "Who asks for the policy's KL needs tokens of the policy, or full logits.",
        (figure,),
    )


def _wide() -> Part:
    p, q = zipf()
    rows, repaired = [], []
    for name, filtered in WIDE.items():
        s = filtered(p)
        it = means(p, s, q)
        rows.append((name, int(np.sum(s > 0)), it.kept_p, it.sampler, it.raw_k1, it.raw_k3,
                     it.both_cut))  # fmt: skip
        errors = (relative_error(p, s, q, name, ERROR_OF) for name in ("weighted_k1",
                                                                       "weighted_k3"))  # fmt: skip
        repaired.append((name, it.k3, it.k3_fixed, it.weighted_k1, it.weighted_k3, *errors,
                         it.bound))  # fmt: skip
    near, far = means(p, CUT(p), q), means(p, Filter(min_p=0.05)(p), q)
    return Part(
        "2,000 tokens",
        "p(rank) ∝ 1/rank, and a reference that is off by a factor e^(z/2) at each token, z "
        f"normal: KL(p‖q) = {near.policy:.4f}. The reference keeps about the mass that the policy "
        f"keeps, so that raw numbers look right: at top-p 0.9 k1 is "
        f"{_off(near.raw_k1, near.policy)} and k3 {_off(near.raw_k3, near.policy)}. The "
        f"repaired ones answer another question, and its answer is {near.sampler:.4f}: a sampler "
        "that never says what q often says is far from q. Stronger filters leave less: at min-p "
        f"0.05 a raw k3 is {_off(far.raw_k3, far.policy)}; k1, {_off(far.raw_k1, far.policy)}, is "
        "near by luck.",
        (
            Table("Means with raw log-probs.",
                  ("filter", "tokens kept", "p(kept)", "KL(s‖q)", "k1", "k3", "KL(s‖q cut)"), rows),
            Table(f"Processed and weighted; errors are standard errors over {ERROR_OF:,} tokens, "
                  "over KL(p‖q).",
                  ("filter", "k3", "k3, repaired", "k1, weighted", "k3, weighted", "error, k1",
                   "error, k3", "KL(p‖q) ≥"), repaired),
        ),
    )  # fmt: skip


def _seen(seed: int) -> Part:
    wide, wide_q = zipf()
    looked = (
        ("six tokens", P, Q, ("nothing", "temperature 0.7", "temperature 1.3", FOUR)),
        ("six tokens", P, SAME_TAIL, (FOUR,)),
        ("2,000 tokens", wide, wide_q, tuple(WIDE)),
    )
    rows, verdicts = [], []
    for pair, p, q, names in looked:
        for name in names:
            s = (SIX.get(name) or WIDE[name])(p)
            found = checks(p, s, q, HEADS[pair])
            other = ", q with p's tail" if q is SAME_TAIL else ""
            named = f"{pair}{other}: {name.split(',')[0]}"
            missing, entropy, head = (found[it].tokens for it in ("missing", "entropy", "head"))
            told = missing, bet(p, s, q), entropy, head
            rows.append((named, *(tokens or "never" for tokens in told)))
            both = (accused(p, s, q, seed, entropy=logged) for logged in (False, True))
            verdicts.append((named, *("accused" if one else "not" for one in both)))
    heads = ("pair and filter", "missing mass", "the bet", "entropy", "heads")
    return Part(
        "What a log shows of it",
        "From the raw log-probs of drawn tokens alone there is the missing mass, 1 − mean(q/p), "
        "which is k1 − k3. It has to do with q and not with the filter: a reference that keeps "
        "what the policy keeps never shows it, and a hole looks the same, so that it accuses "
        "nobody. The bet, which may accuse, can win only where q/p is above 1 on average, and no "
        "cut here makes it so. Nor is k1 below 0 on average, which the price of a negative sum "
        "would see. One more number per token tells: the policy's entropy H, since −log p(x) − H "
        "has the mean 0 if p drew x, or the mass of a head beside how often it is hit. Where "
        "neither is logged kullback report says not-verifiable.",
        (
            Table("Independent tokens until a check is five standard errors from 0, or the bet "
                  "has won 1,000 times its stake, on average; heads of 3 and of 20 tokens.",
                  heads, rows),
            Table(f"kb.diagnose of {SEQUENCES * LENGTH:,} draws: is the sampler accused "
                  "(sampler-mismatch)?",
                  ("pair and filter", "log-probs alone", "with the entropy"), verdicts),
        ),
    )  # fmt: skip
