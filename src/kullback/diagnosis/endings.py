"""Is the token that ends a sequence counted: in all sequences, in some, or in none?"""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding, decided
from kullback.diagnosis.rejected import cut_by_rejection
from kullback.estimation.mask_state import Ending, MaskState
from kullback.estimation.summary import Summary

CODE = "end-not-counted"
FEWEST = 5  # sequences; below, an id at the end says nothing
FEWEST_UNCOUNTED = 3  # sequences whose end is not counted; below, nothing is told
COMMON = 0.05  # share of the sequences that an id must end to be their end
WITHIN = 0.01  # share of these in which it may stand before: an end stands at the end
SEVERAL = 0.02  # share of the sequences whose uncounted end is told of
SHORT = 0.1  # share, of those that were not cut, without an end, likewise


def diagnose_endings(summary: Summary) -> Diagnosis:
    """Compare the last counted tokens with those right behind them. Nobody is accused."""
    state = summary.masks
    if not state.endings:
        why = "the end of a sequence cannot be told: log the token ids"
        return Diagnosis.not_possible(CODE, "the dump", why)
    if cut_by_rejection(summary):
        why = "the mask was cut by log-ratios, and with it the ends of some sequences"
        return Diagnosis.not_possible(CODE, "the dump", why)
    end = _end(state)
    uncounted = {name: _sooner(state, one) for name, one in state.behind.items()}
    if end is None:
        behind = max(uncounted, key=lambda name: uncounted[name], default=None)
        if behind is None or uncounted[behind] < _enough(state):
            return _unknown(state)
        return _found(_never(summary, behind, uncounted[behind]))
    # An id that nobody scored may be padding, which is often the end's id again.
    scored = min(uncounted.get(end, 0), max(left.count for left in state.left.values()))
    if scored >= max(FEWEST_UNCOUNTED, SEVERAL * state.sequences):
        return _found(_in_some(summary, end, scored))
    ended, short, cut = state.endings[end].sequences, *_without(state, end)
    told = f"{ended} of {state.sequences} sequences end in id {end}, {cut} at the limit"
    if short >= max(FEWEST, SHORT * (ended + short)):
        return _found(_short(state, end, short, told))
    return Diagnosis.passed(CODE, "the dump", f"{told}, {short} otherwise")


def _enough(state: MaskState) -> float:
    return max(FEWEST, COMMON * state.sequences)


def _end(state: MaskState) -> int | None:
    """The id that ends most sequences and stands in none of them before."""
    for name, one in state.endings.items():  # the commonest first
        if one.sequences >= _enough(state) and one.inside <= WITHIN * one.sequences:
            return name
    return None


def _sooner(state: MaskState, one: Ending) -> int:
    """Those of these sequences that were not cut at the limit."""
    return one.sequences - _at_limit(state, one)


def _without(state: MaskState, end: int) -> tuple[int, int]:
    """The sequences without the end: those that are short, and those that were cut."""
    others = state.sequences - state.endings[end].sequences
    cut = _at_limit(state, state.total) - _at_limit(state, state.endings[end])
    return others - cut, cut


def _at_limit(state: MaskState, one: Ending) -> int:
    """Those of these sequences that have as many tokens, or end as far on, as any has."""
    by_length = one.at_longest if one.longest == state.total.longest else 0
    by_place = one.at_furthest if one.furthest == state.total.furthest else 0
    return max(by_length, by_place)


def _unknown(state: MaskState) -> Diagnosis:
    cut = _at_limit(state, state.total)
    if cut >= (1 - SHORT) * state.sequences:
        told = f"{cut} of {state.sequences} sequences were cut at one length"
        return Diagnosis.passed(CODE, "the dump", told)
    told = "sequences of differing lengths end in differing ids: whether their end is counted"
    return Diagnosis.not_possible(CODE, "the dump", f"{told} cannot be told; log it in the tokens")


def _found(finding: Finding) -> Diagnosis:
    return Diagnosis.failed(finding, "the dump", finding.claim)


def _never(summary: Summary, behind: int, uncounted: int) -> Finding:
    state = summary.masks
    return Finding(
        code=CODE,
        severity="note",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=f"No id ends the sequences, and in {uncounted} of {state.sequences} id {behind} "
        "stands right behind the last counted token: the token that ends a sequence is not "
        "counted.",
        numbers={"sequences": state.sequences, "uncounted": uncounted, "token": behind},
        cost=_cost(summary, uncounted),
        advice="Let the mask cover the first end-of-text token, which the policy chose; if "
        "something else ended these sequences (a stop string), the number is right as it is.",
        where=(str(state.first),),
    )


def _in_some(summary: Summary, end: int, uncounted: int) -> Finding:
    state = summary.masks
    ended = state.endings[end].sequences
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=f"Id {end} ends {ended} of {state.sequences} sequences and is counted there; in "
        f"{uncounted} others it stands right behind the last counted token and is not.",
        numbers={"sequences": state.sequences, "counted": ended, "uncounted": uncounted}
        | {"token": end},
        cost=_cost(summary, uncounted),
        advice="Let every sequence that ends count its end: take the mask from the lengths. If the "
        "id is also the padding, and a stop string ended these sequences, nothing is lost.",
        where=(str(state.first),),
    )


def _short(state: MaskState, end: int, short: int, told: str) -> Finding:
    return Finding(
        code=CODE,
        severity="note",
        certainty="likely",
        questions=(),
        claim=f"{told}, and {short} end sooner without it: their end is not among the counted "
        "tokens, or something else ended them.",
        numbers={"sequences": state.sequences, "counted": state.endings[end].sequences}
        | {"uncounted": short, "token": end},
        cost="Where the end is left out, the difference of two policies in how they end is not in "
        "the KL.",
        advice="If they ended by a stop string or a limit of their own, nothing is wrong; else "
        "count the end-of-text token in all sequences or in none.",
    )


def _cost(summary: Summary, uncounted: int) -> str:
    """What k1 of the first question would be with the ends that are not counted."""
    for question, whole in summary.questions.items():
        p, q = (summary.masks.left[role] for role in (question.p, question.q))
        n = p.count
        if question.weight == "none" and n == q.count and n >= uncounted and whole.tokens:
            without = whole.mean("k1")
            with_them = (whole.total("k1") + p.total - q.total) / (whole.tokens + n)
            return (
                f"With the {n} tokens behind {question} is {with_them:.4g} nats per token by k1, "
                f"without them {without:.4g}. {decided(without, with_them)}"
            ).rstrip()
    return (
        f"{uncounted} decisions to end are left out: of policies that differ in nothing else the "
        "KL comes out with the wrong sign or as 0."
    )
