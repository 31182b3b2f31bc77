"""How much of a controller's unrest is the noise of the KL that it is told."""

from __future__ import annotations

import numpy as np

from kullback.experiments.controller.fed import FEEDS, GAIN, LOOPS, fed
from kullback.experiments.controller.feeding import bias, noise
from kullback.experiments.controller.linear import critical
from kullback.experiments.controller.loop import (
    CLIP,
    HOLED,
    SMOOTH,
    TARGET,
    Loop,
    Q,
    doubling,
    proportional,
    unclipped,
)
from kullback.experiments.controller.push import shares
from kullback.experiments.controller.swinging import gains, gradients, halves_and_doubles
from kullback.reporting.experiment import Experiment, Part, Table


def run(seed: int) -> Experiment:
    """The experiment."""
    smooth, holed = fed(SMOOTH, seed), fed(HOLED, seed)
    of_k1 = smooth.sds()[LOOPS.index(Loop("k1", 256, GAIN))]
    far = holed.means()[LOOPS.index(Loop("k3", 64, GAIN))]
    return Experiment(
        name="controller",
        source="The Four Faces of KL Divergence (“Open Questions”)",
        question="A noisy KL sets its own coefficient: how much of the unrest is the noise?",
        claim="Open: nobody has counted how much instability is a noisy estimate that steers the "
        "coefficient, and not the reward or the settings.",
        answer="At a gain of 256/10,000, with exact gradients, all unrest is noise, and it is "
        f"little: k1 of 256 samples moves the KL by {of_k1:.1%} of its target, where the exact KL "
        f"stands still. Much is what the clip makes of k3 before a hole, {far:.1f} times the "
        f"target; and a gain above {critical(SMOOTH):.2f}, or a rule that doubles and halves, "
        "swings without noise.",
        method="p = q exp(θ · reward), normalized, over three tokens, q = (0.2, 0.4, 0.4). Each "
        "step samples a batch of n, moves p by a proximal step of E[reward] − β KL(p‖q), and "
        "multiplies β by 1 + gain · clip(KL told / target − 1, ±0.2) (Ziegler et al. 2019; the "
        "gain is their steps over horizon, 256/10,000 if nothing else is said). Every KL along the "
        "way is exact, and so is the gradient until the last part but one: what the controller is "
        "told is the only noise. "
        "Predictions are stationary variances of the linear loop with the exact error of one "
        "sample; z is the distance of draws from them in standard errors between 32 copies.",
        parts=(
            noise(smooth, seed + 2),
            bias(holed),
            gains(GAIN, seed + 3),
            halves_and_doubles(seed + 4),
            gradients(GAIN, seed + 5),
            _inputs(),
        ),
        printed=(),
        limits=(
            "One step of three tokens and a policy of one parameter: samples are independent, and "
            "the policy goes nowhere but to and from the reference. Tokens of one prompt share "
            "their fate: count prompts, not tokens.",
            "A loop that stands still with exact KLs may still chase a reward that ought not to be "
            "chased: of reward hacking nothing is said.",
            "The noise of a gradient is put in as noise of the reward, with an exact baseline. "
            "Real gradients are noisier, and their optimizers average.",
            "With one prompt the exact KL and a Rao-Blackwell estimate are one; over prompts the "
            "latter has the noise of the choice of prompts.",
            "auto runs for 300 steps in 3 copies, so that its figures are rough: the estimate is "
            "asked anew at every step.",
        ),
        seed=seed,
    )  # fmt: skip


def _inputs() -> Part:
    inputs = ((-0.5, "−0.5 targets"), (0.0, "0"), (0.5, "0.5 targets"), (1.1, "1.1 targets"),
              (40.0, "40 targets"), (np.inf, "infinite"), (np.nan, "missing (NaN)"))  # fmt: skip
    rows = [
        (name, *(float(rule(np.array(value * TARGET), np.array(GAIN)))
                 for rule in (proportional, unclipped, doubling)))
        for value, name in inputs
    ]  # fmt: skip
    cut = [
        (f"{world.name}: {feed} of {samples}", *shares(world, feed, samples))
        for world in (SMOOTH, HOLED)
        for feed in FEEDS
        for samples in (16, 64, 256)
    ]
    halved = np.log(0.5) / np.log(1 - CLIP * GAIN)
    infinite = np.log(np.finfo(float).max * HOLED.at_target) / np.log(1 + CLIP * GAIN)
    doubled = np.log2(np.finfo(float).max * HOLED.at_target)
    return Part(
        "Negative, infinite and missing",
        "A negative k1 is to the clipped rule what any KL below 0.8 targets is: nothing breaks, "
        "and its size is lost. Without the clip it counts in full. To the rule that doubles "
        "and halves it is a reason to halve. One missing value ends a proportional loop for good. "
        f"Where a target cannot be reached (above {-np.log(Q.max()):.3f} nats here) the "
        f"coefficient halves every {halved:.0f} steps towards 0; where a reference rules out what "
        "the policy samples, the KL is infinite and the coefficient grows as fast, to overflow in "
        f"{infinite:,.0f} steps, or in {doubled:,.0f} where it doubles.",
        (
            Table(f"What the coefficient is multiplied by, at a gain of {GAIN:g}.",
                  ("KL told", "clipped", "no clip", "doubles or halves"), rows),
            Table("Shares of batches at the target, exactly.",
                  ("told", "below 0", "cut below", "cut above"), cut),
        ),
    )  # fmt: skip
