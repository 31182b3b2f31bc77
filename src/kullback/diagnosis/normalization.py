"""Are what heads, entropies and sampled tokens say of a distribution those of one distribution?"""

from __future__ import annotations

from kullback.diagnosis.causes import together
from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.distribution_state import DistributionState
from kullback.estimation.summary import Summary

CODE = "not-normalized"
MOST = 0.5  # share of the prefixes, of which sampled tokens contradict their head


def diagnose_normalization(summary: Summary) -> Diagnosis:
    """Count what no distribution can do: weigh more than 1, or contradict itself."""
    told = {r: s for r, s in summary.distributions.items() if s.heads or s.entropies}
    if not told:
        reason = "no role's largest log-probs or entropies are logged: log top_ids, top_log_probs"
        return Diagnosis.not_possible(CODE, "the dump", reason)
    found = {}
    for role, state in told.items():
        if faults := _faults(state, role):
            finding = _finding(summary, role, state, faults)
            found[role] = Diagnosis.failed(finding, role, _told(state))
        else:
            found[role] = Diagnosis.passed(CODE, role, _told(state))
    return together(found)


def _told(state: DistributionState) -> str:
    parts = []
    if state.heads:
        parts.append(f"{state.heads} heads, the largest weighs {state.mass:.4g}")
        parts.append(f"{state.differing} contradict the sampled token")
    if state.entropies:
        parts.append(f"{state.negative} of {state.entropies} entropies are below 0")
    return "; ".join(parts)


def _faults(state: DistributionState, role: str) -> list[str]:
    """What is impossible, in sentences; the gravest first."""
    found = []
    if state.heavy:
        found.append(
            f"At {state.heavy} of {state.heads} prefixes the logged tokens of {role} weigh more "
            f"than 1, up to {state.mass:.4g}."
        )
    if state.differing:
        found.append(
            f"{state.differing} sampled tokens have another log-prob of {role} than the same id in "
            f"its own head, by up to {state.difference:.3g} nats."
        )
    if state.negative:
        found.append(
            f"{state.negative} entropies of {role} are below 0, the lowest {state.lowest:.3g}."
        )
    return found


def _other_tokens(state: DistributionState) -> str:
    """What to look at first where hardly a token has the log-prob that its own head gives it."""
    if state.differing < MOST * state.heads:
        return ""
    return "Look first whether ids, heads and log-probs are of the same tokens (a shift by one). "


def _finding(summary: Summary, role: str, state: DistributionState, faults: list[str]) -> Finding:
    return Finding(
        code=CODE,
        severity="error",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"{' '.join(faults)} No distribution does that.",
        numbers={
            "heavy": state.heavy,
            "mass": state.mass,
            "differing": state.differing,
            "difference": state.difference,
            "negative_entropies": state.negative,
        },
        cost="If the log-probs of the sampled tokens lack the normalizer as well, every KL with "
        f"{role} is off by its size; if only the heads or entropies do, what is made of these is.",
        advice=f"{_other_tokens(state)}Log the output of a log-softmax over the whole vocabulary: "
        "not logits, and not raw values beside those after temperature or truncation.",
        where=tuple(
            str(state.first[name])
            for name in ("heavy", "differing", "negative")
            if name in state.first
        ),
    )
