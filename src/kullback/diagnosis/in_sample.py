"""Was a policy trained on the very tokens that judge it? Then it beats even its own samples."""

from __future__ import annotations

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.sampler_tests import (
    FITTED,
    SamplerTest,
    cause,
    chance,
    failing,
    lead,
    sampler_tests,
    unfit,
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
    checks = [
        Check(CODE, str(Question(t.sampler, t.other)), "failed", _told(summary, t)) for t in found
    ]
    accused = {(test.sampler, test.other) for test in found}
    checks += [_unknown(q) for q in summary.questions if _moved(summary, q, accused)]
    return Diagnosis((_finding(summary, found),) if found else (), tuple(checks))


def _told(summary: Summary, test: SamplerTest) -> str:
    gain, most, z = lead(summary, test)
    return (
        f"log {test.other} − log {test.sampler} is {gain:.4g} on average; of tokens that "
        f"{test.other} sampled itself it would be about {most:.3g} ({z:.1f} standard errors less)"
    )


def _moved(summary: Summary, question: Question, accused: set[tuple[str, str]]) -> bool:
    """Whether current is set against the policy that sampled, and is another one by now."""
    state = summary.questions[question]
    return (
        question.q == TRAINED
        and question.p == question.sampler
        and (question.p, question.q) not in accused
        and not unfit(summary, question)
        and state.total("raw_k2") > 0
    )


def _unknown(question: Question) -> Check:
    reason = (
        f"{TRAINED} is not {question.p}: if it was logged after an update on these tokens, k1 and "
        "k3 are too low, and no column shows it; log it before the update, or on held-out tokens"
    )
    return Check(CODE, str(question), "not-possible", reason)


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
            f"{worst.other} was fitted to these tokens: it finds them likelier than {worst.sampler} "
            f"does, by {gain:.4g} nats per token (probability at most {chance(worst.log_p)} for a "
            f"policy fixed before), while the entropy says that {worst.sampler} sampled them. Had "
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
        f"the batch took {gain:.3g} or more off it. {decided(-gain, 0.0)} A stop rule on this "
        "number fires too late.",
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
