"""Each step's KL beside the KL from the reference: the table and the figure of a run."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from kullback.estimation.compare import Change
from kullback.estimation.estimate import Estimate
from kullback.estimation.step_drift import DriftByStep, RunStep, drift_by_step
from kullback.estimation.summary import Summary
from kullback.reporting.curves import curves
from kullback.reporting.figures import Figure
from kullback.reporting.markup import drawn, table
from kullback.reporting.words import interval, number

HEADS = ("step", "tokens", "its KL", "interval", "from the reference", "interval", "added")


def as_data(summary: Summary, confidence: float) -> dict[str, Any] | None:
    """What the report holds of it; None where there is no run with both questions."""
    found = drift_by_step(summary, confidence=confidence)
    return None if found is None else _as_data(found)


def _as_data(found: DriftByStep) -> dict[str, Any]:
    numbers = ("sum_of_steps", "ratio", "ratio_low", "ratio_high", "straight", "shape", "reason")
    return {
        "step_question": str(found.step_question),
        "total_question": str(found.total_question),
        "largest": found.largest,
        "steps": [_step(one) for one in found.steps],
        **{name: getattr(found, name) for name in numbers},
    }


def _step(one: RunStep) -> dict[str, Any]:
    return {
        "name": one.name,
        "number": one.number,
        "steps": one.steps,
        "tokens": one.tokens,
        "step": _span(one.step),
        "total": _span(one.total),
        "added": _span(one.added),
    }


def _span(one: Estimate | Change) -> dict[str, float]:
    return {key: getattr(one, key) for key in ("mean", "low", "high")}


def section(report: dict[str, Any]) -> str:
    """The section of the page; nothing where there is no run."""
    run = report["steps"]
    if run is None:
        return ""
    rows = [
        (
            one["name"],
            str(one["tokens"]),
            number(one["step"]["mean"]),
            interval(one["step"]),
            number(one["total"]["mean"]),
            interval(one["total"]),
            "–" if one["added"]["mean"] is None else number(one["added"]["mean"]),
        )
        for one in run["steps"]
    ]
    caption = (
        f"{run['step_question']} and {run['total_question']} by auto in nats per token; added: the "
        "difference to the step before, by k1, paired by prompt."
    )
    return "<h2>Steps and way</h2>" + drawn(figure(run), table(HEADS, rows, caption=caption))


def figure(run: dict[str, Any]) -> Figure | None:
    """Steps, their sum so far and the KL from the reference, by powers of ten."""
    sums = accumulate(one["steps"] * max(one["step"]["mean"] or 0.0, 0.0) for one in run["steps"])
    series = {
        "from the reference": [one["total"]["mean"] for one in run["steps"]],
        "sum of the steps": list(sums),
        "each step": [one["step"]["mean"] for one in run["steps"]],
    }
    rows = [
        {
            "at": one["number"],
            "series": name,
            # A logarithm has no place for what noise makes of a KL near 0.
            "value": value if value is not None and value > 0 else None,
        }
        for name, values in series.items()
        for one, value in zip(run["steps"], values, strict=True)
    ]
    if all(row["value"] is None for row in rows):
        return None
    return curves(title(run), rows, "step", "KL, nats per token", log="y", note=_note(run))


def title(run: dict[str, Any]) -> str:
    """What the figure shows, as a sentence."""
    last, largest = run["steps"][-1]["total"]["mean"], run["largest"]
    return (
        f"The steps add up to {number(run['sum_of_steps'])}, none is above {number(largest)}, and "
        f"the policy is {number(last)} from the reference."
    )


def _note(run: dict[str, Any]) -> str:
    said = (
        "KL does not add up: steps in one direction lead away as the square of their number, "
        "random ones as their number."
    )
    if run["shape"] == "unknown":
        return f"{said} Which of the two this is cannot be told: {run['reason']}."
    return (
        f"{said} The distance is {number(run['ratio'])} times the sum of the steps, where a "
        f"straight way has {number(run['straight'])} and a random walk about 1."
    )
