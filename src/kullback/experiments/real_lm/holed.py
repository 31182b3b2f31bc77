"""Where the holes are, by the words before them."""

from __future__ import annotations

from typing import Any

from kullback.experiments.real_lm.measure import holes
from kullback.reporting.experiment import Table


def plain(text: str) -> str:
    """A text on one line, in quotes, so that a space at its end is seen."""
    return "“" + text.replace("\n", "⏎").replace("|", "¦") + "”"


def _where(row: dict[str, Any]) -> tuple[str, str, int]:
    return f"{plain(row['before'])}, to {plain(row['prompt'])}", row["pair"], row["position"]


def table_of_p() -> Table:
    """Where q has mass and p nearly none: the prefixes of the largest χ²(q‖p)."""
    rows = []
    for row in holes()["in p"]:
        where, name, position = _where(row)
        shares = (row[key] for key in ("p", "q", "p_beyond", "q_beyond"))
        rows.append((where, name, position, plain(row["likeliest"]), *shares, row["kl"],
                     row["chi2"]))  # fmt: skip
    heads = ("before it", "pair", "place, from 0", "p's likeliest token", "p", "q", "p beyond",
             "q beyond", "KL", "χ²")  # fmt: skip
    return Table(
        "In p: q goes where p hardly does. The worst prefixes of each pair; p and q of p's "
        "likeliest token, and “beyond”, the mass outside p's 20 likeliest tokens.",
        heads,
        rows,
    )


def table_of_q() -> Table:
    """Where a token of p has next to no mass under q: what adds most to the KL."""
    rows = []
    for row in holes()["in q"]:
        where, name, position = _where(row)
        word = plain(row["token"])
        rows.append((where, name, position, word, row["p"], row["q"], row["adds"]))
    heads = ("before it", "pair", "place, from 0", "token", "p", "q", "p log(p/q), nats")
    return Table("In q: tokens that p uses and q nearly forbids.", heads, rows)
