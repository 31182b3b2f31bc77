"""What a drift is made of: engine mismatch, staleness, and the update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kullback.estimation.cells import AxisState
from kullback.estimation.compare import Change, difference
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.policies import sampler_of
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary
from kullback.question import Question

FRESH = 0.0  # staleness of tokens that the newest weights sampled
AXES = ("position", "staleness", "step")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the total drift, by k1, in nats per token.

    Args:
        name: ``engine``, ``staleness``, ``engine and staleness`` or ``update``.
        what: The difference of which KLs it is.
        change: Its mean and interval. Only the engine's is a KL itself; the others can be negative.
    """

    name: str
    what: str
    change: Change


@dataclass(frozen=True, slots=True)
class DriftCell:
    """The parts of the drift in one cell of an axis, engine and staleness as one.

    Args:
        name: The cell; None where nothing was logged.
        tokens: Its tokens.
        parts: Both parts; their means add up to the KL in this cell.
    """

    name: str | None
    tokens: int
    parts: tuple[Part, Part]


@dataclass(frozen=True, slots=True)
class Drift:
    """The KL from the sampler to the policy that learns, and the parts that add up to it.

    Args:
        total: KL(sampler‖last policy) by k1.
        parts: In the order in which they arise; their means add up to the total.
        by: By axis, its cells in ascending order.
        unsplit: Why engine and staleness are not told apart, or nothing.

    Example:
        >>> import kullback as kb
        >>> found = split_drift(kb.summarize(kb.read(kb.demo_path()), by=["position"]))
        >>> print(f"{found.total.mean:.4f} = {' + '.join(part.name for part in found.parts)}")
        0.0472 = engine and staleness + update
        >>> [cell.name for cell in found.by["position"]]
        ['0', '1', '2–3', '4–7', '8–15', '16–31', '32–63']
        >>> found.unsplit
        'the versions of the weights are not logged'
    """

    total: Estimate
    parts: tuple[Part, ...]
    by: dict[str, tuple[DriftCell, ...]]
    unsplit: str


def split_drift(summary: Summary, *, confidence: float = 0.95) -> Drift | None:
    """What the drift from the sampler to the policy that learns is made of.

        KL(s‖current) = KL(s‖old | fresh) + [KL(s‖old) − KL(s‖old | fresh)]
                        + [KL(s‖current) − KL(s‖old)]

    Engine mismatch is what the newest weights show between engine and trainer: KL(s‖old) over the
    tokens of staleness 0. Staleness is what the older tokens add to it, and the update what the
    steps on this batch add. All by k1 over the same tokens, so that the means add up exactly, with
    intervals paired by cluster. The first is a KL; the others are differences and can be negative.

    Args:
        summary: What ``summarize`` made, with the questions KL(s‖old) and KL(s‖current) and, to
            tell the engine from staleness, ``by=["staleness"]``.
        confidence: Nominal coverage of the intervals.

    Returns:
        The split, or None where sampler, ``old`` and ``current`` are not three policies.

    Example:
        >>> import kullback as kb
        >>> found = split_drift(kb.summarize(kb.read(kb.demo_path())))
        >>> for part in found.parts:
        ...     print(f"{part.name}: {part.change.mean:.4f}, from {part.what}")
        engine and staleness: 0.0191, from KL(rollout||old)
        update: 0.0281, from KL(rollout||current) − KL(rollout||old)
    """
    sampler = sampler_of(summary)
    ends = [Question(sampler, role) for role in ("old", "current") if role != sampler]
    if len(ends) < 2 or any(end not in summary.questions for end in ends):
        return None
    old, current = (summary.questions[end] for end in ends)
    if old.tokens != current.tokens:  # then their means are of different tokens, and do not add up
        return None
    stale = summary.by.get(ends[0], {}).get("staleness")
    engine, unsplit = _engine(ends[0], old, stale, confidence)
    return Drift(
        total=from_state(current, "k1", confidence),
        parts=(*engine, _update(ends, old, current, confidence)),
        by=_by(summary, ends, confidence),
        unsplit=unsplit,
    )


def _engine(
    question: Question, state: QuestionState, stale: AxisState | None, confidence: float
) -> tuple[tuple[Part, ...], str]:
    whole = _of(from_state(state, "k1", confidence))
    both = (Part("engine and staleness", str(question), whole),)
    if stale is None:
        return both, "the versions of the weights are not logged"
    cells = {key: stale.state(key) for key in stale.cells}
    if None in cells:
        return both, "some tokens have no version"
    if set(cells) == {FRESH}:
        return (Part("engine", str(question), whole),), ""
    if FRESH not in cells:
        return both, "no token was sampled by the newest weights"
    fresh = _of(from_state(cells[FRESH], "k1", confidence))
    older = difference(cells[FRESH], state, confidence)
    at = f"{question} at staleness 0"
    return (Part("engine", at, fresh), Part("staleness", f"{question} − that", older)), ""


def _update(
    ends: list[Question], old: QuestionState, current: QuestionState, confidence: float
) -> Part:
    return Part("update", f"{ends[1]} − {ends[0]}", difference(old, current, confidence))


def _of(estimate: Estimate) -> Change:
    return Change(
        estimate.mean,
        estimate.low,
        estimate.high,
        estimate.standard_error,
        estimate.effective_clusters - 1,
    )


def _by(
    summary: Summary, ends: list[Question], confidence: float
) -> dict[str, tuple[DriftCell, ...]]:
    """Both parts in each cell of each axis that selects nothing."""
    found: dict[str, tuple[DriftCell, ...]] = {}
    for axis, old in summary.by.get(ends[0], {}).items():
        current = summary.by[ends[1]].get(axis)
        if axis in AXES and current is not None:
            found[axis] = tuple(_cells(ends, old, current, confidence))
    return found


def _cells(
    ends: list[Question], old: AxisState, current: AxisState, confidence: float
) -> Iterator[DriftCell]:
    for key in old.cells:
        if key in current.cells:
            one, other = old.state(key), current.state(key)
            engine = _of(from_state(one, "k1", confidence))
            parts = (
                Part("engine and staleness", str(ends[0]), engine),
                _update(ends, one, other, confidence),
            )
            yield DriftCell(old.named(key)[0], one.tokens, parts)
