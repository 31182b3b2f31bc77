"""What the corridor shows: small steps, other states, and whose states a mean is over."""

from __future__ import annotations

import numpy as np

import kullback as kb
from kullback.experiments.occupancy.clipping import clipping
from kullback.experiments.occupancy.directions import FAR, Update
from kullback.experiments.occupancy.measure import (
    CELLS,
    DISCOUNT,
    STEP_KL,
    Values,
    action_kl,
    at_steps,
    bounds,
    enumerated,
    even,
    occupancy,
    old,
    path_kl,
    shifted,
)
from kullback.experiments.occupancy.products import LAST
from kullback.reporting.curves import curves, dial, profiles
from kullback.reporting.experiment import Experiment, Part, Table
from kullback.reporting.figures import Figure

HORIZON = 300
STEPS = range(10, HORIZON + 1, 10)
DRIFTS = tuple(round(0.001 * i, 3) for i in range(1, 31))  # nats per step
LOGITS = tuple(round(0.1 * i, 1) for i in range(1, 41))
OF_STEP = {
    "old, long run": "var(--dim)",
    "new, long run": "var(--purple)",
    "old policy": "var(--blue)",
    "new policy": "var(--orange)",
}
OF_DRIFT = {"old policy": "var(--dim)", "new policy": "var(--orange)"}


def run(seed: int) -> Experiment:
    """The experiment."""
    new = even(STEP_KL)
    before, after = (at_steps(one, HORIZON)[-1] for one in (old(), new))
    return Experiment(
        name="occupancy",
        source="notes on Approximating KL Divergence",
        question="The KL per action is small and nothing is clipped: has the policy moved?",
        claim="A KL that is measured well does not say whether a drift may be allowed: the clip "
        "fraction is to be read beside it, and what an action KL does not cover, the states.",
        answer=f"{STEP_KL:g} nats per action, with no step clipped, take the share in the last "
        f"cell after {HORIZON} steps from {100 * before[LAST]:.2f} % to "
        f"{100 * after[LAST]:.2f} %; and a weight that is cut off hides it, the better the "
        "longer the episode.",
        method=f"A corridor of {CELLS} cells, 0 to {LAST}. Both policies start in cell 0 and go "
        "left or right; one step in five slips and stays, as does a step into a wall. The old "
        "policy goes right with 45 %, and the new one is what an update makes of it. Occupancies "
        f"are linear solves, (1 − γ) Σ γ^t P(state at t) with γ = {DISCOUNT:g} unless said "
        "otherwise; paths are enumerated or summed by cell and number of choices. Episodes are "
        "drawn in one table, with their distance from the exact mean in exact standard errors (z).",
        parts=(_steps(new), _drift(), _whose(), *clipping(seed)),
        printed=(),
        limits=(
            "A corridor is made for drift: every step pushes the same way, and the states form a "
            "line. Where an update pushes both ways, states move less.",
            "Nothing is trained here. PPO's clip takes a gradient away and does not bound a "
            "ratio; which updates it lets through is not shown.",
            "States are few and known. Elsewhere an occupancy has to be estimated, from rollouts "
            "of the new policy; the old one's do not show where only the new one goes.",
            "Prefixes of a language model are such states, but a prefix never returns.",
        ),
        seed=seed,
    )  # fmt: skip


def _profile(where: Values, series: str, at: float | None = None) -> list[dict]:
    turned = {} if at is None else {"at": at}
    return [
        {**turned, "x": cell, "series": series, "value": float(share)}
        for cell, share in enumerate(where)
    ]


def _steps(new: Values) -> Part:
    before, after = at_steps(old(), HORIZON), at_steps(new, HORIZON)
    states, paths = kb.divergence(before[1:], after[1:]), path_kl(old(), new, HORIZON)
    turned, points = [], []
    for step in STEPS:
        turned += _profile(before[step], "old policy", step)
        turned += _profile(after[step], "new policy", step)
        points += [
            {"at": step, "series": series, "value": value}
            for series, value in (
                ("of an action", STEP_KL),
                ("of where it is at step t", float(states[step - 1])),
                ("of the path to step t", float(paths[step])),
            )
        ]
    long_run = _profile(occupancy(old(), 1), "old, long run")
    long_run += _profile(occupancy(new, 1), "new, long run")
    figure = dial(
        f"Every action is {STEP_KL:g} nats away, at every step and in every cell; the policy is "
        "elsewhere.",
        points, profiles(long_run, turned, "cell", "share of episodes", OF_STEP),
        "step t", "KL(old‖new), nats", named="step t", start=200, log="y",
        note="Lines: where an episode is at step t; filled and dashed: in the long run.",
    )  # fmt: skip
    rows = [
        (f"{step}", float(paths[step]), float(states[step - 1]),
         float(kb.divergence(before[step], after[step], "tv")),
         float(before[step, LAST]), float(after[step, LAST]))
        for step in (10, 30, 100, 300)
    ]  # fmt: skip
    heads = ("t", "KL of paths", "KL of cells", "TV of cells", "last cell, old", "new")
    walked = (old(), shifted(1.0, slice(2, 4)))
    path, cells, last = enumerated(*walked, 6)
    told = float(path_kl(*walked, 6)[-1])
    enumeration = Table(
        f"Every path of 6 steps, an update of cells 2 and 3 alone: {told:.6g} by action KLs.",
        ("of", "KL(old‖new), nats"),
        [("cells and actions", path), ("cells", cells), ("the cell after 6 steps", last)],
    )
    return Part(
        "An action and where it leads",
        "The new policy goes right with 50 % instead of 45 %. What the corridor does is the same "
        "under both and cancels: the KL of paths is the action KL added up over the steps, over "
        "the states of the old policy. Where an episode is tells less than how it came there, so "
        "that the KL of cells is below that of paths: half of it for some 50 steps and less than a "
        "third at the end, where cells settle and paths go on.",
        (figure, Table("TV: total variation, the share that would have to move.", heads, rows),
         enumeration),
    )  # fmt: skip


