"""A comparison as data: one dictionary, from which the terminal, the page and the file are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kullback.estimation.compare import Change, Comparison, compare
from kullback.estimation.summary import Summary
from kullback.reporting.document import chosen_of, document, plain

SCHEMA = "kullback.compare/1"
METHODS = ("auto", "k3", "exact")
WORST_FIRST = ("no", "with-care", "yes")


def comparison(
    a: Summary,
    b: Summary,
    sources: Sequence[Mapping[str, Any] | None] = (None, None),
    *,
    names: Sequence[str] = ("arrays", "arrays"),
    confidence: float = 0.95,
) -> dict[str, Any]:
    """How two summaries differ, as plain lists, dictionaries, strings and finite numbers.

    Args:
        a: The first side.
        b: The second side; differences are B − A.
        sources: Where each side came from, as ``source_of`` tells it of a dump.
        names: What each side is called: a file, or a step of it.
        confidence: Nominal coverage of the intervals.

    Returns:
        What compare.schema.json describes; a number that does not exist is None.

    Raises:
        ValueError: The sides cannot be compared.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> side = summarize([pack({"old": [[-1.0], [-0.5]], "current": [[-1.1], [-0.4]]})])
        >>> made = comparison(side, side)
        >>> made["schema"], made["headline"]["verdict"], made["headline"]["change"]["difference"]
        ('kullback.compare/1', 'within-noise', 0.0)
    """
    from kullback import __version__

    by_method = {name: compare(a, b, method=name, confidence=confidence) for name in METHODS}
    reports = [
        document(side, source, confidence=confidence)
        for side, source in zip((a, b), sources, strict=True)
    ]
    ours, theirs = (
        {one["question"]["text"]: one for one in report["questions"]} for report in reports
    )
    questions = [
        _question(a.cluster_kind, rows, ours[text], theirs[text])
        for rows in zip(*by_method.values(), strict=True)
        for text in [str(rows[0].question)]
    ]
    return plain(
        {
            "schema": SCHEMA,
            "kullback": __version__,
            "a": _side(names[0], reports[0]),
            "b": _side(names[1], reports[1]),
            "headline": _headline(questions),
            "questions": questions,
            "only_a": [text for text in ours if text not in theirs],
            "only_b": [text for text in theirs if text not in ours],
            "findings": _findings(*(report["findings"] for report in reports)),
        }
    )


def _side(name: str, report: dict[str, Any]) -> dict[str, Any]:
    counts = report["questions"][0]["counts"]
    return {
        "name": name,
        "source": report["source"],
        "counts": {kind: counts[kind] for kind in ("sequences", "tokens", "clusters")},
    }


def _question(
    kind: str, rows: Sequence[Comparison], a: dict[str, Any], b: dict[str, Any]
) -> dict[str, Any]:
    first = rows[0]
    changes = {
        name: _change(row, *(side["estimates"][row.method] for side in (a, b)))
        for name, row in zip(METHODS, rows, strict=True)
        if name in a["estimates"] and name in b["estimates"]
    }
    return {
        "question": a["question"],
        "pairing": {
            "by": kind,
            "shared": first.shared,
            "only_a": first.only_a,
            "only_b": first.only_b,
        },
        "changes": changes,
        "trust": _trust(a["trust"], b["trust"], first.reason),
    }


def _change(one: Comparison, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    fields = ("difference", "low", "high", "standard_error", "degrees_of_freedom", "confidence",
              "unit", "method", "scope", "verdict", "marks", "reason")  # fmt: skip
    told = {name: getattr(one, name) for name in fields}
    shared = None if one.on_shared is None else _on_shared(one.on_shared)
    return told | {"a": a, "b": b, "on_shared": shared}


def _on_shared(change: Change) -> dict[str, float]:
    told = change._asdict()
    return {"difference": told.pop("mean"), **told}


def _trust(a: dict[str, Any], b: dict[str, Any], reason: str | None) -> dict[str, Any]:
    """The worse of both sides, because of what; a reason of one side alone has its name."""
    verdict = min((a["verdict"], b["verdict"]), key=WORST_FIRST.index)
    ours, theirs = (one["because"] if one["verdict"] == verdict else [] for one in (a, b))
    because = [code if code in theirs else f"A: {code}" for code in ours]
    because += [f"B: {code}" for code in theirs if code not in ours]
    if reason is not None:
        verdict, because = "no", list(dict.fromkeys([*because, reason]))
    return {"verdict": verdict, "because": because}


def _headline(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """The one difference of the comparison, of the question that a report would choose."""
    chosen = chosen_of(questions)
    trust, change = chosen["trust"], chosen["changes"]["auto"]
    return {
        "question": chosen["question"]["text"],
        "verdict": change["verdict"],
        "change": change,
        "pairing": chosen["pairing"],
        "trust": trust["verdict"],
        "because": trust["because"],
        "untrusted": sum(one["trust"]["verdict"] == "no" for one in questions),
        "of": len(questions),
    }


def _findings(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings of both, each with its side and whether the other side lacks it.

    Those that a side has alone stand first, the most severe of them at the top.
    """
    told = [one | {"side": "a", "alone": not _is_among(one, b)} for one in a]
    told += [one | {"side": "b", "alone": not _is_among(one, a)} for one in b]
    order = ("error", "warning", "note")
    return sorted(told, key=lambda one: (not one["alone"], order.index(one["severity"])))


def _is_among(one: dict[str, Any], others: Sequence[dict[str, Any]]) -> bool:
    """Whether the other side has a finding of this code that touches one of the same questions."""
    mine = set(one["questions"])
    return any(
        one["code"] == other["code"]
        and (mine & set(other["questions"]) or not (mine or other["questions"]))
        for other in others
    )
