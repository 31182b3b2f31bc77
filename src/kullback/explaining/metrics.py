"""A number of a report or a log, explained: formula, unit, claim, sign, and an exact example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kullback.explaining.explanation import Explanation, Section
from kullback.formulas.claim import Claim

Worked = tuple[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is written of a number.

    Args:
        caption: It in one line.
        means: What it says, in plain words.
        formula: How it is computed.
        unit: Nats, or none.
        unbiased: For what its mean is right, and when: a claim that is proved, or words.
        negative: Whether it can be negative, if no claim says so.
        blind: What it does not see.
        worked: The example: what it shows, and its numbers; computed when called.
    """

    caption: str
    means: str
    formula: str
    unit: str
    unbiased: Claim | str
    negative: str
    blind: str
    worked: Callable[[], Worked]


def explain_metric(name: str) -> Explanation:
    """The explanation of a number.

    Example:
        >>> it = explain_metric("k3")
        >>> it.caption
        'the estimate of KL(p‖q) that is never negative'
        >>> abs(it.numbers["mean"] - it.numbers["kl"]) < 1e-12
        True
    """
    from kullback.explaining.estimators import ESTIMATORS
    from kullback.explaining.trust import TRUST

    one = (ESTIMATORS | TRUST)[name]
    said, numbers = one.worked()
    claimed = one.unbiased if isinstance(one.unbiased, str) else _claimed(one.unbiased)
    sections = (
        Section("Means", one.means),
        Section("Formula", f"{one.formula}\n{one.unit}"),
        Section("Unbiased", claimed),
        Section("Negative?", _sign(one)),
        Section("Blind to", one.blind),
        Section("Example", said),
    )
    return Explanation(name, "number", one.caption, sections, numbers)


def _claimed(claim: Claim) -> str:
    said = f"For {claim.unbiased_for}, over tokens that {claim.sampler} sampled, if"
    conditions = "".join(f"\n  - {one}" for one in claim.conditions)
    beyond = claim.mean_without_support
    return f"{said}{conditions}" + (f"\nWhere a support fails: {beyond}." if beyond else "")


def _sign(one: Metric) -> str:
    if isinstance(one.unbiased, str):
        return one.negative
    one_term = "A single term can be" if one.unbiased.can_be_negative else "Never, not one term"
    return f"{one_term}. {one.negative}".strip()
