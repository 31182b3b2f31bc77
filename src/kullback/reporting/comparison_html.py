"""The comparison as one page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting.comparison_words import (
    CHANGES,
    HEADS,
    about_the_pairing,
    caption,
    headline,
    in_common,
    not_compared,
    pairing,
    row,
    sides,
    signed,
    whose,
)
from kullback.reporting.figures import Figure, intervals
from kullback.reporting.html import finding_card
from kullback.reporting.markup import Raw, drawn, shell, table
from kullback.reporting.words import TRUST, counted, interval, number, trust


def comparison_page(made: dict[str, Any]) -> str:
    """The whole page, styles included; it asks for nothing over the network.

    Args:
        made: What ``comparison`` made.
    """
    alone = [one for one in made["findings"] if one["alone"]]
    body = "\n".join(
        [
            _head(made),
            "<h2>What one side has and the other has not</h2>",
            *(finding_card(one, f"{whose(one)}: ") for one in alone),
            "" if alone else "<p>Nothing.</p>",
            _paragraph(in_common(made)),
            "<h2>The numbers</h2>",
            drawn(_changes(made), _numbers(made), folded=False),
            *map(_paragraph, not_compared(made)),
            *map(_question, made["questions"]),
        ]
    )
    return shell(headline(made), body)


def _paragraph(said: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{escape(said)}</p>" if said else ""


def _head(made: dict[str, Any]) -> str:
    return "\n".join(
        [
            _paragraph(f"kullback {made['kullback']}", "dim"),
            *(_paragraph(line, "dim") for line in sides(made)),
            f"<h1>{escape(headline(made))}</h1>",
            _paragraph(about_the_pairing(made)),
            _paragraph(trust(made), made["headline"]["trust"]),
        ]
    )


def _changes(made: dict[str, Any]) -> Figure | None:
    """The difference of each question, per token, with its interval."""
    rows = [
        {
            "name": one["question"]["text"],
            "group": CHANGES[one["changes"]["auto"]["verdict"]],
            "mean": one["changes"]["auto"]["difference"],
            **{key: one["changes"]["auto"][key] for key in ("low", "high")},
        }
        for one in made["questions"]
        if one["question"]["level"] == "token_mean"
        and one["changes"]["auto"]["difference"] is not None
    ]
    if not rows:
        return None
    moved = sum(row["group"] in ("rose", "fell") for row in rows)
    said = f"{moved} of {counted(len(rows), 'KL')} changed beyond noise."
    colors = {"rose": "var(--orange)", "fell": "var(--blue)", "within noise": "var(--dim)"}
    return intervals(said, rows, "B − A, nats per token", groups=colors, legend="change")


def _numbers(made: dict[str, Any]) -> str:
    rows = []
    for one in made["questions"]:
        verdict = one["trust"]["verdict"]
        trusted = Raw(f'<span class="{verdict}">{TRUST[verdict]}</span>')
        rows.append((*row(one)[:-1], trusted, ", ".join(one["trust"]["because"])))
    return table((*HEADS, "because"), rows, caption=caption(made), text=(9,))


def _question(one: dict[str, Any]) -> str:
    """All methods of a question, and the shared clusters alone where there are others."""
    rows = []
    for name, change in one["changes"].items():
        method = f"auto ({change['method']})" if name == "auto" else name
        marks = ", ".join([*change["marks"], *([change["reason"]] if change["reason"] else [])])
        rows.append(
            (method, number(change["a"]["mean"], 4), number(change["b"]["mean"], 4),
             *_difference(change), CHANGES[change["verdict"]], marks)
        )  # fmt: skip
        if shared := change["on_shared"]:
            rows.append((f"{method}, shared alone", "–", "–", *_difference(shared), "", ""))
    head = ("method", "A", "B", "B − A", "interval", "error", "degrees of freedom", "change",
            "marks")  # fmt: skip
    paired = pairing(one["pairing"])
    return (
        f"<details><summary>{escape(one['question']['text'])}</summary>\n"
        f"{_paragraph(f'The sides are {paired}.', 'dim')}"
        f"{table(head, rows, text=(8,))}</details>"
    )


def _difference(change: dict[str, Any]) -> tuple[str, ...]:
    return (
        signed(change["difference"]),
        interval(change),
        number(change["standard_error"]),
        number(change["degrees_of_freedom"]),
    )
