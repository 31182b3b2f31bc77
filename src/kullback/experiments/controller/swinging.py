"""Unrest that is not the estimate's: too much gain, a rule that leaps, a noisy gradient."""

from __future__ import annotations

import numpy as np

from kullback.experiments.controller.linear import critical, spread
from kullback.experiments.controller.loop import HOLED, SMOOTH, TARGET, Loop, doubling, run
from kullback.experiments.controller.traces import traced
from kullback.reporting.curves import curves
from kullback.reporting.experiment import Part, Table

FEEDS = ("k1", "k3", "exact")
GAINS = tuple(round(0.1 * i, 1) for i in range(1, 16))
OFF = 0.9 * TARGET  # a start from which a loop must find its target
# The runs of the rule that doubles and halves which are drawn, in the order of their colors.
DRAWN = (
    "k1 of 64, from the target",
    "k3 of 64, from the target",
    "exact, from half the target",
    "exact, from the target",
)
SHOWN = 200  # steps of them
NOISES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
LARGE = 65_536  # a batch in which hardly an error is cut off
# The curves of the last figure; k1 has the same in both worlds.
SERIES = {("smooth", "k1"): "k1", ("smooth", "k3"): "k3", ("holed", "k3"): "k3, before a hole"}


def gains(usual: float, seed: int) -> Part:
    """What the gain does with and without noise."""
    loops = [Loop(feed, 256, gain) for feed in FEEDS for gain in GAINS]
    made = run(SMOOTH, loops, seed, start=OFF, digits=6)
    squares = made.settled(1000).squares()[0]
    variance = dict(zip(loops, map(float, squares), strict=True))
    along = [
        {"at": loop.gain, "series": loop.feed, "value": float(np.sqrt(value))}
        for loop, value in variance.items()
    ]
    shown = {
        (loop.gain, loop.feed): np.exp(made.log_beta[:200, place, 0])
        for place, loop in enumerate(loops)
        if loop.feed != "k3"
    }
    limit = critical(SMOOTH)
    figure = traced(
        f"Above a gain of {limit:.2f} the loop swings by itself, and noise adds next to nothing.",
        along, {}, shown, every=1,
        axes=("gain of the controller", "sd of the KL / target", "coefficient / right one"),
        named="gain", start=0.5, marks={limit: f"1/κ = {limit:.2f}"},
        note="Batches of 256; loops start at 0.9 targets. Left: the coefficient of one run.",
    )  # fmt: skip
    rows = []
    for gain in (0.1, 0.3, 0.5, 0.7, 1.0, 1.5):
        *fed, still = (variance[Loop(feed, 256, gain)] for feed in FEEDS)
        parts = [max(1 - still / value, 0.0) for value in fed]
        sds = (round(float(np.sqrt(value)), 4) for value in (still, *fed))
        rows.append((f"{gain:g}", *sds, *(round(part, 4) for part in parts)))
    heads = ("gain", "exact", "k1", "k3", "part of noise, k1", "part of noise, k3")
    return Part(
        "Gain",
        "Without noise the linear loop comes to rest as long as gain · κ < 1, however fast or "
        f"slow the policy answers; with a hole, where κ is less, up to {critical(HOLED):.2f}. The "
        f"usual gain is {usual:g}. Below the limit all the unrest is the noise of the estimate, "
        "and it grows near the limit. Above it the exact KL makes the loop swing as far as a "
        "noisy one does: a better estimate is no cure there.",
        (figure, Table("sd of KL / target after 1,000 steps, and the part of the variance that "
                       "an exact KL would take away.", heads, rows)),
    )  # fmt: skip


