"""The coefficient of a penalty: one that runs away, and one that is 0."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.diagnosis.log_labels import Labelled

FEWEST = 8  # steps
FOLD = 100.0  # times its first value, or a hundredth of it
ONE_WAY = 0.95  # share of the moves of the last half that go that way
RECENT = 0.5  # share of the steps that are looked at for that


def diagnose_coefficients(series: tuple[Labelled, ...]) -> Diagnosis:
    """What the coefficients do, and what that makes of the KL."""
    kls = [one for one in series if one.kind == "kl"]
    return sum((_judged(one, kls) for one in series if one.kind == "coefficient"), Diagnosis())


def _judged(one: Labelled, kls: list[Labelled]) -> Diagnosis:
    values = one.series.values[np.isfinite(one.series.values)]
    if len(values) and not values.any():
        return _unused(one, kls)
    return _saturated(one, values, kls)


def _unused(one: Labelled, kls: list[Labelled]) -> Diagnosis:
    code, count = "penalty-not-used", len(one.series)
    finding = Finding(
        code,
        "note",
        "certain",
        f"{one.name} is 0 at all {count} steps: the KL is logged, and nothing is trained on it.",
        "Nothing holds the policy back, whatever the logged KL says; and 0 times an infinite KL "
        "is NaN.",
        "If a leash was meant, set the coefficient; some trainers have one for the reward and one "
        "for the loss, and a switch for each. If not, this is as it should be.",
        numbers={"steps": count, "kl_series": len(kls)},
    )
    return Diagnosis.failed(finding, one.name, f"0 at {count} steps")


def _saturated(one: Labelled, values: np.ndarray, kls: list[Labelled]) -> Diagnosis:
    code = "controller-saturated"
    used = Diagnosis.passed("penalty-not-used", one.name, "it is not 0")
    if len(values) < FEWEST:
        said = f"{len(values)} steps, and {FEWEST} are needed"
        return used + Diagnosis.not_possible(code, one.name, said)
    fold = values[-1] / values[0] if values[0] > 0 else np.inf
    moves = np.diff(values[int(len(values) * (1 - RECENT)) :])
    moves = moves[moves != 0]
    up = float((moves > 0).mean()) if len(moves) else 0.5
    grows, falls = fold >= FOLD and up >= ONE_WAY, fold <= 1 / FOLD and up <= 1 - ONE_WAY
    said = f"from {values[0]:.3g} to {values[-1]:.3g}"
    if not (grows or falls) or values[0] <= 0:
        return used + Diagnosis.passed(code, one.name, said)
    infinite = bool(np.isinf(one.series.values).any())
    side, other = ("above", "too low or out of reach") if grows else ("below", "too high")
    finding = Finding(
        code,
        "error" if infinite else "warning",
        "certain",
        f"{one.name} runs away: {said}, {fold:.3g} times, and {max(up, 1 - up):.0%} of the moves "
        f"of the last half go that way. The KL stays {side} the target whatever the penalty does"
        f"{_last(kls)}.",
        "The penalty outweighs the reward, and overflows in the end."
        if grows
        else "There is no leash any more: the penalty is as good as gone.",
        f"The target is {other}, or is in another unit than the KL it is held against (nats per "
        "token and per sequence differ by the length), or the KL that is fed is a signed, noisy "
        "one. Feed the mean of k1 over many tokens in the unit of the target, and put ends to the "
        "coefficient.",
        numbers={"first": float(values[0]), "last": float(values[-1]), "fold": float(fold)},
        where=(f"step {one.series.steps[-1]:g}",),
    )
    return used + Diagnosis.failed(finding, one.name, said)


def _last(kls: list[Labelled]) -> str:
    if not kls:
        return ""
    held = kls[0].profile.level
    recent = held[int(len(held) * (1 - RECENT)) :]
    return f" ({kls[0].name}: about {np.median(recent):.3g})" if len(recent) else ""
