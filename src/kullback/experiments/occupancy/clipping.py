"""What a clip shows of an update, and what a weight that is cut off hides."""

from __future__ import annotations

import numpy as np

from kullback.experiments.occupancy.directions import (
    CLIP,
    DIRECTIONS,
    EVERYWHERE,
    FAR_END,
    ONE_CELL,
    Update,
    jumps,
    of_size,
)
from kullback.experiments.occupancy.measure import STEP_KL, even, occupancy, old, shifted
from kullback.experiments.occupancy.products import LAST, along
from kullback.experiments.occupancy.rollouts import EPISODES, STEPS, VISITED, asked
from kullback.reporting.curves import curves
from kullback.reporting.experiment import Part, Table

SIZES = np.geomspace(0.0005, 0.1, 47)
STOP = 0.015  # nats, where a well-known PPO ends its epochs
CUTS = (10.0, 2.0)


def clipping(seed: int) -> tuple[Part, ...]:
    """The parts that are about clips and weights."""
    return _share(), _products(), _episodes(seed)


def _share() -> Part:
    edges = [edge * (1 + side) for edge in jumps() for side in (-1e-6, 1e-6)]
    points = [
        {"at": float(kl), "series": direction, "value": of_size(direction, float(kl)).clipped}
        for kl in sorted([*SIZES, *(edge for edge in edges if edge > SIZES[0])])
        for direction in DIRECTIONS
    ]
    begins, everything = jumps(EVERYWHERE)
    stopped = of_size(EVERYWHERE, STOP)
    figure = curves(
        "The clip fraction leaps and stands still: the same one goes with any KL, and the same KL "
        "with any.",
        points, "mean KL(old‖new) over the old policy's states, nats",
        f"share of steps outside 1 ± {CLIP:g}", log="x",
        marks={STEP_KL: f"{STEP_KL:g}"},
        note="Right is made likelier: everywhere, at the far end (cells 14 to 20), or in cell 0.",
    )  # fmt: skip
    rows = []
    for kl in (STEP_KL, 0.02):
        for direction in DIRECTIONS:
            one = of_size(direction, kl)
            rows.append((f"{kl:g} nats, {direction}", one.clipped, float(np.max(one.weights)),
                         one.effective, one.other_kl(), one.other_kl(1 + CLIP), one.moved,
                         float(occupancy(one.right)[LAST])))  # fmt: skip
    heads = ("update", "clipped", "largest w", "effective", "KL(new‖old)", f"w cut at {1 + CLIP:g}",
             "TV of states", "last cell")  # fmt: skip
    still = []
    for logit in (0.5, 1.0, 2.0, 4.0, 8.0):
        one = Update(shifted(-logit, DIRECTIONS[ONE_CELL]))
        still.append((f"{float(one.right[0]):.2g}", one.clipped, one.kl, one.most, one.moved))
    return Part(
        "The clip fraction beside the KL",
        "w = new/old of the action that was taken, in the old policy's states. "
        f"“{EVERYWHERE.capitalize()}” is the even update above; “{FAR_END}” moves cells 14 to 20 "
        f"alone, and “{ONE_CELL}” cell 0. The even update, which moves the states most, is the "
        f"last to be clipped: nothing up to {begins:.3f} nats, everything from {everything:.3f} "
        "on. Spinning Up's PPO ends its epochs at 1.5 times its target of 0.01: such an update is "
        f"clipped nowhere, and its TV of states is {stopped.moved:.2f}. In a few cells the clip "
        f"counts how often the old policy is there ({_told(FAR_END)} and {_told(ONE_CELL)}), not "
        f"how far the new one goes. With w cut at {1 + CLIP:g} the KL of an update in few cells "
        "looks less than half as large at 0.02 nats. Neither the clip fraction nor the effective "
        "share tells how far the states move: at 0.005 nats that share is 99 % for all three, and "
        "the TV is 0.28, 0.12 and 0.03.",
        (
            figure,
            Table("Updates of one KL(old‖new). Effective: 1/E[w²]. The old policy is in the last "
                  f"cell {100 * float(occupancy(old())[LAST]):.2f} % of the time.", heads, rows),
            Table("The same clip fraction at any KL: cell 0 turned around, where right was 45 %.",
                  ("new, right", "clipped", "mean KL", "KL in the cell", "TV of states"),
                  still),
        ),
    )  # fmt: skip


def _told(direction: str) -> str:
    return f"{100 * of_size(direction, 0.02).clipped:.1f} %"


