"""A probe of results/zoo in the few words that a table has room for."""

from __future__ import annotations

import math
from typing import Any

Found = dict[str, Any]


def value(entry: Found) -> str:
    """The formula and what it estimates: ``k3 of KL(current||reference)``."""
    if "refused" in entry:
        return "—"
    form, factor = entry["probe"]["value"]["form"], entry["probe"]["value"]["factor"]
    if form is None:
        return "—"
    method, p, q = form["method"], form["p"], form["q"]
    if method == "k1" and factor < 0:  # of the other direction
        p, q, factor = q, p, -factor
    scale = "" if math.isclose(factor, 1, rel_tol=1e-5) else f"{factor:.4g} × "
    if method in ("k1", "k3"):
        return f"{scale}{method} of KL({p}||{q})"
    if method == "KL":
        return f"{scale}KL({p}||{q}), exact"
    if method == "JS":
        return f"{scale}JS"
    return f"{scale}{method} of {p} and {q}"


def weight(entry: Found) -> str:
    """What it is weighted by, in its value."""
    form = (entry.get("probe") or {"value": {"form": None}})["value"]["form"]
    if form is None or form["weight"] is None:
        return ""
    of = form["weight"]
    span = {"average": ", geometric mean of the sequence"}.get(of["span"], "")
    return f" × {of['target']}/{of['sampler']}{span}"


def gradient(entry: Found, scenario: str, lengths: str = "random") -> str:
    """What it descends: a divergence, ``zero``, ``none``, or nothing where none was asked for."""
    found = _gradient(entry, scenario, lengths)
    if found is None:
        return ""
    if scenario == "on-policy" and _of_samplers(entry):
        return "zero: the two agree"
    if found["of"] is None:
        return "JS" if _is_of_its_value(entry, "JS") else "none"
    return f"minus {found['of']}" if (found["factor"] or 0.0) < 0 else found["of"]


def _of_samplers(entry: Found) -> bool:
    """Whether it compares policies that are one where the current policy sampled."""
    form = entry["probe"]["value"]["form"]
    return form is not None and {form["p"], form["q"]} <= {"current", "old", "rollout"}


def _is_of_its_value(entry: Found, method: str) -> bool:
    """Whether its derivative is that of its value, a divergence over the vocabulary."""
    form, derivative = entry["probe"]["value"]["form"], entry["probe"]["derivative"]
    known = form is not None and derivative is not None
    return known and form["method"] == method and derivative["form"] == form


def part(entry: Found, scenario: str) -> str:
    """Of whole sequences, or token by token; of a difference the latter may be so alone."""
    found = _gradient(entry, scenario, "random")
    if found is None or gradient(entry, scenario).startswith(("none", "zero")):
        return ""
    if found["of"] is None:
        return ", token by token"
    return {"token": ", token by token", "mixed": ", the latter token by token"}.get(
        found["part"], ", whole sequences"
    )


def nearest(entry: Found, scenario: str) -> str:
    """Of a gradient of no divergence: the most like it."""
    found = _gradient(entry, scenario, "random")
    if found is None or gradient(entry, scenario) != "none":
        return ""
    name = found["nearest"].partition(",")[0]
    return f" (nearest {name}, cosine {found['cosine']:.2f})"


def clamps(entry: Found) -> str:
    """Where it is held, and whether a gradient is left there."""
    said = []
    for one in (entry.get("probe") or {"value": {"clamps": []}})["value"]["clamps"]:
        ratio = math.exp(abs(one["log_ratio"]))
        side = f"{ratio:.3g}" if one["log_ratio"] > 0 else f"1/{ratio:.3g}"
        left = "" if one["gradient"] else ", no gradient"
        said.append(f"{one['of']} {one['at']:.3g} beyond a ratio of {side}{left}")
    return "; ".join(said)


def _gradient(entry: Found, scenario: str, lengths: str) -> Found | None:
    if "refused" in entry:
        return None
    use = "reward_to_go" if entry["used"] == "reward" else "loss"
    for one in entry["probe"]["gradients"]:
        if (one["scenario"], one["use"], one["lengths"]) == (scenario, use, lengths):
            return one
    return None
