"""The figures of one question of a report: what each shows, said in its title."""

from __future__ import annotations

import math
from typing import Any

from kullback.reporting.along import cell_caption
from kullback.reporting.figures import Figure, bands, bars, intervals, shares
from kullback.reporting.words import TRUST, counted, number, percent

FEW = 0.05  # of the tokens, whose part in the sum of k3 is told
TRUST_COLORS = {"yes": "var(--green)", "with-care": "var(--orange)", "no": "var(--red)"}


def overview(report: dict[str, Any]) -> Figure | None:
    """Every question of the report on one axis."""
    rows = [
        {
            "name": one["question"]["text"],
            "group": TRUST[one["trust"]["verdict"]],
            "exact": one["estimates"].get("exact", {"mean": None})["mean"],
            **{key: one["estimates"]["auto"][key] for key in ("mean", "low", "high")},
        }
        for one in report["questions"]
        if one["question"]["level"] == "token_mean"
    ]
    sizes = [abs(row["mean"]) for row in rows if row["mean"]]
    if len(rows) < 2 or not sizes:
        return None
    lost = sum(one["trust"]["verdict"] == "no" for one in report["questions"])
    total = len(report["questions"])
    means = [row["mean"] for row in rows if row["mean"] is not None]
    said = f"{total} questions, from {number(min(means))} to {number(max(means))} nats per token"
    if lost:
        said = f"{lost} of {total} numbers cannot be trusted"
    negative = [row["name"] for row in rows if row["high"] is not None and row["high"] < 0]
    if negative:
        said += f"; below 0: {', '.join(negative)}"
    colors = {TRUST[verdict]: color for verdict, color in TRUST_COLORS.items()}
    note = (
        "The axis is even up to the first tick on either side of 0 and goes by powers of ten "
        "beyond. A dark tick is the exact KL at these prefixes, where it is logged."
    )
    smallest = 10.0 ** min(max(math.floor(math.log10(min(sizes))), -4), -1)
    x = "KL, nats per token"
    return intervals(
        f"{said}.", rows, x, groups=colors, legend="trust", wide_range=smallest, note=note
    )


def methods(one: dict[str, Any]) -> Figure | None:
    """The estimates of a question by every method."""
    auto = one["estimates"]["auto"]
    rows = [
        {
            "name": name,
            "group": {"auto": "auto", "exact": "exact", "bound": "lower bound"}.get(
                name, "estimate"
            ),
            **{key: e[key] for key in ("mean", "low", "high")},
        }
        for name, e in one["estimates"].items()
        if e["mean"] is not None
    ]
    if not rows:
        return None
    colors = {
        "auto": "var(--orange)",
        "estimate": "var(--blue)",
        "exact": "var(--green)",
        "lower bound": "var(--red)",
    }
    note = "k2 is biased unless the policies are close: it is no estimate of this KL elsewhere."
    x = f"KL, {auto['unit']}"
    return intervals(_methods_title(one), rows, x, groups=colors, note=note)


def _methods_title(one: dict[str, Any]) -> str:
    estimates, gap = one["estimates"], one["sampler_check"]["missing_mass"]
    auto, k1, k3 = (estimates[name] for name in ("auto", "k1", "k3"))
    said = f"k1 says {number(k1['mean'])}, k3 {number(k3['mean'])}"
    error = one["sampler_check"]["standard_error"]
    # At tokens of p, 1 − mean(q/p) is the token mean of k1 − k3.
    on_policy = one["unweighted_k1"] is None and one["question"]["level"] == "token_mean"
    if gap is not None and error and on_policy:
        many = abs(gap) / error
        said += f": {number(many, 2)} standard errors apart"
    exact = estimates.get("exact", {"mean": None})["mean"]
    if exact is not None and auto["low"] is not None:
        where = "inside" if auto["low"] <= exact <= auto["high"] else "outside"
        said += f". The exact {number(exact)} is {where} the interval of auto"
    return f"{said}."


