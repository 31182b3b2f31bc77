"""What the noise of an estimate does to a loop: a small unrest, and before a hole a bias."""

from __future__ import annotations

import numpy as np

from kullback.experiments.controller.fed import (
    AUTO,
    GAIN,
    HORIZON,
    LOOPS,
    POWERS,
    SKIP,
    Fed,
    name,
)
from kullback.experiments.controller.linear import error, rule_of_thumb, slope, spread
from kullback.experiments.controller.loop import CLIP, HOLED, SMOOTH, TARGET, Loop, Values, run
from kullback.experiments.controller.push import push, rests
from kullback.experiments.controller.traces import traced
from kullback.reporting.curves import curves
from kullback.reporting.experiment import Part, Table
from kullback.reporting.figures import Figure

SETTING, SLIDER = "batch size, as a power of two", "batch, 2 to the power of"
LEFT = "Left: the exact KL of a run that is steered by each estimate, at the batch size chosen. "


def noise(one: Fed, seed: int) -> Part:
    """Where nothing is holed.

    Args:
        one: The loops of the smooth world.
        seed: Of those that are run besides.
    """
    kappa, rho = slope(SMOOTH), error(SMOOTH, "k1")
    thumb = rule_of_thumb(kappa, GAIN, rho, 256)
    usual = rule_of_thumb(2.0, GAIN, float(np.sqrt(2 / 6)), 256)
    zs = one.zs()
    return Part(
        "The noise alone",
        f"Rewards {spelled(SMOOTH.reward)}, no hole; target {TARGET:g} nats. One batch of 256 is "
        f"off by {rho / 16:.0%} of the target with k1, the loop by {thumb:.1%}, were there no clip"
        ": sd ≈ √(κ g / 2) · ρ/√n, with g the gain, ρ the sd of one sample over the target "
        f"({rho:.2f} for k1, {error(SMOOTH, 'k3'):.2f} for k3) and κ the per cent by which the KL "
        f"grows with one of θ, here {kappa:.2f}, and 2 near the reference. Where the gain is n "
        "over a fixed horizon, as in the source, n falls out: a larger batch does not calm that "
        "loop, and a very large one brings it near its limit (see Gain). Put to a usual setting (6 "
        "nats per sequence, 256 sequences, normal log-ratios, where k1 has ρ = √(2/6) and κ = 2) "
        f"the formula gives {usual:.1%} of the target. Without the clip the {len(zs)} loops are "
        f"within |z| ≤ {np.abs(zs).max():.1f} of the prediction.",
        (_shaking(one), _predicted(one, seed), _spreads(one)),
    )  # fmt: skip


def _shaking(one: Fed) -> Figure:
    sds = one.sds()
    along = [
        {"at": int(np.log2(loop.samples)), "series": loop.feed, "value": float(sd)}
        for loop, sd in zip(LOOPS, sds, strict=True)
    ]
    along += [{"at": power, "series": "exact", "value": 0.0} for power in POWERS]
    return traced(
        "Without holes the loop shakes by a few per cent of the target, with k3 by less.",
        along, {"exact": np.ones(400)}, one.traces(400), every=4,
        axes=(SETTING, "sd of the KL / target", "exact KL / target"), named=SLIDER, start=6,
        note=LEFT + "The run that is told the exact KL stays on the target.",
    )  # fmt: skip


def _predicted(one: Fed, seed: int) -> Figure:
    scaled = [Loop("k1", 2**power, 2**power / HORIZON) for power in POWERS if power <= 12]
    there = np.sqrt(run(SMOOTH, scaled, seed).settled(SKIP).squares()[0])
    drawn = [(loop, loop.feed, sd) for loop, sd in zip(LOOPS, one.sds(), strict=True)]
    drawn += [(loop, "k1, gain n/10,000", sd) for loop, sd in zip(scaled, there, strict=True)]
    points = [
        {"at": loop.samples, "series": series,
         "value": float(np.sqrt(spread(SMOOTH, loop, clip=True).kl)), "sampled": float(sd)}
        for loop, series, sd in drawn
    ]  # fmt: skip
    return curves(
        "A fixed gain averages over batches; one that grows with the batch gives that away.",
        points, "samples in a batch", "sd of the KL / target", log="xy",
        note="Lines: predicted, with what the clip lets through of a normal error. Circles: 32 "
        "copies of 1,500 steps.",
    )  # fmt: skip


def _spreads(one: Fed) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    free, cut, zs = one.sds(clip=False), one.sds(), one.zs()
    betas = np.sqrt(one.clipped.settled(SKIP).squares_of_beta()[0])
    for place, loop in enumerate(LOOPS):
        if loop.samples in (64, 256, 1024, 4096):
            linear, clipped = spread(SMOOTH, loop), spread(SMOOTH, loop, clip=True)
            rows.append((name(loop), float(np.sqrt(linear.kl)), float(free[place]),
                         float(zs[place]), float(np.sqrt(clipped.kl)), float(cut[place]),
                         float(betas[place])))  # fmt: skip
    told = np.sqrt([one.auto.squares()[0], one.auto.squares_of_beta()[0]])
    rows += [
        (name(loop), None, None, None, None, *map(float, told[:, place]))
        for place, loop in enumerate(AUTO)
    ]
    rows.append(("exact", 0.0, 0.0, None, 0.0, 0.0, 0.0))
    heads = ("told", "predicted", "drawn, no clip", "z", "predicted, clip", "drawn, clip", "log β")
    caption = f"sd of KL / target at a gain of {GAIN:g}; the last, of log β with the clip."
    return Table(caption, heads, rows)


