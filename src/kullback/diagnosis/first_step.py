"""Is the reference the policy from which training started? At the first step the two are equal."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.rescored import noises
from kullback.estimation.start_state import Apart
from kullback.estimation.summary import Summary

CODE = "reference-not-start"
REFERENCE = "reference"
FEWEST = 100  # tokens
# By the role that stands for the start, nats per token by k3 that differing kernels, precisions
# and quantizations hardly reach: the trainer scores both sides, the engine is another program.
MOST = {"old": 4e-3, "rollout": 1e-2, "current": 4e-3}
ABOVE = 4.0  # times what engine and trainer differ by, where both are logged


def diagnose_first_step(summary: Summary, found: Diagnosis) -> Diagnosis:
    """Compare policy and reference where no update came before.

    Args:
        summary: The summary.
        found: What else is wrong: of columns that hold errors nothing can be told.
    """
    if REFERENCE not in summary.columns:
        return Diagnosis()
    step, roles = min(summary.start.sequences, default=None), ()
    if step is not None:
        roles = [r for r in MOST if (step, r, REFERENCE) in summary.start.pairs]
    if step is None or not roles:
        reason = "no row is known to be of the first step: log step, counted from 0"
        return Diagnosis.not_possible(CODE, "the dump", reason)
    role = roles[0]
    apart = summary.start.pairs[step, role, REFERENCE]
    told, subject = _told(role, step, apart), f"step {step} of {role}"
    if apart.tokens < FEWEST:
        return Diagnosis.not_possible(CODE, subject, f"{told}: too few")
    if not _differs(summary, step, role, apart):
        return Diagnosis.passed(CODE, subject, told)
    if _spoiled(found, role):
        reason = f"{told}, but these log-probs are at fault"
        return Diagnosis.not_possible(CODE, subject, reason)
    return Diagnosis.failed(_finding(summary, step, role, apart), subject, told)


def _told(role: str, step: int, apart: Apart) -> str:
    if not apart.differing:
        return f"{role} and {REFERENCE} are equal at all {apart.tokens} tokens of step {step}"
    k1, k3 = -apart.total / apart.tokens, apart.k3 / apart.tokens
    return (
        f"KL({role}||{REFERENCE}) is {k1:.3g} by k1 and {k3:.3g} by k3 at {apart.tokens} tokens of "
        f"step {step}"
    )


def _differs(summary: Summary, step: int, role: str, apart: Apart) -> bool:
    """Whether the two are further apart than two evaluations of equal weights."""
    noisy = noises(summary)
    noise = sum(noisy.get(one, 0.0) / 2 for one in (role, REFERENCE))
    rounding = sum(summary.columns[one].grid[1] ** 2 / 24 for one in (role, REFERENCE))
    most = max(MOST[role], ABOVE * (noise + rounding), ABOVE * _engines(summary, step))
    return apart.k3 / apart.tokens > most


def _engines(summary: Summary, step: int) -> float:
    """The k3 of engine and trainer at that step, whose weights are equal; 0 if it is not known."""
    pair = summary.start.pairs.get((step, "old", "rollout"))
    return pair.k3 / pair.tokens if pair and pair.tokens else 0.0


def _spoiled(found: Diagnosis, role: str) -> bool:
    """Whether an error touches one of the two: what it says may be all of the difference.

    Of the engine it touches every question, and then says nothing of these two.
    """
    named = {role, REFERENCE} - {"rollout"}
    return any(
        one in question
        for finding in found.findings
        if finding.severity == "error"
        for question in finding.questions
        for one in named
    )


def _finding(summary: Summary, step: int, role: str, apart: Apart) -> Finding:
    k1, k3 = -apart.total / apart.tokens, apart.k3 / apart.tokens
    convention = {
        0: "By its label this is step 0, before any update",
        1: "By its label this is step 1, before any update if steps are counted from 1",
    }[step]
    doubt = {
        "old": "",
        "rollout": " The engine's log-probs may be after a temperature or top-p that the "
        "reference's are not, or of other precision; log those of old to tell.",
        "current": " If current was logged after its update, that is the difference.",
    }[role]
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=tuple(str(q) for q in summary.questions if REFERENCE in q.roles),
        claim=(
            f"{convention}, and {role} is not {REFERENCE}: KL({role}||{REFERENCE}) is {k3:.3g} "
            f"nats per token by k3 and {k1:.3g} by k1, over {apart.tokens} tokens of which "
            f"{apart.differing} differ. So {REFERENCE} is not the policy from which training "
            f"started.{doubt}"
        ),
        numbers={
            "step": step,
            "role": role,
            "tokens": apart.tokens,
            "differing": apart.differing,
            "k1": k1,
            "k3": k3,
            "engines_k3": _engines(summary, step),
        },
        cost=f"Every later KL to {REFERENCE} has this in it: {k3:.3g} of it is no drift, and a "
        f"penalty pulls away from the start. {decided(k3, 0.0)}",
        advice="Look what the reference was loaded from: a base model in place of the tuned one, "
        "an adapter switched off or merged on one side only, a checkpoint reloaded after the "
        f"reference was copied. If another {REFERENCE} is meant, take the KL at this step off.",
        where=(str(apart.first),),
    )
