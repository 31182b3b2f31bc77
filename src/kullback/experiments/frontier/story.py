"""Reward against KL, told: the ways there, the terms that hold a policy back, and the stop."""

from __future__ import annotations

from functools import cache

import numpy as np

from kullback.experiments.frontier import looks, training
from kullback.experiments.frontier.measure import (
    WORDS,
    Place,
    Q,
    Values,
    at_kl,
    best_of,
    bound,
    levels,
    mix,
    place,
    summit,
    tilted,
)
from kullback.experiments.frontier.picture import hill, ways
from kullback.experiments.frontier.training import BATCH, BETA, STEPS, TERMS
from kullback.reporting.curves import dial, groups, profiles
from kullback.reporting.experiment import Experiment, Part, Table

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
PATHS = {
    "no KL term": None,
    "k1 in the reward, or Rao-Blackwell": TERMS[0],
    "k3 in the loss": "k3 in the loss",
    "auto in the reward, by hand": "auto in the reward",
}
SHOWN = (10, 20, 30, 50, 75, 100, 120, 140, 200)  # steps whose logged KLs are drawn as bars
RUNS = 32  # that learn from batches
LIMITS = tuple(round(0.25 * i, 2) for i in range(6, 31))
GENEROUS = 5.0  # nats: a limit past the best gold reward
READ = {
    "gold reward / its highest": "var(--dim)",
    **dict(zip((*looks.ESTIMATORS, "exact KL"),
               ("var(--blue)", "var(--orange)", "var(--green)", "var(--purple)"), strict=True)),
}  # fmt: skip


def run(seed: int) -> Experiment:
    """The experiment."""
    best = top()
    k1, k3, exact = (best.error(name) for name in looks.ESTIMATORS)
    tilt, chosen = (at_kl(CHOSEN, way)[1].gold for way in WAYS.values())
    early = _stopped("k3", GENEROUS, seed)
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
        f"{tilt:.2f}, {chosen:.2f} or {_trained(CHOSEN).gold:.2f}, depending on the way there. "
        f"Where a run is best, at {best.kl:.2f} nats, a logged KL of {BATCH} answers has a "
        f"standard error of {k1:.2f} by k1, {k3:.2f} by k3 and {exact:.2f} by Rao-Blackwell, and a "
        f"limit of {GENEROUS:g} nats stops it at step "
        f"{_step(looks.exact_stop(GENEROUS))} by the exact KL, at {early.mean():.0f} ± "
        f"{early.std():.0f} by k3. In the gradient, what a term descends matters more here than "
        "its noise.",
        method="Answers of four words out of “plain”, “fact”, “praise”, “trick”, all 256 summed "
        "over. The proxy reward, which is optimized, counts 1 for a fact, 0.5 for praise, 1.5 for "
        "a trick; the gold reward, which is meant, 1 for a fact and −1 for a trick, which is 4 % "
        "of the reference's words. A proxy and a gold reward, and rewards drawn over the KL, are "
        "after Gao, Schulman and Hilton (2022, arXiv:2210.10760). p is the policy, q the "
        "reference, the KL is KL(p‖q) of whole answers. Only batches are random.",
        parts=(_frontier(), _terms(), _noise(seed), _axis(seed), _stop(seed)),
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
def top() -> looks.Checkpoint:
    """The checkpoint of the run with the highest gold reward."""
    return max(looks.checkpoints(), key=lambda one: one.gold)


def _step(index: float) -> int:
    return round(index * training.EVERY)


def _stopped(name: str, limit: float, seed: int) -> Values:
    """The steps at which runs stop that read an estimator."""
    return looks.stops(looks.logged(seed)[name], limit) * training.EVERY


def _on_the_way(kl: float) -> Values:
    """The trained policy when it passes a KL: between two steps, their mixture."""
    path = training.answers(training.climbed(TERMS[0]))
    passed = next(i for i, p in enumerate(path) if place(p).kl > kl)
    low, high = place(path[passed - 1]).kl, place(path[passed]).kl
    part = (kl - low) / (high - low)
    return (1 - part) * path[passed - 1] + part * path[passed]


@cache
def _trained(kl: float) -> Place:
    return place(_on_the_way(kl))


