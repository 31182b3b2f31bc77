"""The four policies: their pairs under each correction, and what the drift is made of."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from kullback.estimation.compare import Change
from kullback.estimation.drift import Drift, Part, split_drift
from kullback.estimation.estimate import Estimate
from kullback.estimation.policies import POLICIES, policy_table
from kullback.estimation.summary import Summary
from kullback.reporting.figures import Figure, bands
from kullback.reporting.markup import drawn, table
from kullback.reporting.words import interval, number, percent

if TYPE_CHECKING:
    from rich.table import Table

FEWEST = 3  # policies of the four; of two there is one pair, and the report has it
HEADS = ("KL of", "plain", "token", "own", "left", "read", "interval")


def as_data(summary: Summary, confidence: float) -> dict[str, Any] | None:
    """What the report holds of it; None where there are fewer than three of the four."""
    if len(set(POLICIES) & set(summary.columns)) < FEWEST:
        return None
    pairs = [
        asdict(pair) | {name: _number(getattr(pair, name)) for name in ("token", "own")}
        for pair in policy_table(summary, confidence=confidence)
    ]
    drift = split_drift(summary, confidence=confidence)
    return {"pairs": pairs, "drift": None if drift is None else _drift(drift)}


def _number(one: Estimate | None) -> dict[str, float] | None:
    return None if one is None else {key: getattr(one, key) for key in ("mean", "low", "high")}


def _change(change: Change) -> dict[str, float]:
    return {key: getattr(change, key) for key in ("mean", "low", "high", "standard_error")}


def _part(part: Part) -> dict[str, Any]:
    return {"name": part.name, "what": part.what, **_change(part.change)}


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "question": str(drift.total.question),
        "total": _number(drift.total),
        "parts": [_part(part) for part in drift.parts],
        "by": {
            axis: [
                {
                    "cell": cell.name,
                    "tokens": cell.tokens,
                    "parts": [_part(part) for part in cell.parts],
                }
                for cell in cells
            ]
            for axis, cells in drift.by.items()
        },
        "unsplit": drift.unsplit,
    }


def rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each pair, under ``HEADS``."""
    return [
        (
            f"{one['p']}||{one['q']}",
            number(one["plain"]),
            *(number(one[key] and one[key]["mean"]) for key in ("token", "own")),
            percent(one["weights_left"], 0),
            read,
            _interval(one[read]),
        )
        for one in report["policies"]["pairs"]
        for read in ("token" if one["right"] == "token" else "own",)
    ]


def _interval(one: dict[str, Any] | None) -> str:
    return "–" if one is None else interval(one)


def _spoken(one: dict[str, Any]) -> str:
    return f"{number(one['mean'])} ({interval(one)})"


def lines(report: dict[str, Any]) -> list[str]:
    """The drift in a sentence; nothing where it cannot be split."""
    drift = report["policies"] and report["policies"]["drift"]
    if not drift:
        return []
    parts = (f"{one['name']} {number(one['mean'])} ({interval(one)})" for one in drift["parts"])
    said = f"Drift: {drift['question']} is {number(drift['total']['mean'])} by k1"
    unsplit = f"; {drift['unsplit']}" if drift["unsplit"] else ""
    return [f"{said} = {' + '.join(parts)}{unsplit}."]


def printed(report: dict[str, Any]) -> Table:
    """The pairs as a table of the terminal."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for i, head in enumerate(HEADS):
        shown.add_column(head, justify="right" if i else "left", no_wrap=not i, overflow="fold")
    for row in rows(report):
        shown.add_row(*row)
    shown.title, shown.title_style = "The policies, each pair under each correction", "bold"
    shown.caption, shown.caption_justify = caption(report), "left"
    return shown


def caption(report: dict[str, Any]) -> str:
    """What each column answers."""
    pairs = report["policies"]["pairs"]
    said = (
        "Plain: the mean of log p − log q, a KL only if p sampled. Token: KL(p||q) by the weight "
        "of each token, at the sampler's prefixes. Own: at the prefixes of p, by cumulative "
        "weights if it did not sample; where they leave less than half of the tokens, or hardly "
        "saw p's prefixes, read token."
    )
    if any(one["own"] is None for one in pairs):
        said += " A dash was not asked: --policies asks all."
    return said


def section(report: dict[str, Any]) -> str:
    """The section of the page; nothing where there are fewer than three policies."""
    if not report["policies"]:
        return ""
    because = [(one["bias"],) for one in report["policies"]["pairs"]]
    told = [row + why for row, why in zip(rows(report), because, strict=True)]
    body = [table((*HEADS, "because"), told, caption=caption(report), text=(5, 7))]
    body += [f"<p>{escape(line)}</p>" for line in lines(report)]
    drift = report["policies"]["drift"]
    for axis, cells in drift["by"].items() if drift else ():
        if len(cells) > 1:
            body.append(drawn(_along(drift, axis), _cells(drift, axis)))
    return "<h2>The policies</h2>" + "\n".join(body)


def _cells(drift: dict[str, Any], axis: str) -> str:
    cells = drift["by"][axis]
    names = [part["name"] for part in cells[0]["parts"]] if cells else []
    told = [
        (_named(cell), str(cell["tokens"]), *(_spoken(part) for part in cell["parts"]))
        for cell in cells
    ]
    return table(
        (axis, "tokens", *names), told, caption="By k1, in nats per token, with intervals."
    )


def _named(cell: dict[str, Any]) -> str:
    return "not logged" if cell["cell"] is None else cell["cell"]


def _along(drift: dict[str, Any], axis: str) -> Figure | None:
    cells = [one for one in drift["by"][axis] if one["parts"][0]["mean"] is not None]
    if not cells:
        return None
    drawn_rows = [
        {
            "name": _named(cell),
            "at": None,
            "series": part["name"],
            "tokens": cell["tokens"],
            **{key: part[key] for key in ("mean", "low", "high")},
        }
        for cell in cells
        for part in cell["parts"]
    ]
    first, last = (cell["parts"] for cell in (cells[0], cells[-1]))
    moved = "; ".join(
        f"{a['name']} {number(a['mean'])} to {number(b['mean'])}"
        for a, b in zip(first, last, strict=True)
    )
    title = f"The parts of the drift by {axis}, first to last: {moved}."
    note = (
        "The band is that of engine and staleness, which is a KL; the update is a difference of "
        "two and can be negative. Its intervals stand in the table."
    )
    return bands(title, drawn_rows, axis, "k1, nats per token", names=True, note=note)
