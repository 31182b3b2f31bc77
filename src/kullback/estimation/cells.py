"""The sums of one question along an axis: a cell for each value or bin, added like all states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns
from kullback.estimation.axes import (
    BY_TOKEN,
    IN_POWERS,
    Key,
    Parts,
    mixed,
    require_axes,
    require_few,
    settled,
)
from kullback.estimation.bins import low_ends, width_for
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.groups import Groups
from kullback.estimation.histogram import Histogram
from kullback.estimation.question_state import GROUP_TERMS, LAGS, ROW, QuestionState
from kullback.estimation.related_rows import RelatedRows
from kullback.estimation.rungs_state import RungsState
from kullback.estimation.terms import INDEX, PRODUCTS, Usable, blocks
from kullback.question import Question

METHODS = ("auto", "k1", "k3", "exact")
EMPTY = Histogram.of(np.zeros(0))
MEANS = METHODS[1:]  # the terms of which a sequence keeps its token mean


def cell_terms(question: Question) -> tuple[str, ...]:
    """The terms of which a cell keeps sums by cluster: those that its estimates need.

    A cell of up to 1024 clusters takes 8 kilobytes for each of them and 16 for keys: 64 kilobytes
    as a rule, and so 4 megabytes for an axis of 64 cells in each of which every cluster occurs.
    """
    weights = () if question.weight == "none" else ("weight", "weight_squared")
    means = ("k1", "k3", "exact") if question.level == "sequence_mean" else ()
    return (
        "sequences", "tokens", "k1", "k3", "exact", "exact_tokens",
        *weights, *(f"mean_of_{name}" for name in means),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """The sums of one question over the tokens of one cell. ``a + b`` is the cell of both.

    Args:
        groups: First-order sums by cluster, the rows named by ``cell_terms``.
        missing: Tokens in the mask of which a log-prob was not logged.
        infinite: Tokens in the mask outside a support.
        shortest: Fewest usable tokens that a sequence has here, if it has any.
        longest: Most of them.
    """

    groups: Groups
    missing: int
    infinite: int
    shortest: int
    longest: int

    @np.errstate(invalid="ignore")
    def __add__(self, other: Cell) -> Cell:
        one_is_empty = not (self.longest and other.longest)  # its shortest is 0, and no minimum
        return Cell(
            self.groups + other.groups,
            self.missing + other.missing,
            self.infinite + other.infinite,
            (max if one_is_empty else min)(self.shortest, other.shortest),
            max(self.longest, other.longest),
        )


@dataclass(frozen=True, slots=True)
class Row:
    """What a report says of one cell.

    Args:
        name: The value, the bin or the text; None where nothing was logged.
        low: The lowest value of the cell; NaN for a text.
        high: The highest; if not all values are whole, the end of the bin, itself outside.
        tokens: Usable tokens.
        sequences: Sequences with one.
        clusters: Clusters with one.
        effective_clusters: Kish's effective number of them, by their tokens.
        missing: Tokens of which a log-prob was not logged.
        infinite: Tokens outside a support.
        estimates: By auto, by k1, by k3, and the exact KL if the file has one.
    """

    name: str | None
    low: float
    high: float
    tokens: int
    sequences: int
    clusters: int
    effective_clusters: float
    missing: int
    infinite: int
    estimates: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class AxisState:
    """The cells of one question along one axis. ``a + b`` holds the cells of both.

    Args:
        question: What is asked in each cell: per token, where a cell holds parts of sequences.
        axis: The axis.
        cells: By number, by the lower end of a bin, or by text; by None, where nothing was logged.
        width: The width of the bins as a power of two; None where each value has its own.
        whole: Whether every number is whole.
    """

    question: Question
    axis: str
    cells: dict[Key, Cell]
    width: int | None
    whole: bool

    def __add__(self, other: AxisState) -> AxisState:
        if (self.question, self.axis) != (other.question, other.axis):
            raise ValueError("cells of different questions or axes do not add")
        width = _width_of_both(self, other)
        cells: dict[Key, Cell] = {}
        for side in (self, other):
            for key, cell in side.cells.items():
                wide = _low_end(key, width)
                cells[wide] = cells[wide] + cell if wide in cells else cell
        whole = self.whole and other.whole
        return AxisState(self.question, self.axis, _sorted(cells), width, whole)

    def rows(self, *, confidence: float = 0.95, scope: str = "new prompts") -> list[Row]:
        """Every cell with its estimates, in ascending order, what was not logged last.

        By an axis that may depend on what was drawn, k1 and k3 are marked ``selected-on-outcome``.
        """
        row = cell_terms(self.question).index("exact_tokens")
        exact = any(cell.groups.sums[row].any() for cell in self.cells.values())
        methods = METHODS if exact else METHODS[:-1]
        return [self._row(key, methods, confidence, scope) for key in self.cells]

    def _row(self, key: Key, methods: Iterable[str], confidence: float, scope: str) -> Row:
        cell, state = self.cells[key], self.state(key)
        return Row(
            *self.named(key),
            tokens=state.tokens,
            sequences=state.sequences,
            clusters=state.groups.clusters,
            effective_clusters=state.effective_clusters(),
            missing=cell.missing,
            infinite=cell.infinite,
            estimates={
                name: _marked(from_state(state, name, confidence, scope=scope), self.axis)
                for name in methods
            },
        )

    def state(self, key: Key) -> QuestionState:
        """The cell as a question's state: what a cell does not keep is NaN there, and never 0."""
        cell = self.cells[key]
        # A gap breaks the weights of the prefixes behind it, which may stand in other cells.
        across = self.question.weight == "cumulative" and self.axis in BY_TOKEN
        spoiling = self.cells.values() if across else [cell]
        sums = np.full((len(GROUP_TERMS), len(cell.groups.keys)), np.nan)
        sums[[ROW[term] for term in cell_terms(self.question)]] = cell.groups.sums
        return QuestionState(
            question=self.question,
            groups=replace(cell.groups, sums=sums),
            products=np.full(len(PRODUCTS), np.nan),
            log_q_over_p=EMPTY,
            of_sequences=EMPTY,
            lags=np.full((2, len(LAGS), 4), np.nan),
            association=np.full(6, np.nan),
            related=RelatedRows(0, 0, 0, None, 0),
            masked=0,
            missing=sum(one.missing for one in spoiling),
            infinite=sum(one.infinite for one in spoiling),
            shortest=cell.shortest,
            longest=cell.longest,
            weight_max=np.nan,
            size_k1=np.nan,
            top_k1=(),
            top_k3=(),
            rungs=RungsState.empty(),
        )

    def named(self, key: Key) -> tuple[str | None, float, float]:
        """The name of a cell and the ends of its bin."""
        if key is None or isinstance(key, str):
            return key, np.nan, np.nan
        high = key + max(self._size(key) - self.whole, 0.0)
        if high == key:
            return self._number(key), key, key
        low_name, high_name = self._number(key), self._number(high)
        if not self.whole:
            return f"[{low_name}, {high_name})", key, high
        return f"{low_name}{'–' if key >= 0 else ' … '}{high_name}", key, high

    def _size(self, key: float) -> float:
        """The width of a bin; 0 where a cell is one value."""
        if self.axis in IN_POWERS:
            return key
        is_value = self.width is None or not np.isfinite(key)
        return 0.0 if is_value else float(np.ldexp(1.0, self.width or 0))

    def _number(self, value: float) -> str:
        """A number in six digits, where they tell the cells apart."""
        if self.whole and abs(value) <= 2.0**53:
            return str(int(value))
        numbers = [key for key in self.cells if isinstance(key, float)]
        told_apart = len({f"{key:.6g}" for key in numbers}) == len(numbers)
        return f"{value:.6g}" if told_apart else repr(value)


