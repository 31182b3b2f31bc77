"""One distribution at two temperatures: the trainer's copy of the sampler against the sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.scaled import scaled_roles
from kullback.estimation.slope_state import ONE_POLICY, Pair, SlopeState, nearest_copies
from kullback.estimation.summary import Summary
from kullback.question import Question

EXPLAINED = 0.95  # share of the squared differences that a temperature must explain
APART = 0.01  # size of log of the ratio of temperatures below which nothing is told
UNLIKELY = 1e-6  # probability that differences of no direction lie along a line so well


@dataclass(frozen=True, slots=True)
class Line:
    """log p_a = slope · log p_b + c within each prefix, over the ids that both list.

    Args:
        slope: T_b/T_a of one distribution at two temperatures.
        error: Its clustered standard error.
        explained: The share of the squares of log p_a − log p_b, less its mean at the prefix,
            that a slope other than 1 explains.
        chance: The probability of as much, had the differences no direction.
        prefixes: Prefixes with two ids that both list.
        entries: Ids there.
    """

    slope: float
    error: float
    explained: float
    chance: float
    prefixes: int
    entries: int

    @property
    def ratio(self) -> float:
        """T_a/T_b."""
        return 1 / self.slope

    @property
    def is_temperature(self) -> bool:
        """Whether the two sides differ by a temperature, and by hardly anything else."""
        return (
            self.slope > 0
            and abs(np.log(self.slope)) >= APART
            and self.explained >= EXPLAINED
            and self.chance <= UNLIKELY
        )


def line(state: SlopeState) -> Line | None:
    """The line through the heads of a pair; None where they say nothing."""
    from scipy.special import betainc

    xx, xy, yy = (state.total(term) for term in ("xx", "xy", "yy"))
    prefixes, entries = (int(state.total(term)) for term in ("prefixes", "entries"))
    if not (xx > 0 and np.isfinite([xx, xy, yy]).all()) or entries - prefixes < 2:
        return None
    slope, apart = xy / xx, yy - 2 * xy + xx
    left = max(yy - xy * xy / xx, 0.0)
    explained = 1 - left / apart if apart > 0 else 0.0
    residual = state.by_group("xy") - slope * state.by_group("xx")
    groups = int((state.by_group("xx") > 0).sum())
    error = float(np.sqrt((residual**2).sum() * groups / max(groups - 1, 1))) / xx
    # What is left over of differences without direction, as a share, has a beta law.
    half = (entries - prefixes - 1) / 2
    chance = float(betainc(half, 0.5, min(left / apart, 1.0))) if apart > 0 else 1.0
    return Line(slope, error, explained, chance, prefixes, entries)


def diagnose_temperatures(summary: Summary, drew: frozenset[str] = frozenset()) -> Diagnosis:
    """Accuse copies of a sampler that differ from it by a temperature; tell of other pairs.

    Args:
        summary: What ``summarize`` made.
        drew: Samplers that drew at another temperature than they logged, and are accused of that:
            it explains a copy that was scored at the right one.
    """
    accused: dict[str, list[tuple[str, Line]]] = {}
    checks, scaled = [], scaled_roles(summary)
    for pair, state in summary.slopes.items():
        found = line(state)
        if found is None:
            continue
        wrong = (
            ONE_POLICY.issuperset(pair) and found.is_temperature and scaled.keys().isdisjoint(pair)
        )
        if wrong and pair[0] not in drew:
            accused.setdefault(pair[0], []).append((pair[1], found))
        checks.append(_check(pair, found, wrong))
    findings = [_finding(summary, sampler, copies) for sampler, copies in accused.items()]
    return Diagnosis(tuple(findings), (*checks, *_not_possible(summary)))


def _finding(summary: Summary, a: str, copies: list[tuple[str, Line]]) -> Finding:
    (b, found), *more = copies
    ratio, error = found.ratio, found.error / found.slope**2
    others = [other for other, _ in copies]
    also = "".join(f" So is {other}, at {one.ratio:.3g} times." for other, one in more)
    return Finding(
        code="temperature-mismatch",
        severity="error",
        certainty="beyond-chance",
        questions=tuple(str(q) for q in summary.questions if {a, *others} & {q.p, q.q}),
        claim=(
            f"{a} and {b} are one distribution at two temperatures: in {found.prefixes} heads "
            f"log p of {a} is {found.slope:.3f} times that of {b}, up to a constant of the prefix, "
            f"which explains {found.explained:.1%} of their differences. {a}'s temperature is "
            f"{ratio:.4f} ± {max(error, 1e-4):.4f} times {b}'s.{also}"
        ),
        numbers={
            "temperature_ratio": {other: one.ratio for other, one in copies},
            "standard_error": {other: one.error / one.slope**2 for other, one in copies},
            "explained": {other: one.explained for other, one in copies},
            "entries": found.entries,
            "prefixes": found.prefixes,
        },
        cost=_cost(summary, (a, b)),
        advice=f"If {a} sampled at {ratio:.3g}, {b} was scored at 1: divide its logits by "
        f"{ratio:.3g} before the log-softmax. If {a} sampled at 1, scale those of {b} likewise. "
        "Give every role of one policy the temperature that sampled.",
    )


def _cost(summary: Summary, pair: Pair) -> str:
    state = summary.questions.get(Question(*pair))
    if state is None or not state.tokens or state.infinite:
        return "What differs between the two is no drift: every ratio of them carries it."
    value = state.mean("k1")
    return (
        f"k1 of {state.question} is {value:.4g} nats per token, hardly any of it drift. "
        f"{decided(value, 0.0)}"
    ).strip()


def _check(pair: Pair, found: Line, accused: bool) -> Check:
    a, b = pair
    reason = (
        f"log p of {a} is {found.slope:.3f} times that of {b} over {found.entries} entries of "
        f"their heads, which explains {found.explained:.0%} of the differences"
    )
    if found.is_temperature and not accused:
        reason += (
            f": as one policy at {found.ratio:.3g} times the temperature. That may be meant; if "
            "both are scored for one purpose, score them at one temperature"
        )
    return Check("temperature-mismatch", f"{a} and {b}", "failed" if accused else "passed", reason)


def _not_possible(summary: Summary) -> list[Check]:
    """Where heads of a sampler and its nearest copy are missing: what is known, what to log."""
    checks = []
    for a, b in nearest_copies(summary.questions).items():
        state = summary.slopes.get((a, b))
        if state is not None and line(state) is not None:
            continue
        told, known = None if state is None else by_draws(state), ""
        if told is not None:
            ratio, error = told
            known = (
                f"if {a} and {b} differ by a temperature alone, {a}'s is {ratio:.3f} ± "
                f"{max(error, 1e-3):.3f} times {b}'s, by the entropy of {a} and what it drew; "
            )
        reason = (
            f"{known}the heads of both show whether {a} and {b} are one policy at two "
            "temperatures; log top_ids and top_log_probs"
        )
        checks.append(Check("temperature-mismatch", f"{a} and {b}", "not-possible", reason))
    return checks


def by_draws(state: SlopeState) -> tuple[float, float] | None:
    """T_a/T_b and its error from the draws of a and its entropy, if it is a temperature.

    With s = −log p_a(x) − H_a of mean 0 at each prefix, E s² = (T_b/T_a) E s (−log p_b(x)).
    """
    own, cross = state.by_group("own"), state.by_group("cross")
    if not (own.sum() > 0 and cross.sum() > 0 and np.isfinite([own.sum(), cross.sum()]).all()):
        return None
    ratio = float(cross.sum() / own.sum())
    filled = state.by_group("draws") > 0
    residual, groups = (cross - ratio * own)[filled], int(filled.sum())
    error = float(np.sqrt((residual**2).sum() * groups / max(groups - 1, 1)) / own.sum())
    return ratio, error
