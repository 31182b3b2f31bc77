"""Two or more steps of one dump, each summarized by itself, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.summary import Summary, checked, in_order
from kullback.question import Question

NAMED = 20  # steps that a refusal names


def summarize_steps(
    batches: Iterable[Columns],
    steps: Sequence[str],
    *,
    questions: Sequence[Question],
    jobs: int = 1,
    on_batch: Callable[[Columns], None] | None = None,
) -> tuple[Summary, ...]:
    """The summary of each of some steps, of batches with a label ``step``, in one pass.

    Like ``summarize``, to the last bit the same for any number of threads. The other steps are read
    and left out.

    Args:
        batches: Batches of whole sequences, a dump for example.
        steps: As a person writes them: ``["3", "7"]``.
        questions: What is asked of each.
        jobs: Threads that work on batches.
        on_batch: Called with each batch when it has been read.

    Returns:
        One summary for each of the steps, in their order.

    Raises:
        ValueError: There is no label ``step``, a step has no sequence (the sentence names those
            there are), or a question names a role without log-probs.

    Example:
        >>> from dataclasses import replace
        >>> from kullback.columns import pack
        >>> batch = pack({"old": [[-1.0]] * 3, "current": [[-1.5]] * 3})
        >>> batch = replace(batch, labels={"step": np.array([3, 7, 3])})
        >>> question = Question("old", "current")
        >>> parts = summarize_steps([batch], ["3", "7"], questions=[question])
        >>> [part.questions[question].sequences for part in parts]
        [2, 1]
    """
    seen: set[Any] = set()

    def note(columns: Columns) -> None:
        if "step" not in columns.labels:
            raise ValueError(
                "no step was read: log a column step, one number per sequence, or map the one that "
                "is it (step=COLUMN)"
            )
        seen.update(columns.labels["step"].tolist())
        if on_batch:
            on_batch(columns)

    announced = checked(batches, questions, None, note)
    work = (partial(_parts, columns, steps, asked) for columns, asked in announced)
    totals: list[Summary | None] = [None] * len(steps)
    for parts in in_order(work, jobs):
        for i, part in enumerate(parts):
            total = totals[i]
            if part is not None:
                totals[i] = part if total is None else total + part
    found = tuple(total for total in totals if total is not None)
    if len(found) < len(steps):
        absent = ", ".join(step for step, one in zip(steps, totals, strict=True) if one is None)
        raise ValueError(f"no sequence is of step {absent}; the steps there are: {_listed(seen)}")
    return found


def _parts(
    columns: Columns, steps: Sequence[str], questions: Sequence[Question]
) -> list[Summary | None]:
    """The summary of what a batch has of each step; None where it has nothing."""
    chosen = [np.flatnonzero(_is_step(columns.labels["step"], step)) for step in steps]
    return [Summary.of(columns.take(one), questions) if len(one) else None for one in chosen]


def _is_step(values: NDArray[Any], step: str) -> NDArray[np.bool_]:
    """Where a label is a step, be it logged as a number or as text."""
    if values.dtype.kind in "iuf":
        try:
            return values == float(step)
        except ValueError:
            return np.zeros(len(values), dtype=np.bool_)
    return np.array([_spoken(value) == step for value in values.tolist()], dtype=np.bool_)


def _spoken(value: Any) -> str:
    """A step as a person writes it: 3 for 3.0."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _listed(seen: set[Any]) -> str:
    """The steps there are, ascending, the first of them if they are many; texts behind numbers."""
    known = [one for one in seen if one is not None and one == one]
    if not known:
        return "none, since null stands in every row"
    ordered = sorted(known, key=lambda one: (isinstance(one, str), one))
    names = list(dict.fromkeys(map(_spoken, ordered)))
    more = f" … {names[-1]} ({len(names)} in all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
