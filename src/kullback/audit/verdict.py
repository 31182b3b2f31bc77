"""What is to be said of a term: what it is, whether that is what its name says, and what to do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kullback.audit.catalogue import Reading
from kullback.audit.forms import EXACT, Form
from kullback.audit.gradients import Gradient
from kullback.audit.scenes import SCENARIOS
from kullback.audit.telling import (
    USES,
    clamp_words,
    form_words,
    gradient_words,
    joined,
    level_words,
    number,
    times,
)
from kullback.audit.value import Value

_NO_KL = ("log-prob", "r", "entropy", "cross-entropy")


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found, before it is said.

    Args:
        value: The value.
        derivative: The form that its derivative is of, by the current policy's log-probs.
        gradients: The expected gradients.
        detached: Whether no gradient flows to the current policy.
        roles: The policies that it is given.
        other: The policy that current is compared with.
    """

    value: Value
    derivative: Reading | None
    gradients: tuple[Gradient, ...]
    detached: bool
    roles: tuple[str, ...]
    other: str

    def of(self, scenario: str, use: str) -> Gradient | None:
        """The gradient where lengths are random."""
        return self._find(scenario, use, "random")

    def fixed(self, scenario: str, use: str) -> Gradient | None:
        """The gradient where all lengths are one."""
        return self._find(scenario, use, "fixed")

    def _find(self, scenario: str, use: str, lengths: str) -> Gradient | None:
        wanted = (scenario, use, lengths)
        found = (one for one in self.gradients if (one.scenario, one.use, one.lengths) == wanted)
        return next(found, None)

    @property
    def is_kl(self) -> bool:
        """Whether it has to do with how far two policies are apart.

        It has if it depends on two policies and either its value is a form of their log-ratio or
        a divergence of theirs, or one of its expected gradients is that of a divergence of
        theirs, or it is 0 where all policies agree.
        """
        if len(self.value.depends_on) < 2:
            return False
        if any(one.of and one.of.startswith(("KL(", "E[(")) for one in self.gradients):
            return True
        if self.value.form:
            return self.value.form.method not in _NO_KL
        return abs(self.value.at_identity) < 1e-9


def verdict(found: Findings) -> list[str]:
    """The sentences, the most important first."""
    said = [_value_sentence(found.value)]
    if mean := _mean_sentence(found.value):
        said.append(mean)
    if not found.is_kl:
        said.append(_no_kl_sentence(found))
    if derivative := _derivative_sentence(found):
        said.append(derivative)
    if found.detached:
        said.append("It carries no gradient to the current policy: as a loss it does nothing.")
    for use in dict.fromkeys(one.use for one in found.gradients):
        said += _use_sentences(found, use)
    return said


def _value_sentence(value: Value) -> str:
    if value.form is None or value.factor is None:
        return "Its value is no formula that is known here."
    what = form_words(value.form, value.factor)
    if value.second:
        what += f", plus {times(value.second[1], form_words(value.second[0]))}"
    said = f"Its value is {what}; {level_words(value.aggregation)}"
    if held := clamp_words(value.clamps, value.form):
        said += f"; {held}"
    return f"{said}."


def _mean_sentence(value: Value) -> str:
    found = value.means.get("on-policy")
    if not found:
        known = value.form is not None and value.form.method not in _NO_KL
        return (
            "Its mean is no KL, whoever sampled." if known and not any(value.means.values()) else ""
        )
    what, factor = found
    if what == "zero":
        return ""
    held = {name for name, one in value.means.items() if one == found}
    also = [SCENARIOS[name].words for name in value.means if name in held and name != "on-policy"]
    more = f", and where {joined(also)}" if also else ""
    return f"Its mean is {times(factor, what)} where the current policy sampled{more}."


def _no_kl_sentence(found: Findings) -> str:
    depends = found.value.depends_on
    if len(depends) < 2:
        on = f"on the {depends[0]} policy alone" if depends else "on no policy"
        return f"It is not a KL term: it depends {on}, and a KL is between two."
    return (
        "It is not a KL term: its value is no function of a log-ratio, no gradient of it is that "
        f"of a divergence, and where all policies agree it is {number(found.value.at_identity)}."
    )


def _derivative_sentence(found: Findings) -> str:
    """What it does when differentiated, if that is not what its value says."""
    reading, form = found.derivative, found.value.form
    if reading is None or found.detached:
        return ""
    same = (
        form is not None
        and (reading.form, reading.second and reading.second[0])
        == (form, found.value.second and found.value.second[0])
        and abs(reading.factor - (found.value.factor or 0.0)) < 1e-6
    )
    if same:
        return ""
    what = derivative_words(reading)
    if form and form.method == reading.form.method and reading.form.weight and not form.weight:
        return f"Differentiated it is {what}: the ratio is 1, and carries a gradient all the same."
    return f"Differentiated it is {what}."