def _drift() -> Part:
    before, new = occupancy(old()), even(STEP_KL)
    turned, points, rows = [], [], []
    for kl in DRIFTS:
        after = occupancy(even(kl))
        turned += _profile(after, "new policy", kl)
        points += [
            {"at": kl, "series": series, "value": value}
            for series, value in (
                ("TV of the occupancies", _tv(kl)),
                ("at most, by the mean KL", bounds(old(), even(kl), DISCOUNT)[1]),
                ("new policy, in the last cell", float(after[LAST])),
            )
        ]
    figure = dial(
        "States move roughly as the root of the action KL: a tenth of the KL leaves "
        f"{100 * _tv(0.001) / _tv(0.01):.0f} % of the drift.",
        points, profiles(_profile(before, "old policy"), turned, "cell", "occupancy", OF_DRIFT),
        "KL(old‖new) of an action, nats", "share", named="action KL, nats", start=STEP_KL,
        note=f"γ = {DISCOUNT:g}. TV is the share that would have to move; above 1 a bound says "
        "nothing.",
    )  # fmt: skip
    for discount in (0.9, 0.99, 0.995, 0.999):
        where, there = occupancy(old(), discount), occupancy(new, discount)
        by_tv, by_kl = bounds(old(), new, discount)
        rows.append((f"{discount:g}", float(kb.divergence(where, there)),
                     discount / (1 - discount) * STEP_KL,
                     float(kb.divergence(where, there, "tv")), by_kl, by_tv))  # fmt: skip
    caption = f"Action KL {STEP_KL:g} nats; KL and TV are of the discounted occupancies."
    heads = ("γ", "KL", "at most", "TV", "by KL", "by TV")
    return Part(
        "How far a small KL lets the states go",
        "The bound by TV is γ/(1 − γ) times the mean TV of the actions (Achiam et al. 2017, after "
        "Kakade and Langford): it allows each step its worst and adds. A KL adds up over steps as "
        "it is, and its root comes last: KL of the occupancies ≤ γ/(1 − γ) · mean action KL, and "
        "TV ≤ √(KL/2). For this update that is the tighter of the two from a horizon of two "
        "steps on; but it, too, grows with the horizon, so that a threshold on the action KL is "
        "one on the states only together with γ.",
        (figure, _horizons(new), Table(caption, heads, rows)),
    )


def _horizons(new: Values) -> Figure:
    points = []
    for steps in np.geomspace(2, 2000, 61):
        discount = 1 - 1 / float(steps)
        by_tv, by_kl = bounds(old(), new, discount)
        moved = kb.divergence(occupancy(old(), discount), occupancy(new, discount), "tv")
        points += [
            {"at": float(steps), "series": series, "value": value}
            for series, value in (
                ("TV of the occupancies", float(moved)),
                ("at most, by the mean KL", by_kl),
                ("at most, by the mean TV", by_tv),
            )
        ]
    return curves(
        f"An action KL of {STEP_KL:g} bounds where the policy is up to horizons of 400 steps; "
        "the bound by TV up to 21.",
        points, "horizon 1/(1 − γ), steps", "total variation", log="xy", level=(1.0, ""),
        note="No total variation is above 1, the line: a bound there says nothing.",
    )  # fmt: skip


def _tv(kl: float) -> float:
    return float(kb.divergence(occupancy(old()), occupancy(even(kl)), "tv"))


def _whose() -> Part:
    before = occupancy(old())
    turned, points, rows = [], [], []
    for logit in LOGITS:
        update = Update(shifted(logit, FAR))
        turned += _profile(occupancy(update.right), "new policy", logit)
        points += [
            {"at": logit, "series": series, "value": value}
            for series, value in (
                ("over the old policy's states", update.kl),
                ("over the new policy's states", update.kl_of_new),
                ("in the cell where it is largest", update.most),
            )
        ]
    for logit in (0.5, 1.0, 2.0, 3.0, 4.0):
        update = Update(shifted(logit, FAR))
        long_run = float(occupancy(update.right, 1) @ action_kl(old(), update.right))
        rows.append((f"{logit:g}", float(update.right[-1]), update.kl, update.kl_of_new, long_run,
                     update.most))  # fmt: skip
    share = float(before[FAR].sum())
    three = Update(shifted(3.0, FAR))
    figure = dial(
        "The mean over the old policy's states leaves out what only the new one visits: "
        f"{three.kl:.3f} nats against {three.kl_of_new:.3f} at logit 3.",
        points, profiles(_profile(before, "old policy"), turned, "cell", "occupancy", OF_DRIFT),
        "change of the logit of going right in cells 14 to 20", "KL(old‖new), nats",
        named="logit", start=3.0, log="y", note="Filled: the old policy.",
    )  # fmt: skip
    heads = ("logit", "goes right", "old's states", "new's states", "its long run", "largest")
    return Part(
        "Over whose states?",
        f"This update touches cells 14 to 20 alone, where the old policy is {100 * share:.1f} % of "
        "the time. A rollout of the old policy hardly sees them, and the mean that is logged is "
        "small. The new policy stays there once it has come, so that its own states have a mean "
        "about five times as large, and from logit 2 on nearly the largest of all cells in the "
        "long run. The chain rule has the same choice in it: KL(old‖new) of paths goes over the "
        "old policy's states, KL(new‖old) over the new one's.",
        (figure, Table("Mean KL(old‖new) of an action, nats.", heads, rows)),
    )
