"""Who sampled, and what each logged mean is then of: in the terminal and on the page."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting.markup import table

VERDICTS = {
    "cannot-have-sampled": "cannot have",
    "fits": "can have",
    "cannot-tell": "cannot tell",
}


def lines(report: dict[str, Any]) -> list[str]:
    """The verdicts in a few sentences, and the means that are no KL."""
    candidates = report["who_sampled"]["candidates"]
    by_verdict = {
        verdict: [one for one in candidates if one["verdict"] == verdict] for verdict in VERDICTS
    }
    told = [
        f"{VERDICTS[verdict].capitalize()}: {_named(ones)}{_why(ones)}."
        for verdict, ones in reversed(by_verdict.items())
        if ones
    ]
    told = [f"Who sampled? {' '.join(told)}"]
    return told + [
        f"The {one['text']}." for one in report["who_sampled"]["answers"] if not one["is_kl_of"]
    ]


def _named(candidates: list[dict[str, Any]]) -> str:
    return ", ".join(one["role"] + " (taken as the sampler)" * one["said"] for one in candidates)


def _why(candidates: list[dict[str, Any]]) -> str:
    """The reason, where it is one role's alone."""
    return f"; {candidates[0]['reason']}" if len(candidates) == 1 else ""


def section(report: dict[str, Any]) -> str:
    """Both tables of the page."""
    who = report["who_sampled"]
    rows = [
        (one["role"], "yes" if one["said"] else "–", VERDICTS[one["verdict"]], one["reason"])
        for one in who["candidates"]
    ]
    means = [(one["text"],) for one in who["answers"]]
    said = (
        "Each role is tried as the sampler of these tokens. If it drew them, no policy that was "
        "fixed before can find them much likelier, and they are as surprising as its entropies say."
    )
    return (
        f"<h2>Who sampled?</h2><p>{escape(said)}</p>"
        + table(("role", "taken as the sampler", "sampled", "because"), rows, text=(1, 2, 3))
        + table(("what the plain mean of log p − log q over these tokens is of",), means)
        * bool(means)
    )
