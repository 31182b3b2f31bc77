"""Claims held against what was measured: where they agree, and who is right where they do not."""

from __future__ import annotations

from typing import Any, NamedTuple

from claims import CLAIMS, VERDICTS
from reading import Found, gradient, value


class Difference(NamedTuple):
    """One thing that was said of an entry and is not what was measured."""

    of: str
    said: str
    measured: str


def differences(framework: str, name: str, entry: Found) -> list[Difference]:
    """Where what was said of an entry is not what was measured of it.

    A gradient is held against that at random lengths, as in training; what holds only where all
    sequences have one length is said so.
    """
    claim = CLAIMS[framework].get(name)
    if claim is None:
        return []
    found = []
    if claim.value is not None and claim.value != value(entry):
        found.append(Difference("value", claim.value, value(entry)))
    for scenario, said in (("on-policy", claim.gradient), ("stale", claim.stale)):
        seen = gradient(entry, scenario)
        if said is not None and said != seen:
            only = " (where all lengths are one)"
            held = only if said == gradient(entry, scenario, "fixed") else ""
            found.append(Difference(f"gradient, {scenario}", said + held, seen))
    return found


def agreement(framework: str, name: str, entry: Found) -> str:
    """A cell of the table."""
    if name not in CLAIMS[framework]:
        return "nothing was said"
    found = differences(framework, name, entry)
    if not found:
        return "yes"
    return VERDICTS[framework][name]


def every_difference(results: dict[str, Any]) -> dict[tuple[str, str], list[Difference]]:
    """By framework and entry."""
    return {
        (framework, name): found
        for framework, result in results.items()
        for name, entry in result["entries"].items()
        if (found := differences(framework, name, entry))
    }
