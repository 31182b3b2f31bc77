"""Reward against KL, told: the ways there, the terms that hold a policy back, and the stop."""

from __future__ import annotations

from functools import cache

import numpy as np

from kullback.experiments.frontier import looks, training
from kullback.experiments.frontier.measure import (
    WORDS,
    Q,
    Values,
    at_kl,
    best_of,
    bound,
    levels,
    mix,
    place,
    stands,
    summit,
    table,
    tilted,
)
from kullback.experiments.frontier.picture import fans, ways
from kullback.experiments.frontier.reading import GENEROUS, reading, stopped
from kullback.experiments.frontier.training import BATCH, BETA, EXACT, STEPS, TERMS
from kullback.reporting.curves import dial, groups
from kullback.reporting.experiment import Experiment, Part, Table
from kullback.reporting.figures import STYLES, Figure

SETTINGS = tuple(round(0.25 * i, 2) for i in range(1, 31))  # nats
CHOSEN = 4.0  # of them, shown first
COUNTS = (2, 4, 16, 64, 256, 1024)  # answers to choose the best from
WAYS = {"most proxy": "tilt", "best of n": "best-of-n"}
TRAINED = "trained"
COLORS = {
    "reference": "var(--dim)",
    "most proxy": "var(--blue)",
    "best of n": "var(--orange)",
    TRAINED: "var(--green)",
}
NONE = "no KL term"
ONE_PATH = "k1 in the reward, or Rao-Blackwell"
GOAL = "q exp(proxy/β), where k1 and Rao-Blackwell would end"
PATHS = {
    ONE_PATH: TERMS[0],
    "k3 in the loss": "k3 in the loss",
    "auto in the reward": "auto in the reward",
    NONE: None,
}
OF_TERMS = {
    **dict(zip(("k1 in the reward", "k3 in the loss", EXACT, "auto in the reward"), STYLES,
               strict=False)),
    NONE: ("var(--dim)", "cross", [1, 0]),
}  # fmt: skip
RUNS = 32  # that learn from batches
TOLD = (40, 100)  # the steps at which they are looked at


def run(seed: int) -> Experiment:
    """The experiment."""
    best = looks.top()
    k1, k3, exact = (best.error(name) for name in looks.ESTIMATORS)
    tilt, chosen = (at_kl(CHOSEN, way)[1].gold for way in WAYS.values())
    trained = place(on_the_way(CHOSEN, TERMS[0])).gold
    early = stopped("k3", GENEROUS, seed)
    return Experiment(
        name="frontier",
        source="The Four Faces of KL Divergence (“RLHF uses KL as a leash and reports it as a "
        "health metric”)",
        question="Reward against KL: which way does a policy go, and where does a noisy KL stop "
        "it?",
        claim="The document describes a picture without drawing it: reward bends over as the KL "
        "grows, and whoever stops there reads a noisy estimate off the axis. A less noisy estimate "
        "in the gradient, it says, makes training more stable.",
        answer=f"The KL alone does not tell the reward: at {CHOSEN:g} nats the gold reward is "
        f"{tilt:.2f} with the most proxy reward, {chosen:.2f} by best of n and {trained:.2f} when "
        "trained. "
        f"Where a run is best, at {best.kl:.2f} nats, a logged KL of {BATCH} answers has a "
        f"standard error of {k1:.2f} by k1, {k3:.2f} by k3 and {exact:.2f} by Rao-Blackwell, and a "
        f"limit of {GENEROUS:g} nats stops it at step "
        f"{looks.exact_stop(GENEROUS) * training.EVERY} by the exact KL, at {early.mean():.0f} ± "
        f"{early.std():.0f} by k3. In the gradient, what a term descends matters more here than "
        "its noise.",
        method="Answers of four words out of “plain”, “fact”, “praise”, “trick”, all 256 summed "
        "over. The proxy reward, which is optimized, counts 1 for a fact, 0.5 for praise, 1.5 for "
        "a trick; the gold reward, which is meant, 1 for a fact and −1 for a trick, which is 4 % "
        "of the reference's words. A proxy and a gold reward, and rewards drawn over the KL, are "
        "after Gao, Schulman and Hilton (2022, arXiv:2210.10760). p is the policy, q the "
        "reference, the KL is KL(p‖q) of whole answers; k1 and k3 are added up over words. Only "
        "batches are random.",
        parts=(_frontier(), _terms(), _noise(seed), *reading(seed)),
        printed=(),
        limits=(
            "One small world: how far apart the ways and the estimators are is its own. That k3 is "
            "the noisy one belongs to far policies (the experiments holes and gaussian).",
            "Answers of four words. The KL of long answers is larger and its noise relative to it "
            "smaller (the experiment sequences).",
            "A table of logits by plain gradient steps, every prompt the same. Where prompts "
            "differ, their KLs spread too, and Rao-Blackwell loses a part of its lead.",
            "The run that is watched follows its expected gradient, so that whatever differs "
            "between stops is the noise of reading. One batch for each look, nothing averaged over "
            "looks.",
            "A gold reward is known here. Whoever has none has to take the limit from elsewhere.",
        ),
        seed=seed,
    )  # fmt: skip


