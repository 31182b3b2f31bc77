"""What to do about a term, in a few words."""

from __future__ import annotations

from kullback.audit.forms import EXACT
from kullback.audit.gradients import Gradient
from kullback.audit.telling import number
from kullback.audit.verdict import Findings

_FAR = 15.0  # nats: clamped beyond, a term is only kept from overflowing
_STRAIGHT = "differentiate k2 (straight-through, if the value of k3 is wanted)"
_WEIGHTED = "multiply k1 or k3 by the ratio current/sampler and leave that attached"
_WEIGHT = (
    "Where an older policy or another engine sampled, it needs the weight current/sampler: held "
    "constant beside k2, attached to k1 or k3."
)
_LEVELS = {
    "padded_mean": "Divide by the number of tokens that count, not by all positions.",
    "sequence_mean": "Count each token alike: divide the sum over all tokens by their number.",
    "sum": "Divide by the number of sequences, or of tokens.",
}
_SCALES = {
    "bits": "Take log-ratios in nats.",
    "probabilities": "Give it log-probabilities.",
    "ratios": "Give it the log of the ratio.",
}


def advice(found: Findings) -> str:
    """What to do; that there is nothing to do, if so."""
    if not found.is_kl:
        return "If a KL is meant, compare the log-probs of two policies."
    mends = _mends(found)
    if found.main == "stale":
        said = _near_old(found)
    elif "loss" in found.uses:
        said = _as_loss(found, f"KL(current||{found.other})")
    elif found.uses:
        said = _in_reward(found, f"KL(current||{found.other})")
    else:
        said = "Let the gradient flow: do not detach it; or put k1 in the reward instead."
    if mends and said.startswith("Nothing"):  # there is
        said = _WEIGHT if said.endswith(_WEIGHT) else ""
    return " ".join([*mends, said] if said else mends)


def _mends(found: Findings) -> list[str]:
    """What is wrong with it whatever KL is meant."""
    value, form = found.value, found.value.form
    averages, said = value.aggregation, []
    if averages.takes_mask and averages.leaks:
        said.append("Keep masked positions out of it.")
    elif averages.takes_mask or averages.level == "sum":
        said += [_LEVELS[averages.level]] if averages.level in _LEVELS else []
    if value.by_vocabulary:
        said.append("Sum over the vocabulary: a mean over it divides by its size.")
    if form and form.scale in _SCALES:
        said.append(_SCALES[form.scale])
    if form and form.weight and form.weight.sampler == "current":
        said.append(f"Turn its weight: current/{form.weight.target}.")
    near = [one for one in value.clamps if not one.gradient and abs(one.log_ratio) < _FAR]
    if "loss" in found.uses and near:
        said.append("If it must be clamped, clamp the log-ratio, far out: at 20, say.")
    return said


def _as_loss(found: Findings, goal: str) -> str:
    here, fixed = found.of("on-policy", "loss"), found.of("on-policy", "loss", "fixed")
    if here is None or fixed is None or here.is_of(goal):
        return _at_goal(found, here, goal)
    if here.of is None and fixed.is_of(goal) and found.value.aggregation.level == "sequence_mean":
        return ""  # the mean of means alone is wrong, and that is said
    if "zero" in (here.of, fixed.of):
        return f"Instead of it {_STRAIGHT}, or hold it constant and put it in the reward."
    exact = found.value.form is not None and found.value.form.method in EXACT
    if exact and here.of == f"KL({found.other}||current)":
        return f"Nothing if {here.of} is meant; else exchange the two sides."
    if exact and here.of is None:
        return f"Nothing if that is what is meant; it is not {goal}."
    return f"If {goal} is meant, {_STRAIGHT}; or {_WEIGHTED}."


def _at_goal(found: Findings, here: Gradient | None, goal: str) -> str:
    factor = (here and here.factor) or 0.0
    if factor < 0:
        return f"Turn its sign: it drives current away from {found.other}."
    others = [found.of(name, "loss") for name in found.scenarios if name != "on-policy"]
    if all(one and one.is_of(goal) for one in others):
        at = [one.prefixes for one in others if one and one.prefixes not in (None, "current")]
        whose = " at the sampler's prefixes" if at else ""
        return f"Nothing: it descends {goal}{whose}, whoever sampled.{_mind(factor)}"
    stale = found.of("stale", "loss")
    if stale and stale.is_of(goal):
        return "Weight it by current/rollout, not by current/old, where the engine sampled."
    return f"Nothing where the current policy sampled.{_mind(factor)} {_WEIGHT}"


def _mind(factor: float) -> str:
    return "" if abs(factor - 1) < 1e-6 else f" Mind the factor {number(factor)}."


def _near_old(found: Findings) -> str:
    """A term between current and its own older copy: a trust region."""
    one = found.of("stale", found.uses[0]) if found.uses else None
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
    best = next((one for one in right if one and one.is_of(goal)), None)
    if best is None:
        immediate = found.of("on-policy", "immediate")
        if found.uses == ("immediate",) and immediate and immediate.is_of(goal):
            return "Credit a token with the costs of the later ones too, if whole sequences matter."
        return (
            f"In the reward put k1, log current/{found.other}: of k1, k2 and k3 it alone is right."
        )
    factor = best.factor or 0.0
    if factor < 0:
        return f"Turn its sign: as a cost it drives current away from {found.other}."
    return (
        "Nothing: subtract it from the reward, and credit each token with later costs."
        f"{_mind(factor)}"
    )
