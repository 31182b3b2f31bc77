"""Was a policy trained on the very tokens that judge it? Then it beats even its own samples."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.sampler_tests import (
    FITTED,
    FIXED,
    SamplerTest,
    cause,
    chance,
    failing,
    lead,
    sampler_tests,
)
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "in-sample"
TRAINED = "current"


def diagnose_in_sample(summary: Summary) -> Diagnosis:
    """A test that fails while the sampler is vouched for, and q too good for a policy fixed before.

    What no column shows is told as a check: whether current was logged before its update, or after.
    """
    tests = sampler_tests(summary)
    failed = failing(tests)
    found = [test for test in failed if cause(summary, test, failed) == CODE]
    accused = {(test.sampler, test.other) for test in found}
    bounds = [test for test in tests if test.kind == "bound" and test.other not in FIXED]
    asked = {(question.p, question.q) for question in summary.questions}
    checks = [
        _check(summary, test, (test.sampler, test.other) in accused)
        for test in bounds
        if (test.sampler, test.other) in asked
    ]
    return Diagnosis((_finding(summary, found),) if found else (), tuple(checks))


def _check(summary: Summary, test: SamplerTest, failed: bool) -> Check:
    gain, most, z = lead(summary, test)
    subject = str(Question(test.sampler, test.other))
    told = f"d = log {test.other} − log {test.sampler} is {gain:.3g} on average, ½ d² {most:.3g}"
    if failed:
        return Check(CODE, subject, "failed", f"{told}: {z:.1f} standard errors less")
    if test.other == TRAINED and most > 0:
        reason = (
            f"if {TRAINED} was logged after an update on these tokens, k1 and k3 are too low; log "
            "it before the update, or on held-out tokens"
        )
        return Check(CODE, subject, "not-possible", reason)
    return Check(CODE, subject, "passed", told)


def _finding(summary: Summary, found: list[SamplerTest]) -> Finding:
    worst = min(found, key=lambda test: test.log_p)
    gain, most, z = lead(summary, worst)
    pair = Question(worst.sampler, worst.other)
    others = sorted({test.other for test in found} - {worst.other})
    also = f" The same holds of {', '.join(others)}." if others else ""
    return Finding(
        code=CODE,
        severity="error",
        certainty="likely",
        questions=tuple(
            str(question)
            for question in summary.questions
            if question.sampler == worst.sampler
            and not {question.p, question.q}.isdisjoint({worst.other, *others})
        ),
        claim=(
            f"{worst.other} was fitted to these tokens: it finds them likelier than "
            f"{worst.sampler} does, by {gain:.4g} nats per token (probability at most "
            f"{chance(worst.log_p)} for a policy fixed before), while the entropy says that "
            f"{worst.sampler} sampled them. Had "
            f"{worst.other} sampled them itself, it would be about {most:.2g}.{also}"
        ),
        numbers={
            "gain": gain,
            "of_own_samples": most,
            "z": z,
            "log_p": worst.log_p,
            "tokens": worst.count,
            "needed_z": FITTED,
        },
        cost=f"k1 of {pair} is {-gain:.4g} here, and of fresh tokens it is 0 at least: training on "
        f"the batch took {gain:.3g} or more off it. {decided(-gain, 0.0)}",
        advice=f"Take the KL of fresh or held-out tokens, the exact KL at these prefixes, or "
        f"{worst.other} as it was before the update. If it was not trained on them, they were "
        f"sampled by another policy than {worst.sampler}.",
        where=tuple(
            str(token.place)
            for question, state in summary.questions.items()
            if (question.p, question.q, question.sampler) == (pair.p, pair.q, pair.p)
            for token in state.top_k1[:3]
        ),
    )