def _products() -> Part:
    paths = along(even(STEP_KL), STEPS)
    names = {f"product, cut at {cut:g}": cut for cut in CUTS}
    shares, kls = [], []
    for step in range(20, STEPS + 1, 5):
        one = paths[step]
        told = {"the truth, and the product of weights": one.at_last()}
        told |= {name: one.at_last(cut) for name, cut in names.items()}
        told |= {"the weight of the last step alone": float(one.joint[LAST].sum())}
        shares += [{"at": step, "series": name, "value": value} for name, value in told.items()]
        told = {"the truth, and the product of weights": one.kl()}
        told |= {name: one.kl(cut) for name, cut in names.items()}
        kls += [{"at": step, "series": name, "value": value} for name, value in told.items()]
    last = paths[-1]
    ten = last.at_last(CUTS[0])
    figure = curves(
        f"After {STEPS} steps a product cut at {CUTS[0]:g} finds "
        f"{100 * ten / last.at_last():.0f} % of the new policy's episodes in the last "
        "cell; a weight per step finds the old one's.",
        shares, "steps of an episode", "share of episodes in the last cell",
    )  # fmt: skip
    calm = curves(
        "The KL of the path grows by the same amount each step; with the weight cut at 2 it "
        "stands still, as if the drift had stopped.",
        kls, "steps of an episode", "KL(new‖old) of the path, nats",
    )  # fmt: skip
    rows = []
    for step in (30, 100, 300):
        one = paths[step]
        for cut in (np.inf, 100.0, *CUTS):
            name = f"{step}, whole" if np.isinf(cut) else f"{step}, cut at {cut:g}"
            off = round(100 * (one.at_last(cut) / one.at_last() - 1))
            rows.append((name, one.mean(cut), one.effective(cut), one.kl(cut), one.at_last(cut),
                         f"{off} %".replace("-", "−")))  # fmt: skip
    heads = ("steps, weight", "mean weight", "effective", "KL(new‖old)", "last cell", "off by")
    return Part(
        "What a weight that is cut off hides",
        "The update of 0.005 nats, seen from the old policy's episodes. No weight of a step is "
        "above 1.11, so that no clip per step touches any; but weights per step answer for the "
        "old policy's states, with a mean of 1 and an effective share of 99 %. The product along "
        "the path is right, and its effective share falls to 5 %. Cut off it looks better by "
        "the numbers that are usually logged, the effective share among them, and is off by 58 % "
        "(cut at 10) and 87 % (at 2). What tells is the mean weight: what it lacks of 1 is the "
        "share of the new policy's episodes that was thrown away, here those that went right most "
        "often.",
        (
            figure,
            calm,
            Table("Exactly; effective: (E w)² / E w², the share of the episodes that count.",
                  heads, rows),
        ),
    )  # fmt: skip


def _episodes(seed: int) -> Part:
    rows = []
    for name, new in (
        (EVERYWHERE, even(STEP_KL)),
        (FAR_END, of_size(FAR_END, STEP_KL).right),
        (ONE_CELL, of_size(ONE_CELL, STEP_KL).right),
    ):
        for question, one in asked(new, seed).items():
            drawn = one.drawn
            rows.append((f"{name}: {question}", one.exact, drawn.mean,
                         f"{drawn.low:.3g} to {drawn.high:.3g}", drawn.standard_error,
                         one.error, round(one.z, 3) + 0.0))  # fmt: skip
    far = asked(of_size(FAR_END, STEP_KL).right, seed)[VISITED]
    heads = ("update: question", "exact", "drawn", "95 % interval", "error, drawn", "exact", "z")
    return Part(
        "What episodes of the old policy can say",
        "kb.estimate with log_sampler and prefixes=\"p\" carries the product of weights along the "
        "path and so asks for the states of the new policy. For the even update that works. For "
        f"the far end it does not: the estimate is {far.drawn.mean:.3g} nats where "
        f"{far.exact:.3g} is right, its interval is far from that, and the exact standard error is "
        f"{far.error / 1e14:.0f} · 10¹⁴: it is unbiased by episodes that are never drawn, and no "
        "error that is told from those that were can know of them. That they are missing shows: "
        f"the estimate is marked {', '.join(far.drawn.marks)}, since the weights of whole episodes "
        f"do not add up to 1. A rollout of the new policy shows its states; no weight does.",
        (Table(f"{EPISODES:,} episodes of {STEPS} steps, by k1, nats per episode.", heads, rows),),
    )  # fmt: skip