def _policies(kl: float) -> dict[str, Values]:
    return {
        "most proxy": tilted(at_kl(kl, "tilt")[0]),
        "best of n": best_of(at_kl(kl, "best-of-n")[0]),
        TRAINED: _on_the_way(kl),
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
        (name, *(getattr(summit(way)[1], field) for field in ("kl", "proxy", "gold")))
        for name, way in WAYS.items()
    ]
    peaks.append((TRAINED, top().kl, top().proxy, top().gold))
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
            Table("Where the gold reward is highest; the trained policy at a checkpoint.",
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
        best = max(path, key=lambda at: at.gold)
        end = path[-1]
        rows.append((name, best.kl, best.gold, end.kl, end.proxy,
                     at_kl(end.kl, "tilt")[1].proxy, end.gold))  # fmt: skip
    most = [{"kl": kl, "proxy": at_kl(kl, "tilt")[1].proxy} for kl in SETTINGS]
    figure = ways(
        "A KL term changes how far a policy goes, and little what it gets on the way.",
        points, {"proxy": "proxy reward", "gold": "gold reward"}, most,
        f"{STEPS} steps along the expected gradient of proxy − {BETA:g} × term, a point every 20. "
        "Dotted: the most proxy reward at each KL.",
    )  # fmt: skip
    return Part(
        "Which KL term pulls",
        "k1 in the reward and Rao-Blackwell in the loss have one expected gradient, that of the "
        "KL; so has kb.loss by form='auto', gradient='sequence'. k3 in the loss descends "
        "the other direction, KL(q‖p), and auto as a reward adds −λ times that to the right one "
        "(kb.penalty refuses it; here it is written by hand, with the λ of least variance). So k3 "
        "keeps the policy from digging holes where the reference writes, and auto lets it: both go "
        "elsewhere for the same β. Over the KL all bend at nearly the same reward: here the term "
        "is a brake and no better way.",
        (figure, Table(f"Highest gold reward of any step, and step {STEPS}.",
                       ("term", "KL at its best", "best gold", "KL", "proxy",
                        "the most proxy at that KL", "gold"), rows)),
    )  # fmt: skip


def _noise(seed: int) -> Part:
    terms = (*TERMS[:3], "auto in the reward")
    rows = []
    for step in (30, 60, 100):
        log_p = training.climbed(TERMS[0])[step]
        rows.append((f"step {step}", training.noise(log_p, None),
                     *(training.noise(log_p, term) for term in terms)))  # fmt: skip
        rows.append((f"step {step}, KL term alone", None,
                     *(training.noise(log_p, term, 0.0, 1.0) for term in terms)))  # fmt: skip
    told = []
    for name in (None, *TERMS):
        runs = training.drawn(name, RUNS, seed)
        cells: list[float] = []
        for step in (40, 60, 100):
            at = [place(p) for p in training.answers(runs[step // training.EVERY])]
            kls, golds = (np.array([getattr(one, field) for one in at]) for field in ("kl", "gold"))
            cells += [float(kls.mean()), float(kls.std(ddof=1)), float(golds.std(ddof=1))]
        told.append((name or "no KL term", *cells))
    log_p = training.climbed(TERMS[0])[60]
    alone = [training.noise(log_p, term, 0.0, 1.0) for term in TERMS[:2]]
    whole = [training.noise(log_p, term) for term in TERMS[:2]]
    heads = [f"{what}, step {step}" for step in (40, 60, 100)
             for what in ("KL", "sd of KL", "sd of gold")]  # fmt: skip
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
            Table("Noise of the gradient of one answer, E|g − E g|² summed over all logits, at "
                  "policies of the run with k1. Baselines exact.",
                  ("policy", "no KL term", *terms), rows),
            Table(f"{RUNS} runs, each step from {BATCH} drawn answers with the mean of the others "
                  "as baseline: means and standard deviations over runs.",
                  ("term", *heads), told),
        ),
    )  # fmt: skip


def _axis(seed: int) -> Part:
    path = [{"step": one.step, "kl": one.kl, "gold": one.gold} for one in looks.checkpoints()]
    bars, rows = [], []
    for place_, one in enumerate(looks.checkpoints()):
        if one.step in SHOWN:
            for name in looks.ESTIMATORS:
                low, high = np.quantile(looks.logged(seed)[name][:, place_], (0.05, 0.95))
                bars.append({"series": name, "step": one.step, "kl": one.kl, "gold": one.gold,
                             "low": float(low), "high": float(high)})  # fmt: skip
            bias, error = looks.auto(one.step, seed)
            rows.append((f"{one.step}", one.kl, one.gold,
                         *(one.error(name) for name in looks.ESTIMATORS), error, bias))  # fmt: skip
    figure = hill(
        "Read off a logged KL, a checkpoint lies anywhere on its bar; k3's grows as the policy "
        "leaves.",
        path, bars, round(top().kl, 2),
        f"Points: checkpoints, at their exact KL. Bars: where 90 % of the KLs of {BATCH} answers "
        "lie, at some checkpoints, shifted only to be told apart. The limit is the KL of "
        "the best checkpoint.",
    )  # fmt: skip
    return Part(
        "What is read off the axis",
        "The picture that the document describes. Up to about 2 nats k3 is steadier than k1. "
        "Beyond, the policy hardly writes plain words, on which the reference still has its mass: "
        "k3 meets them rarely and then as a large number, so that most batches read too little "
        "and a few far too much. Rao-Blackwell needs all log-probs at each prefix, and is several "
        "times steadier than either. kb.estimate, from the same log-probs as k1 and k3, stays "
        "below k1 where k3 is lost.",
        (figure,
         Table("Exact standard errors of a logged KL. kb.estimate: root mean square error and "
               f"bias over {looks.ASKED} drawn batches.",
               ("step", "KL", "gold", *looks.ESTIMATORS, "kb.estimate", "its bias"), rows)),
    )  # fmt: skip


def _by_then(stops: Values) -> Values:
    """The share of runs that have stopped, at each checkpoint."""
    return np.mean(stops[:, None] <= np.arange(len(looks.STEPS_LOGGED)), axis=0)


def _stop(seed: int) -> Part:
    golds = np.array([one.gold for one in looks.checkpoints()])
    steps = np.array(looks.STEPS_LOGGED)
    hill_ = [{"x": int(step), "series": next(iter(READ)), "value": float(gold / golds.max())}
             for step, gold in zip(steps, golds, strict=True)]  # fmt: skip
    points, turned, rows = [], [], []
    for limit in LIMITS:
        ends = {name: looks.stops(read, limit) for name, read in looks.logged(seed).items()}
        ends["exact KL"] = np.array([looks.exact_stop(limit)])
        for name, found in ends.items():
            points.append({"at": limit, "series": name, "value": float(golds[found].mean())})
            turned += [
                {"at": limit, "x": int(step), "series": name, "value": round(float(part), 4)}
                for step, part in zip(steps, _by_then(found), strict=True)
            ]
    figure = dial(
        "A noisy KL stops runs early: a loss before the summit, luck behind it.",
        points, profiles(hill_, turned, "step", "share of runs that have stopped", READ),
        "limit, nats", "gold reward where runs stop, mean", named="limit, nats", start=GENEROUS,
        marks={round(top().kl, 2): "best checkpoint"},
        note=f"{looks.RUNS:,} readings of one run. The rule: stop at the first checkpoint whose "
        f"logged KL of {BATCH} fresh answers is above the limit; looked at every "
        f"{training.EVERY} steps. A run that is never stopped ends at step {STEPS}.",
    )  # fmt: skip
    for limit in (2.0, 3.0, 4.25, GENEROUS, 6.0):
        exact = looks.exact_stop(limit)
        for name, read in looks.logged(seed).items():
            found = looks.stops(read, limit)
            rows.append((f"{limit:g} nats: {name}", _step(exact), float(golds[exact]),
                         float(found.mean() * training.EVERY),
                         float(found.std() * training.EVERY), float(golds[found].mean()),
                         float(np.mean(found < exact)), float(np.mean(found > exact))))  # fmt: skip
    return Part(
        "Where a limit stops the run",
        "The first reading above a limit ends the run, so noise ends it early wherever the KL "
        "lingers below the limit for several looks, and k3's rare large readings most. A steep "
        "climb leaves no time for that: then all stop within a step or two of the exact KL. On the "
        "summit it costs little, since the reward is flat there. A limit that is too generous is "
        "where noise looks like a gain: k3 stops long before the limit is reached, on the better "
        "side. It is no rule to rely on, since the same noise stops a run short of its summit "
        "where the limit is right. With a steady reading the limit is the limit, and setting it is "
        "the question. A stop that is to be sure, over any number of looks, is kb.Evidence.",
        (figure,
         Table("Stops by a limit. Earlier, later: shares of runs that stop before or after the "
               "exact KL does.",
               ("limit and reading", "exact stop", "its gold", "mean stop", "sd of stop",
                "mean gold", "earlier", "later"), rows)),
    )  # fmt: skip
