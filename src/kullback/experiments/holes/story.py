"""What a hole does: to variances, to S, under a clamp, and to batches that do not see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kullback as kb
from kullback.experiments.holes.batches import SIZES, cover_auto, seen
from kullback.experiments.holes.measure import (
    CLAMP,
    DEPTHS,
    DRAWS,
    PRINTED_KL,
    RECOVERED_HOLE,
    RECOVERED_Q,
    Matched,
    Q,
    at_depth,
    clamp_begins,
    clamped,
    crossover,
    matched,
    same_kl,
    z_of_draws,
)
from kullback.reporting.curves import curves, dial, groups
from kullback.reporting.experiment import Experiment, Part, Printed, Table
from kullback.reporting.figures import Figure

DEEP = 3.0  # the depth at which batches are looked at
SHOWN = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
COLORS = {"q": "var(--dim)", "p1, hole": "var(--orange)", "p2, smooth": "var(--blue)"}
X = "depth h: p1 gives the first category 0.2 · 10^−h"


@dataclass(frozen=True, slots=True)
class Side:
    """One of two matched distributions, with the numbers that the tables show."""

    name: str
    p: np.ndarray
    shape: kb.Shape


def run(seed: int) -> Experiment:
    """The experiment."""
    first = matched(RECOVERED_HOLE, RECOVERED_Q)
    sweep = {depth: at_depth(depth) for depth in DEPTHS}
    deep = seen(1024, DEEP)
    return Experiment(
        name="holes",
        source="The Structure Behind KL Estimation",
        question="Two distributions with one KL: why is k3 good for one and useless for the other?",
        claim="Where one category is nearly gone (a hole) k1 has the smaller variance, at a smooth "
        "shift of the same KL k3: the shape decides, not the KL.",
        answer="It holds, and S = χ²/(2J) says which; but most batches do not see the hole: at "
        f"depth 3 the median k3 of 1,024 samples is {_off(deep.median_k3)} too small, and the "
        f"interval around k1 fails as often as that around k3, in {1 - deep.cover:.0%} of batches.",
        method="Exact sums over three categories (kb.shape, kb.divergence). A batch is its "
        "number of hits, which is binomial, so that what finite batches see is exact too. Draws "
        "are told with their distance in exact standard errors (z).",
        parts=(
            _example(first, seed),
            _sweep(sweep),
            _shape(sweep),
            _clamp(sweep),
            _batches(seed),
        ),
        printed=(
            Printed("KL(p1‖q), first example", str(PRINTED_KL), first.of_hole.kl_pq,
                    "q and p1 are recovered from these digits."),
            Printed("KL(p2‖q), first example", str(PRINTED_KL), first.of_smooth.kl_pq,
                    "p2 is made to have it."),
            Printed("limit of the KL, log(1/0.8)", "0.22314", float(np.log(1 / 0.8))),
        ),
        limits=(
            "The distributions of the first example are recovered from the ten digits of its KL; "
            "its table of variances was not at hand.",
            "p1 has two ratios only. So one coefficient λ takes all its variance away, and no "
            "benchmark should be made of it: take three ratios or more.",
            "The document's training runs (a distilled language model, PPO) are not rerun.",
            "One hole of three categories is a picture of a vocabulary, not a measurement of one.",
        ),
        seed=seed,
    )  # fmt: skip


def _off(value: float) -> str:
    return f"{1 - value / at_depth(DEEP).of_hole.kl_pq:.0%}"


def _sides(one: Matched) -> tuple[Side, Side]:
    return (
        Side("p1, hole", one.hole, one.of_hole),
        Side("p2, smooth", one.smooth, one.of_smooth),
    )


def _example(first: Matched, seed: int) -> Part:
    rows, drawn = [], []
    for side in _sides(first):
        spelled = ", ".join(f"{value:.4g}" for value in side.p)
        it = side.shape
        rows.append((f"{side.name}: ({spelled})", it.kl_pq, it.variance_k1, it.variance_k3,
                     it.S, it.lambda_star, abs(round(it.variance_k_lambda, 12))))  # fmt: skip
        for name, (exact, mean, z) in z_of_draws(side.p, first.q, seed).items():
            drawn.append((f"{side.name}, {name}", exact, mean, z))
    (found,) = same_kl()
    heads = ("p", "KL(p‖q)", "Var(k1)", "Var(k3)", "S", "λ*", "Var at λ*")
    return Part(
        "The first example, recovered",
        f"q = ({found[0]:g}, 0.45, 0.45) and p1 = ({found[1]:g}, …) are the only pair with a "
        "first probability of two decimals in q and of one digit in p1 that has the printed KL "
        "to ten digits; the q of the sweep, (0.2, 0.4, 0.4), is not it. k3 is 402 times noisier "
        "than k1 at the hole, and 27 times less noisy at the smooth shift.",
        (
            Table("Exact, nats and nats².", heads, rows),
            Table(f"{DRAWS:,} draws.", ("of", "KL", "drawn", "z"), drawn),
        ),
    )


def _sweep(sweep: dict[float, Matched]) -> Part:
    points, bars = [], []
    for depth, one in sweep.items():
        hole, smooth = one.of_hole, one.of_smooth
        points += [
            {"at": depth, "series": series, "value": value}
            for series, value in (
                ("k1, smooth", smooth.variance_k1),
                ("k3, hole", hole.variance_k3),
                ("k3, smooth", smooth.variance_k3),
                ("k1, hole", hole.variance_k1),
            )
        ]
        bars += [
            {"at": depth, "name": f"{place + 1}", "series": series, "value": float(p[place])}
            for series, p in zip(COLORS, (Q, one.hole, one.smooth), strict=True)
            for place in range(3)
        ]
    last = sweep[DEPTHS[-1]]
    figure = dial(
        "As the hole deepens its KL stands still, and the variance of k3 grows without end.",
        points, groups(bars, "probability", COLORS), X, "variance of one sample, nats²",
        named="depth h", start=2.0, log="y", marks={crossover(): "S = 1"},
    )  # fmt: skip
    return Part(
        "Deeper and deeper",
        f"q = (0.2, 0.4, 0.4); p1 and p2 have one KL at every depth, {last.of_hole.kl_pq:.4f} "
        f"nats at the last. There k3 has a variance of {last.of_hole.variance_k3:.0f} at the hole "
        f"and of {last.of_smooth.variance_k3:.3f} at the smooth shift. The variance of k1 at the "
        "hole falls.",
        (figure,),
    )


def _shape(sweep: dict[float, Matched]) -> Part:
    points = [
        {"at": depth, "series": side.name, "value": side.shape.S}
        for depth, one in sweep.items()
        for side in _sides(one)[::-1]  # colors as in the sweep
    ]
    depth = crossover()
    figure = curves(
        f"S crosses 1 at depth {depth:.4f} of the hole; at the smooth shift it never does.",
        points, X, "S = χ²(q‖p) / (2J)", log="y", level=(1.0, "above: k1 is less noisy"),
        marks={depth: f"h = {depth:.3f}"},
    )  # fmt: skip
    rows = []
    for at in SHOWN:
        hole, smooth = sweep[at].of_hole, sweep[at].of_smooth
        rows.append((f"{at:g}", hole.kl_pq, hole.S, hole.lambda_star, smooth.S, smooth.lambda_star,
                     smooth.variance_k3, smooth.variance_k_lambda))  # fmt: skip
    heads = ("h", "KL", "S, hole", "λ*", "S, smooth", "λ*", "Var(k3)", "Var at λ*")
    return Part(
        "One number that decides",
        "Var(k3) < Var(k1) exactly where S < 1. With λ* = 1/(2S) the variance at the hole is "
        "exactly 0, since p1 has two ratios; at the smooth shift λ* leaves a third of k3's "
        "variance at depth 0.5 and a tenth at 2.",
        (figure, Table("The last two columns are of the smooth shift.", heads, rows)),
    )


def _clamp(sweep: dict[float, Matched]) -> Part:
    begins = clamp_begins()
    points = []
    for depth, one in sweep.items():
        cut, _ = clamped(one.hole, Q)
        points += [
            {
                "at": depth,
                "series": "KL(p1‖q), the mean of k1 and of k3",
                "value": one.of_hole.kl_pq,
            },
            {"at": depth, "series": f"mean of k3 cut off at {CLAMP:g}", "value": cut},
        ]
    figure = curves(
        f"From depth {begins:.3f} on, k3 cut off at {CLAMP:g} loses the hole: the deeper, the "
        "less it says.",
        points, X, "nats", marks={begins: "clamp begins"},
    )  # fmt: skip
    rows = []
    for at in (1.0, 1.2, 1.5, 2.0, 3.0):
        one = at_depth(at)
        cut, variance = clamped(one.hole, Q)
        kl = one.of_hole.kl_pq
        rows.append((f"{at:g}", kl, cut, f"{cut / kl - 1:+.0%}".replace("-", "−"),
                     one.of_hole.variance_k3, variance, one.of_hole.variance_k1))  # fmt: skip
    heads = ("h", "KL", "mean, clamped", "bias", "Var(k3)", "Var, clamped", "Var(k1)")
    return Part(
        "k3 with a clamp",
        f"Several trainers cut k3 off at {CLAMP:g}, which is q/p = 13.6. That takes the variance "
        "away and the KL with it: −56 % at depth 1.5 and −80 % at 2. There is no gradient from "
        "the tokens that are cut off either. k1 has neither trouble.",
        (figure, Table("At the hole, one sample.", heads, rows)),
    )


def _typical() -> Figure:
    """What the median batch says, by its size."""
    said = [
        {"at": size, "series": series, "value": value}
        for size in np.unique(np.geomspace(SIZES[0], SIZES[-1], 301).astype(int)).tolist()
        for it in (seen(size, DEEP),)
        for series, value in (
            ("k1", it.median_k1), ("k3", it.median_k3), ("missing mass", it.median_missing))
    ]  # fmt: skip
    last = int(np.log(0.5) / np.log1p(-Q[0] * 10.0**-DEEP))
    return curves(
        f"Up to {last:,} samples the median batch has no hit; then k3 is far off on either side.",
        said, "samples in a batch", "nats; missing mass as a share of q", log="x",
        level=(at_depth(DEEP).of_hole.kl_pq, "KL"),
        note="Each tooth is one hit more in the median batch. Missing mass, 1 − mean(q/p), is k1 "
        "less k3: it is 0 on average, and not in the batch that one has.",
    )  # fmt: skip


def _batches(seed: int) -> Part:
    names = ("k1 or k3, depth 1", "k1 or k3, depth 2", "k1 or k3, depth 3", "kb.estimate, depth 3")
    auto = {size: cover_auto(size, DEEP, seed) for size in SIZES}
    points, medians, errors = [], [], []
    for size in SIZES:
        held = [seen(size, depth).cover for depth in (1.0, 2.0, DEEP)]
        points += [
            {"at": size, "series": name, "value": value}
            for name, value in zip(names, [*held, auto[size]], strict=True)
        ]
        it = seen(size, DEEP)
        medians.append((f"{size:,}", it.unseen, it.median_missing, it.median_k1, it.median_k3))
        errors.append((f"{size:,}", it.error_k1, it.error_k3, it.cover, auto[size]))
    figure = curves(
        "Until the hole is sampled often, the usual 95 % interval around k1 or k3 does not hold.",
        points, "samples in a batch", "share of batches whose interval holds", log="x",
        level=(0.95, "95 %"),
        note="k1 and k3 are both linear in the number of hits, and their intervals hold together.",
    )  # fmt: skip
    kl = f"{at_depth(DEEP).of_hole.kl_pq:.4f}"
    return Part(
        "What a batch sees",
        "The difference between k1 and k3 is not how often their intervals hold, which is the "
        "same, but how far off they are: with 1,024 samples at depth 3 the error of k1 is 1.4 % "
        "of the KL, that of k3 is 198 %, and the median batch, which saw no hole, says 0.223 by "
        "k1 and 0.023 by k3. Its missing mass, 0.2, is what tells. The interval of kb.estimate "
        "allows for what was not seen.",
        (
            figure,
            _typical(),
            Table(f"Depth 3, KL {kl}: the batch whose number of hits is the median.",
                  ("samples", "P(no hit)", "missing mass", "k1", "k3"), medians),
            Table("Depth 3: root mean squared error over the KL, and how often intervals hold.",
                  ("samples", "k1", "k3", "held, k1 or k3", "held, kb.estimate"), errors),
        ),
    )  # fmt: skip