def along(one: dict[str, Any], axis: str) -> Figure | None:
    """How the KL changes along an axis; nothing where there is one cell only."""
    cells = [cell for cell in one["by"][axis] if cell["estimates"]["auto"]["mean"] is not None]
    if len(cells) < 2:
        return None
    exact_ones = [
        cell
        for cell in cells
        if "exact" in cell["estimates"] and cell["estimates"]["exact"]["mean"] is not None
    ]
    numbers = all(cell["low"] is not None and cell["low"] == cell["high"] for cell in cells)
    rows = [
        {
            "name": "not logged" if cell["name"] is None else cell["name"],
            "at": cell["low"] if numbers else None,
            "series": series,
            "tokens": cell["tokens"],
            "mean": cell["estimates"][series]["mean"],
            "low": cell["estimates"][series]["low"],
            "high": cell["estimates"][series]["high"],
        }
        for series, chosen in (("auto", cells), ("k3", cells), ("exact", exact_ones))
        for cell in chosen
    ]
    unit = cells[0]["estimates"]["auto"]["unit"]
    note = cell_caption(one, axis)
    return bands(_drift(cells, axis), rows, axis, f"KL, {unit}", names=not numbers, note=note)


def _drift(cells: list[dict[str, Any]], axis: str) -> str:
    """What the first and the last cell that have an interval say of each other."""
    ends = [cell for cell in cells if cell["estimates"]["auto"]["low"] is not None]
    ends = [cell for cell in ends if cell["name"] is not None]
    if len(ends) < 2:
        return f"KL by {axis}, too few clusters for intervals."
    first, last = ends[0], ends[-1]
    a, b = first["estimates"]["auto"], last["estimates"]["auto"]
    there = f"{number(a['mean'])} at {first['name']}", f"{number(b['mean'])} at {last['name']}"
    if a["high"] < b["low"]:
        return f"By {axis} the KL rises from {there[0]} to {there[1]}."
    if b["high"] < a["low"]:
        return f"By {axis} the KL falls from {there[0]} to {there[1]}."
    return f"By {axis} no change shows beyond the noise: {there[0]}, {there[1]}."


def per_sequence(one: dict[str, Any]) -> Figure | None:
    """How the sequences differ from each other."""
    told = one["sequences"]
    if not told["bins"]:
        return None
    rows = [bar | {"count": bar["sequences"]} for bar in told["bins"]]
    unit = "nats per sequence" if one["question"]["level"] == "sequence_sum" else "nats per token"
    title = (
        f"Of {counted(one['counts']['sequences'], 'sequence')} nine in ten lie between "
        f"{number(told['p5'])} and {number(told['p95'])}; the largest is {number(told['max'])}."
    )
    lost = told["below"] + told["above"]
    note = (
        f"{counted(lost, 'sequence')} beyond the picture, from {number(told['min'])} to "
        f"{number(told['max'])}."
        if lost
        else ""
    )
    x = f"k1 of a sequence, {unit}"
    return bars(title, rows, x, "sequences", note=note)


def log_ratios(one: dict[str, Any]) -> Figure | None:
    """How log p/q is spread over the tokens, and which of them make k3."""
    filled = [i for i, part in enumerate(one["histogram"]) if part["tokens"]]
    bins = one["histogram"][filled[0] : filled[-1] + 1] if filled else []
    tokens, k3 = (sum(part[key] or 0 for part in bins) for key in ("tokens", "k3"))
    if not tokens or not k3:
        return None
    rows = [
        {
            "name": _outer(part),
            "bin": f"{number(part['low'])} to {number(part['high'])}",
            "series": series,
            "share": (part[key] or 0) / total,
        }
        for series, key, total in (("tokens", "tokens", tokens), ("sum of k3", "k3", k3))
        for part in bins
    ]
    note = "Bars stand for values from half their number to all of it; those at 0 for the rest."
    if one["unweighted_k1"] is not None:
        note += " Shown is what was sampled, without the importance weight."
    return shares(_tail(bins, tokens, k3), rows, "log p − log q of a token (k1), nats", note=note)


def _outer(part: dict[str, Any]) -> str:
    """A bin by its end that is further from 0; the one in the middle is 0."""
    if part["low"] < 0 < part["high"]:
        return "0"
    return number(part["low"] if part["high"] <= 0 else part["high"], 2)


def _tail(bins: list[dict[str, Any]], tokens: float, k3: float) -> str:
    """The smallest size beyond which few tokens lie, and what these make of k3."""
    for size in sorted({part["high"] for part in bins if part["high"] > 0}):
        beyond = [part for part in bins if part["low"] >= size or part["high"] <= -size]
        few = sum(part["tokens"] for part in beyond)
        if few <= FEW * tokens:
            if not few:
                break
            owned = sum(part["k3"] or 0 for part in beyond) / k3
            return (
                f"The {percent(few / tokens)} of tokens with |log p/q| of {number(size)} or more "
                f"make {percent(owned, 0)} of the sum of k3."
            )
    return "No token is far from the others."
