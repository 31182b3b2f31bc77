"""Is every value in the mask a log-prob? Sentinels, gaps, padding, probabilities, infinities."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from kullback.columns import SENTINEL
from kullback.diagnosis.environment import unscored_inside
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.padding_state import Inner, Kind, Runs
from kullback.estimation.summary import Summary

FILLED = 0.95  # share of all rows that have a width to which padded ones were filled, at least
FEW_OF_KNOWN = 0.01  # likewise, of an id that is masked elsewhere
FEW_PADDED = 0.1  # share of rows below which a run of one constant may be a policy's own
CERTAIN = -0.01  # nats: above, a policy may go on with a token for as long as padding does
STOPPED = 0.05  # runs that stop within, per run to the edge: above, they are a policy's own
LONGER = 3.0  # times as long as those that stop are runs of padding, where ids do not tell
FEWEST_UNNAMED = 10  # sequences; below, runs of a token in doubt, without its id, prove nothing
WON = 10.0  # nats that a bet on a run has to win
ROUNDING = 0.01  # nats above 0 that low precision can leave in an honest log-softmax


def holds_log_probs(state: ColumnState) -> bool:
    """Whether the values can be logarithms of probabilities, or of densities.

    A log-prob of a token is never above 0 by more than rounding. That of a density can be, but if
    all lie between 0 and 1, and not at one value, they are probabilities.
    """
    if state.high <= ROUNDING:
        return True
    return not state.discrete and not 0 <= state.low < state.high <= 1


def diagnose_columns(summary: Summary) -> Diagnosis:
    """Look at the values of every role, at supports, and at runs of one constant."""
    total = Diagnosis()
    for detect in (_positive, _sentinel, _missing):
        found = {role: detect(summary, role, state) for role, state in summary.columns.items()}
        total += Diagnosis(_together(found), tuple(c for d in found.values() for c in d.checks))
    return total + _infinite(summary) + _padding(summary)


def _together(found: dict[str, Diagnosis]) -> tuple[Finding, ...]:
    """One finding for a fault that several roles share, where there is one thing to do about it."""
    shared: dict[str, dict[str, Finding]] = {}
    for role, diagnosis in found.items():
        for finding in diagnosis.findings:
            shared.setdefault(finding.advice, {})[role] = finding
    return tuple(_joined(by_role) for by_role in shared.values())


def _joined(by_role: dict[str, Finding]) -> Finding:
    (_, first), *others = by_role.items()
    if not others:
        return first
    everyone = by_role.values()
    return replace(
        first,
        claim=f"{first.claim} The same fault is in {', '.join(role for role, _ in others)}.",
        questions=tuple(dict.fromkeys(q for finding in everyone for q in finding.questions)),
        numbers={role: finding.numbers for role, finding in by_role.items()},
        where=tuple(place for finding in everyone for place in finding.where),
    )


def _touched(summary: Summary, role: str) -> tuple[str, ...]:
    return tuple(str(question) for question in summary.questions if role in question.roles)


def _checked(code: str, subject: str, finding: Finding | None, reason: str) -> Diagnosis:
    status = "passed" if finding is None else "failed"
    check = Check(code, subject, status, reason)
    return Diagnosis((finding,) if finding else (), (check,))


def _positive(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code = "not-log-probs"
    reason = f"the largest value is {state.high:.3g}; {state.positive} of {state.tokens} above 0"
    if not state.tokens:
        return Diagnosis((), (Check(code, role, "not-possible", "no token is inside the mask"),))
    if holds_log_probs(state):
        if state.high > ROUNDING:
            reason += ": right for a density, wrong for a token; log tokens to tell"
            return Diagnosis((), (Check(code, role, "not-possible", reason),))
        return _checked(code, role, None, reason)
    if state.low >= 0 and state.high <= 1:
        what = f"The values of {role} lie between 0 and 1: they are probabilities."
        advice = "Take their logarithm when they are logged."
    elif state.low >= 0:
        what = f"No value of {role} is below 0: they look like −log p."
        advice = "Turn their sign when they are logged."
    else:
        what = f"{state.positive} values of {role} are above 0, the largest {state.high:.3g}."
        advice = "Look for unnormalized logits or a wrong column."
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain" if state.discrete else "likely",
        questions=_touched(summary, role),
        claim=f"{what} A log-probability of a token is never above 0.",
        numbers={"positive": state.positive, "tokens": state.tokens, "largest": state.high},
        cost="No estimate that uses them means anything.",
        advice=advice,
        where=_places(state, "positive"),
    )
    return _checked(code, role, finding, reason)


def _sentinel(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "sentinel-inside-mask", f"{state.sentinel} values of −9999"
    if not state.sentinel or _elsewhere(summary, role, "sentinel") == 0:
        return _checked(code, role, None, reason)
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=_touched(summary, role),
        claim=f"{state.sentinel} of {state.tokens} log-probs of {role} are −9999: the engine had "
        "none there, or clamped a −inf.",
        numbers={"sentinels": state.sentinel, "tokens": state.tokens},
        cost="They are left out and counted here. A trainer that averages them in is off by "
        f"{-SENTINEL * state.sentinel / state.tokens:.3g} nats per token: every stop rule fires, "
        "or none does.",
        advice="Ask the engine for the sampled token's log-prob always, or mask these tokens.",
        where=_places(state, "sentinel"),
    )
    return _checked(code, role, finding, reason)


def _missing(summary: Summary, role: str, state: ColumnState) -> Diagnosis:
    code, reason = "missing-values", f"{state.nan} values not logged"
    if not state.nan or _elsewhere(summary, role, "missing") == 0:
        return _checked(code, role, None, reason)
    cut = ", all at the end of their sequence: what was scored there is shorter than the mask"
    cut = cut if state.nan_trailing == state.nan else ""
    finding = Finding(
        code=code,
        severity="warning",
        certainty="certain",
        questions=_touched(summary, role),
        claim=f"{state.nan} of {state.tokens} log-probs of {role} in the mask are missing{cut}.",
        numbers={"missing": state.nan, "trailing": state.nan_trailing, "tokens": state.tokens},
        cost="They are left out and counted. If the gaps depend on what was sampled, the rest is "
        "a selected sample.",
        advice="Log them, or mask the tokens on purpose and say by which rule.",
        where=_places(state, "nan"),
    )
    return _checked(code, role, finding, reason)


def _elsewhere(summary: Summary, role: str, fault: str) -> int:
    """Such values that another finding does not speak of: that of another's turn in the mask."""
    if not unscored_inside(summary, role):
        return 1
    counts = {"missing": summary.columns[role].nan, "sentinel": summary.columns[role].sentinel}
    return counts[fault] - int(getattr(summary.stretches[role], fault))