@cache
def on_the_way(kl: float, term: str | None) -> Values:
    """The policy that a term trains when it passes a KL: between two steps, their mixture."""
    path = training.answers(training.climbed(term))
    passed = next(i for i, p in enumerate(path) if place(p).kl > kl)
    low, high = place(path[passed - 1]).kl, place(path[passed]).kl
    part = (kl - low) / (high - low)
    return (1 - part) * path[passed - 1] + part * path[passed]


def _policies(kl: float) -> dict[str, Values]:
    return {
        "most proxy": tilted(at_kl(kl, "tilt")[0]),
        "best of n": best_of(at_kl(kl, "best-of-n")[0]),
        TRAINED: on_the_way(kl, TERMS[0]),
    }


def _frontier() -> Part:
    points, bars = [], []
    for kl in SETTINGS:
        found = _policies(kl)
        named = {"reference": Q, **found}
        points += [{"at": kl, "series": f"gold: {name}", "value": place(p).gold}
                   for name, p in found.items()]  # fmt: skip
        points.append({"at": kl, "series": "proxy: the most there is",
                       "value": place(found["most proxy"]).proxy})  # fmt: skip
        bars += [
            {"at": kl, "name": word, "series": name, "value": float(value)}
            for name, p in named.items()
            for word, value in zip(WORDS, mix(p), strict=True)
        ]
    figure = dial(
        "The proxy reward rises with the KL, the gold reward bends over, each way elsewhere.",
        points, groups(bars, "share of words", COLORS), "KL(p‖q), nats", "reward",
        named="KL, nats", start=CHOSEN,
        note="Bars: what is written at the KL that is chosen. Most proxy: no policy has more proxy "
        "reward at that KL. Trained: by the expected gradient, k1 in the reward.",
    )  # fmt: skip
    rows = []
    for n in COUNTS:
        at = place(best_of(n))
        rows.append((f"{n}", at.kl, bound(n), at.proxy, at_kl(at.kl, "tilt")[1].proxy, at.gold,
                     at_kl(at.kl, "tilt")[1].gold))  # fmt: skip
    peaks = [
        (name, *(getattr(summit(way), field) for field in ("kl", "proxy", "gold")))
        for name, way in WAYS.items()
    ]
    best = looks.top()
    peaks.append((TRAINED, best.kl, best.proxy, best.gold))
    worth, mass = levels()
    tied = float(mass @ mass)
    return Part(
        "One KL, several rewards",
        "The policy with the most proxy reward at its KL is q exp(proxy/β), normalized. It finds "
        "the tricks first, since they pay best for their nats. Best of n can raise no answer more "
        f"than n-fold, and a trained policy, at least at first, what it already writes: at "
        f"{CHOSEN:g} nats both have less "
        "proxy reward and more gold. So a limit in nats that was found on one way says little "
        f"about another. Best of n has ties here ({len(worth)} proxy rewards for {len(Q)} answers, "
        f"two answers tie in {tied:.0%}), settled by lot: its KL is then less than "
        "log n − (n − 1)/n, which is an upper bound (Beirami and others 2024, arXiv:2401.01879).",
        (
            figure,
            Table("Best of n beside the most proxy reward at its KL.",
                  ("n", "KL", "log n − (n − 1)/n", "proxy", "the most proxy", "gold",
                   "gold of the most proxy"), rows),
            Table("Where the gold reward is highest, to 0.05 nats; of the trained policy to a "
                  "checkpoint.",
                  ("way", "KL", "proxy", "gold"), peaks),
        ),
    )  # fmt: skip


