"""A finding code, explained: what it means, its test, an example computed now, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kullback.diagnosis.finding import CODES, Finding
from kullback.explaining.explanation import Explanation, Section
from kullback.explaining.measured import (
    CLEAN_REPORTS,
    FALSE_ALARMS,
    FAULTY_LOGS,
    FAULTY_REPORTS,
    FOUND,
    FOUND_IN_LOGS,
    HONEST_LOGS,
    LOG_ALARMS,
)

if TYPE_CHECKING:
    from kullback.explaining.examples import Example

_CERTAINTY = {
    "certain": "What it says is counted, not inferred.",
    "beyond-chance": "It is the outcome of a test, beyond chance.",
    "likely": "It is the likeliest reading of what was counted.",
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is written of a code; what is computed of it stands in ``examples``.

    Args:
        means: What it says, in plain words.
        test: When it is told: the formula, with the thresholds of the code that tells it.
        harmless: When it is wrong to worry, or what else causes it.
        held_by: The test file that holds it, where no rate is measured.
    """

    means: str
    test: str
    harmless: str
    held_by: str = ""


def explain_code(code: str) -> Explanation:
    """The explanation of a code of ``CODES``.

    Example:
        >>> it = explain_code("sentinel-inside-mask")
        >>> it.caption, it.numbers["sentinels"]
        ('−9999 stands where a log-prob should', 1024)
    """
    from kullback.explaining.accusing import ACCUSING
    from kullback.explaining.examples import example
    from kullback.explaining.logged import LOGGED
    from kullback.explaining.telling import TELLING

    lesson, shown = (LOGGED | ACCUSING | TELLING)[code], example(code)
    finding = shown.finding(code)
    told = (
        Section("Means", f"{lesson.means}\n{_kind(finding)}"),
        Section("Told when", lesson.test),
        Section("Example", _example(shown, finding)),
        Section("Clean twin", f"The same {shown.clean}: {shown.passed(code)}."),
        Section("No worry", lesson.harmless),
        Section("Do", finding.advice),
        Section("Tested", _tested(code, lesson)),
    )
    return Explanation(code, "finding", CODES[code].caption, told, finding.numbers)


def _example(shown: Example, finding: Finding) -> str:
    others = dict.fromkeys(f.code for f in shown.diagnosis.findings if f.code != finding.code)
    told = f"{shown.told}\n» {finding.claim}\n» Cost: {finding.cost}"
    return f"{told}\n» Found besides: {', '.join(others)}." if others else told


def _kind(finding: Finding) -> str:
    article = "An" if finding.severity == "error" else "A"
    accuses = "it accuses" if finding.accuses else "it accuses nobody"
    return f"{article} {finding.severity}; {accuses}. {_CERTAINTY[finding.certainty]}"


def _tested(code: str, lesson: Lesson) -> str:
    if not CODES[code].accuses:
        return f"No rate is measured, since nobody is accused; {lesson.held_by} holds it."
    told = []
    if code in FOUND_IN_LOGS:
        told.append(
            f"On honest simulated logs it was told in {LOG_ALARMS.get(code, 0)} of "
            f"{HONEST_LOGS:,}. Of {FAULTY_LOGS} with each fault of kb.worlds it was told in: "
            f"{_counted(FOUND_IN_LOGS[code])} (results/step_logs.json)."
        )
    if code in FOUND:
        told.append(
            f"On clean data it was told in {FALSE_ALARMS.get(code, 0)} of {CLEAN_REPORTS:,} "
            f"reports. Of {FAULTY_REPORTS} with each fault of kb.worlds it was told in: "
            f"{_counted(FOUND[code])} (results/accusations.jsonl)."
        )
    return " ".join(told)


def _counted(faults: Mapping[str, int]) -> str:
    return ", ".join(f"{fault} {count}" for fault, count in faults.items()) or "none"
