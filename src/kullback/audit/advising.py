"""One sentence: what to do about a term."""

from __future__ import annotations

from kullback.audit.forms import EXACT
from kullback.audit.gradients import Gradient
from kullback.audit.telling import number
from kullback.audit.verdict import Findings

_STRAIGHT = "differentiate k2 (straight-through, if the value of k3 is wanted)"
_WEIGHTED = "multiply k1 or k3 by the ratio current/sampler and leave that attached"


def advice(found: Findings) -> str:
    """What to do, in a sentence or two."""
    if not found.is_kl:
        return "If a KL is meant, compare the log-probs of two policies."
    if found.main == "stale":
        return _near_old(found)
    if "loss" in found.uses:
        return _as_loss(found, f"KL(current||{found.other})")
    if not found.uses:
        return "Let the gradient flow: do not detach it, or put k1 in the reward instead."
    return _in_reward(found, f"KL(current||{found.other})")


def _as_loss(found: Findings, goal: str) -> str:
    here, stale = found.of("on-policy", "loss"), found.of("stale", "loss")
    fixed = found.of("on-policy", "loss", "fixed")
    if here is None or fixed is None:
        return ""
    if here.of == goal:
        return _at_goal(found, here, stale, goal)
    if fixed.of in (goal, "zero") and here.of is None:
        return "Count each token alike: divide the sum over all tokens by their number."
    if here.of == "zero":
        return f"Instead of it {_STRAIGHT}, or hold it constant and put it in the reward."
    exact = found.value.form is not None and found.value.form.method in EXACT
    if exact and here.of == f"KL({found.other}||current)":
        return f"Nothing if {here.of} is meant; else exchange the two sides."
    if exact and here.of is None:
        return f"Nothing if that is what is meant; it is not {goal}."
    return f"If {goal} is meant, {_STRAIGHT}; or {_WEIGHTED}."


def _at_goal(found: Findings, here: Gradient, stale: Gradient | None, goal: str) -> str:
    factor = here.factor or 0.0
    if factor < 0:
        return f"Turn its sign: it drives current away from {found.other}."
    strength = "" if abs(factor - 1) < 1e-6 else f" Mind the factor {number(factor)}."
    if stale and stale.of == goal:
        whose = "" if stale.prefixes in (None, "current") else " at the sampler's prefixes"
        return f"Nothing: it descends {goal}{whose}, whoever sampled.{strength}"
    weight = "the weight current/sampler, held constant beside k2 or attached to k1 or k3"
    return (
        "Nothing where the current policy sampled; tokens of an older policy or of another engine "
        f"need {weight}.{strength}"
    )


def _near_old(found: Findings) -> str:
    """A term between current and its own older copy: a trust region."""
    uses = found.uses[:1]
    one = found.of("stale", uses[0]) if uses else None
    other = found.other
    if one and one.of and one.of.startswith("KL(") and (one.factor or 0.0) > 0:
        return (
            f"Nothing if current is to stay near {other}; it does not hold current to a reference."
        )
    return (
        f"To hold current near {other} on {other}'s tokens, differentiate k3 with "
        f"r = current/{other}: that descends KL({other}||current)."
    )


def _in_reward(found: Findings, goal: str) -> str:
    right = [found.of("on-policy", credit) for credit in ("reward_to_go", "full_return")]
    best = next((one for one in right if one and one.of and one.of.startswith(goal)), None)
    if best is None or " - " in (best.of or ""):
        immediate = found.of("on-policy", "immediate")
        if found.uses == ("immediate",) and immediate and immediate.of == goal:
            return "Credit a token with the costs of the later ones too, if whole sequences matter."
        return (
            f"In the reward put k1, log current/{found.other}: of k1, k2 and k3 it alone is right."
        )
    factor = best.factor or 0.0
    if factor < 0:
        return f"Turn its sign: as a cost it drives current away from {found.other}."
    strength = "" if abs(factor - 1) < 1e-6 else f" Mind the factor {number(factor)}."
    return (
        f"Nothing: subtract it from the reward, and credit each token with later costs.{strength}"
    )
