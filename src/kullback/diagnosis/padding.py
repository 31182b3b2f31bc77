"""Is padding counted as tokens? Runs of one constant, or of one id, up to a common width."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.diagnosis.openings import opens_unscored
from kullback.estimation.padding_state import Inner, Kind, Runs
from kullback.estimation.summary import Summary

CODE = "mask-covers-padding"
CERTAIN = -0.01  # nats: above, a policy may go on with a token for as long as padding does
STOPPED = 0.05  # runs that stop within, per run to the edge: above, they are a policy's own
LONGER = 3.0  # times as long as those that stop are runs of padding, where ids do not tell
FEWEST_UNNAMED = 10  # sequences; below, runs of a token in doubt, without its id, prove nothing
WON = 10.0  # nats that a bet on a run has to win
FILLED = 0.95  # share of all rows that have a width to which padded ones were filled, at least
FEW_PADDED = 0.1  # share of rows below which a run of one constant may be a policy's own
FEW_OF_KNOWN = 0.01  # likewise, of an id that is masked elsewhere
WON_SCORED = 15.0  # nats that a bet on a run of an id has to win, whose log-probs differ


def diagnose_padding(summary: Summary) -> Diagnosis:
    """Rows padded to a common width, whose padding is counted."""
    constant = _constant(summary)
    return constant if constant.findings else _scored(summary) or constant


def _constant(summary: Summary) -> Diagnosis:
    """Padding that is one number in every row.

    A run of one constant proves nothing alone: an honest policy may repeat itself with certainty.
    Padding is one value (and one id) in a tenth of all rows, nearly every row has one of the few
    widths to which the others were filled, and no policy could have gone on as it does.
    """
    state = summary.padding
    kinds = sorted(state.runs.items(), key=lambda item: -item[1].sequences)
    if not kinds or not kinds[0][1].sequences:
        told = "no row begins or ends in a run of one constant"
        return Diagnosis.passed(CODE, "the dump", told)
    common = [
        (kind, runs)
        for kind, runs in kinds
        if _is_common(summary, kind, runs) and not _is_told(summary, kind)
    ]
    samplers = {question.sampler for question in summary.questions}
    padded = ((k, r) for k, r in common if _goes_on(summary, k, r, k[1] in samplers))
    found = next(padded, None)
    (side, role, value, identity), runs = found or kinds[0]
    told = f"{runs.sequences} of {state.sequences} sequences {side} in a run of one constant"
    if found is None:
        if runs.sequences < max(2, FEW_PADDED * state.sequences):
            return Diagnosis.passed(CODE, "the dump", f"{told}: too few for padding")
        told += ": padding, or a policy that repeats itself"
        return Diagnosis.not_possible(CODE, "the dump", told)
    known = side == "end" or identity is not None
    claim = (
        f"{told} ({value:g} for {role}), {runs.tokens} tokens in all, and they are of "
        f"{_widths(runs)}: {'padding' if known else 'padding (or a prompt, ids would tell)'} is "
        "counted as tokens."
    )
    return _found(summary, runs, side, identity, claim)


def _is_told(summary: Summary, kind: Kind) -> bool:
    """Whether it is told of as an opening that this role did not score, and others did."""
    side, role, _, identity = kind
    return side == "begin" and identity is None and opens_unscored(summary, role)


def pads_in_front(summary: Summary) -> bool:
    """Whether padding at the start of sequences is counted."""
    return any(one.numbers["side"] == "begin" for one in diagnose_padding(summary).findings)


def _found(summary: Summary, runs: Runs, side: str, identity: int | None, claim: str) -> Diagnosis:
    share = runs.tokens / max(column.tokens for column in summary.columns.values())
    finding = Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(str(question) for question in summary.questions),
        claim=claim,
        numbers={"sequences": runs.sequences, "tokens": runs.tokens, "share": share, "side": side}
        | ({} if identity is None else {"token": identity}),
        cost=f"{share:.0%} of all tokens are padding. Each adds to the count, and what stands "
        "there to the sum.",
        advice="Take the mask from the lengths, not from the place of the end-of-text token.",
        where=tuple(map(str, runs.places)),
    )
    return Diagnosis.failed(finding, "the dump", claim)


def _scored(summary: Summary) -> Diagnosis | None:
    """Padding that every role scored, each token by another number: a run of one id alone.

    The sampler's own log-probs say how often it can go on; a bet on more wins e^15 with a
    probability of e^−15.
    """
    state, samplers = summary.tails, {question.sampler for question in summary.questions}
    for (side, identity), tail in state.tails.items():
        runs = tail.runs
        known = summary.masks.behind.get(identity)
        share = FEW_OF_KNOWN if known and known.sequences >= FEWEST_UNNAMED else FEW_PADDED
        stopped = state.stopped(side, identity)
        stops = stopped if side == "end" else stopped + runs.sequences
        gains = {role: tail.gains[role] - stops * np.log(2) for role in samplers}
        role = max(gains, key=lambda one: gains[one])
        alone = runs.shapes.total() <= 2 * runs.sequences
        goes_on = alone and stopped <= STOPPED * runs.sequences and gains[role] >= WON_SCORED
        if goes_on and _fills(summary, runs, share):
            return _found(
                summary,
                runs,
                side,
                identity,
                f"{runs.sequences} of {summary.padding.sequences} sequences {side} in a run of id "
                f"{identity}, {runs.tokens} tokens in all, far more than {role} would bring by "
                f"its own log-probs (probability at most e^{-gains[role]:.3g}), and they are of "
                f"{_widths(runs)}: padding is counted as tokens.",
            )
    return None


def _fills(summary: Summary, runs: Runs, share: float) -> bool:
    """Whether enough rows have such a run, and nearly all rows one of their few widths."""
    state = summary.padding
    few = runs.sequences < max(2, share * state.sequences)
    wide = sum(state.widths[width] for width in runs.widths) < FILLED * state.sequences
    return not (few or wide or 2 * len(runs.widths) > runs.sequences)


def _is_common(summary: Summary, kind: Kind, runs: Runs) -> bool:
    known = _is_masked_elsewhere(summary, kind, runs)
    return _fills(summary, runs, FEW_OF_KNOWN if known else FEW_PADDED)


def _is_masked_elsewhere(summary: Summary, kind: Kind, runs: Runs) -> bool:
    """Whether other sequences have this id behind their mask, and no role scored it here."""
    side, _, _, identity = kind
    masked = summary.masks.behind.get(identity) if identity is not None else None
    if side != "end" or masked is None or masked.sequences < FEWEST_UNNAMED:
        return False
    constant = {
        role
        for (where, role, _, name), one in summary.padding.runs.items()
        if (where, name) == (side, identity) and one.sequences >= runs.sequences
    }
    return constant == set(summary.columns)


def _goes_on(summary: Summary, kind: Kind, runs: Runs, sampled: bool) -> bool:
    """Whether the runs go on to the edge as no policy's do.

    A policy in a small world may repeat itself: then its runs stop within the sequences too. And
    where it says that the token has the probability e^v, it goes on with that at most, whatever
    went before: a fixed bet on more wins e^10 with a probability of e^−10.
    """
    side, role, value, identity = kind
    state, column = summary.padding, summary.columns[role]
    inner = state.inner.get((role, value, identity), Inner(0, 0))
    far = ("end" if side == "begin" else "begin", role, value, identity)
    opposite = state.runs.get(far, Runs(Counter(), ()))
    stopped = inner.runs + opposite.sequences
    if runs.shapes.total() > 2 * runs.sequences:  # most rows are nothing else
        return False
    certain = value >= CERTAIN
    if stopped > STOPPED * runs.sequences:
        # Without ids other tokens of the same certainty are taken for these.
        lengths = (runs.tokens / runs.sequences, inner.tokens / max(inner.runs, 1))
        return identity is None and certain and lengths[0] >= LONGER * lengths[1]
    if _is_masked_elsewhere(summary, kind, runs):
        return True
    if certain:  # as a policy is that draws nothing, everywhere
        return column.size > -CERTAIN * (column.tokens - runs.tokens)
    if not sampled:  # what another role says of a token is no bound on how often it comes
        return False
    if identity is None:
        return runs.sequences >= FEWEST_UNNAMED
    stops = stopped if side == "end" else inner.runs + runs.sequences
    repeats = runs.repeats + inner.repeats + opposite.repeats
    # The bet: on (1 + e^v)/2 rather than e^v.
    return repeats * (np.log1p(np.exp(value)) - value - np.log(2)) - stops * np.log(2) >= WON


def _widths(runs: Runs) -> str:
    widths = sorted(runs.widths)
    return f"one width, {widths[0]}" if len(widths) == 1 else f"{len(widths)} widths only"
