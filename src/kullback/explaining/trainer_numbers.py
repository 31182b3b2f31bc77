"""A number of somebody else's log, explained: which KL, how made, what training on it descends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from kullback.dictionary import METRICS, Metric, find
from kullback.dictionary.find import framework_name, near
from kullback.explaining.explanation import Explanation, Section
from kullback.explaining.settings import deciding, settle
from kullback.formulas.k_family import CLAIMS
from kullback.question import UNITS

_KNOWN = {
    "probed": "Probed: the released code ran on every sequence of two small languages "
    "(results/zoo/table.md).",
    "measured": "Measured: the function ran on the tokens of a small vocabulary, against "
    "enumeration; the rest is read in the source.",
    "read": "Read in the source; it was not run.",
    "not verified": "Not verified: nobody read this in a source.",
}
_UNITS = UNITS | {"padded_mean": "nats per position, padding counted", "sum": "nats in all"}
_NOT_TOLD = ("formula", "defaults", "choices")
_IF_TRAINED = {
    "0": "it would descend nothing: its expected gradient is 0",
    "KL(p||q)": "it would descend KL({p}||{q}), token by token",
    "KL(q||p)": "it would descend KL({q}||{p}), token by token",
}
_OLDER = ("old", "rollout")
_DESCENDS = {"zero": "nothing: its mean gradient is zero"}
_IN_REWARD = {
    "k1": "in the reward it would be right",
    "k2": "in the reward it descends no divergence",
    "k3": "in the reward it descends KL({p}||{q}) − KL({q}||{p}), next to nothing where the two "
    "are close",
}


def explain_logged(
    name: str,
    framework: str | None = None,
    version: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Explanation:
    """What a number of a log is.

    Args:
        name: As the log has it.
        framework: Who wrote it, ``trl`` or ``trl/GRPO``; all who log this name, if left out.
        version: Its release.
        config: The trainer's settings, flat: ``settings.read_settings`` makes it of a file.

    Raises:
        ValueError: Nobody logs this, or the framework is not known.

    Example:
        >>> print(explain_logged("ref_kl", "prime-rl").sections[2].text)
        Negative on average: it is minus what its formula is called.
    """
    found = find(name, framework, version)
    if len(found) == 1:
        return _one(found[0], version, config)
    if not found:
        raise ValueError(unknown(name, framework))
    return _several(name, found, config)


def listed(framework: str) -> Explanation:
    """All that is known of one framework's log.

    Raises:
        ValueError: The framework is not known.

    Example:
        >>> listed("sb3").caption
        '1 number, as of 2.9.2'
    """
    own = framework_name(framework)
    rows = [one for one in METRICS if one.framework == own]
    count = f"{len(rows)} number{'s' * (len(rows) > 1)}"
    return Explanation(
        name=own,
        kind="list",
        caption=f"{count}, as of {rows[0].version}",
        sections=(
            Section("Numbers", "\n".join(f"{_called(one)}\t{_gist(one)}" for one in rows)),
            Section("Ask", f"kullback explain NAME --framework {own}"),
        ),
        numbers={"entries": [as_data(one) for one in rows]},
    )


def as_data(one: Metric) -> dict[str, Any]:
    """An entry as lists, dictionaries, strings and numbers, without its settings."""
    told = {f.name: getattr(one, f.name) for f in fields(one) if f.name not in _NOT_TOLD}
    return told | {
        "question": str(one.question) if one.question else None,
        "formula": one.formula_text,
        "can_be_negative": one.can_be_negative,
        "is_estimate": one.is_estimate,
    }


def settled(one: Metric, config: Mapping[str, Any] | None) -> tuple[Metric, tuple[str, ...]]:
    """An entry as the trainer's settings make it, and what they are and do, in sentences."""
    if config is None:
        return one, ()
    held = settle(one, config)
    found, said = one.under(held)
    told = [f"{key} is {value}, as the file says." for key, value in held.items()]
    default = [
        f"{key} is not in the file; the default is {value}."
        for key, value in one.defaults.items()
        if key not in held
    ]
    return found, (*told, *default, *(sentence for sentence in said if sentence))


def unknown(name: str, framework: str | None) -> str:
    """That nobody logs this, with what is spelled nearly so."""
    where = f" in {framework_name(framework)}" if framework else ""
    close = near(name, framework)
    if close:
        return f"nothing is called {name!r}{where}; did you mean {' or '.join(close)}?"
    asked = f"kullback explain --framework {framework_name(framework)}" if framework else ""
    return f"nothing is called {name!r}{where}; {asked or 'kullback explain'} lists what is known"


def _several(
    name: str,
    found: Sequence[Metric],
    config: Mapping[str, Any] | None,
) -> Explanation:
    """One name, several numbers: each in a few lines."""
    frameworks = list(dict.fromkeys(one.framework for one in found))
    states = [settled(one, config) for one in found]
    sections = []
    for own in frameworks:
        rows = []
        for one, said in states:
            if one.framework == own:
                told = " ".join([_gist(one), *_trains_briefly(one), *said])
                rows.append(f"{one.trainer or one.name}\t{told}")
        sections.append(Section(own, "\n".join(rows)))
    one = frameworks[0] if len(frameworks) > 1 else found[0].framework
    narrower = one if len(frameworks) > 1 else f"{one}/{found[0].trainer or found[0].name}"
    sections.append(Section("Ask", f"kullback explain {name} --framework {narrower}"))
    who = f"{len(frameworks)} projects" if len(frameworks) > 1 else frameworks[0]
    return Explanation(
        name=name,
        kind="logged",
        caption=f"{len(found)} numbers of {who} have this name",
        sections=tuple(sections),
        numbers={"entries": [as_data(one) for one, _ in states]},
    )


