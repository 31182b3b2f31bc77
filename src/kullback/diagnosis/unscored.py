"""Log-probs that a role never computed: a whole column of zeros, or the last token of sequences."""

from __future__ import annotations

from math import exp

from kullback.diagnosis.doubt import DOUBTED, doubted_by_a_copy, doubting, means_of
from kullback.diagnosis.environment import unscored_inside
from kullback.diagnosis.finding import Diagnosis, Finding, without
from kullback.diagnosis.openings import NEARLY_ALL, SELDOM, opens_unscored
from kullback.estimation.opening_state import OpeningState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "missing-values"
FEWEST = 20  # sequences, or tokens; below, chance can do it
FEWEST_ROWS = 3  # sequences of zeros
FEWEST_ZEROS = 20  # scattered ones, likewise
MISSED = 0.1  # share of the misses that a certain role would have had, below which it is none
SURER = 10.0  # times as far from 0 are the others there as where the role is nearly certain
DREW = -1.0  # nats: a sampler that kept one token of several has 0, and its copy no less than this


def never_scored(summary: Summary, role: str) -> bool:
    """Whether all log-probs of a role are 0 where another role is in doubt.

    Another constant may be a uniform policy; certain of all that another one draws with doubt no
    policy is.
    """
    state = summary.columns[role]
    if not (state.low == state.high == 0 and state.tokens >= FEWEST):
        return False
    others = (one for other, one in summary.columns.items() if other != role)
    return any(-one.size / one.tokens < DOUBTED for one in others if one.tokens)


def rows_unscored(summary: Summary, role: str) -> int:
    """How many whole sequences of a role are zeros, where it is hardly ever certain else.

    Of the sampler nothing is told: drawn at temperature 0, a sequence has log-probs of 0.
    """
    state = summary.openings[role]
    states = summary.questions.items()
    blank = max((s.related.blank for q, s in states if role == q.q != q.sampler), default=0)
    seldom = state.elsewhere < SELDOM * state.scored
    return blank if blank >= FEWEST_ROWS and seldom and state.sequences else 0


def closes_unscored(summary: Summary, role: str) -> bool:
    """Whether sequences end with log-probs of 0 for this role, hardly any other, and others doubt.

    What ends nearly every sequence is one id, of which a policy may be nearly certain; but then
    the others are not in doubt, and its log-prob is seldom 0 to the last digit.
    """
    state, column = summary.closings[role], summary.columns[role]
    if state.opened < FEWEST or column.nan or column.sentinel:
        return False
    means, seldom = doubting(state), state.elsewhere < SELDOM * state.scored
    nearly_all = state.opened >= NEARLY_ALL * state.sequences
    return bool(means) and seldom and (nearly_all or doubted_by_a_copy(role, means))


def zeros_doubted(summary: Summary, role: str) -> dict[str, float]:
    """What the others give where a role's log-prob is 0 to the last digit, if it is no certainty.

    Where a role is certain, what else is drawn has no probability; and the sampler says how often
    something else is. The sampler itself may have drawn from a set of one token, which its copy
    then finds the likeliest, and who doubts what it is certain of doubts what it is nearly.
    """
    state = summary.certain[role]
    means = means_of(state.at_zeros, state.zeros)
    if state.zeros < FEWEST_ZEROS or not means or max(means.values()) >= DOUBTED:
        return {}
    if all(question.sampler != role for question in summary.questions):
        expected = state.zeros * (1 - exp(max(means.values())))
        return means if state.far < MISSED * expected else {}
    near = means_of(state.at_near, state.near)
    copies = {
        other: mean
        for other, mean in means.items()
        if doubted_by_a_copy(role, {other: mean}) and mean < DREW
    }
    return {} if any(m > SURER * near.get(one, 0.0) for one, m in copies.items()) else copies


def holds_zeros(summary: Summary, role: str) -> bool:
    """Whether zeros stand in the column that are no log-probs, wherever that is told."""
    kinds = (never_scored, rows_unscored, closes_unscored, zeros_doubted)
    return any(kind(summary, role) for kind in kinds)


def _told_else(summary: Summary, role: str) -> bool:
    """Whether what stands at the start or in the middle is told of as a prompt or a turn."""
    return opens_unscored(summary, role) or unscored_inside(summary, role)


