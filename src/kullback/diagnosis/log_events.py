"""What a KL series does over the steps: where it starts, how noisy it is, spikes, changes."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.log_labels import Labelled
from kullback.diagnosis.log_profile import FEWEST, NEIGHBORS, SPIKE

FROM_START = 0.05  # nats per token at the first step that no rounding of two passes makes
PER_SEQUENCE = 1.0  # and nats per sequence
WRONG = 0.2  # share of steps on the wrong side from which noise is told
NAMED = 5  # steps that a finding names


def diagnose_events(one: Labelled) -> Diagnosis:
    """What is told of one KL series; none of it accuses anybody."""
    found = _not_finite(one)
    if one.kind != "kl":
        return found
    if len(one.series.values) >= FEWEST and not one.series.values.any():
        return found + _always_zero(one)
    found += _start(one)
    if np.isfinite(one.profile.noise):
        return found + _spikes(one) + _changes(one)
    return found


def _not_finite(one: Labelled) -> Diagnosis:
    values = one.series.values
    places = np.flatnonzero(~np.isfinite(values))
    if not len(places):
        return Diagnosis.passed("not-finite", one.name, "every value is a number")
    infinite = int(np.isinf(values).sum())
    last = len(places) > 1 and bool(places[-1] == len(values) - 1)
    finding = Finding(
        "not-finite",
        "error" if last else "warning",
        "certain",
        f"{one.name} is infinite at {infinite} and NaN at {len(places) - infinite} of "
        f"{len(values)} steps, first at step {one.series.steps[places[0]]:g}"
        + (", and to the end." if last else "."),
        "A loss that contains it has no gradient at these steps; a mean over steps has no value.",
        "Look for exp of a large log-ratio (k3 overflows float32 above 88.7 nats, float16 above "
        "11), a masked token whose term is computed before the mask, and a token that the other "
        "side forbids. Compute the term in float32, and mask its input.",
        numbers={"infinite": infinite, "nan": len(places) - infinite, "steps": len(values)},
        where=tuple(f"step {one.series.steps[i]:g}" for i in places[:NAMED]),
    )
    return Diagnosis.failed(finding, one.name, f"{len(places)} are none")


def _always_zero(one: Labelled) -> Diagnosis:
    """A KL between two things that are one, or a number that nobody computed."""
    count = len(one.series.values)
    finding = Finding(
        "precision-floor",
        "note",
        "certain",
        f"{one.name} is exactly 0 at all {count} steps, and two policies that differ are never "
        "that near: both sides are one evaluation of the same weights, or nothing was computed.",
        "No limit, target or stop rule for it ever acts.",
        "Of an update (approx_kl, ppo_kl) it is 0 where each batch has one minibatch and one "
        "epoch, by construction: compare with the rollout's log-probs, or after the step. Of a KL "
        "to the reference look whether the reference is the policy itself (an adapter that is not "
        "switched off, one module for both), and whether its coefficient is 0.",
        numbers={"steps": count},
    )
    said = f"0 at all {count} steps"
    return Diagnosis.failed(finding, one.name, said)


def _start(one: Labelled) -> Diagnosis:
    """The first value of a KL to the reference, where the log begins at the beginning."""
    code, steps = "reference-not-start", one.series.steps
    finite = np.flatnonzero(np.isfinite(one.series.values))
    certain = one.agreed("q") == "reference"
    if not one.may_be_of_reference or not len(finite):
        return Diagnosis()
    if steps[0] > 1 or finite[0] > 0:
        said = f"the log begins at step {steps[0]:g}"
        return Diagnosis.not_possible(code, one.name, said)
    first = float(one.series.values[0] * (one.agreed("sign") or 1))
    per_sequence = one.agreed("level") == "sequence_sum"
    floor = PER_SEQUENCE if per_sequence else FROM_START
    unit = "sequence" if per_sequence else "token"
    noise = one.profile.noise if np.isfinite(one.profile.noise) else 0.0
    said = f"{first:.3g} nats per {unit} at step {steps[0]:g}"
    if first <= max(floor, 3 * noise):
        return Diagnosis.passed(code, one.name, said)
    finding = Finding(
        code,
        "note",
        "likely",
        f"{one.name} is {first:.3g} nats per {unit} at the first step already, where a policy that "
        f"starts as its reference has 0{'' if certain else ' (if it is a KL to the reference)'}.",
        f"A target or limit for the KL has {first:.3g} nats of it spent before training begins.",
        "Check which weights the reference has: the base model where training starts from an "
        "adapter, another checkpoint, another template, dropout left on in one of the two. If the "
        "value is of the first batch after its update, it can be honest.",
        numbers={"first": first, "step": float(steps[0]), "noise": noise},
        where=(f"step {steps[0]:g}",),
    )
    return Diagnosis.failed(finding, one.name, said)


def diagnose_noise(series: tuple[Labelled, ...]) -> Diagnosis:
    """Of the KL series by which somebody decides those that are mostly noise, in one finding.

    k1 of a step is mostly noise in every honest run: told of all, it would tell nothing.
    """
    code, checks, noisy = "noise-above-signal", [], []
    steered = any(one.kind == "coefficient" and _moves(one.series.values) for one in series)
    for one in series:
        held = one.profile
        if one.kind != "kl":
            continue
        if not np.isfinite(held.noise):
            said = f"{len(held.level)} steps, and {FEWEST} are needed"
            checks.append(Check(code, one.name, "not-possible", said))
            continue
        mostly = held.wrong_side > WRONG and bool(np.any(held.level > 0))
        told = mostly and _decides(one, steered)
        said = f"noise {held.noise:.2g} nats about a level of {np.median(held.level):.2g}"
        said += ", by which nothing decides as far as is known" * (mostly and not told)
        checks.append(Check(code, one.name, "failed" if told else "passed", said))
        noisy += [one] * told
    findings = (_noise(noisy),) if noisy else ()
    return Diagnosis(findings, tuple(checks))


def _moves(values: np.ndarray) -> bool:
    return np.unique(values[np.isfinite(values)]).size > 1


def _decides(one: Labelled, steered: bool) -> bool:
    """Whether a stop rule reads its single steps, or a coefficient that moves may follow it."""
    stops = any(metric.use == "stop" for metric in one.metrics)
    return stops or (steered and one.may_be_of_reference)


def _noise(noisy: list[Labelled]) -> Finding:
    worst = max(noisy, key=lambda one: one.profile.wrong_side)
    held, others = worst.profile, [one.name for one in noisy]
    others.remove(worst.name)
    level = float(np.median(held.level))
    verb = "is" if len(others) == 1 else "are"
    besides = f" So {verb} {', '.join(others[:NAMED])}." if others else ""
    return Finding(
        "noise-above-signal",
        "note",
        "certain",
        f"{worst.name} is mostly noise from step to step: {held.noise:.2g} nats (robust standard "
        f"deviation) about a running median of {level:.2g}; {held.negative:.0%} of the steps are "
        f"below 0.{besides}",
        f"A stop rule at twice the running median would have fired at {held.beyond_twice:.0%} of "
        f"the steps, and one at half of it been silent at {held.below_half:.0%}.",
        f"Decide by a mean over several steps (here of {NEIGHBORS}), or by more tokens; log k3 or, "
        "best, the KL over the vocabulary beside k1. kb.Evidence decides with a known error.",
        numbers={
            "noise": held.noise,
            "level": level,
            "beyond_twice": held.beyond_twice,
            "below_half": held.below_half,
            "negative": held.negative,
            "series": len(noisy),
        },
    )


def _spikes(one: Labelled) -> Diagnosis:
    code, places = "mean-owned-by-few", one.profile.spikes
    if not places:
        said = f"no step stands {SPIKE:g} noises above its neighbors and is back at the next"
        return Diagnosis.passed(code, one.name, said)
    values, steps = one.series.values, one.series.steps
    largest = max(places, key=lambda i: values[i])
    usual = float(np.median(one.profile.level))
    # Of the sum over all steps, what the single ones make.
    share = float(values[list(places)].sum() / np.nansum(np.abs(values[np.isfinite(values)])))
    finding = Finding(
        code,
        "note",
        "likely",
        f"{one.name} jumps at {_counted(len(places))} and is back at the next: to "
        f"{values[largest]:.3g} at step {steps[largest]:g}, where {usual:.3g} is usual. So few "
        "tokens can own the mean of such a step.",
        f"These steps make {share:.0%} of the sum over all. "
        + decided(float(values[largest]), usual),
        "Dump one such batch, and kullback report names the tokens. A clamp of each term would "
        "hide them: log clamped and unclamped.",
        numbers={"spikes": len(places), "largest": float(values[largest]), "share": share},
        where=tuple(f"step {steps[i]:g}" for i in places[:NAMED]),
    )
    return Diagnosis.failed(finding, one.name, f"{len(places)} steps")


def _counted(steps: int) -> str:
    return "a single step" if steps == 1 else f"{steps} single steps"


def _changes(one: Labelled) -> Diagnosis:
    code, places = "level-changed", one.profile.changes
    if not places:
        said = "its level changes in no single step"
        return Diagnosis.passed(code, one.name, said)
    values, steps, first = one.series.values, one.series.steps, places[0]
    before = float(np.nanmedian(values[max(0, first - NEIGHBORS) : first]))
    after = float(np.nanmedian(values[first : first + NEIGHBORS]))
    finding = Finding(
        code,
        "note",
        "likely",
        f"{one.name} changes its level in one step, from about {before:.3g} to {after:.3g} at step "
        f"{steps[first]:g}, and stays there.",
        decided(after, before) or "What was tuned before does not hold after it.",
        "Look at what else happened at this step: a restart, a new reference, another batch or "
        "micro-batch size, another version, a changed setting. A policy that moves by gradient "
        "steps drifts instead.",
        numbers={"before": before, "after": after, "changes": len(places)},
        where=tuple(f"step {steps[i]:g}" for i in places[:NAMED]),
    )
    return Diagnosis.failed(finding, one.name, f"{len(places)} steps")