def bias(one: Fed) -> Part:
    """Where the policy digs a hole.

    Args:
        one: The loops of the holed world.
    """
    hole = float(np.exp(HOLED.log_p(HOLED.at_target))[0])
    needs = [25 * error(HOLED, feed) ** 2 for feed in ("k3", "k1")]
    return Part(
        "The clip turns noise into bias",
        f"Rewards {spelled(HOLED.reward)}: the first token is forbidden, so that at the target p "
        f"has {hole:.4f} of it where q has 0.2. Both estimates stay unbiased. But the controller "
        "cuts every error at 20 % of the target, and a rare large one counts no more than a small "
        "one: it holds something like the median of the estimate and not its mean. k3 of a batch "
        "without the first token tells the KL less that token's 0.2 of q. So small batches leave "
        "the loop at rest where the KL is 0.2 nats above the target, here twice the target, and "
        "the hole is then so deep that no batch tells. A smaller gain does not help. A batch of "
        f"far more than 25 ρ² does, since its error is seldom cut: {needs[0]:,.0f} for k3 here, "
        f"{needs[1]:.0f} for k1. Without the clip 256 hold the target, and 16 do not, since they "
        "see no hole. k1 and auto err the other way: small batches leave them below the target.",
        (_doubled(one), _coefficients(one), _pushes(), _rests(one)),
    )  # fmt: skip


def _doubled(one: Fed) -> Figure:
    along = [
        {"at": int(np.log2(loop.samples)), "series": loop.feed, "value": float(mean)}
        for loop, mean in zip(LOOPS, one.means(), strict=True)
    ]
    along += [{"at": power, "series": "exact", "value": 1.0} for power in POWERS]
    return traced(
        "k3 of small batches before a hole: the same target, and twice the KL.",
        along, {"exact": np.ones(2000)}, one.traces(2000), every=20,
        axes=(SETTING, "mean KL / target", "exact KL / target"), named=SLIDER, start=6, note=LEFT,
    )  # fmt: skip


def _coefficients(one: Fed) -> Figure:
    shown: dict[str, Values] = {
        loop.feed: np.exp(one.clipped.log_beta[:1500, place, 0])
        for place, loop in enumerate(LOOPS)
        if loop.samples == 64
    }
    shown["exact"] = np.ones(1500)
    points = [
        {"at": step, "series": feed, "value": float(trace[step])}
        for feed, trace in shown.items()
        for step in range(0, 1500, 10)
    ]
    return curves(
        "Told k3 of 64 samples, unbiased at every step, the coefficient falls to a third.",
        points, "step", "coefficient / right one", note="The runs of 64 samples above.",
    )  # fmt: skip


def _pushes() -> Figure:
    points = []
    told = (("k1", 64), ("k3", 64), ("exact", 0), ("k3", 16))
    for feed, samples in told:
        for kl in np.linspace(0.5, 2.5, 61):
            at = float(np.clip(kl - 1, -CLIP, CLIP))
            if feed != "exact":
                at = push(HOLED, feed, samples, HOLED.theta(float(kl) * TARGET))
            series = f"{feed} of {samples}" if samples else feed
            points.append({"at": float(kl), "series": series, "value": at})
    return curves(
        "Where a curve crosses 0 upwards the loop can rest: for k3 of 64 that is in two places.",
        points, "exact KL / target", "mean of the clipped error", level=(0.0, ""),
        note="Exact sums over all counts of a batch. Above 0 the coefficient grows and the KL "
        "falls.",
    )  # fmt: skip


def _rests(one: Fed) -> Table:
    settled, rows = one.clipped.settled(SKIP), []
    means, free = one.means(), one.means(clip=False)
    for place, loop in enumerate(LOOPS):
        if loop.samples in (16, 64, 256, 1024, 4096):
            at = rests(HOLED, loop.feed, loop.samples) if loop.samples <= 256 else []
            rows.append((name(loop), float(means[place]),
                         float(np.exp(settled.log_beta[:, place].mean())),
                         " or ".join(f"{kl:.3f}" for kl in at) or None,
                         float(free[place])))  # fmt: skip
    for place, loop in enumerate(AUTO):
        rows.append((name(loop), float(one.auto.kl[:, place].mean()),
                     float(np.exp(one.auto.log_beta[:, place].mean())), None, None))  # fmt: skip
    heads = ("told", "mean KL / target", "β / right β", "rests at, exactly", "mean KL, no clip")
    return Table(
        "From the target, over steps 500 to 2,000. The resting points are those of a slow "
        "controller, for batches up to 256.",
        heads, rows,
    )  # fmt: skip


def spelled(values: Values) -> str:
    """A vector as a sentence has it."""
    return "(" + ", ".join(f"{value:g}" for value in values).replace("-", "−") + ")"
