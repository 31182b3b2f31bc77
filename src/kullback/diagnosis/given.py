"""Were tokens given rather than drawn? What is said again in words that the sampler doubts."""

from __future__ import annotations

from collections.abc import Mapping

from kullback.diagnosis.finding import Check, Finding
from kullback.diagnosis.padding import pads_in_front
from kullback.diagnosis.sampler_tests import SamplerTest, chance, sampled_by
from kullback.estimation.opening_state import SharedState
from kullback.estimation.recall_state import BEHIND, DEAR
from kullback.estimation.summary import Summary

GIVEN = ("openings", "recall")  # the tests that such tokens fail
GIVEN_CODES = {"prompt": "mask-covers-prompt", "environment": "mask-covers-environment"}
FEWEST_BETS = 20  # tokens; below, nothing is said again, and nothing is told
COST = (
    "No policy chose them, so no KL of the policies is in them: each adds its own difference to "
    "the sum, and one to the count."
)


def given_findings(summary: Summary, causes: Mapping[SamplerTest, str]) -> list[Finding]:
    """One finding for each sampler whose tests say that tokens were given."""
    found: dict[str, Finding] = {}
    for test, cause in causes.items():
        if cause == "prompt" and pads_in_front(summary):
            continue  # which is told of, and is the same one everywhere
        if cause in GIVEN_CODES and test.kind in GIVEN:
            name = _prompt_finding if test.kind == "openings" else _recall_finding
            found.setdefault(test.sampler, name(summary, test, GIVEN_CODES[cause]))
    return list(found.values())


def told(test: SamplerTest) -> str:
    """What one of these tests found, in a sentence."""
    if test.kind == "openings":
        return (
            f"pairs of sequences that begin alike do so at {test.mean:.3g} nats on average; "
            f"probability at most {chance(test.log_p)} over all {test.count} pairs"
        )
    return (
        f"bets that tokens follow the {BEHIND} before them as they did before came to "
        f"e^{test.mean * test.count:.3g}, at {test.count} tokens"
    )


def unseen(summary: Summary, role: str, tests: tuple[SamplerTest, ...]) -> tuple[Check, ...]:
    """The check that is not possible where nothing is said again, or no id tells what is."""
    bets = [one.count for one in tests if (one.sampler, one.kind) == (role, "recall")]
    if bets and bets[0] >= FEWEST_BETS:
        return ()
    why = "no ids are logged"
    if bets:
        why = f"only {bets[0]} tokens stand behind words that were there before"
    elif role in summary.recalls:
        why = "its column holds something else, or what is left was selected"
    reason = f"{why}: a prompt or another's turn in the mask that every role scored cannot be told"
    return (Check("mask-covers-environment", role, "not-possible", f"{reason}; log tokens"),)


def _shared(state: SharedState, test: SamplerTest) -> dict[str, float]:
    return {
        "pairs": state.pairs,
        "alike": state.alike,
        "tokens": state.tokens,
        "surprise": state.surprise,
        "log_p": test.log_p,
    }


def _prompt_finding(summary: Summary, test: SamplerTest, code: str) -> Finding:
    state = summary.shared[test.sampler]
    return Finding(
        code=code,
        severity="error",
        certainty="beyond-chance",
        questions=tuple(str(question) for question in summary.questions),
        claim=(
            f"{state.alike} of {state.pairs} pairs of sequences begin alike, with "
            f"{state.tokens / state.alike:.1f} tokens or more on average to which {test.sampler} "
            f"gives e^−{test.mean:.3g}. Sampled, they would with a probability of at most "
            f"{chance(test.log_p)}. So these tokens were given: a prompt, a template or a forced "
            "beginning is counted."
        ),
        numbers=_shared(state, test),
        cost=COST,
        advice="Let the mask begin at the first token that was sampled. If these were sampled, "
        "look for one seed, or temperature 0, behind several completions.",
        where=(str(state.first),),
    )


def _recall_finding(summary: Summary, test: SamplerTest, code: str) -> Finding:
    state = summary.recalls[test.sampler]
    where = "at the start" if code == "mask-covers-prompt" else "behind the start"
    what = (
        "a prompt, a template or a forced beginning"
        if code == "mask-covers-prompt"
        else "another's turn, a tool's answer or a template"
    )
    return Finding(
        code=code,
        severity="error",
        certainty="beyond-chance",
        questions=tuple(map(str, summary.questions)),
        claim=(
            f"In {state.sequences} sequences, {where}, tokens follow the {BEHIND} before them as "
            f"they did before, though {test.sampler} gives {state.dearer} of them less than "
            f"e^−{DEAR:g} each. Had it sampled them, bets on that would win so much with a "
            f"probability of at most {chance(test.log_p)}. So they were given: {what} is counted."
        ),
        numbers={
            "test": "recall",
            "bets": state.bets,
            "log_p": test.log_p,
            "dear": state.dearer,
            "sequences": state.sequences,
        },
        cost=COST,
        advice="Let the mask cover what was sampled alone: take it from the roles of the turns. If "
        "these were sampled, look for one seed, or temperature 0, behind several completions.",
        where=tuple(str(place) for _, place in state.first),
    )


def alike_finding(summary: Summary, test: SamplerTest) -> Finding:
    """A sampler that says the same again too often, which a prompt alone does not explain."""
    if test.kind == "openings":
        state = summary.shared[test.sampler]
        claim = (
            f"{state.alike} of {state.pairs} pairs of sequences begin alike, with {state.tokens} "
            f"tokens in all that {test.sampler} gives a surprise of {state.surprise:.4g} nats. "
            f"Drawn one by one, they would with a probability of at most {chance(test.log_p)}."
        )
        numbers, where = _shared(state, test), (str(state.first),)
    else:
        recall = summary.recalls[test.sampler]
        claim = (
            f"Tokens follow the {BEHIND} before them as they did before more often than "
            f"{test.sampler} gives: bets on that would win so much with a probability of at most "
            f"{chance(test.log_p)}."
        )
        numbers = {"bets": float(recall.bets), "log_p": test.log_p}
        where = tuple(str(place) for _, place in recall.first)
    return Finding(
        code="sampler-mismatch",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, test.sampler),
        claim=f"{claim} The direction fits a lower temperature or a truncation, one seed for "
        "several, or words that were given (a prompt, a template) in some of them.",
        numbers={"test": test.kind} | numbers,
        cost="k1 and k3 answer for another policy than the one that is named, or their errors "
        "count one draw as several.",
        advice="Log the processed log-probs (after temperature, top-p and top-k); give each "
        "completion its own seed; mask what was given.",
        where=where,
    )
