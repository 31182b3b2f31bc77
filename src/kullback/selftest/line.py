"""One thing that was checked, its verdict, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

VERDICTS = ("passed", "failed", "not-reached")
ALLOWED = 1e-12  # relative error in double precision
SMALL = 0.01  # below it an error is absolute: a hundredth of what is allowed


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the self-test.

    Args:
        name: What was checked.
        verdict: ``passed``, ``failed``, or ``not-reached``: nothing here can be checked.
        says: What came out, in a few words.
        numbers: The same as data.

    Raises:
        ValueError: The verdict is none of these.
    """

    name: str
    verdict: str
    says: str
    numbers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.verdict!r} is none of {', '.join(VERDICTS)}")


Pairs = Iterable[tuple[Any, Any]]


def compared(name: str, pairs: Pairs, allowed: float = ALLOWED) -> Line:
    """What was found against what is right: numbers, arrays of them, or decimals in text.

    Example:
        >>> compared("a third", [(1 / 3, "0.3333333333333333333333333333333333")]).verdict
        'passed'
        >>> print(compared("a third", [(0.3, "0.3333333333333333333333333333333333")]).says)
        1 number within 9.7e-02 (1e-12 allowed)
    """
    errors = np.concatenate([_errors(found, right) for found, right in pairs])
    worst = float(errors.max())  # NaN if any is
    verdict = "passed" if worst <= allowed else "failed"
    many = f"{len(errors)} number{'s' * (len(errors) != 1)}"
    within, limit = f"{worst:.1e}" if worst else "0", f"{allowed:.0e}" if allowed else "0"
    says = f"{many} within {within} ({limit} allowed)"
    numbers = {"compared": len(errors), "largest_error": worst, "allowed": allowed}
    return Line(name, verdict, says, numbers)


def attempted(name: str, check: Callable[[], Line]) -> Line:
    """The line of a check; one that cannot even run has failed, and the others go on.

    Example:
        >>> print(attempted("a ninth", lambda: compared("a ninth", [(1 / 9, "a ninth")])).says)
        ValueError: could not convert string to float: 'a ninth'
    """
    try:
        return check()
    except Exception as error:  # noqa: BLE001 a broken installation may raise anything
        return Line(name, "failed", f"{type(error).__name__}: {error}")


def _errors(found: Any, right: Any) -> Any:
    expected = np.asarray(right, dtype=np.float64)
    off = np.abs(np.asarray(found, dtype=np.float64) - expected)
    return np.ravel(off / (np.abs(expected) + SMALL))
