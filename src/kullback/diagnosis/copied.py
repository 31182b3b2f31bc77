"""Are two columns one, to the last digit? Then the KL between them is 0, and says nothing."""

from __future__ import annotations

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary

CODE = "precision-floor"
FEWEST = 100  # tokens; fewer may be equal because the policies are certain of them


def diagnose_copies(summary: Summary) -> Diagnosis:
    """Tell of pairs that are equal at every token: one weight, one evaluation, or a copy.

    Nobody is accused: at the first step the reference is the policy, and a trainer may take the
    engine's log-probs for its own.
    """
    equal = {
        question: state
        for question, state in summary.questions.items()
        if _is_equal(summary, state) and not _began(summary)
    }
    if not equal:
        return Diagnosis()
    pairs = dict.fromkeys(f"{question.q} and {question.p}" for question in equal)
    tokens = max(state.tokens for state in equal.values())
    finding = Finding(
        code=CODE,
        severity="note",
        certainty="certain",
        questions=tuple(map(str, equal)),
        claim=(
            f"The log-probs of {', of '.join(pairs)} are equal to the last digit at all {tokens} "
            "tokens. Two programs, or two sets of weights, never are: one is a copy of the other, "
            "or both are one evaluation."
        ),
        numbers={str(question): state.tokens for question, state in equal.items()},
        cost="A KL of 0 between them tells nothing, and a penalty or a limit on it does nothing.",
        advice="At the first step reference and policy are one, and that is right. Later look "
        "whether the reference is the policy itself (an adapter that is not switched off, one "
        "module for both). A trainer that takes the engine's log-probs for its own cannot see "
        "what lies between the two: score them once again.",
    )
    return Diagnosis.failed(finding, ", ".join(pairs), finding.claim)


def _is_equal(summary: Summary, state: QuestionState) -> bool:
    """Whether the two are equal throughout, and are in doubt of some tokens more than of others."""
    column = summary.columns[state.question.q]
    unsound = state.missing or state.infinite or column.low == column.high
    return state.tokens >= FEWEST and state.size_k1 == 0 and not unsound


def _began(summary: Summary) -> bool:
    """Whether all that is there is known to be of the first step."""
    state = next(iter(summary.questions.values()))
    return sum(summary.start.sequences.values()) >= state.sequences
