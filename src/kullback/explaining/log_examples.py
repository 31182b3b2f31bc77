"""For each code of step logs an honest run with a fault, and the same run without it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kullback.diagnosis.finding import CODES, Diagnosis
from kullback.diagnosis.judge_log import judge_log
from kullback.explaining.examples import SEED, Example
from kullback.logs.step_log import StepLog
from kullback.worlds.step_logs import LOG_FAULTS, NAMES, Logged, honest_log

STEPS, TOKENS = 120, 2048


def log_example(code: str) -> Example | None:
    """The example of a code of step logs; None where it has none.

    Example:
        >>> log_example("unit-or-scale").finding("unit-or-scale").numbers["whole"]
        8
    """
    return _FROM_LOGS[code]() if code in _FROM_LOGS else None


def _honest() -> Logged:
    return honest_log(np.random.default_rng(SEED), steps=STEPS, tokens=TOKENS)


def _seen(log: Logged) -> Diagnosis:
    return judge_log(StepLog.of(log), framework="verl").diagnosis


def _told(what: str) -> str:
    return f"Simulated log ({STEPS} steps of {TOKENS} tokens, seed {SEED}): {what}."


def _of_fault(name: str) -> Example:
    fault = LOG_FAULTS[name]
    return Example(
        told=_told(fault.caption),
        diagnosis=_seen(fault.inject(_honest(), NAMES["verl"])),
        clean="without that",
        twin=_seen(_honest()),
    )


def _holes() -> Example:
    """k1 has what k3 cannot see."""
    log = _honest()
    k1, k3 = NAMES["verl"][2:4]
    return Example(
        told=_told("q has as much mass again where p never samples"),
        diagnosis=_seen(log | {k1: log[k1] + float(log[k3].mean())}),
        clean="without that",
        twin=_seen(log),
    )


def _noisy() -> Example:
    """A step's number is anywhere between a seventh and seven times the level."""
    log, (k3, coefficient) = _honest(), NAMES["verl"][1:6:4]
    steered = log | {coefficient: np.geomspace(0.001, 0.002, STEPS)}
    noise = np.random.default_rng(SEED).standard_normal(STEPS)
    level = 0.01 * np.minimum(np.arange(STEPS), 1)  # the policy starts as its reference
    return Example(
        told=_told("a coefficient follows a k3 that spreads over a factor of seven to either side"),
        diagnosis=_seen(steered | {k3: level * np.exp(noise)}),
        clean="with a hundred times as many tokens",
        twin=_seen(steered | {k3: level * np.exp(noise / 10)}),
    )


def _scaled() -> Example:
    log, k3 = _honest(), NAMES["verl"][3]
    fault = LOG_FAULTS["micro-batches"]
    return Example(
        told=_told(fault.caption),
        diagnosis=_seen(fault.inject(log, NAMES["verl"])),
        clean="logged again as it is",
        twin=_seen(log | {f"{k3}_again": log[k3]}),
    )


_FROM_LOGS: dict[str, Callable[[], Example]] = {
    "holes-suspected": _holes,
    "noise-above-signal": _noisy,
    "unit-or-scale": _scaled,
} | {
    fault.code: partial(_of_fault, name)
    for name, fault in LOG_FAULTS.items()
    if CODES[fault.code].of == "log" and fault.code != "unit-or-scale"
}