def derivative_words(reading: Reading) -> str:
    """The form of a derivative in words."""
    form = reading.form
    what = form_words(form, reading.factor)
    if form.credit == "future":
        what += ", and what the later tokens add as a cost beside the log-prob"
    elif form.credit:
        credit = {"reward_to_go": "from that token on", "full_return": "of the whole sequence"}
        of = credit.get(form.credit, "of the same token")
        what += f", held constant as a cost {of} beside the log-prob"
    if reading.second:
        what += f", plus {times(reading.second[1], form_words(reading.second[0]))}"
    return what


def _use_sentences(found: Findings, use: str) -> list[str]:
    said = []
    seen: dict[str, list[str]] = {}
    for scenario, how in SCENARIOS.items():
        random, fixed = found.of(scenario, use), found.fixed(scenario, use)
        if random is None or fixed is None:
            continue
        sampler = how.sampler
        what = gradient_words(random, sampler)
        if _differs(random, fixed):
            what += f"; where all sequences have one length it {gradient_words(fixed, sampler)}"
        seen.setdefault(what, []).append(how.words)
    for what, where in seen.items():
        said.append(f"{USES[use].capitalize()}, where {joined(where)}, it {what}.")
    return said


def _differs(one: Gradient, other: Gradient) -> bool:
    return (one.of, one.part, one.prefixes) != (other.of, other.part, other.prefixes)


def is_right(one: Gradient | None, goal: str) -> bool:
    """Whether a gradient descends a KL, whole or token by token."""
    return one is not None and one.of == goal and (one.factor or 0.0) > 0


def advice(found: Findings) -> str:
    """One sentence: what to do."""
    value, other = found.value, found.other
    goal = f"KL(current||{other})"
    if not found.is_kl:
        return "If a KL is meant, give it the log-probs of both policies and compare them."
    if found.detached:
        return _reward_advice(found, goal)
    uses: Collection[str] = {one.use for one in found.gradients}
    if "loss" not in uses:
        return _reward_advice(found, goal)
    return _loss_advice(found, goal, value.form, found.roles)


def _loss_advice(found: Findings, goal: str, form: Form | None, roles: tuple[str, ...]) -> str:
    here, stale = found.of("on-policy", "loss"), found.of("stale", "loss")
    other = found.other
    own = "old" in roles or "rollout" in roles
    if other in ("old", "rollout") and "reference" not in roles:
        return _trust_region_advice(stale, other)
    weight = (
        ""
        if own
        else " Where an older policy or another engine sampled, it also needs the weight "
        "current/sampler, held constant beside k2."
    )
    if is_right(here, goal):
        factor = here.factor or 1.0 if here else 1.0
        strength = "" if abs(factor - 1) < 1e-6 else f" Mind the factor {number(factor)}."
        if is_right(stale, goal):
            return f"Nothing: it descends {goal}, whoever sampled.{strength}"
        return f"Nothing where the current policy sampled.{weight}{strength}"
    if here is not None and here.of == "zero":
        return (
            f"Differentiate k2 instead of it, or hold it constant and put it in the reward.{weight}"
        )
    if here is not None and here.of == goal:
        return f"Turn its sign: it drives current away from {other}."
    if form and form.method in EXACT and here and here.of == f"KL({other}||current)":
        return f"Nothing if {here.of} is meant; else exchange the two sides."
    return (
        f"If {goal} is meant, differentiate k2, or multiply k1 or k3 by the ratio current/sampler "
        f"and leave that ratio attached (on-policy: exp(x - x.detach())).{weight}"
    )


def _trust_region_advice(stale: Gradient | None, other: str) -> str:
    if stale is None or stale.of is None or (stale.factor or 0.0) <= 0:
        return (
            f"To hold current near {other}, descend a KL of the two: k3 with r = current/{other} "
            f"descends KL({other}||current) on {other}'s samples."
        )
    return (
        f"Nothing if current is to stay near {other}; nothing of it holds current to a reference."
    )


def _reward_advice(found: Findings, goal: str) -> str:
    right = [
        credit
        for credit in ("reward_to_go", "full_return")
        if is_right(found.of("on-policy", credit), goal)
    ]
    if right:
        return "Subtract it from the reward, detached, with the reward to go or the full return."
    return "In the reward put k1 (log current - log other), detached: it alone is right there."
