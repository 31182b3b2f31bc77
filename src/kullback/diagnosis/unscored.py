"""Log-probs that a role never computed: a whole column of zeros, or the last token of sequences."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding, without
from kullback.diagnosis.openings import DOUBTED, NEARLY_ALL, SELDOM
from kullback.estimation.opening_state import OpeningState
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "missing-values"
FEWEST = 20  # sequences, or tokens; below, chance can do it
FEWEST_ROWS = 3  # sequences of zeros


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
    """Whether nearly all sequences end with a log-prob of 0 for this role alone, hardly any other.

    What ends nearly every sequence is one id, of which a policy may be nearly certain; but then
    the others are not in doubt, and its log-prob is seldom 0 to the last digit.
    """
    state, column = summary.closings[role], summary.columns[role]
    if state.opened < max(FEWEST, NEARLY_ALL * state.sequences):
        return False
    if column.nan or column.sentinel or state.elsewhere >= SELDOM * state.scored:
        return False
    return bool(state.means) and max(state.means.values()) < DOUBTED


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
    means = state.means
    other = max(means, key=lambda one: means[one])
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=summary.asked_of(role),
        claim=f"In {state.opened} of {state.sequences} sequences the last counted token has a "
        f"log-prob of 0 for {role} ({other} gives it {means[other]:.3g} nats on average), and "
        f"hardly any other has: {role} did not score it, or it was forced.",
        numbers={
            "sequences": state.opened,
            "tokens": state.tokens,
            "elsewhere": state.elsewhere,
            "means": means,
        },
        cost=_cost(summary, role, other, state),
        advice="T logits score T − 1 tokens behind the first: take the logits from the position "
        "before the first answered token on, and do not fill up with 0; or mask the last token of "
        "each sequence on all sides.",
        where=(str(state.first),),
    )


def _cost(summary: Summary, role: str, other: str, state: OpeningState) -> str:
    theirs = state.others[other]
    whole = summary.questions.get(Question(other, role))
    if whole is None or whole.tokens <= theirs.count:
        return "Each adds all of the other role's log-prob to a sum."
    rest = (whole.total("k1") - theirs.total) / (whole.tokens - theirs.count)
    return without(whole.question, whole.mean("k1"), rest)
