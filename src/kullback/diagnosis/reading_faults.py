"""What was lost before any number: damaged rows, and log-probs in a column that was not read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kullback.diagnosis.finding import Diagnosis, Finding

TOLERATED = 0.01  # share of damaged rows up to which their loss is a note


def diagnose_reading(source: Mapping[str, Any], questions: Sequence[str]) -> Diagnosis:
    """Say what a dump lost on the way in.

    Args:
        source: Where the numbers come from: ``rows``, ``damaged_rows``, ``damaged`` (the first of
            them) and ``unused`` (columns not read, with the reason).
        questions: The questions that the rest of the rows answer.

    Example:
        >>> source = {"rows": 10, "damaged_rows": 3, "damaged": [], "unused": {"reward": "no use"}}
        >>> [(one.code, one.severity) for one in diagnose_reading(source, ["KL(a||b)"]).findings]
        [('rows-left-out', 'warning')]
    """
    findings = (_rows(source, questions), _columns(source, questions))
    return Diagnosis(tuple(finding for finding in findings if finding))


def _rows(source: Mapping[str, Any], questions: Sequence[str]) -> Finding | None:
    lost, rows = source.get("damaged_rows", 0), source.get("rows") or 0
    if not lost:
        return None
    grave = lost > TOLERATED * rows
    first = next((f" The first: {one['reason']}." for one in source["damaged"]), "")
    return Finding(
        code="rows-left-out",
        severity="warning" if grave else "note",
        certainty="certain",
        questions=tuple(questions) if grave else (),
        claim=f"{lost} of {rows} rows are damaged and were left out.{first}",
        numbers={"damaged": lost, "rows": rows},
        cost="The numbers are of the other rows. If damage goes with length, prompt or outcome, "
        "these are a selected sample.",
        advice="Mend the writer of the dump; --strict stops at the first damaged row.",
        where=tuple(f"{one['file']}, {one['place']}" for one in source["damaged"][:3]),
    )


def _columns(source: Mapping[str, Any], questions: Sequence[str]) -> Finding | None:
    unread = {
        name: why
        for name, why in source.get("unused", {}).items()
        if re.search(r"log_?p|_lp\b|mask", name, re.IGNORECASE)
    }
    if not unread:
        return None
    masks = {name: why for name, why in unread.items() if "mask" in name.lower()}
    name, why = next(iter((masks or unread).items()))
    return Finding(
        code="column-not-read",
        severity="warning",
        certainty="likely",
        questions=tuple(questions) if masks else (),
        claim=f"Column {name} looks like {'a mask' if masks else 'log-probs'} and was not read: "
        f"{why}.",
        numbers={"columns": sorted(unread)},
        cost="Tokens that should not count may be counted."
        if masks
        else "The KL that it belongs to is not in this report.",
        advice=f"Say what it is: --map {'mask' if masks else 'ROLE'}={name}.",
    )