def diagnose_unscored(summary: Summary) -> Diagnosis:
    """Zeros in place of log-probs: in a whole column, or at the end of sequences."""
    found = Diagnosis()
    for role, state in summary.columns.items():
        closing = summary.closings[role]
        if never_scored(summary, role):
            told = f"all {state.tokens} log-probs are 0"
            found += Diagnosis.failed(_never(summary, role), role, told)
        elif rows := rows_unscored(summary, role):
            told = f"{rows} sequences have log-probs of 0 throughout"
            found += Diagnosis.failed(_rows(summary, role, rows), role, told)
        elif closes_unscored(summary, role):
            told = f"{closing.opened} of {closing.sequences} sequences end in a log-prob of 0"
            found += Diagnosis.failed(_last(summary, role, closing), role, told)
        elif (means := zeros_doubted(summary, role)) and not _told_else(summary, role):
            told = f"{summary.certain[role].zeros} log-probs are 0 where others are in doubt"
            found += Diagnosis.failed(_zeros(summary, role, means), role, told)
    return found


def _never(summary: Summary, role: str) -> Finding:
    tokens = summary.columns[role].tokens
    return Finding(
        code=CODE,
        severity="error",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"All {tokens} log-probs of {role} are 0, where the other roles are in doubt: they "
        "were never computed, and the column holds what it was made with.",
        numbers={"tokens": tokens},
        cost=f"Every number with {role} is that of the other role alone: its k1 is the other's "
        "mean log-prob, with either sign.",
        advice=f"Look whether the pass of {role} ran at all (a coefficient of 0 may skip it), and "
        "log nothing where it did not.",
    )


def _rows(summary: Summary, role: str, rows: int) -> Finding:
    return Finding(
        code=CODE,
        severity="error",
        certainty="certain",
        questions=summary.asked_of(role),
        claim=f"{rows} sequences have log-probs of 0 for {role} from end to end, where the sampler "
        f"is in doubt, and {role} is hardly ever certain of a token else: they were never "
        "computed.",
        numbers={"sequences": rows},
        cost="In these sequences every number is that of the other role alone.",
        advice=f"Look for a worker or a micro-batch that skipped the pass of {role} (rows behind "
        "the last full batch, a rank that failed), and log nothing where it did not run.",
    )


def _last(summary: Summary, role: str, state: OpeningState) -> Finding:
    means = doubting(state)
    other = max(means, key=lambda one: means[one])
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"{state.opened} of {state.sequences} sequences end in a log-prob of 0 for {role}, "
        f"{state.tokens / state.opened:.3g} tokens each on average, to which {other} gives "
        f"{means[other]:.3g} nats on average, and hardly any other token has one: {role} did not "
        "score them, or they were not sampled (a forced end, padding).",
        numbers={
            "sequences": state.opened,
            "tokens": state.tokens,
            "elsewhere": state.elsewhere,
            "means": means,
        },
        cost=_cost(summary, role, other, state),
        advice="T logits score T − 1 tokens behind the first: take the logits from the position "
        "before the first answered token on, and do not fill up with 0. Look for a shorter limit "
        "on one side. Or mask these tokens on all sides.",
        where=(str(state.first),),
    )


def _zeros(summary: Summary, role: str, means: dict[str, float]) -> Finding:
    state = summary.certain[role]
    other = max(means, key=lambda one: means[one])
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"{state.zeros} log-probs of {role} are 0 to the last digit where the others are in "
        f"doubt: {other} gives these tokens {means[other]:.3g} nats on average. Were {role} "
        "certain of them, it would miss as often. So it did not score these, or its log-probs lack "
        "their normalizer (logits less the largest).",
        numbers={"tokens": state.zeros, "means": means},
        cost=f"At {state.zeros / summary.columns[role].tokens:.2%} of the tokens every number with "
        f"{role} is that of the other role alone.",
        advice="Log nothing where nothing was computed, and mask what was not sampled; log the "
        "output of a log-softmax over the whole vocabulary.",
        where=(str(state.first),),
    )


def _cost(summary: Summary, role: str, other: str, state: OpeningState) -> str:
    theirs = state.others[other]
    whole = summary.questions.get(Question(other, role))
    if whole is None or whole.tokens <= theirs.count:
        return "Each adds all of the other role's log-prob to a sum."
    rest = (whole.total("k1") - theirs.total) / (whole.tokens - theirs.count)
    return without(whole.question, whole.mean("k1"), rest)