def _low_end(key: Key, width: int | None) -> Key:
    return float(low_ends(np.array([key]), width)[0]) if isinstance(key, float) else key


def _sorted(cells: Mapping[Key, Cell]) -> dict[Key, Cell]:
    """Ascending, what was not logged last."""
    known = sorted((key for key in cells if key is not None), key=lambda key: (key,))
    return {key: cells[key] for key in (*known, *([None] if None in cells else []))}


def _width_of_both(a: AxisState, b: AxisState) -> int | None:
    keys = a.cells.keys() | b.cells.keys()
    texts = sum(isinstance(key, str) for key in keys)
    numbers = [key for key in keys if isinstance(key, float)]
    if texts and numbers:
        raise mixed(a.axis)
    require_few(a.axis, texts)
    if a.axis in IN_POWERS:
        return None
    known = [side.width for side in (a, b) if side.width is not None]
    widest = max(known) if known else None
    return width_for(low_ends(np.array(numbers, dtype=np.float64), widest), widest)


def _marked(estimate: Estimate, axis: str) -> Estimate:
    mark = "selected-on-outcome"
    if settled(axis) or estimate.method == "exact" or mark in estimate.marks:
        return estimate
    return replace(estimate, marks=(*estimate.marks, mark))


def split(
    columns: Columns, questions: Iterable[Question], axes: Iterable[str], also: Iterable[str] = ()
) -> tuple[dict[Question, dict[str, AxisState]], dict[str, str]]:
    """The cells of every question along every axis, of one batch.

    Returns:
        By question and axis, the cells; and of the axes of ``also`` that the batch cannot be split
        by, why.

    Raises:
        ValueError: The batch cannot be split by an axis of ``axes``.
    """
    axes, refused = tuple(axes), {}
    wanted, parts = dict.fromkeys((*axes, *also)), {}
    found: dict[Question, dict[str, AxisState]] = {}
    for question in questions if wanted else ():
        usable = Usable.of(columns, question)
        for axis in [axis for axis in wanted if axis not in refused]:
            if axis != "length" and axis in parts:  # the length depends on the question
                continue
            try:
                require_axes(columns, [axis])
                parts[axis] = Parts.of(columns, axis, usable.flags)
            except ValueError as error:
                if axis in axes:
                    raise
                refused[axis] = str(error)
        sums = _sums(columns, question, usable, parts)
        found[question] = {
            axis: _axis_state(columns, question, axis, usable, parts[axis], sums[axis])
            for axis in parts
        }
    return found, refused


