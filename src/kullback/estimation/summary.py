"""One pass over batches of sampled tokens: the states that a report is made of, added up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from kullback.columns import Columns
from kullback.estimation.again_state import AgainState
from kullback.estimation.age_state import AgeState
from kullback.estimation.boundary_state import BoundaryState, borders
from kullback.estimation.cells import AxisState, split
from kullback.estimation.certain_state import CertainState
from kullback.estimation.clamp_state import ClampState
from kullback.estimation.column_state import ColumnState
from kullback.estimation.cut_state import CutState
from kullback.estimation.distribution_state import DistributionState
from kullback.estimation.keyed import added
from kullback.estimation.mask_state import MaskState
from kullback.estimation.opening_state import OpeningState, SharedState
from kullback.estimation.outcome_state import OutcomeState
from kullback.estimation.padding_state import PaddingState
from kullback.estimation.question_state import QuestionState
from kullback.estimation.ratios import log_ratios
from kullback.estimation.recall_state import RecallState
from kullback.estimation.rejection_state import RejectionState
from kullback.estimation.repeat_state import RepeatState
from kullback.estimation.sampler_state import SamplerState
from kullback.estimation.slope_state import Pair, SlopeState, pairs_of
from kullback.estimation.spelling_state import SpellingState, partings
from kullback.estimation.start_state import StartState
from kullback.estimation.stretch_state import StretchState
from kullback.estimation.tail_state import TailState
from kullback.estimation.tempered_state import TemperedState
from kullback.question import Question, default_questions, presumed_sampler

T = TypeVar("T")

NOT_STATES = ("cluster_kind", "by", "refused")  # fields of a summary that do not simply add


@dataclass(frozen=True)
class Summary:
    """What a report is made of. ``a + b`` is the summary of both.

    Args:
        questions: The state of each question, in the order asked.
        misspelled: The same, of only those sequences whose ids do not spell their text.
        weighted: By question without a weight, the one that weighs what the engine sampled.
        columns: What each role's log-probs look like.
        samplers: Whether each role can have sampled, where the dump lets one tell.
        distributions: Whether what is logged of each role's distributions can be of one.
        openings: Whether sequences begin with tokens that a role did not score.
        closings: Whether they end with such tokens.
        certain: Where each role's log-probs are 0 to the last digit, and what the others say there.
        shared: Whether sequences begin alike, by the role that is said to have sampled them.
        recalls: Whether tokens follow others as they did before, likewise.
        repeats: Whether rows are copies of others.
        spelling: Whether the ids spell the text.
        padding: Whether sequences begin or end in runs of one constant.
        tempered: At which temperature of its own head each sampler drew.
        cuts: Beyond which cut of its own head each sampler never drew.
        slopes: Whether two roles are one distribution at two temperatures.
        again: By how much each role differs where the same tokens were scored twice.
        start: How far the policy is from the reference before the first update.
        age: How old the weights were that sampled.
        outcomes: How sequences ended and were rewarded, where labels say it.
        tails: Whether they begin or end in runs of one id.
        stretches: Whether sequences hold tokens in their middle that a role did not score.
        masks: What the mask leaves out.
        rejections: By question, what was masked against what was kept.
        boundaries: By question, the first tokens of sequences that share a row.
        clamps: By question, what the clamps of trainers would change.
        cluster_kind: ``prompt`` or ``sequence``.
        by: Of each question, its cells along each axis that was asked for.
        refused: Of the axes that were wished for and cannot be had, why.

    Raises:
        ValueError: By ``a + b``, if the two sides answer different questions, are split by
            different axes, or one is clustered by prompt and the other by sequence.

    Example:
        >>> from kullback.columns import pack
        >>> first = summarize([pack({"old": [[-1.0, -0.5]], "current": [[-1.1, -0.25]]})])
        >>> second = summarize([pack({"old": [[-2.0]], "current": [[-1.5]]})])
        >>> [state] = (first + second).questions.values()
        >>> state.tokens, round(state.total("k1"), 6)
        (3, -0.65)
    """

    questions: dict[Question, QuestionState]
    misspelled: dict[Question, QuestionState]
    weighted: dict[Question, QuestionState]
    columns: dict[str, ColumnState]
    samplers: dict[str, SamplerState]
    distributions: dict[str, DistributionState]
    openings: dict[str, OpeningState]
    closings: dict[str, OpeningState]
    certain: dict[str, CertainState]
    shared: dict[str, SharedState]
    recalls: dict[str, RecallState]
    repeats: RepeatState
    spelling: SpellingState
    padding: PaddingState
    tempered: dict[str, TemperedState]
    cuts: dict[str, CutState]
    slopes: dict[Pair, SlopeState]
    again: AgainState
    start: StartState
    age: AgeState
    outcomes: OutcomeState
    tails: TailState
    stretches: dict[str, StretchState]
    masks: MaskState
    rejections: dict[Question, RejectionState]
    boundaries: dict[Question, BoundaryState]
    clamps: dict[Question, ClampState]
    cluster_kind: str
    by: dict[Question, dict[str, AxisState]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # what overflows becomes a reason, no warning
    def of(
        cls,
        columns: Columns,
        questions: Sequence[Question],
        by: Sequence[str] = (),
        also: Sequence[str] = (),
    ) -> Summary:
        """The summary of one batch."""
        cells, refused = split(columns, questions, by, also)
        parted = partings(columns)
        odd = [i for i, position in parted.items() if position is not None]
        suspect = columns.take(np.array(odd)) if odd else None
        testable = [r for r in columns.log_probs if r in columns.entropy or r in columns.top_k]
        samplers = dict.fromkeys(q.sampler for q in questions if columns.tokens is not None)
        headed = [role for role in samplers if role in columns.top_k]
        ratios, edges = log_ratios(columns, list(questions)), borders(columns)
        ends = {role: OpeningState.of(columns, role) for role in columns.log_probs}
        return cls(
            questions={q: QuestionState.of(columns, q) for q in questions},
            misspelled={q: QuestionState.of(suspect, q) for q in questions if suspect is not None},
            weighted={q: QuestionState.of(columns, w) for q, w in _weighted(columns, questions)},
            columns={role: ColumnState.of(columns, role) for role in columns.log_probs},
            samplers={role: SamplerState.of(columns, role) for role in testable},
            distributions={role: DistributionState.of(columns, role) for role in testable},
            openings={role: one for role, (one, _) in ends.items()},
            closings={role: one for role, (_, one) in ends.items()},
            certain={role: CertainState.of(columns, role) for role in columns.log_probs},
            shared={role: SharedState.of(columns, role) for role in samplers},
            recalls={role: RecallState.of(columns, role) for role in samplers},
            repeats=RepeatState.of(columns, questions[0].sampler),
            spelling=SpellingState.of(columns, parted),
            padding=PaddingState.of(columns),
            tempered={role: TemperedState.of(columns, role) for role in headed},
            cuts={role: CutState.of(columns, role) for role in headed},
            slopes={pair: SlopeState.of(columns, pair) for pair in pairs_of(columns, questions)},
            again=AgainState.of(columns),
            start=StartState.of(columns),
            age=AgeState.of(columns),
            outcomes=OutcomeState.of(columns),
            tails=TailState.of(columns),
            stretches={role: StretchState.of(columns, role) for role in columns.log_probs},
            masks=MaskState.of(columns),
            rejections={q: RejectionState.of(columns, q, ratios[q]) for q in questions},
            boundaries={q: BoundaryState.of(columns, q, edges) for q in questions},
            clamps={q: ClampState.of(columns, ratios[q]) for q in questions},
            cluster_kind=columns.cluster_kind,
            by=cells,
            refused=refused,
        )

    def asked_of(self, role: str) -> tuple[str, ...]:
        """The questions that name a role, as text: what a fault of its column spoils."""
        return tuple(str(question) for question in self.questions if role in question.roles)

    def __radd__(self, other: int) -> Summary:
        # ``sum`` begins with 0.
        return self if other == 0 else NotImplemented

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: Summary) -> Summary:
        if self.cluster_kind != other.cluster_kind:
            raise ValueError("one side is clustered by prompt and the other by sequence")
        if self.questions.keys() != other.questions.keys():
            raise ValueError("the two sides answer different questions: ask both the same")
        refused = self.refused | other.refused
        if _axes(self.by, refused) != _axes(other.by, refused):
            raise ValueError("the two sides are split by different axes: split both alike")
        states = {
            field.name: _sum(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.name not in NOT_STATES
        }
        by = {
            q: {a: axes[a] + other.by[q][a] for a in axes if a not in refused}
            for q, axes in self.by.items()
        }
        return replace(self, **states, by=by, refused=refused)


def _axes(
    by: dict[Question, dict[str, AxisState]], refused: Collection[str]
) -> dict[Question, set[str]]:
    return {question: set(axes).difference(refused) for question, axes in by.items()}


def _weighted(
    columns: Columns, questions: Sequence[Question]
) -> Iterator[tuple[Question, Question]]:
    """The questions that take p as the sampler where the engine's log-probs say who was."""
    engine = presumed_sampler(columns.log_probs).role
    if engine == "rollout":
        for asked in questions:
            if asked.sampler != engine and asked.weight == "none":
                yield asked, Question(asked.p, asked.q, engine, level=asked.level)


