"""Do the log-probs of two roles belong to the same tokens? Columns of other rows do not."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.sampler_tests import (
    SamplerTest,
    cause,
    chance,
    compared,
    failing,
    partly_alien,
    sampler_tests,
)
from kullback.diagnosis.soundness import unfit
from kullback.estimation.related_rows import APART, NEAR
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "misaligned"


def diagnose_misaligned(summary: Summary) -> Diagnosis:
    """A bet on q that an honest sampler would not lose, and log-probs hardly correlated.

    Correlation alone accuses nobody: two policies may have nothing in common. The bet alone may
    speak of the sampler. Whoever holds log-probs of other tokens fails both.
    """
    tests = sampler_tests(summary)
    failed = failing(tests)
    bets = [test for test in tests if test.kind == "bet"]
    found = [bet for bet in bets if bet in failed and cause(summary, bet, failed) == CODE]
    checks = [_check(summary, bet, bet in found) for bet in bets]
    tested = {(bet.sampler, bet.other) for bet in bets}
    for question in summary.questions:
        pair = (question.sampler, question.q)
        if question.q != question.sampler and pair not in tested:
            reason = unfit(summary, question)
            checks.append(Check(CODE, str(Question(*pair)), "not-possible", reason))
            tested.add(pair)
    finding = (
        (_finding(summary, found, [bet for bet in bets if bet not in found]),) if found else ()
    )
    return Diagnosis(finding, tuple(checks))


def _check(summary: Summary, bet: SamplerTest, failed: bool) -> Check:
    reason = (
        f"the log-probs correlate by {compared(summary, bet).correlation:.2f}; a bet of a tenth on "
        f"{bet.other} at each token gained e^{bet.mean * bet.count:.3g}"
    )
    pair = str(Question(bet.sampler, bet.other))
    return Check(CODE, pair, "failed" if failed else "passed", reason)


def _finding(summary: Summary, found: list[SamplerTest], sound: list[SamplerTest]) -> Finding:
    worst = min(found, key=lambda bet: bet.log_p)
    pair, state = Question(worst.sampler, worst.other), compared(summary, worst)
    near, rows, partly = state.correlation, state.related, partly_alien(summary, worst)
    role = _suspect(found, sound)
    who = f"those of {role} belong" if role else "one side's belong"
    spoiled = [
        question
        for question in summary.questions
        if role in question.roles
        or any({bet.sampler, bet.other} <= set(question.roles) for bet in found)
    ]
    where = f" in {rows.apart} of {rows.told} sequences" if partly else ""
    how = f"by less than {APART:g} there, and in {rows.near} others by {NEAR:g} or more"
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(map(str, spoiled)),
        claim=(
            f"The log-probs of {pair.p} and {pair.q} are not of the same tokens{where}: they "
            f"correlate {how if partly else f'by {near:.2f}'}, and {pair.q} finds likely what "
            f"{pair.p} found unlikely more often than it could if {pair.p} had sampled "
            f"(probability at most {chance(worst.log_p)}). So {who} to other rows or "
            "tokens, or are not log-probs."
        ),
        numbers={
            "correlation": near,
            "log_p": worst.log_p,
            "tokens": worst.count,
            "sequences_apart": rows.apart,
            "sequences": rows.told,
            "pairs": [str(Question(bet.sampler, bet.other)) for bet in found],
        },
        cost="The mean of k1 is about what it would be, for order does not change a sum; k2, k3, "
        "the weights, the error and every ratio of two tokens mean nothing.",
        advice="Join the columns by the id of the row, not by its place: look for a shuffle, a "
        "filter or a sort between the two passes, for rows left out of one or scored by another "
        "worker, and for padding on the other side. If they are "
        f"of the same tokens, {pair.p} did not sample these.",
        where=(str(rows.first),)
        if partly
        else tuple(str(token.place) for token in state.top_k1[:3]),
    )


def _suspect(found: list[SamplerTest], sound: list[SamplerTest]) -> str:
    """The role that all misaligned pairs share and no sound one has; nothing if that is not one."""
    shared = set.intersection(*({bet.sampler, bet.other} for bet in found))
    shared -= {role for bet in sound for role in (bet.sampler, bet.other)}
    return shared.pop() if len(shared) == 1 else ""