def _one(entry: Metric, version: str | None, config: Mapping[str, Any] | None) -> Explanation:
    one, said = settled(entry, config)
    sections = (
        ("Is", _is(one)),
        ("Formula", f"{one.formula_text}\n{one.aggregation.capitalize()}."),
        ("Negative?", _negative(one)),
        ("Unbiased", _unbiased(one)),
        ("Held", f"It holds constant {one.clamp}." if one.clamp else ""),
        ("Trains", _trains(one)),
        ("Settings", "\n".join(said) if config is not None else _settings(entry)),
        ("Mind", "\n".join(one.faults)),
        ("Known", f"{_KNOWN[one.verified]}\n{one.source}, {_as_of(one, version)}"),
        ("Elsewhere", _elsewhere(entry)),
        ("Ask", _ask(one)),
    )
    trainer = f" of {one.trainer}" if one.trainer else ""
    return Explanation(
        name=f"{one.name} ({one.framework})",
        kind="logged",
        caption=f"{one.meaning}{trainer}",
        sections=tuple(Section(label, text) for label, text in sections if text),
        numbers={"entries": [as_data(one)]},
    )


def _called(one: Metric) -> str:
    return f"{one.name} ({one.trainer})" if one.trainer else one.name


def _gist(one: Metric) -> str:
    """A line for a list."""
    of = f" ({one.question})" if one.question else ""
    sign = " Negative on average." if one.sign < 0 else ""
    unsure = " Not verified." if one.verified == "not verified" else ""
    return f"{one.meaning}{of}.{sign}{unsure}"


def _is(one: Metric) -> str:
    if one.use == "coefficient":
        return "A coefficient, and no KL."
    if one.question is None:
        return "No KL of two policies."
    unit = _UNITS.get(one.level, "")
    said = f"It is named after {one.question}" + (f", in {unit}." if unit else ".")
    if one.method not in ("k1", "k2", "k3", "exact"):
        return f"No KL. It compares {one.p} with {one.q}, over tokens of {one.sampler}."
    return said


def _negative(one: Metric) -> str:
    if one.sign < 0:
        return "Negative on average: it is minus what its formula is called."
    if not one.can_be_negative:
        return "Never."
    if one.method == "k1":
        return "Yes, by noise; in the mean not, if the one that it is named after sampled."
    return "Yes."


def _unbiased(one: Metric) -> str:
    if one.question is None or one.method not in ("k1", "k2", "k3", "exact"):
        return ""
    kl, clamp = f"KL({one.p}||{one.q})", ", but for what is clamped" if one.clamp else ""
    minus = "minus " if one.sign < 0 else ""
    if one.level == "sequence_mean" and one.method != "exact":
        clamp += ", if all sequences have one length: a length depends on what was drawn"
    if one.is_estimate:
        return f"Its mean is {minus}{kl}{clamp}."
    if one.method == "k2":
        return f"No: it is near {minus}{kl} where the two are close."
    return (
        f"Only while {one.p} is still {one.sampler}, who sampled: no weight {one.p}/{one.sampler} "
        "is there."
        if not one.weight
        else f"No: its weight, {one.weight}, is not {one.p}/{one.sampler}."
    )


def _trains(one: Metric) -> str:
    if one.use in ("loss", "reward"):
        where = "As a loss" if one.use == "loss" else "In the reward"
        still = f", while {one.sampler} is still current" if one.sampler in _OLDER else ""
        return f"{where} it descends {_DESCENDS.get(one.gradient, one.gradient)}{still}."
    if one.use == "stop":
        return "Nothing is trained on it; an update may be stopped by it."
    if one.method not in ("k1", "k2", "k3") or one.use == "coefficient":
        return ""
    claim = CLAIMS[one.method].expected_gradient
    loss = _IF_TRAINED[claim].format(p=one.p, q=one.q)
    reward = _IN_REWARD[one.method].format(p=one.p, q=one.q)
    return f"Nothing is trained on it. As a loss of {one.p} {loss}; {reward}."


def _trains_briefly(one: Metric) -> list[str]:
    return [f"Trains: {one.gradient}."] if one.gradient else []


def _settings(one: Metric) -> str:
    """What decides it, where no file says."""
    keys = [f"{key} ({value} by default)" for key, value in one.defaults.items()]
    keys += [key for key in deciding(one) if key not in one.defaults]
    if not keys:
        return ""
    return f"Decided by {', '.join(keys)}. Said here for the defaults; --config FILE reads yours."


def _as_of(one: Metric, version: str | None) -> str:
    read = f"{one.framework} {one.version}"
    if version is None or version == one.version:
        return f"{read}."
    return f"{read}; what {version} does was not looked at."


def _elsewhere(one: Metric) -> str:
    """Who else logs something by this name."""
    last = one.name.rpartition("/")[2]
    others = [
        f"{other.framework} {_called(other)}\t{_gist(other)}"
        for other in find(last)
        if other.framework != one.framework
    ]
    return "\n".join(others)


def _ask(one: Metric) -> str:
    if one.question is None or one.method not in ("k1", "k2", "k3", "exact"):
        return ""
    method = "rao_blackwell" if one.method == "exact" else one.method
    said = (
        f"kullback report DUMP --question '{one.question}'\n"
        f'kb.estimate(…, question="{one.question}", method="{method}")'
    )
    if one.question.weight != "none" and not one.weight:
        said += "\nBoth have the importance weight that the log leaves out."
    return said