@np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason
def _sums(
    columns: Columns, question: Question, usable: Usable, parts: Mapping[str, Parts]
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """By axis and term, the sums over each part, [parts] each."""
    kept = [name for name in cell_terms(question) if name in INDEX]
    sums = {axis: np.zeros((len(kept), len(one.cell) + 1)) for axis, one in parts.items()}
    for block in blocks(columns, question, usable):
        here = slice(block.start, block.start + block.rows.shape[1])
        for axis, one in parts.items():
            index = one.of_token[here]
            for row, name in enumerate(kept):
                # bincount adds in the order of the tokens, whatever the machine.
                sums[axis][row] += np.bincount(index, block.rows[INDEX[name]], len(one.cell) + 1)
    return {axis: dict(zip(kept, one[:, :-1], strict=True)) for axis, one in sums.items()}


def _axis_state(
    columns: Columns,
    question: Question,
    axis: str,
    usable: Usable,
    parts: Parts,
    sums: Mapping[str, NDArray[np.float64]],
) -> AxisState:
    asked = replace(question, level="token_mean") if axis in BY_TOKEN else question
    tokens, sequences = sums["tokens"], len(columns.lengths)
    rows = dict(sums) | {"sequences": tokens > 0}
    with np.errstate(invalid="ignore", divide="ignore"):
        rows |= {f"mean_of_{name}": sums[name] / tokens for name in MEANS}
    table = np.array([rows[name] for name in cell_terms(asked)], dtype=np.float64)
    # As in the question's own state, an exact KL counts where its sequence has a usable token.
    filled = np.bincount(parts.sequence, tokens, sequences)[parts.sequence] > 0
    filled &= (tokens > 0) | (sums["exact_tokens"] > 0)
    missing, infinite = _lost(usable, columns.mask, parts)
    cells: dict[Key, Cell] = {}
    for cell, key in enumerate(parts.keys):
        here = slice(*np.searchsorted(parts.cell, [cell, cell + 1]))
        chosen = np.flatnonzero(filled[here]) + here.start
        there = tokens[chosen][tokens[chosen] > 0]
        cells[key] = Cell(
            groups=Groups.of(columns.clusters[parts.sequence[chosen]], table[:, chosen]),
            missing=int(missing[here].sum()),
            infinite=int(infinite[here].sum()),
            shortest=int(there.min(initial=there.max(initial=0))),
            longest=int(there.max(initial=0)),
        )
    return AxisState(asked, axis, cells, parts.width, parts.whole)


def _lost(
    usable: Usable, mask: NDArray[np.bool_], parts: Parts
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The missing and the infinite tokens of each part, [parts] each."""
    lost = mask & ~usable.there, usable.there & ~usable.flags
    missing, infinite = (
        np.bincount(parts.of_token[flags], minlength=len(parts.cell)) for flags in lost
    )
    return missing, infinite
