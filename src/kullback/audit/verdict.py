"""What is to be said of a term: what it is, and whether that is what its name says."""

from __future__ import annotations

from dataclasses import dataclass

from kullback.audit.catalogue import Reading
from kullback.audit.gradients import Gradient
from kullback.audit.scenes import SCENARIOS
from kullback.audit.telling import (
    USES,
    clamp_words,
    derivative_words,
    form_words,
    gradient_words,
    held_at,
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
        derivative: The form that its derivative is of, by the current policy's logits.
        gradients: The expected gradients.
        detached: Whether no gradient flows to the current policy.
        flows: The policies that one flows to.
        roles: The policies that it is given.
        other: The policy that current is compared with.
    """

    value: Value
    derivative: Reading | None
    gradients: tuple[Gradient, ...]
    detached: bool
    flows: frozenset[str]
    roles: tuple[str, ...]
    other: str

    def of(self, scenario: str, use: str, lengths: str = "random") -> Gradient | None:
        """One of the gradients, if it is there."""
        wanted = (scenario, use, lengths)
        found = (one for one in self.gradients if (one.scenario, one.use, one.lengths) == wanted)
        return next(found, None)

    @property
    def uses(self) -> tuple[str, ...]:
        """How it is used."""
        return tuple(dict.fromkeys(one.use for one in self.gradients))

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that tell something."""
        return tuple(dict.fromkeys(one.scenario for one in self.gradients))

    @property
    def main(self) -> str:
        """The scenario to look at first: on-policy nothing is far from its own copy."""
        copies = self.other != "reference"
        return "stale" if copies else "on-policy"

    @property
    def is_kl(self) -> bool:
        """Whether it has to do with how far two policies are apart.

        It has if it depends on two policies and its value is a form of their log-ratio or a
        divergence of theirs; or, where it has no form that is known, if one of its expected
        gradients is that of a divergence of theirs, or it is 0 where all policies agree.
        """
        if len(self.value.depends_on) < 2:
            return False
        if self.value.form:
            return self.value.form.method not in _NO_KL
        if any(one.of and one.of.startswith(("KL(", "E[(")) for one in self.gradients):
            return True
        return abs(self.value.at_identity) < 1e-9


def verdict(found: Findings) -> str:
    """Two to four sentences: the value, what training with it does, and whether they agree."""
    said = [_short_value(found.value)]
    if not found.is_kl:
        said.append(_no_kl(found))
    if found.detached:
        flows = f", though one flows to {joined(sorted(found.flows))}" if found.flows else ""
        said.append(f"It carries no gradient to the current policy{flows}: it is no loss.")
    for use in found.uses[:1] if "loss" in found.uses or len(found.uses) == 1 else found.uses[:2]:
        random, fixed = found.of(found.main, use), found.of(found.main, use, "fixed")
        if random is None or fixed is None or not (found.is_kl or random.of):
            continue
        if not (use == "full_return" and _alike(found, use, "reward_to_go")):
            where = "" if found.main == "on-policy" else " on tokens of an older policy"
            how = _conduct(random, fixed, SCENARIOS[found.main].sampler)
            said.append(f"{USES[use]}{where} it {how}.")
            said += _agreement(found, random)
    return " ".join(said)


def _alike(found: Findings, one: str, other: str) -> bool:
    first, second = found.of(found.main, one), found.of(found.main, other)
    return bool(first and second and _name(first) == _name(second))


def _name(one: Gradient) -> tuple[str | None, str | None, str | None]:
    return one.of, one.part, one.prefixes


def _conduct(random: Gradient, fixed: Gradient, sampler: str, other: str = "") -> str:
    """What it descends; where that depends on whether lengths are random, both.

    With ``other``, how far it is from the KL with that policy is said beside what is nearest.
    """
    how = gradient_words(random, sampler, other)
    if _name(random) == _name(fixed):
        return how
    equal = f"it {gradient_words(fixed, sampler, other)}"
    if random.of is None and fixed.of:  # what has a name is said first
        equal = equal.removeprefix("it ")
        return f"{equal}, where all sequences have one length; where lengths are random it {how}"
    return f"{how}; where all sequences have one length {equal}"


def _agreement(found: Findings, one: Gradient) -> list[str]:
    """Whether the gradient is that of the value."""
    mean = found.value.means.get(one.scenario)
    if not found.is_kl or one.use != "loss" or not one.of or not mean or mean[0] == "zero":
        return []
    if not one.is_of(mean[0].partition(" at ")[0]):
        return ["It is not the gradient of its value."]
    if abs((one.factor or 0.0) - mean[1]) > 1e-6 * abs(mean[1]):
        return ["It is not the gradient of its value: the factor is another."]
    return []


def _short_value(value: Value) -> str:
    if value.form is None or value.factor is None:
        return "Its value is no formula that is known here."
    what = form_words(value.form, value.factor)
    if value.second:
        what += f", plus {times(value.second[1], form_words(value.second[0]))}"
    return f"Its value is {what}{held_at(value.clamps)}."


def _no_kl(found: Findings) -> str:
    depends = found.value.depends_on
    if len(depends) < 2:
        on = f"on {depends[0]} alone" if depends else "on no policy"
        return f"It is not a KL term: it depends {on}, and a KL is between two policies."
    if found.value.form:
        return "It is not a KL term: that is no measure of how far two policies are apart."
    return (
        "It is not a KL term: its value is no function of a log-ratio, no gradient of it is that "
        f"of a divergence, and where all policies agree it is {number(found.value.at_identity)}."
    )


def details(found: Findings) -> list[tuple[str, str]]:
    """All that was found, each with a label: the value, the derivative, the gradients."""
    said = [("Value", one) for one in _value(found.value)]
    if derivative := _derivative(found):
        said.append(("Derivative", derivative))
    return said + [("Gradient", one) for use in found.uses for one in _gradients(found, use)]


def _value(value: Value) -> list[str]:
    said = [f"{level_words(value.aggregation)}."]
    if value.form and value.clamps:
        said.append(f"{clamp_words(value.clamps, value.form)}.")
    groups: dict[str, list[str]] = {}
    for scenario, mean in value.means.items():
        groups.setdefault(_mean(mean), []).append(scenario)
    count = len(value.means)
    said += [f"Its mean is {what}, {sampled(names, count)}." for what, names in groups.items()]
    return said


def _mean(mean: tuple[str, float] | None) -> str:
    if mean is None:
        return "no KL"
    return "0" if mean[0] == "zero" else times(mean[1], mean[0])


def sampled(scenarios: list[str], of: int) -> str:
    """``if the current policy sampled``, for scenarios by their name.

    Example:
        >>> sampled(["stale"], 2)
        'if an older policy sampled'
    """
    if len(scenarios) == of and of > 1:
        return "whoever sampled"
    return f"if {joined([SCENARIOS[name].words for name in scenarios], 'or')} sampled"


def _derivative(found: Findings) -> str:
    """What it does when differentiated, if that is not what its value says."""
    reading, value = found.derivative, found.value
    if found.detached:
        return ""
    if not value.aggregation.adds:
        return ""
    if reading is None:
        return "The derivative of no form that is known."
    mine = (value.form, value.second and value.second[0])
    theirs = (reading.form, reading.second and reading.second[0])
    same = mine == theirs and abs(reading.factor - (value.factor or 0.0)) < 1e-6
    return "" if same else f"That of {derivative_words(reading)}."


def _gradients(found: Findings, use: str) -> list[str]:
    groups: dict[str, list[str]] = {}
    for scenario in found.scenarios:
        random, fixed = found.of(scenario, use), found.of(scenario, use, "fixed")
        if random and fixed:
            how = _conduct(random, fixed, SCENARIOS[scenario].sampler, found.other)
            groups.setdefault(how, []).append(scenario)
    count = len(found.scenarios)
    said = USES[use].removesuffix(",")
    return [f"{said}, {sampled(names, count)}, it {how}." for how, names in groups.items()]