def _sum(a: Any, b: Any) -> Any:
    """Of two states their sum; of two sets of them, that of each."""
    return added(a, b) if isinstance(a, dict) else a + b


def summarize(
    batches: Iterable[Columns],
    *,
    questions: Sequence[Question | str] | None = None,
    sampler: str | None = None,
    by: Sequence[str] = (),
    also: Sequence[str] = (),
    jobs: int = 1,
    on_batch: Callable[[Columns], None] | None = None,
    onto: Summary | None = None,
) -> Summary:
    """Summarize batches in one pass, in bounded memory.

    The states are added in the order of the batches, so the result is the same to the last bit for
    any number of threads.

    Args:
        batches: Batches of whole sequences, a dump for example.
        questions: What is asked, as questions or as text; by default the sampler against every
            other role, and the policy against the reference.
        sampler: The role that sampled, for the default questions; by default the likeliest of
            those logged.
        by: Axes along which every question is split, each by itself: ``position`` among the
            sequence's counted tokens, ``step``, ``staleness``, ``length``, or a label of the
            batches. What may depend on the tokens drawn is marked ``selected-on-outcome``.
        also: More axes, where the batches have them; ``summary.refused`` says why one is left out.
        jobs: Threads that work on batches.
        on_batch: Called with each batch when it has been read (for a progress bar).
        onto: The summary of what stands before; to the last bit the result is then that of one
            pass over both, which a sum of two summaries is to 1e-12 only.

    Returns:
        The summary, from which ``diagnose`` and ``report`` are made; summaries of the same
        questions add. ``summary.by[question][axis].rows()`` are the cells of an axis.

    Raises:
        ValueError: There is no batch, a question names a role without log-probs, or an axis is
            not there or has no cells.

    Example:
        >>> from kullback.columns import pack
        >>> batch = pack({"old": [[-1.0, -0.5]], "current": [[-1.1, -0.25]]})
        >>> summary = summarize([batch, batch])
        >>> [(str(question), state.tokens) for question, state in summary.questions.items()]
        [('KL(old||current)', 4)]
        >>> [axes] = summarize([batch], by=["position"]).by.values()
        >>> [(row.name, row.tokens) for row in axes["position"].rows()]
        [('0', 1), ('1', 1)]
    """
    asked = [Question.parse(q) for q in questions or ()]
    axes = tuple(dict.fromkeys([by] if isinstance(by, str) else by))
    more = tuple(axis for axis in also if axis not in axes)
    total = onto
    announced = checked(batches, asked, sampler, on_batch)
    work = (partial(Summary.of, columns, questions, axes, more) for columns, questions in announced)
    for summary in in_order(work, jobs):
        total = summary if total is None else total + summary
    if total is None:
        raise ValueError("there is no sequence to summarize")
    return total


def checked(
    batches: Iterable[Columns],
    questions: Sequence[Question],
    sampler: str | None,
    on_batch: Callable[[Columns], None] | None,
) -> Iterator[tuple[Columns, Sequence[Question]]]:
    """Each batch with what is asked of it, once it is known to hold what that needs.

    Raises:
        ValueError: A question names a role without log-probs.
    """
    for columns in batches:
        roles = tuple(columns.log_probs)
        questions = questions or default_questions(roles, sampler)
        for question in questions:
            absent = [role for role in question.roles if role not in columns.log_probs]
            if absent:
                raise ValueError(
                    f"{question} needs log-probs of {absent[0]}; there are those of "
                    f"{', '.join(roles)}"
                )
        if on_batch:
            on_batch(columns)
        yield columns, questions


def in_order(work: Iterator[Callable[[], T]], jobs: int) -> Iterator[T]:
    """Results in the order of the work, at most two pieces per thread in flight."""
    if jobs == 1:
        yield from (piece() for piece in work)
        return
    with ThreadPoolExecutor(jobs) as pool:
        flying: deque[Future[T]] = deque()
        for piece in work:
            flying.append(pool.submit(piece))
            if len(flying) >= 2 * jobs:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