def _places(state: ColumnState, fault: str) -> tuple[str, ...]:
    return (str(state.first[fault]),) if fault in state.first else ()


def _infinite(summary: Summary) -> Diagnosis:
    code = "infinite-ratio"
    counts = {str(question): state.infinite for question, state in summary.questions.items()}
    checks = tuple(
        Check(code, question, "failed" if count else "passed", f"{count} tokens outside a support")
        for question, count in counts.items()
    )
    hit = {question: count for question, count in counts.items() if count}
    if not hit:
        return Diagnosis((), checks)
    worst = max(hit, key=lambda question: hit[question])
    finding = Finding(
        code=code,
        severity="error",
        certainty="certain",
        questions=tuple(hit),
        claim=f"At {hit[worst]} tokens of {worst} a policy that should give the token "
        "some probability gives none (a log-prob of −inf), or a log-prob is +inf.",
        numbers=hit,
        cost="The KL is infinite, and no finite estimate stands for it.",
        advice="Score with the same sampling mask on both sides, or with none; look for masked "
        "logits and for ids outside a vocabulary.",
        where=tuple(
            place
            for state in summary.columns.values()
            for place in _places(state, "negative_infinite")
        ),
    )
    return Diagnosis((finding,), checks)


def _padding(summary: Summary) -> Diagnosis:
    """Rows padded to a common width, whose padding is counted.

    A run of one constant proves nothing alone: an honest policy may repeat itself with certainty.
    Padding is one value (and one id) in a tenth of all rows, nearly every row has one of the few
    widths to which the others were filled, and no policy could have gone on as it does.
    """
    code, state = "mask-covers-padding", summary.padding
    kinds = sorted(state.runs.items(), key=lambda item: -item[1].sequences)
    if not kinds or not kinds[0][1].sequences:
        return _checked(code, "the dump", None, "no row begins or ends in a run of one constant")
    common = [(kind, runs) for kind, runs in kinds if _is_common(summary, kind, runs)]
    samplers = {question.sampler for question in summary.questions}
    padded = ((k, r) for k, r in common if _goes_on(summary, k, r, k[1] in samplers))
    (side, role, value, identity), runs = found = next(padded, kinds[0])
    told = f"{runs.sequences} of {state.sequences} sequences {side} in a run of one constant"
    if found not in common or not _goes_on(summary, found[0], runs, role in samplers):
        few = runs.sequences < max(2, FEW_PADDED * state.sequences)
        status, why = ("passed", "too few for padding") if few else (
            "not-possible", "padding, or a policy that repeats itself"
        )  # fmt: skip
        return Diagnosis((), (Check(code, "the dump", status, f"{told}: {why}"),))
    share = runs.tokens / max(column.tokens for column in summary.columns.values())
    finding = Finding(
        code=code,
        severity="error",
        certainty="likely",
        questions=tuple(str(question) for question in summary.questions),
        claim=f"{told} ({value:g} for {role}), {runs.tokens} tokens in all, and they are of "
        f"{_widths(runs)}: padding is counted as tokens.",
        numbers={"sequences": runs.sequences, "tokens": runs.tokens, "share": share}
        | ({} if identity is None else {"token": identity}),
        cost=f"{share:.0%} of all tokens are padding. Each adds to the count, and what stands "
        "there to the sum.",
        advice="Take the mask from the lengths, not from the place of the end-of-text token.",
        where=tuple(map(str, runs.places)),
    )
    return _checked(code, "the dump", finding, told)


def _is_common(summary: Summary, kind: Kind, runs: Runs) -> bool:
    """Whether enough rows have such a run, and rows have few widths."""
    state, share = summary.padding, FEW_PADDED
    if _is_masked_elsewhere(summary, kind, runs):
        share = FEW_OF_KNOWN
    few = runs.sequences < max(2, share * state.sequences)
    wide = sum(state.widths[width] for width in runs.widths) < FILLED * state.sequences
    return not (few or wide or 2 * len(runs.widths) > runs.sequences)


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