def halves_and_doubles(seed: int) -> Part:
    """The rule that doubles and halves."""
    loops = [Loop("exact", 1, 0.0)]
    loops += [Loop(feed, n, 0.0) for feed in ("k1", "k3") for n in (64, 256, 1024, 4096)]
    points, rows = [], []
    for start, name in ((TARGET, "from the target"), (TARGET / 2, "from half the target")):
        made = run(SMOOTH, loops, seed, rule=doubling, start=start)
        settled = made.settled(1000)
        sds = np.sqrt(settled.squares()[0]).round(9)
        for place, loop in enumerate(loops):
            told = loop.feed if loop.feed == "exact" else f"{loop.feed} of {loop.samples:,}"
            kls = settled.kl[:, place]
            swings = float(np.mean(np.ptp(kls, axis=0) > 1))
            rows.append((f"{told}, {name}", float(kls.mean()), float(sds[place]),
                         float(kls.min()), float(kls.max()), swings))  # fmt: skip
            if rows[-1][0] in DRAWN:
                trace = made.kl[:SHOWN, place, 0]
                points += [
                    {"at": step, "series": rows[-1][0], "value": float(value)}
                    for step, value in enumerate(trace)
                ]
    points.sort(key=lambda row: (DRAWN.index(row["series"]), row["at"]))
    figure = curves(
        "Off its band the rule that doubles and halves swings for ever, noise or none.",
        points, "step", "exact KL / target",
        note="No gradient is noisy here. The policy answers a new coefficient within some ten "
        "steps, and by then it has been doubled several times. Runs that have not left the target "
        "lie on each other.",
    )  # fmt: skip
    heads = ("told", "mean", "sd", "least", "most", "runs that swing")
    return Part(
        "A rule that doubles and halves",
        "That of Schulman et al. 2017: twice the coefficient above 1.5 targets, half of it below "
        "a target / 1.5. It was made for the KL of one update, which answers at once; set on the "
        "KL to a reference it leaps before the policy has answered. Started on the target and "
        "told the exact KL it never acts. One noisy batch outside the band is enough to start "
        "what exact KLs keep up: the noise is the push, not the swing.",
        (figure, Table("KL / target over steps 1,000 to 2,000 of 32 copies. A run swings if its "
                       "KL spans more than the target.", heads, rows)),
    )  # fmt: skip


def gradients(usual: float, seed: int) -> Part:
    """The noise of the estimate beside that of the gradient."""
    points, rows, worst = [], [], 0.0
    for world in (SMOOTH, HOLED):
        loops = [Loop(feed, LARGE, usual, noise) for feed in FEEDS for noise in NOISES]
        squares, errors = run(world, loops, seed).settled(500).squares()
        found = dict(zip(loops, map(float, squares), strict=True))
        zs = {
            loop: (found[loop] - spread(world, loop).kl) / error
            for loop, error in zip(loops, map(float, errors), strict=True)
            if loop.feed != "exact" or loop.noise
        }
        worst = max(worst, *(abs(z) for z in zs.values()))
        for feed in ("k1", "k3"):
            for noise in NOISES[1:]:
                loop, still = Loop(feed, LARGE, usual, noise), Loop("exact", LARGE, usual, noise)
                predicted = 1 - spread(world, still).kl / spread(world, loop).kl
                drawn = 1 - found[still] / found[loop]
                series = SERIES.get((world.name, feed))
                if series:
                    points.append({"at": noise, "series": series, "value": predicted,
                                   "sampled": drawn})  # fmt: skip
                rows.append((f"{world.name}: {feed}, {noise:g}", float(np.sqrt(found[still])),
                             float(np.sqrt(found[loop])), predicted, drawn, zs[loop]))  # fmt: skip
    figure = curves(
        "A reward as noisy as it is wide drowns k3's noise without holes, and about halves k1's.",
        points, "noise of a sampled reward / sd of the rewards", "part of the KL's variance",
        note=f"Lines: predicted. Circles: drawn, batches of {LARGE:,}.",
    )  # fmt: skip
    heads = ("world: told, noise", "sd, exact", "sd, told", "part, predicted", "part, drawn", "z")
    return Part(
        "Beside the noise of the gradient",
        "Now the policy moves by the gradient of its batch. At the best policy every advantage "
        "is 0, so that of a reward without noise no unrest comes from it. With noise m times the "
        "sd of the rewards both parts fall as 1/n, and their ratio is about gain · ρ² / (κ · a · "
        "m²), where a = 0.1 is the part of the way that a step goes; for k1 that is gain / (a · "
        "target · m²) in either world, as ρ² = κ / target for it along such policies. A smaller "
        "gain calms the estimate's part and leaves the gradient's. Of "
        f"{2 * (len(FEEDS) * len(NOISES) - 1)} loops none is further than |z| = {worst:.1f} from "
        "its prediction.",
        (figure, Table("sd of KL / target, told the exact KL and told the estimate, and the part "
                       "of the variance that is the estimate's.", heads, rows)),
    )  # fmt: skip
