"""Cases about coefficients that follow a target, and about where a stop check sits."""

from __future__ import annotations

from functools import reduce

import kullback as kb
from kullback.control.stopping import Check

from .entries import Input, Table, refusal
from .logs import run_away


def every_invalid_is_refused(x: Input) -> bool:
    def made(target: float, horizon: float) -> kb.AdaptiveCoefficient:
        return kb.AdaptiveCoefficient(0.1, target, kb.ProportionalRule(horizon=horizon))

    return all(refusal(made, one["target"], one["horizon"]) for one in x["invalid"])


def after_readings(x: Input) -> kb.AdaptiveCoefficient:
    x = x["valid"]
    rule = kb.ProportionalRule(horizon=x["horizon"])
    start = kb.AdaptiveCoefficient(x["coef"], target=x["target"], rule=rule)
    return reduce(lambda one, kl: one.update(kl, x["n_steps"]), x["kl_readings"], start)


def unreachable(x: Input, updates: int = 0) -> kb.AdaptiveCoefficient:
    start = kb.AdaptiveCoefficient(x["coef0"], target=x["target"], rule=kb.BandRule())
    return reduce(kb.AdaptiveCoefficient.update, [x["kl_every_iteration"]] * updates, start)


def stop(x: Input, check: Check) -> kb.EarlyStop:
    readings = x["approx_kl_per_epoch_per_minibatch"]
    return kb.replay_stops(readings, target=x["target_kl"], factor=x["factor"])[check]


def without_stop(x: Input) -> kb.EarlyStop:
    found = stop(x, "epoch_last")
    assert not found.stopped
    return found


CONTROL: Table = {
    "19-controller-bad-parameters": {
        "invalid_all_rejected": every_invalid_is_refused,
        "coef_after_readings": lambda x: after_readings(x).value,
        "n_negative_readings": lambda x: after_readings(x).negative,
    },
    "20-kl-coefficient-runs-to-infinity": {
        "coef_after_10": lambda x: unreachable(x, updates=10).value,
        "updates_until_float32_inf": lambda x: unreachable(x).updates_to_overflow("float32"),
        "updates_until_float64_inf": lambda x: unreachable(x).updates_to_overflow("float64"),
        "verdict": run_away,
    },
    "49-where-the-stop-check-sits": {
        "threshold": lambda x: stop(x, "minibatch").limit,
        "per_minibatch_before_step_updates_done": lambda x: stop(x, "minibatch").updates,
        "per_epoch_last_minibatch_updates_done": lambda x: stop(x, "epoch_last").updates,
        "per_epoch_mean_updates_done": lambda x: stop(x, "epoch_mean").updates,
        "last_value_logged_without_stop": lambda x: without_stop(x).logged,
        "max_value": lambda x: without_stop(x).largest,
        "mean_value": lambda x: without_stop(x).mean,
    },
}
