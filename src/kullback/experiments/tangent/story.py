"""What the tangent shows: a gap, one quadratic for all, and where that ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kullback.experiments.tangent.drifting import drifting
from kullback.experiments.tangent.family import (
    GAPS,
    alpha,
    bias_of_k2,
    derivatives,
    good_until,
    mean,
    merged,
    pair_of,
    ratio,
)
from kullback.experiments.tangent.steps import STEP, walk
from kullback.reporting.curves import curves, dial, profiles
from kullback.reporting.enclosed import gap
from kullback.reporting.experiment import Experiment, Part, Printed, Table

ORDERS = tuple(round(0.1 * i, 1) for i in range(-10, 21))
SHARES = (0.5, 0.1, 0.01, 0.001)  # of the token whose logit is raised
ONE = 0.01  # the share that is drawn
OF_ALPHA = {
    "k2": "var(--dim)",
    "KL(q‖p), α = 0": "var(--orange)",
    "KL(p‖q), α = 1: k3": "var(--green)",
    "chosen α": "var(--blue)",
}


def run(seed: int) -> Experiment:
    """The experiment."""
    alone = walk("natural")
    until = good_until(lambda t: ratio(GAPS["KL(p‖q)"], ONE, t) - 1, ONE)
    return Experiment(
        name="tangent",
        source="Approximating KL Divergence (Schulman 2020) and The Four Faces of KL Divergence",
        question="KL as a gap, as a quadratic, as a limit on steps: how far does each carry?",
        claim="k3 is the gap between log r and its tangent; close to each other all f-divergences "
        "are one Fisher quadratic, also the mean of k2; a run can keep every step small and still "
        "drift arbitrarily far from its reference.",
        answer="The gap and the drift hold: "
        f"{alone.moved()} steps of {STEP:g} nats end {alone.drift()[-1]:.2f} nats away. But no "
        "number of nats is small enough for the quadratic: between normals it never fails, and "
        f"where a token of 1 % is raised it is 10 % off at {until:.2g} nats.",
        method="Sums over the outcomes of p; for normal policies Gauss-Hermite integrals of kb.k2, "
        "kb.k3, kb.other_direction and kb.f_form themselves. Steps of equal KL are solved for. "
        "Only the random directions are drawn, and their distance from the exact mean is told in "
        "exact standard errors (z).",
        parts=(_gap(), _family(), _second_order(), *drifting(seed)),
        printed=_printed(),
        limits=(
            "The runs know their rewards, policies and KLs exactly. With estimates of them a step "
            "is longer or shorter than it is meant to be.",
            "One softmax over five tokens is no language model: it has no prefixes, and a logit "
            "for each token, so that the natural step is the advantages themselves.",
            "Where the quadratic stops being good depends on the direction of the step; shown are "
            "a shift of normals and one logit of one token.",
        ),
        seed=seed,
    )  # fmt: skip


def _printed() -> tuple[Printed, ...]:
    tie = "Exactly μ²/4 = 0.0025, a tie in three decimals: rounded half up it is 0.003."
    return (
        Printed("f''(1) of f = −log x", "1", derivatives(GAPS["KL(p‖q)"])[0]),
        Printed("f''(1) of f = (log x)²/2", "1", derivatives(GAPS["mean of k2"])[0]),
        Printed("bias/KL of k2, KL 0.005", "0.002", bias_of_k2(None, 0.1), tie),
        Printed("bias/KL of k2, KL 0.5", "0.25", bias_of_k2(None, 1.0)),
    )


def _gap() -> Part:
    r = np.concatenate([np.linspace(0.08, 1, 47), np.linspace(1.05, 3.6, 52)])
    rows = [
        {"at": round(float(x), 3), "low": float(np.log(x)), "high": float(x - 1),
         "between": float(GAPS["KL(p‖q)"](np.log(x)))}
        for x in r
    ]  # fmt: skip
    picture = gap(
        "k3 is what lies between log r and its tangent at r = 1: nowhere below 0.",
        rows, "r = q/p of one sample", "nats", ("log r", "its tangent, r − 1", "k3, the gap"), "",
    )  # fmt: skip
    points = []
    for log_r in np.linspace(-2.0, 1.2, 65):
        points += [
            {"at": float(log_r), "series": series, "value": float(GAPS[name](log_r))}
            for series, name in (
                ("k3", "KL(p‖q)"),
                ("k2", "mean of k2"),
                ("(r − 1)²/2", "χ²(q‖p) / 2"),
            )
        ]
    parabolas = curves(
        "k2 is the gap to second order in log r, (r − 1)²/2 to second order in r.",
        points, "log r of one sample", "nats",
    )  # fmt: skip
    return Part(
        "A gap",
        "The tangent has mean 0 for x ~ p, since r has mean 1. So log r may be measured down from "
        "its tangent instead of from 0: the mean is the same KL, and no sample is below 0. k2 is "
        "the parabola in log r that touches the gap; where r > 1 it is below k3, where r < 1 "
        "above.",
        (picture, parabolas),
    )


def _family() -> Part:
    grid = np.linspace(-1.2, 1.2, 41)

    def line(values: np.ndarray, series: str, **at: float) -> list[dict]:
        return [
            {"x": round(float(x), 3), "series": series, "value": round(float(y), 5), **at}
            for x, y in zip(grid, values, strict=True)
        ]

    zero, one = list(OF_ALPHA)[1:3]
    fixed = line(GAPS["mean of k2"](grid), "k2") + line(alpha(0)(grid), zero)
    fixed += line(alpha(1)(grid), one)
    turned, points = [], []
    pairs = {
        "normals, KL 0.005": (None, 0.1),
        "normals, KL 0.5": (None, 1.0),
        "token of 1 %, logit + 1": (ONE, 1.0),
    }
    for order in ORDERS:
        turned += line(alpha(order)(grid), "chosen α", at=order)
        points += [
            {"at": order, "series": series, "value": ratio(alpha(order), share, t)}
            for series, (share, t) in pairs.items()
        ]
    figure = dial(
        "Every α has its gap, and all touch the same parabola.",
        points, profiles(fixed, turned, "log r of one sample", "gap / f''(1)", OF_ALPHA),
        "α", "divergence over the Fisher quadratic", named="α", start=0.5,
        note="α = −1 is χ²(q‖p)/2, ½ is 4 H², 2 is χ²(p‖q)/2. The other view has the same "
        "dial for whole policies: at 1 the quadratic is exact.",
    )  # fmt: skip
    before, after = merged()
    rows = [
        (name, *(round(value, 3) + 0.0 for value in derivatives(one)), before[name], after[name])
        for name, one in GAPS.items()
    ]  # fmt: skip
    heads = ("divergence", "f''(1)", "f'''(1)", "three outcomes", "two merged")
    return Part(
        "The whole f-family is one dial",
        "For any convex f the gap f(r) − f'(1)(r − 1) is never below 0 and its mean is the "
        "divergence (kb.f_form). Divided by f''(1), all share the second order; the two directions "
        "of KL part at the third, −2 against −1. Schulman calls the mean of k2 an f-divergence as "
        "well. It is not quite one: (log r)²/2 is concave beyond r = e, and there telling less "
        "raises it. Merging the first two outcomes of p = (0.02, 0.02, 0.96) and q = (0.08, 0.32, "
        "0.60) lowers every divergence, as it must, and raises the mean of k2.",
        (figure, Table("H² and JSD have f''(1) = 1/4: four times each.", heads, rows)),
    )


def _second_order() -> Part:
    series = ("KL(p‖q)", "mean of k2", "χ²(q‖p) / 2", "4 JSD", "4 H²")
    figures = []
    for share, ends, title in (
        (None, (0.08, 1.3), "Between shifted normals the quadratic is the KL itself, at any size."),
        (
            ONE,
            (0.05, 1.6),
            "Where a token of 1 % is raised a KL of 0.01 is 1.5 times its quadratic.",
        ),
    ):
        points = []
        for t in np.geomspace(*ends, 40):
            at = mean(GAPS["KL(p‖q)"], pair_of(share, float(t)))
            points += [
                {"at": at, "series": name, "value": ratio(GAPS[name], share, float(t))}
                for name in series
            ]
        figures.append(
            curves(title, points, "KL(p‖q), nats", "divergence over the quadratic", log="x",
                   level=(1.0, ""),
                   note="" if share is None else "The mean of k2 lies on 1.")
        )  # fmt: skip
    moved: dict[str, tuple[float | None, int]] = {"normals": (None, 1)}
    moved |= {f"{100 * share:g} %": (share, 1) for share in SHARES}
    moved["1 %, lowered"] = (ONE, -1)
    rows = [
        (name, *(_good(lambda t, at, one=one: ratio(one, at, t) - 1, *to) for to in moved.values()))
        for name, one in GAPS.items()
    ]
    rows.append(("k2 beside KL(p‖q)", *(_good(lambda t, at: bias_of_k2(at, t), *to)
                                        for to in moved.values())))  # fmt: skip
    return Part(
        "Where the second order stops being good",
        "Not at a number of nats. Each entry of the table is the KL(p‖q) at which a divergence is "
        "10 % off the quadratic t²F/2 (F: the Fisher information of the shift t). What counts is "
        "how far a logit moves: 0.3 is too much for KL(p‖q) at a rare token, and the KL of that is "
        "in proportion to its share. The mean of k2 follows the quadratic longest, which is no "
        "merit: at a rare token the KL leaves, and k2 is 10 % off the KL as soon (last line).",
        (
            *figures,
            Table("KL(p‖q) in nats at 10 % off: shifted normals, and a token of a share whose "
                  "logit is raised, or lowered; –: not reached, up to t = 4.",
                  ("divergence", *moved), rows),
        ),
    )  # fmt: skip


def _good(off: Callable[[float, float | None], float], share: float | None, sign: int) -> Any:
    """The limit of what is off at a shift of a share, in two digits."""
    found = good_until(lambda t: off(t, share), share, sign)
    return None if found is None else float(f"{found:.2g}")
