"""Small steps that have gone far: what a rule on the KL of a step does not see."""

from __future__ import annotations

import math

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.estimation.step_drift import DriftByStep, RunStep, drift_by_step, drift_questions
from kullback.estimation.summary import Summary

CODE = "drift-behind-small-steps"
MANY = 10.0  # times the upper end of the largest step: as far as ten steps without a direction
LARGE = 0.1  # nats per token: fifty tokens then tell the policy from the reference by e^5

SHAPES = {
    "straight": "It looks straight",
    "walk": "It looks like a random walk",
    "between": "It is neither straight nor a random walk",
}


def diagnose_drift(summary: Summary) -> Diagnosis:
    """Whether the policy is many steps away from the reference, and no step was large."""
    axes = next(iter(summary.by.values()), {})
    if "step" not in axes or sum(isinstance(key, float) for key in axes["step"].cells) < 2:
        return Diagnosis()  # one step is no run
    step, total = drift_questions(summary)
    if step is None or total is None:
        return Diagnosis.not_possible(CODE, "the dump", _lacking(summary))
    found = drift_by_step(summary)
    if found is None:
        reason = "there are no two steps with numbers of both"
        return Diagnosis.not_possible(CODE, str(total), reason)
    largest, far = found.largest, found.steps[-1].total.low - found.steps[0].total.high
    if math.isnan(largest + far):
        return Diagnosis.not_possible(CODE, str(total), _unknown(found))
    if not largest > 0:
        reason = f"every {step} is 0: log current after the update, and not before it"
        return Diagnosis.not_possible(CODE, str(total), reason)
    if far > MANY * largest:
        return Diagnosis.failed(_finding(found), str(total), _reason(found))
    return Diagnosis.passed(CODE, str(total), _reason(found))


def _lacking(summary: Summary) -> str:
    """What to log, or to ask, to see each step and the way."""
    needed = ({"current"}, {"reference"}, {"old", "rollout"})
    missing = [max(roles) for roles in needed if not roles & summary.columns.keys()]
    if not missing:
        return "KL(old||current) and KL(current||reference) were not both asked, per token"
    said = {
        "current": "of current, the policy after the step",
        "reference": "of reference, a policy that stays where the run began",
        "rollout": "of old or rollout, the policy before the step",
    }
    named = ", ".join(said[one] for one in missing)
    return f"how far small steps lead is not known: log log-probs {named}"


def _unknown(found: DriftByStep) -> str:
    """Which steps have no interval."""
    lost = [s.name for s in found.steps if math.isnan(s.step.high + s.total.high)]
    return (
        f"{len(lost)} of {len(found.steps)} steps have no interval, the first is {lost[0]}: log "
        "more prompts of each step; one infinite token leaves none either"
    )


def _reason(found: DriftByStep) -> str:
    first, last = found.steps[0], found.steps[-1]
    return (
        f"from step {first.name} to {last.name} it went from {first.total.mean:.3g} to "
        f"{last.total.mean:.3g} nats per token; no step is above {found.largest:.3g}"
    )


def _finding(found: DriftByStep) -> Finding:
    last, limit = found.steps[-1], MANY * found.largest
    return Finding(
        code=CODE,
        severity="warning" if last.total.low > LARGE else "note",
        certainty="beyond-chance",
        claim=(
            f"No step of {found.step_question} is above {found.largest:.3g} nats per token (the "
            "largest upper end), and "
            f"after step {last.name} {found.total_question} is {last.total.mean:.3g} "
            f"[{last.total.low:.3g}, {last.total.high:.3g}]. {_way(found)}"
        ),
        numbers={
            "steps": len(found.steps),
            "largest_step": found.largest,
            "sum_of_steps": found.sum_of_steps,
            "from_reference": last.total.mean,
            "low": last.total.low,
            "ratio": found.ratio,
            "straight": found.straight,
            "shape": found.shape,
            "above_ten_steps_since": found.first_above(limit),
            "added_most": {one.name: one.added.mean for one in found.most_added()},
        },
        cost=f"A rule on the step alone never fires here, whatever the distance. "
        f"{decided(found.largest, last.total.mean)} The KL from the reference is above "
        f"{limit:.3g}, ten times the largest step, since step {found.first_above(limit)}.",
        advice="Bound the way and not only the step: a penalty or a stop rule on "
        f"{found.total_question}, or an alarm on its low end.{_added(found.most_added())}",
    )


def _way(found: DriftByStep) -> str:
    """What the sum of the steps says of the way."""
    summed = f"The steps add up to {found.sum_of_steps:.3g}: KL does not add up."
    if found.shape == "unknown":
        return f"{summed} How straight the way is cannot be told: {found.reason}."
    return (
        f"{summed} {SHAPES[found.shape]}: the distance is {found.ratio:.3g} times their sum, where "
        f"a way in one direction has {found.straight:.3g} and a random walk about 1."
    )


def _added(steps: tuple[RunStep, ...]) -> str:
    if not steps:
        return ""
    told = ", ".join(f"step {one.name} ({one.added.mean:+.3g})" for one in steps)
    return f" Look first at what added most: {told}."