def _terms() -> Part:
    points, rows = [], []
    for name, term in PATHS.items():
        path = [place(p) for p in training.answers(training.climbed(term))]
        points += [
            {"series": name, "step": step, "kl": at.kl, "proxy": at.proxy, "gold": at.gold}
            for step, at in enumerate(path) if step % 2 == 0
        ]  # fmt: skip
        best, end = max(path, key=lambda at: at.gold), path[-1]
        at = place(on_the_way(CHOSEN, term))
        rows.append((name, at.proxy, at.gold, best.gold, best.kl, end.kl, end.proxy, end.gold))
    goal = place(tilted(BETA))
    rows.append((GOAL, None, None, None, None, goal.kl, goal.proxy, goal.gold))
    most = [{"kl": kl, "proxy": at_kl(kl, "tilt")[1].proxy} for kl in SETTINGS]
    figure = ways(
        "A KL term changes how far a policy goes; over the KL its gold reward is best without one.",
        points, {"proxy": "proxy reward", "gold": "gold reward"},
        {name: OF_TERMS[term or NONE] for name, term in PATHS.items()}, most,
        f"{STEPS} steps along the expected gradient of proxy − {BETA:g} × term, a point every 20. "
        "Dotted: the most proxy reward at each KL.",
    )  # fmt: skip
    return Part(
        "Which KL term pulls",
        "k1 in the reward and Rao-Blackwell in the loss have one expected gradient, that of the "
        "KL; so has kb.loss by form='auto', gradient='sequence'. k3 in the loss descends "
        "the other direction, KL(q‖p), and auto as a reward adds −λ times that to the right one "
        "(kb.penalty refuses it; here it is written by hand, with the λ of least variance). So k3 "
        "keeps the policy from digging holes where the reference writes, and auto lets it: for "
        "the same β they go elsewhere. At one KL a term raises the proxy reward a little and does "
        "not improve the gold reward, as Gao and others found of a KL penalty for language models: "
        "the term is a brake, and what k1 and Rao-Blackwell steer to in the end, q exp(proxy/β), "
        "is the policy with the tricks.",
        (figure, Table(f"At {CHOSEN:g} nats, at the highest gold reward of any step, and at step "
                       f"{STEPS}.",
                       ("term", f"proxy at {CHOSEN:g} nats", "gold there", "best gold",
                        "KL at it", "KL at the end", "proxy", "gold"), rows)),
    )  # fmt: skip


def _bands(name: str, golds: Values) -> list[dict]:
    """The mean of runs at every checkpoint, and where 90 % of them are."""
    return [
        {"series": name, "step": step, "mean": float(gold.mean()),
         "low": float(np.quantile(gold, 0.05)), "high": float(np.quantile(gold, 0.95))}
        for step, gold in zip(looks.STEPS_LOGGED, golds, strict=True)
    ]  # fmt: skip


def _runs(seed: int) -> tuple[Figure, Table]:
    """What runs that learn from batches have in common, and how they differ."""
    told, bands = [], []
    for name in (*TERMS, None):
        runs = stands(training.answers(training.drawn(name, RUNS, seed)))
        cells: list[float] = []
        for step in TOLD:
            for field in ("kl", "gold"):
                values = runs[field][step // training.EVERY]
                cells += [float(values.mean()), float(values.std(ddof=1))]
        told.append((name or NONE, *cells))
        if name is not None:
            bands += _bands(name, runs["gold"])
    figure = fans(
        "Runs by Rao-Blackwell spread as those by k1 do: the reward makes the noise.",
        bands, "gold reward",
        [{name: OF_TERMS[name] for name in pair} for pair in (TERMS[:2], TERMS[2:])],
        f"{RUNS} runs of each term, every step from {BATCH} drawn answers: means, and bands in "
        "which 90 % of the runs lie.",
    )  # fmt: skip
    heads = [word for step in TOLD for word in (f"KL, step {step}", "sd", "gold", "sd")]
    return figure, Table(
        f"{RUNS} runs of each term, each step from {BATCH} drawn answers with the mean of the "
        "others as baseline: means and standard deviations over runs.",
        ("term", *heads),
        told,
    )


def _noise(seed: int) -> Part:
    rows = []
    policies = {f"step {step}": training.climbed(TERMS[0])[step] for step in (30, 60, 100)}
    policies["q exp(proxy/β)"] = table(tilted(BETA))
    for name, log_p in policies.items():
        rows.append((name, training.noise(log_p, None),
                     *(training.noise(log_p, term) for term in TERMS)))  # fmt: skip
        rows.append((f"{name}, KL term alone", None,
                     *(training.noise(log_p, term, 0.0, 1.0) for term in TERMS)))  # fmt: skip
    figure, runs = _runs(seed)
    log_p = training.climbed(TERMS[0])[60]
    alone = [training.noise(log_p, term, 0.0, 1.0) for term in TERMS[:2]]
    whole = [training.noise(log_p, term) for term in TERMS[:2]]
    return Part(
        "What its noise does",
        f"Alone, Rao-Blackwell is the steadier gradient: at step 60 its noise is "
        f"{alone[0] / alone[1]:.0f} times smaller than k1's. With the reward it is not: k1 in the "
        "reward pays for the answer that was drawn, as the proxy does, and where the policy nears "
        "q exp(proxy/β) the two cancel answer by answer. The whole gradient then has "
        f"{whole[0]:.2f} by k1 and {whole[1]:.2f} by Rao-Blackwell. Runs that learn from batches "
        f"differ about equally under both: with β = {BETA:g} the reward makes most of the noise. "
        "The exception is k3 in the loss, whose 1 − q/p has no bound where the policy digs holes.",
        (
            figure,
            Table("Noise of the gradient of one answer, E|g − E g|² summed over all logits, at "
                  "policies of the run with k1. Baselines exact.",
                  ("policy", "no KL term", *TERMS), rows),
            runs,
        ),
    )  # fmt: skip
