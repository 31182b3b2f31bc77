"""Is the sampler who it is said to be? What its tests say, and what they cannot."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.given import (
    FEWEST_BETS,
    GIVEN,
    GIVEN_CODES,
    alike_finding,
    given_findings,
    told,
    unseen,
)
from kullback.diagnosis.recovered import recovered
from kullback.diagnosis.rejected import cut_by_rejection
from kullback.diagnosis.sampler_tests import (
    FEWEST_CLUSTERS,
    FEWEST_PREFIXES,
    SamplerTest,
    cause,
    chance,
    failing,
    sampled_by,
    sampler_tests,
)
from kullback.diagnosis.scaled import spoken_factor
from kullback.diagnosis.soundness import REJECTED, scored
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.estimation.summary import Summary
from kullback.question import Question

KINDS = ("bound", "bet", "entropy", "heads", "tempering", "cut", "openings", "recall")
OTHER_POLICY = (
    "k1 and k3 answer for another policy than the one that is named; more data does not help."
)


@dataclass(frozen=True, slots=True)
class SamplerCheck:
    """What the sampled tokens of one question say of its sampler.

    Args:
        log_bound: Log of the largest probability that sums so low can have under the sampler.
        missing_mass: 1 − mean(q/s): the mass of q that was not seen. It accuses nobody: holes on
            either side give it either sign under an honest sampler.
        standard_error: Its clustered standard error.
        z: Missing mass in standard errors; None where the error is 0.
        entropy_z: mean(−log s − H) in standard errors; None where it is not testable.
        verdict: ``accused``, ``consistent`` or ``not-verifiable``.
    """

    log_bound: float
    missing_mass: float
    standard_error: float
    z: float | None
    entropy_z: float | None
    verdict: str


def sampler_check(summary: Summary, question: Question) -> SamplerCheck:
    """The sampler check of one question."""
    tests = sampler_tests(summary)
    mine = [test for test in tests if test.sampler == question.sampler]
    bounds = [test.log_p for test in mine if test.kind == "bound"]
    entropy = [test.z for test in mine if test.kind == "entropy"]
    # The head test alone is weak against top-p: it can accuse, and cannot vouch.
    verdict = "consistent" if entropy else "not-verifiable"
    failed = failing(tests)
    mine = [test for test in failed if cause(summary, test, failed) == "sampler"]
    if any(test.sampler == question.sampler for test in mine):
        verdict = "accused"
    mass, error = _missing_mass(summary.questions[question])
    return SamplerCheck(
        log_bound=min(bounds, default=0.0),
        missing_mass=mass,
        standard_error=error,
        z=mass / error if error > 0 else None,
        entropy_z=entropy[0] if entropy else None,
        verdict=verdict,
    )


def _missing_mass(state: QuestionState) -> tuple[float, float]:
    if state.infinite:  # the tokens left out have q/s = 0: without them the mean is another one
        return np.nan, np.nan
    found = state.per_token(-state.by_group("q_over_s"))
    return found.mean, found.standard_error


def diagnose_sampler(summary: Summary) -> Diagnosis:
    """Accuse each sampler that fails a test; say what cannot be told of the others."""
    tests = sampler_tests(summary)
    failed = failing(tests)
    causes = {test: cause(summary, test, failed) for test in failed}
    findings = given_findings(summary, causes)
    named = recovered(summary)
    for role in dict.fromkeys(test.sampler for test in failed):
        if role in named:
            findings.append(named[role])
            continue
        of = {kind: [t for t in failed if t.sampler == role and t.kind == kind
                     and causes[t] == "sampler"] for kind in KINDS}  # fmt: skip
        means = of["entropy"] + of["heads"]  # of tests that say the same one is told
        if of["bound"]:
            findings.append(_bound_finding(summary, of["bound"], _or_else(role, tests, failed)))
        elif of["bet"] and not means:
            findings.append(_bet_finding(summary, of["bet"], _or_else(role, tests, failed)))
        findings += [_mean_finding(summary, test) for test in means[:1]]
        if not means:
            findings += [_within_finding(summary, test) for test in of["tempering"] + of["cut"]][:1]
        findings += [alike_finding(summary, t) for t in (of["openings"] or of["recall"])[:1]]
    # A bet that did not fail because of the sampler is a check of the alignment.
    checks = [
        _check(test, causes.get(test, ""), named.get(test.sampler))
        for test in tests
        if causes.get(test) != "in-sample"
        and (test.kind != "recall" or test.count >= FEWEST_BETS)
        and (test.kind != "bet" or causes.get(test) == "sampler")
    ]
    for role in dict.fromkeys(question.sampler for question in summary.questions):
        checks += unseen(summary, role, tests)
        checks += _not_possible(summary, role, {t.kind for t in tests if t.sampler == role})
    return Diagnosis(tuple(findings), tuple(checks))


def _or_else(role: str, tests: tuple[SamplerTest, ...], failed: tuple[SamplerTest, ...]) -> str:
    """What else it can be where one of several policies alone finds the tokens too likely.

    A column that is scaled, or of other tokens, breaks the bound as well.
    """
    of_role = [test for test in tests if test.sampler == role and test.kind in ("bound", "bet")]
    accusing = {test.other for test in of_role if test in failed}
    sound = list(dict.fromkeys(test.other for test in of_role if test.other not in accusing))
    if len(accusing) != 1 or not sound:
        return ""
    return (
        f" Or the column of {accusing.pop()} holds something else (scaled, with a floor, of other "
        f"tokens): {' and '.join(sound)} {'shows' if len(sound) == 1 else 'show'} nothing of this."
    )


def _bound_finding(summary: Summary, tests: list[SamplerTest], or_else: str) -> Finding:
    worst = min(tests, key=lambda test: test.log_p)
    question = Question(worst.sampler, worst.other)
    value = -worst.mean
    return Finding(
        code="negative-beyond-chance",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, worst.sampler),
        claim=(
            f"{question} came out at {value:.4g} nats per token over {worst.count} tokens. Had "
            f"{worst.sampler} sampled them, a sum this low would have a probability of at most "
            f"{chance(worst.log_p)}. So {worst.sampler} did not, or "
            f"{worst.other} was fitted to these tokens.{or_else}"
        ),
        numbers={
            "k1_mean": value,
            "tokens": worst.count,
            "log_p": worst.log_p,
            "against": sorted(test.other for test in tests),
        },
        cost=_bound_cost(summary, question, value),
        advice=_bound_advice(summary, question),
    )


def _bound_advice(summary: Summary, question: Question) -> str:
    if all(summary.columns[role].low >= 0 for role in (question.p, question.q)):
        return "No value is below 0: if they are −log p, turn their sign."
    return (
        f"Take as sampler the log-probs that the engine logged while it drew, not recomputed ones, "
        f"or give them as a third policy: {question} ~ SAMPLER. If {question.p} did sample, look "
        f"for a temperature or top-p that was left out, for {question.q} trained on these tokens, "
        "for another unit, and for a shifted or padded column."
    )


def _bound_cost(summary: Summary, question: Question, value: float) -> str:
    state = summary.questions.get(question)
    exact = state.total("exact_tokens") if state else 0
    if state and exact and exact == state.tokens:
        truth = state.total("exact") / exact
        return (
            f"The exact {question} at these prefixes is {truth:.4g}; k1 says "
            f"{value:.4g}. {decided(value, truth)}"
        )
    return (
        f"No KL is below 0, so this number is off by at least {-value:.4g}; every other one that "
        f"takes {question.p} as the sampler is off too. {decided(value, 0.0)}"
    )


def _mean_finding(summary: Summary, test: SamplerTest) -> Finding:
    what = {
        "entropy": "the mean of −log p − H",
        "heads": "the share of tokens inside its logged head, less the mass of that head,",
    }[test.kind]
    sharper = (test.mean < 0) == (test.kind == "entropy")
    way = "a lower temperature or a truncation (top-p, top-k)" if sharper else "a flatter policy"
    return Finding(
        code="sampler-mismatch",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, test.sampler),
        claim=(
            f"The tokens were not drawn from the distribution that {test.sampler} logged: {what} "
            f"is {test.mean:+.3g} over {test.count} prefixes ({test.z:+.1f} standard errors), "
            f"where an honest sampler has 0. The direction fits {way}{_unit(summary, test)}."
        ),
        numbers={"test": test.kind, "mean": test.mean, "z": test.z, "prefixes": test.count},
        cost=OTHER_POLICY,
        advice="Log the processed log-probs (after temperature, top-p and top-k) and their heads, "
        "which tell what was left out; or sample at temperature 1 without truncation. Rows chosen "
        "by what was drawn look alike.",
    )


def _unit(summary: Summary, test: SamplerTest) -> str:
    """Which unit the ratio of −log p to H can come from, with what it can also be."""
    if test.kind != "entropy" or not test.z:
        return ""
    entropy = summary.samplers[test.sampler].by_group("entropy").sum() / test.count
    return spoken_factor(1 + test.mean / entropy, abs(test.mean / test.z) / entropy)


def _within_finding(summary: Summary, test: SamplerTest) -> Finding:
    what = {
        "tempering": "another temperature of the logged heads explains",
        "cut": "the heads cut somewhere explain",
    }[test.kind]
    return Finding(
        code="sampler-mismatch",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, test.sampler),
        claim=(
            f"The tokens were not drawn from the distribution that {test.sampler} logged: {what} "
            f"them so much better that it happens with a probability of at most "
            f"{chance(test.log_p)}. But neither a temperature nor a cut alone explains them well."
        ),
        numbers={"test": test.kind, "log_p": test.log_p, "prefixes": test.count},
        cost=OTHER_POLICY,
        advice="Log the processed log-probs (after temperature, top-p and top-k), and make sure "
        "that they are of the weights that sampled.",
    )


def _bet_finding(summary: Summary, tests: list[SamplerTest], or_else: str) -> Finding:
    worst = min(tests, key=lambda test: test.log_p)
    return Finding(
        code="sampler-mismatch",
        severity="error",
        certainty="beyond-chance",
        questions=sampled_by(summary, worst.sampler),
        claim=(
            f"{worst.other} finds these {worst.count} tokens likelier than it could if "
            f"{worst.sampler} had sampled them: a bet of a tenth of the stake on {worst.other} at "
            f"each token, fair at best, would have gained so much with a probability of at most "
            f"{chance(worst.log_p)}. So {worst.sampler} did not sample them, or {worst.other} was "
            f"fitted to them.{or_else}"
        ),
        numbers={
            "test": "bet",
            "log_p": worst.log_p,
            "tokens": worst.count,
            "against": sorted(test.other for test in tests),
        },
        cost=OTHER_POLICY,
        advice=_bound_advice(summary, Question(worst.sampler, worst.other)),
    )


def _check(test: SamplerTest, found: str, named: Finding | None) -> Check:
    failed = found == "sampler"
    code = "negative-beyond-chance" if test.kind == "bound" else "sampler-mismatch"
    if test.kind in GIVEN:
        usual = "mask-covers-environment" if test.kind == "recall" and not found else code
        failed, code, reason = found != "", GIVEN_CODES.get(found, usual), told(test)
    elif test.kind in ("tempering", "cut"):
        code = {"tempering": "temperature-mismatch", "cut": "sampler-truncated"}[test.kind]
        what = {"tempering": "another temperature", "cut": "a top-k, top-p or min-p"}[test.kind]
        reason = f"{what} of its own heads explains no draws better, at {test.count} prefixes"
        if test.log_p + test.slack < log(0.5):
            reason = (
                f"{what} of its own heads explains the draws at {test.count} prefixes better with "
                f"a probability of at most {chance(test.log_p)}"
            )
        if failed:
            code = "sampler-mismatch"
    elif test.kind == "bet":
        reason = (
            f"a bet of a tenth on {test.other} at each of {test.count} tokens gained "
            f"e^{test.mean * test.count:.3g}"
        )
    elif test.kind == "bound":
        pair = Question(test.sampler, test.other)
        reason = (
            f"the mean of k1 of {pair} is {-test.mean:.4g} over {test.count} tokens; "
            f"probability at most {chance(test.log_p)} if {test.sampler} sampled"
        )
    else:
        name = {"entropy": "−log p − H", "heads": "head hits less head mass"}[test.kind]
        reason = f"{name}: {test.mean:+.3g}, {test.z:+.1f} standard errors, {test.count} prefixes"
    code = named.code if failed and named else code
    return Check(code, test.sampler, "failed" if failed else "passed", reason)


def _not_possible(summary: Summary, role: str, made: set[str]) -> list[Check]:
    """What the dump cannot show of a sampler, and what to log."""
    if "entropy" in made:
        return []
    state = summary.samplers.get(role)
    prefixes, unlogged = (
        0 if state is None else int(state.by_group(term).sum()) for term in ("prefixes", "unlogged")
    )
    if cut_by_rejection(summary):
        told = REJECTED
    elif state is not None and not scored(summary, role):
        told = "its column holds something else, or nothing in places"
    elif state is None:
        told = f"neither entropy nor top-k log-probs of {role} are logged"
    elif unlogged:
        told = f"{unlogged} log-probs are missing, perhaps because of what was drawn"
    elif prefixes >= FEWEST_PREFIXES:
        told = f"the prefixes are of fewer than {FEWEST_CLUSTERS} effective {summary.cluster_kind}s"
    elif prefixes:
        told = f"only {prefixes} prefixes have an entropy of {ENTROPY_FLOOR} nats or more"
    else:
        told = f"no entropy of {role} of {ENTROPY_FLOOR} nats or more is logged"
    unseen = f"a temperature, top-p or factor that {role}'s log-probs leave out cannot be seen"
    if "heads" in made:
        unseen = "the head test alone is weak against top-p"
    reason = f"{told}: {unseen}; log entropy.{role}, one number per token"
    return [Check("sampler-mismatch", role, "not-possible", reason)]
