"""What the tangent shows: a gap, one quadratic for all, its end, and what small steps add up to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
    shifted,
)
from kullback.experiments.tangent.steps import (
    REFERENCE,
    REWARD,
    STEP,
    Run,
    circle,
    ellipse,
    equal_kl,
    kl,
    leashed,
    metric,
    on_circle,
    walk,
    wander,
)
from kullback.reporting.curves import curves, dial, groups, profiles
from kullback.reporting.enclosed import gap, plane
from kullback.reporting.experiment import Experiment, Part, Printed, Table

BETA = 0.2  # of the penalty that is shown beside the trust region
ORDERS = tuple(round(0.1 * i, 1) for i in range(-10, 21))
LEVELS = tuple(round(0.005 * i, 3) for i in range(1, 21))  # nats, of the steps around a policy
SHOWN_STEPS = 24
SHARES = (0.5, 0.1, 0.01, 0.001)  # of the token whose logit is raised
ONE = 0.01  # the share that is drawn
ALONE, PENALIZED = "step limit alone", "limit and penalty"
OF_ALPHA = {
    "k2": "var(--dim)",
    "KL(q‖p), α = 0": "var(--orange)",
    "KL(p‖q), α = 1: k3": "var(--green)",
    "chosen α": "var(--blue)",
}
OF_PLANE = {
    "equal KL": "var(--blue)",
    "equal Fisher quadratic": "var(--purple)",
    "equal parameters": "var(--dim)",
}
OF_POLICIES = {
    "reference": "var(--dim)",
    ALONE: "var(--orange)",
    PENALIZED: "var(--blue)",
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
        f"{_moved(alone)} steps of {STEP:g} nats end {alone.drift()[-1]:.2f} nats away. But no "
        "number of nats is small enough for the quadratic: between normals it never fails, and "
        f"where a token of 1 % is raised it is 10 % off at {until:.2g} nats.",
        method="Sums over the outcomes of p; for normal policies Gauss-Hermite integrals of kb.k2, "
        "kb.k3, kb.other_direction and kb.f_form themselves. Steps of equal KL are solved for. "
        "Only the random directions are drawn, and their distance from the exact mean is told in "
        "exact standard errors (z).",
        parts=(_gap(), _family(), _second_order(), _around(), _uphill(), _drift(), _normals(seed)),
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


def _moved(one: Run) -> int:
    """How many steps were taken before there was nothing left to gain."""
    return sum(taken > 0 for taken in one.taken())


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
    series = ("KL(p‖q)", "mean of k2", "χ²(q‖p) / 2", "4 JSD")
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


def _around() -> Part:
    turned, points = [], []
    for level in LEVELS:
        shapes = zip(OF_PLANE, (equal_kl, ellipse, circle), strict=True)
        for series, shape in shapes:
            turned += [
                {"at": level, "series": series, "order": place,
                 "x": round(float(x), 3), "y": round(float(y), 3)}
                for place, (x, y) in enumerate(shape(level))
            ]  # fmt: skip
        least, most = on_circle(level)
        points += [
            {"at": level, "series": series, "value": value}
            for series, value in (
                ("curve of equal KL", level),
                ("most on the circle", most),
                ("least on the circle", least),
            )
        ]
    least, most = on_circle(0.05)
    figure = dial(
        f"Steps of equal length are not equal steps: on one circle the KL differs "
        f"{most / least:.0f}-fold.",
        points,
        plane(turned, "change of the first logit", "change of the second logit", OF_PLANE, 3.2),
        "KL(p‖q), nats", "KL(p‖q), nats", named="KL, nats", start=0.05, log="y",
        note="p = (0.60, 0.35, 0.05), two logits moved, the third 0. The circle has the area of "
        "the ellipse.",
    )  # fmt: skip
    low, high = np.linalg.eigvalsh(metric())
    return Part(
        "Equal KL around a policy",
        "Both logits up together moves the token of 5 % alone: the policy hardly minds, and the "
        f"ellipse is {np.sqrt(high / low):.1f} times as long as wide. The document draws ellipses; "
        "the curve of equal KL is one only while it is small. Then it swells where the rare token "
        "is lowered and shrinks where it is raised.",
        (figure,),
    )


def _uphill() -> Part:
    natural, plain = walk("natural"), walk("plain")
    points = [
        {"at": step, "series": series, "value": one.rewards()[step]}
        for step in range(37)
        for series, one in (("natural", natural), ("plain", plain))
    ]
    figure = curves(
        "Of equal KL, natural steps gain more each: they do not wait for rare tokens.",
        points, f"steps of {STEP:g} nats", "expected reward",
    )  # fmt: skip
    rows = []
    for reward in (0.4, 0.5, 0.7, 0.9):
        at: list[float] = []
        for one in (natural, plain):
            last = _moved(one) + 1
            at += [one.reached(reward),
                   float(np.interp(reward, one.rewards()[:last], one.drift()[:last]))]  # fmt: skip
        rows.append((f"{reward:g}", *at))
    heads = ("reward", "natural steps", "nats from p", "plain steps", "nats from p")
    return Part(
        "Uphill by two gradients",
        f"p = {_spelled(REFERENCE)}, rewards {_spelled(REWARD)}. The plain gradient multiplies "
        "each advantage by the token's probability, so that it first serves the frequent second "
        "token and only then the last. The natural one adds the advantages to the logits: its "
        "policies are p e^(R/β), which no policy beats at its distance from p.",
        (figure, Table("Steps until a reward, and KL(policy‖p) there.", heads, rows)),
    )


def _spelled(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def _drift() -> Part:
    alone, penalized = walk("natural"), walk("natural", BETA)
    bars, points = [], []
    for step in range(SHOWN_STEPS + 1):
        shown = (REFERENCE, alone.policies[step], penalized.policies[step])
        bars += [
            {"at": step, "name": f"{place + 1}", "series": series, "value": float(p[place])}
            for series, p in zip(OF_POLICIES, shown, strict=True)
            for place in range(len(REFERENCE))
        ]
        points += [
            {"at": step, "series": series, "value": value}
            for series, value in (
                (PENALIZED, penalized.drift()[step]),
                (ALONE, alone.drift()[step]),
                ("sum of step KLs", float(np.sum(alone.taken()[:step]))),
            )
        ]
    total, end = float(np.sum(alone.taken())), alone.drift()[-1]
    figure = dial(
        f"Every step is {STEP:g} nats, their sum {total:.2f}, and the policy is {end:.2f} away.",
        points, groups(bars, "probability", OF_POLICIES), "step", "KL(policy‖reference), nats",
        named="step", start=12,
        note=f"The penalty is {BETA:g} KL(policy‖reference), with the same limit on each step. "
        "The sum is that of the limit alone; bars are the five tokens.",
    )  # fmt: skip
    rows = []
    for beta in (0.4, 0.3, 0.2, 0.15, 0.1, 0.05):
        policy = leashed(beta)
        gain = float((policy - REFERENCE) @ REWARD)
        rows.append((f"{beta:g}", kl(policy, REFERENCE), gain / beta, float(policy @ REWARD),
                     float(policy[-1])))  # fmt: skip
    other = [kl(new, old) for old, new in zip(alone.policies, alone.policies[1:], strict=False)]
    other = [value for value in other if value > 0]
    heads = ("β", "KL(policy‖reference)", "its bound, gain/β", "reward", "last token")
    return Part(
        "Small steps and a leash",
        "The limit on each step says nothing about where the run goes: it ends at the token that "
        "the reference gave 2 %, after steps none of which looked different from the others. The "
        "penalty stops where the reward no longer pays for the distance, so that β KL is at most "
        "the reward gained. But β is no distance: between 0.3 and 0.1 it goes from 0.3 to 3.3 "
        "nats. And that direction is a detail holds for steps of this size only nearly: "
        f"KL(new‖old) is {min(other):.4f} to {max(other):.4f} where KL(old‖new) is {STEP:g}.",
        (figure, Table("Where the penalty holds the policy.", heads, rows)),
    )


def _normals(seed: int) -> Part:
    counts = [int(count) for count in np.unique(np.geomspace(1, 1024, 31).astype(int))]
    drawn = {count: wander(count, seed) for count in (1, 4, 16, 64, 256, 1024)}
    points = []
    for count in sorted({*counts, *drawn}):
        one = drawn.get(count)
        points += [
            {"at": count, "series": "always the same way", "value": STEP * count**2,
             "sampled": None},
            {"at": count, "series": "random directions", "value": STEP * count,
             "sampled": one.mean if one else None},
        ]  # fmt: skip
    figure = curves(
        "Steps in one direction drift as the square of their number, random ones as their number.",
        points, f"steps of {STEP:g} nats", "KL from the start, nats", log="xy",
        note="Circles: 2,000 draws of random directions in 16 dimensions.",
    )  # fmt: skip
    rows = [(f"{one.steps:,}", STEP * one.steps**2, one.exact, one.mean, one.z)
            for one in drawn.values()]  # fmt: skip
    heads = ("steps", "one way", "random", "drawn", "z")
    straight = float(mean(GAPS["KL(p‖q)"], shifted(float(np.sqrt(2 * STEP)) * 10)))
    return Part(
        "What steps add up to, between normals",
        "A step of KL δ moves the mean of a normal by √(2δ), so that T steps in one direction are "
        f"T²δ away: ten of {STEP:g} nats are {straight:.3g}, a hundred are 100. The sum of the "
        "steps is Tδ, which is right for directions without a memory. Adding up the per-step KL of "
        "a run therefore says least where the run knows where it goes.",
        (figure, Table("KL from the start, nats; the mean for random directions.", heads, rows)),
    )
