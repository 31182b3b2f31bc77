"""What a KL series does over the steps: where it starts, how noisy it is, spikes, changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.log_distance import diagnose_distance
from kullback.diagnosis.log_labels import ROUNDED, Labelled
from kullback.diagnosis.log_profile import BACK, FEWEST, NEIGHBORS, SPIKE
from kullback.diagnosis.log_tokens import Tokens

FROM_START = 0.05  # nats per token at the first step that no rounding of two passes makes
PER_SEQUENCE = 1.0  # and nats per sequence
WRONG = 0.2  # share of steps on the wrong side from which noise is told
NOISY = 0.4  # and the noise, as a share of the level: what only drifts or repeats has less
NAMED = 5  # steps, or series, that a finding names
ZEROS = 0.1  # share of the steps, the last ones, from which a KL of 0 is told
AT_A_STEP = (
    "mean-owned-by-few",
    "level-changed",
    "far-apart",
)  # told once for all series that do it there


def diagnose_events(series: tuple[Labelled, ...], tokens: Tokens | None = None) -> Diagnosis:
    """What is told of each KL series; none of it accuses anybody.

    What several series do at one step is told once.
    """
    found, told = Diagnosis(), []
    for one in series:
        made = _of_one(one, tokens)
        for finding in made.findings:
            twin = next((i for i, (_, first) in enumerate(told) if _is_twin(finding, first)), None)
            if twin is None:
                told.append(([], finding))
            else:
                told[twin][0].append(one.name)
        found += Diagnosis((), made.checks)
    return found + Diagnosis(tuple(_with(names, finding) for names, finding in told))


def _is_twin(finding: Finding, first: Finding) -> bool:
    return finding.code in AT_A_STEP and finding.code == first.code and bool(
        set(finding.where) & set(first.where)
    )  # fmt: skip


def _with(names: list[str], finding: Finding) -> Finding:
    """The finding, and who does the same there."""
    if not names:
        return finding
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    do = "does" if len(names) == 1 else "do"
    claim = f"{finding.claim} So {do} {', '.join(names[:NAMED])}{more} there."
    return replace(finding, claim=claim)


def _of_one(one: Labelled, tokens: Tokens | None) -> Diagnosis:
    found = _not_finite(one)
    if one.kind != "kl":
        return found
    if floor := _at_zero(one):
        return found + floor
    found += _start(one)
    apart = diagnose_distance(one, tokens)
    anew = _resets(one)
    found += apart + anew
    if apart.findings or not np.isfinite(one.profile.noise):  # it explains what the steps do
        return found
    return found + _spikes(one) + (Diagnosis() if anew.findings else _changes(one))


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


_NOTHING = (
    ", and two policies that differ are never that near: both sides are one evaluation of the same "
    "weights, or nothing was computed."
)
_COLLAPSED = ": nothing moves any more (before, it was up to {:.3g})."
_LOOK = (
    "Of an update (approx_kl, ppo_kl) it is 0 where each batch has one minibatch and one epoch, by "
    "construction: compare with the rollout's log-probs, or after the step. Of a KL to the "
    "reference look whether the reference is the policy itself (an adapter that is not switched "
    "off, one module for both), and whether its coefficient is 0."
)
_LOOK_AT_END = (
    "Look at the entropy: it is 0 where the policy has collapsed to one choice. Else look at the "
    "learning rate, the norm of the gradient, and whether the reference has become the policy."
)


def _at_zero(one: Labelled) -> Diagnosis | None:
    """A KL that is 0 to the end: between two things that are one, or that nobody computed.

    Steps without a number are left out: another finding tells of them.
    """
    finite = np.isfinite(one.series.values)
    values, steps = np.abs(one.series.values[finite]), one.series.steps[finite]
    apart = np.flatnonzero(values > ROUNDED)
    begins = int(apart[-1]) + 1 if len(apart) else 0
    count, whole = len(values) - begins, not begins
    if count < max(FEWEST, ZEROS * len(values)):
        return None
    largest = float(values[begins:].max())
    size = f"0 but for rounding ({largest:.2g} at most)" if largest else "exactly 0"
    since = f"at all {count} steps" if whole else f"from step {steps[begins]:g} to the "
    since += "" if whole else f"end, {count} of {len(values)} steps"
    finding = Finding(
        "precision-floor",
        "note",
        "certain",
        f"{one.name} is {size} {since}"
        + (_NOTHING if whole else _COLLAPSED.format(values[:begins].max())),
        "No limit, target or stop rule for it ever acts.",
        _LOOK if whole else _LOOK_AT_END,
        numbers={"steps": count, "largest": largest},
        where=() if whole else (f"step {steps[begins]:g}",),
    )
    return Diagnosis.failed(finding, one.name, f"{size} {since}")


def _around(values: np.ndarray, place: int) -> tuple[float, float]:
    """The medians of the last numbers before a place, and of the first from it on."""
    before, after = (side[np.isfinite(side)] for side in (values[:place], values[place:]))
    return float(np.median(before[-NEIGHBORS:])), float(np.median(after[:NEIGHBORS]))


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
    if first <= max(floor, BACK * noise):
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


def diagnose_noise(series: tuple[Labelled, ...], explained: Collection[str] = ()) -> Diagnosis:
    """Of the KL series by which somebody decides those that are mostly noise, in one finding.

    k1 of a step is mostly noise in every honest run: told of all, it would tell nothing.

    Args:
        series: The series, labelled.
        explained: Those of which something was found that explains how they move.
    """
    code, checks, noisy = "noise-above-signal", [], []
    steered = any(one.kind == "coefficient" and _moves(one.series.values) for one in series)
    for one in series:
        held = one.profile
        if one.kind != "kl" or one.name in explained:
            continue
        if not np.isfinite(held.noise):
            said = f"{len(held.level)} steps, and {FEWEST} are needed"
            checks.append(Check(code, one.name, "not-possible", said))
            continue
        level = float(np.median(held.level))
        mostly = (
            held.wrong_side > WRONG and held.noise > NOISY * level and bool((held.level > 0).any())
        )
        told = mostly and _decides(one, steered) and not held.cycle
        said = f"noise {held.noise:.2g} nats about a level of {level:.2g}"
        if held.cycle:
            said += f", but it repeats every {held.cycle} steps: so often each batch may be used"
        elif mostly and not told:
            said += ", by which nothing decides as far as is known"
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
    update = bool(one.metrics) and all((m.p, m.q) == ("old", "current") for m in one.metrics)
    finding = Finding(
        code,
        "note",
        "likely",
        f"{one.name} jumps at {_counted(len(places))} and is back at the next: to "
        f"{values[largest]:.3g} at step {steps[largest]:g}, where {usual:.3g} is usual. So few "
        f"tokens can own the mean of such a step{', or one update went that far' * update}.",
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


def _resets(one: Labelled) -> Diagnosis:
    """Where a KL to the reference begins anew: the reference has become the policy."""
    places = one.profile.resets
    certain = one.agreed("q") == "reference"
    if not places or (one.metrics and not one.may_be_of_reference):
        return Diagnosis()
    steps = [one.series.steps[i] for i in places]
    before, _ = _around(one.series.values, places[0])
    named = ", ".join(f"{step:g}" for step in steps[:NAMED])
    more = f" and {len(steps) - NAMED} more" if len(steps) > NAMED else ""
    again = [step for step in steps if step in one.series.restarts]
    restart = f" At step {again[0]:g} the run was started again." if again else ""
    finding = Finding(
        "level-changed",
        "note",
        "likely",
        f"{one.name} falls to about 0 at once, from about {before:.3g}, and grows from there: at "
        f"step{'s' * (len(steps) > 1)} {named}{more}. What it is held against has become the "
        f"policy itself{'' if certain else ' (if it is a KL to the reference)'}.{restart}",
        "What the policy has moved until then is in no later value: its distance from where it "
        "started is larger than the log says.",
        "If the reference is replaced on purpose (sync_ref_model, a reference that follows the "
        "policy), add up what was lost, or log the KL to the first reference beside it. If the run "
        "was started again, give it the first reference, and not its checkpoint.",
        numbers={"before": before, "resets": len(steps)},
        where=tuple(f"step {step:g}" for step in steps[:NAMED]),
    )
    said = f"about 0 again at {len(steps)} steps"
    return Diagnosis.failed(finding, one.name, said)


def _changes(one: Labelled) -> Diagnosis:
    code, places = "level-changed", one.profile.changes
    if not places:
        said = "its level changes in no single step"
        return Diagnosis.passed(code, one.name, said)
    values, steps, first = one.series.values, one.series.steps, places[0]
    again = steps[first] in one.series.restarts
    before, after = _around(values, first)
    finding = Finding(
        code,
        "note",
        "likely",
        f"{one.name} changes its level in one step, from about {before:.3g} to {after:.3g} at step "
        f"{steps[first]:g}, and stays there{', where the run was started again' * again}.",
        decided(after, before) or "What was tuned before does not hold after it.",
        "Look at what else happened at this step: a restart, a new reference, another batch or "
        "micro-batch size, another version, a changed setting. A policy that moves by gradient "
        "steps drifts instead, unless one of them is far too large.",
        numbers={"before": before, "after": after, "changes": len(places)},
        where=tuple(f"step {steps[i]:g}" for i in places[:NAMED]),
    )
    return Diagnosis.failed(finding, one.name, f"{len(places)} steps")
