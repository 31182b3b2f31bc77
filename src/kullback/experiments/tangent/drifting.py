"""What steps of equal KL show: around a policy, uphill by two gradients, and added up."""

from __future__ import annotations

import numpy as np

from kullback.experiments.tangent.family import GAPS, mean, shifted
from kullback.experiments.tangent.steps import (
    REFERENCE,
    REWARD,
    STEP,
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
from kullback.reporting.curves import curves, dial, groups
from kullback.reporting.enclosed import plane
from kullback.reporting.experiment import Part, Table

BETA = 0.2  # of the penalty that is shown beside the trust region
LEVELS = tuple(round(0.005 * i, 3) for i in range(1, 21))  # nats, of the steps around a policy
SHOWN_STEPS = 24
ALONE, PENALIZED = "step limit alone", "limit and penalty"
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


def drifting(seed: int) -> tuple[Part, ...]:
    """The parts that are about steps."""
    return _around(), _uphill(), _drift(), _normals(seed)


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
            last = one.moved() + 1
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
