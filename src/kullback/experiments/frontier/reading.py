"""What is read of a run's KL, and where a limit on what is read stops the run."""

from __future__ import annotations

import numpy as np

from kullback.experiments.frontier import looks, training
from kullback.experiments.frontier.picture import hill
from kullback.experiments.frontier.training import BATCH, STEPS
from kullback.reporting.curves import dial, profiles
from kullback.reporting.experiment import Part, Table

SHOWN = (10, 20, 30, 50, 75, 100, 120, 140, 200)  # steps whose logged KLs are drawn as bars
ASKED = (10, 20, 30, 50, 100, 200)  # steps at which kb.estimate is asked
LIMITS = tuple(round(0.25 * i, 2) for i in range(6, 31))
GENEROUS = 5.0  # nats: a limit past the best gold reward
READ = {
    "gold reward / its highest": "var(--dim)",
    **dict(zip((*looks.ESTIMATORS, "exact KL"),
               ("var(--blue)", "var(--orange)", "var(--green)", "var(--purple)"), strict=True)),
}  # fmt: skip


def reading(seed: int) -> tuple[Part, ...]:
    """The parts that are about the logged KL."""
    return _axis(seed), _stop(seed)


def stopped(name: str, limit: float, seed: int) -> looks.Places:
    """The steps at which runs stop that read an estimator."""
    return looks.stops(looks.logged(seed)[name], limit) * training.EVERY


def _axis(seed: int) -> Part:
    path = [{"step": one.step, "kl": one.kl, "gold": one.gold} for one in looks.checkpoints()]
    bars, rows = [], []
    for place_, one in enumerate(looks.checkpoints()):
        if one.step in SHOWN:
            for name in looks.ESTIMATORS:
                low, high = np.quantile(looks.logged(seed)[name][:, place_], (0.05, 0.95))
                bars.append({"series": name, "step": one.step, "kl": one.kl, "gold": one.gold,
                             "low": float(low), "high": float(high)})  # fmt: skip
        if one.step in ASKED:
            bias, error = looks.auto(one.step, seed)
            rows.append((f"{one.step}", one.kl, one.gold,
                         *(one.error(name) for name in looks.ESTIMATORS), error, bias))  # fmt: skip
    figure = hill(
        "Read off a logged KL, a checkpoint lies anywhere on its bar; far out, k3 has the longest.",
        path, bars, round(looks.top().kl, 2),
        f"Points: checkpoints, at their exact KL. Bars: where 90 % of the KLs of {BATCH} answers "
        "lie, at some checkpoints, shifted only to be told apart. The limit is the KL of the best "
        f"checkpoint. Of {looks.RUNS:,} drawn batches each, all means lie within "
        f"{np.max(np.abs(looks.z_scores(seed))):.1f} exact standard errors of the KL.",
    )  # fmt: skip
    return Part(
        "What is read off the axis",
        "The picture that the document describes. Up to about 2 nats k3 is steadier than k1. "
        "Beyond, the policy hardly writes plain words, on which the reference still has its mass: "
        "k3 meets them rarely and then as a large number, so that more than half of the batches "
        "read too little and a few far too much. Rao-Blackwell needs all log-probs at each prefix, "
        "and is several times steadier than either. kb.estimate, from the same log-probs as k1 "
        "and k3, reads a little too much and is about as good as k1 where k3 is lost.",
        (figure,
         Table("Exact standard errors of a logged KL. kb.estimate: root mean square error and "
               f"bias over {looks.ASKED} drawn batches.",
               ("step", "KL", "gold", *looks.ESTIMATORS, "kb.estimate", "its bias"), rows)),
    )  # fmt: skip


def _by_then(stops: looks.Places) -> list[float]:
    """The share of runs that have stopped, at each checkpoint."""
    return [float(np.mean(stops <= place)) for place in range(len(looks.STEPS_LOGGED))]


def _against_exact(points: list[dict]) -> tuple[float, float]:
    """The most that a noisy stop loses of the exact one's gold reward, and the most it gains."""
    exact = {row["at"]: row["value"] for row in points if row["series"] == "exact KL"}
    apart = [row["value"] - exact[row["at"]] for row in points]
    return -min(apart), max(apart)


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
        "A noisy KL stops runs early: it costs little before the summit, seems to pay past it.",
        points, profiles(hill_, turned, "step", "share of runs that have stopped", READ),
        "limit, nats", "gold reward where runs stop, mean", named="limit, nats", start=GENEROUS,
        marks={round(looks.top().kl, 2): "best checkpoint"},
        note=f"{looks.RUNS:,} readings of one run. The rule: stop at the first checkpoint whose "
        f"logged KL of {BATCH} fresh answers is above the limit; looked at every "
        f"{training.EVERY} steps. A run that is never stopped ends at step {STEPS}.",
    )  # fmt: skip
    for limit in (2.0, 4.25, GENEROUS):
        exact = looks.exact_stop(limit)
        for name, read in looks.logged(seed).items():
            found = looks.stops(read, limit)
            rows.append((f"{limit:g} nats: {name}", exact * training.EVERY, float(golds[exact]),
                         float(found.mean() * training.EVERY),
                         float(found.std() * training.EVERY), float(golds[found].mean()),
                         float(np.mean(found < exact)), float(np.mean(found > exact))))  # fmt: skip
    lost, won = _against_exact(points)
    return Part(
        "Where a limit stops the run",
        "The first reading above a limit ends the run, so noise ends it early wherever the KL "
        "lingers below the limit for several looks, and k3's rare large readings do so most. A "
        "steep climb leaves no time for that, and all stop within a checkpoint or two of the exact "
        f"KL. At no limit shown does noise cost more than {lost:.2f} of gold reward on average. "
        "Past the summit it looks like a gain: by a limit that is too generous k3 "
        f"stops long before the limit is reached, and keeps up to {won:.2f} more. That is luck of "
        "this hill and no rule. By a steady reading the limit is the limit, and to set it is the "
        "question. A stop with a stated chance of a false alarm, over any number of looks, is "
        "kb.Evidence.",
        (figure,
         Table("Stops by a limit. Earlier, later: shares of runs that stop before or after the "
               "exact KL does.",
               ("limit and reading", "exact stop", "its gold", "mean stop", "sd of stop",
                "mean gold", "earlier", "later"), rows)),
    )  # fmt: skip
