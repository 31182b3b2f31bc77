"""Is the sampler who it is said to be? Three tests that an honest sampler passes."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from kullback.diagnosis.alignment import is_shifted
from kullback.diagnosis.column_faults import holds_log_probs
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.estimation.column_state import ColumnState
from kullback.estimation.interval import ratio_interval
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sampler_state import ENTROPY_FLOOR, SamplerState
from kullback.estimation.summary import Summary
from kullback.question import Question

ALPHA = 0.01  # probability that a report on honest data accuses any sampler
FEWEST_PREFIXES = 500  # below, no entropy test: t does not hold for heavy tails
FEWEST_MISSES = 20.0  # variance of the head's hits, about the misses expected: below, no head test
FEWEST_CLUSTERS = 4  # effective ones; likewise
# What float32 log-softmax kernels over 50,000 ids were seen to differ by, in nats.
FLOAT32_FLOOR = 4e-5
BFLOAT16 = 2.0**-9  # relative rounding error, half a unit in the last of eight bits


@dataclass(frozen=True, slots=True)
class SamplerTest:
    """One test of one sampler.

    Args:
        kind: ``bound``, ``entropy`` or ``heads``.
        sampler: The role that is said to have sampled.
        other: For the bound, the role that it is compared with.
        log_p: Log of the probability of such a result, at most, if the sampler is honest.
        slack: What rounding of the logged numbers may have taken from it at most.
        mean: Mean of log other/sampler, of −log p − H, or of hits less head mass.
        z: The mean in standard errors; NaN for the bound.
        count: Tokens, or prefixes.
    """

    kind: str
    sampler: str
    other: str
    log_p: float
    slack: float
    mean: float
    z: float
    count: int


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


def sampler_tests(summary: Summary) -> tuple[SamplerTest, ...]:
    """Every test that the dump allows, each sampler and pair once."""
    bounds: dict[tuple[str, str], SamplerTest] = {}
    for question, state in summary.questions.items():
        if not _is_fit(summary, question, state):
            continue
        for other, term in ((question.p, "log_p_over_s"), (question.q, "log_q_over_s")):
            pair = (question.sampler, other)
            if other != question.sampler and pair not in bounds:
                total, slack = state.total(term), _slack(summary, pair, state.tokens)
                # P(∏ other/sampler ≥ e^c) ≤ e^−c: the product is a non-negative martingale.
                mean, log_p = total / state.tokens, min(0.0, -total)
                bounds[pair] = SamplerTest("bound", *pair, log_p, slack, mean, np.nan, state.tokens)
    samplers = dict.fromkeys(question.sampler for question in summary.questions)
    means = [
        test
        for role in samplers
        for kind in ("entropy", "heads")
        if (test := _mean_test(summary, role, kind)) is not None
    ]
    return (*bounds.values(), *means)


def _is_fit(summary: Summary, question: Question, state: QuestionState) -> bool:
    """Whether the product of its ratios is a martingale at all, if the sampler is honest.

    It is none over a selection: a token outside a support makes the whole product 0 and is left
    out of the sums, and a log-prob may be missing because of what was drawn. Nor is it one if a
    column holds something else, or stands elsewhere.
    """
    log_probs = all(holds_log_probs(summary.columns[role]) for role in question.roles)
    whole = state.tokens > 0 and not state.infinite and not state.missing
    return whole and log_probs and not is_shifted(state)


def _slack(summary: Summary, pair: tuple[str, str], tokens: int) -> float:
    """The most that rounding can add to the sum of log other/sampler, in nats."""
    columns = [summary.columns[role] for role in pair]
    return FLOAT32_FLOOR * tokens + sum(BFLOAT16 * c.size for c in columns if c.bfloat16)


def _mean_test(summary: Summary, role: str, kind: str) -> SamplerTest | None:
    """A t test that a martingale's mean is 0.

    Its error is the larger of two: the clustered one, which few clusters make too small in one
    report of many, and the martingale's own. What rounding can have made of the mean is taken off.
    """
    from scipy.special import log_ndtr, stdtr

    state = summary.samplers.get(role)
    if state is None or not holds_log_probs(summary.columns[role]):
        return None
    above, below = {"entropy": ("surprise", "prefixes"), "heads": ("hits", "heads")}[kind]
    sums, sizes = state.by_group(above), state.by_group(below)
    count = int(sizes.sum())
    effective, variance = state.effective_clusters(below), state.by_group(f"{above}_variance").sum()
    if not _can_tell(state, kind, count, variance) or effective < FEWEST_CLUSTERS:
        return None
    filled = sizes > 0
    found = ratio_interval(sums[filled], sizes[filled], effective=effective, confidence=0.95)
    error = max(found.standard_error, float(np.sqrt(variance)) / count)
    rounding = _rounding(summary.columns[role], state, kind, count)
    z = float(np.sign(found.mean)) * max(abs(found.mean) - rounding, 0.0) / error
    p = 2 * float(stdtr(effective - 1, -abs(z)))
    log_p = log(p) if p > 0 else float(log_ndtr(-abs(z)))
    return SamplerTest(kind, role, "", log_p, 0.0, found.mean, z, count)


def _can_tell(state: SamplerState, kind: str, count: int, variance: float) -> bool:
    """Whether there is enough to test, and nothing left out because of what was drawn."""
    if kind == "heads":
        return bool(variance >= FEWEST_MISSES)
    return count >= FEWEST_PREFIXES and not state.by_group("unlogged").any() and variance > 0


def _rounding(column: ColumnState, state: SamplerState, kind: str, count: int) -> float:
    """The most that rounding can add to the mean of a test."""
    if kind == "heads":
        return FLOAT32_FLOOR + BFLOAT16 * column.bfloat16
    logs = column.size / column.tokens * column.bfloat16
    entropy = float(state.by_group("entropy").sum()) / count * state.bfloat16
    return FLOAT32_FLOOR + BFLOAT16 * (logs + entropy)


def failing(tests: tuple[SamplerTest, ...]) -> tuple[SamplerTest, ...]:
    """The tests that fail, at a level shared out so that a report errs in one per cent at most."""
    return tuple(test for test in tests if test.log_p + test.slack < log(ALPHA / len(tests)))


def sampler_check(summary: Summary, question: Question) -> SamplerCheck:
    """The sampler check of one question."""
    tests = sampler_tests(summary)
    mine = [test for test in tests if test.sampler == question.sampler]
    bounds = [test.log_p for test in mine if test.kind == "bound"]
    entropy = [test.z for test in mine if test.kind == "entropy"]
    # The head test alone is weak against top-p: it can accuse, and cannot vouch.
    verdict = "consistent" if entropy else "not-verifiable"
    if any(test.sampler == question.sampler for test in failing(tests)):
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
    found = ratio_interval(
        -state.by_group("q_over_s"),
        state.by_group("tokens"),
        effective=state.effective_clusters(),
        confidence=0.95,
    )
    return found.mean, found.standard_error


def diagnose_sampler(summary: Summary) -> Diagnosis:
    """Accuse each sampler that fails a test; say what cannot be told of the others."""
    tests = sampler_tests(summary)
    failed = failing(tests)
    findings = []
    for role in dict.fromkeys(test.sampler for test in failed):
        bounds = [test for test in failed if test.sampler == role and test.kind == "bound"]
        means = [test for test in failed if test.sampler == role and test.kind != "bound"]
        if bounds:
            findings.append(_bound_finding(summary, bounds))
        findings += [_mean_finding(summary, test) for test in means]
    checks = [_check(test, test in failed) for test in tests]
    for role in dict.fromkeys(question.sampler for question in summary.questions):
        checks += _not_possible(summary, role, {t.kind for t in tests if t.sampler == role})
    return Diagnosis(tuple(findings), tuple(checks))


def _sampled_by(summary: Summary, sampler: str) -> tuple[str, ...]:
    return tuple(str(question) for question in summary.questions if question.sampler == sampler)


def _bound_finding(summary: Summary, tests: list[SamplerTest]) -> Finding:
    worst = min(tests, key=lambda test: test.log_p)
    question = Question(worst.sampler, worst.other)
    value, chance = -worst.mean, _chance(worst.log_p)
    return Finding(
        code="negative-beyond-chance",
        severity="error",
        certainty="beyond-chance",
        questions=_sampled_by(summary, worst.sampler),
        claim=(
            f"{question} came out at {value:.4g} nats per token over {worst.count} tokens. Had "
            f"{worst.sampler} sampled them, a sum this low would have a probability of at most "
            f"{chance}. So {worst.sampler} did not, or {worst.other} was fitted to these tokens."
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
        f"for a temperature or top-p that its log-probs leave out, for {question.q} trained on "
        "these very tokens, and for a shifted or padded column."
    )


def _bound_cost(summary: Summary, question: Question, value: float) -> str:
    state = summary.questions.get(question)
    exact = state.total("exact_tokens") if state else 0
    if state and exact and exact == state.tokens:
        truth = state.total("exact") / exact
        return (
            f"The exact {question} at these prefixes is {truth:.4g}; the estimate says "
            f"{value:.4g}. A rule that acts on this number acts on its wrong sign."
        )
    return (
        f"No KL is below 0, so this number is off by at least {-value:.4g}; every other one that "
        f"takes {question.p} as the sampler is off too."
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
        questions=_sampled_by(summary, test.sampler),
        claim=(
            f"The tokens were not drawn from the distribution that {test.sampler} logged: {what} "
            f"is {test.mean:+.3g} over {test.count} prefixes ({test.z:+.1f} standard errors), "
            f"where an honest sampler has 0. The direction fits {way}."
        ),
        numbers={"test": test.kind, "mean": test.mean, "z": test.z, "prefixes": test.count},
        cost="k1 and k3 answer for another policy than the one that is named; more data "
        "does not help.",
        advice="Log the processed log-probs (after temperature, top-p and top-k), or sample "
        "at temperature 1 without truncation; use the same settings in the trainer.",
    )


def _check(test: SamplerTest, failed: bool) -> Check:
    code = "negative-beyond-chance" if test.kind == "bound" else "sampler-mismatch"
    if test.kind == "bound":
        pair = Question(test.sampler, test.other)
        reason = (
            f"the mean of k1 of {pair} is {-test.mean:.4g} over {test.count} tokens; "
            f"probability at most {_chance(test.log_p)} if {test.sampler} sampled"
        )
    else:
        name = {"entropy": "−log p − H", "heads": "head hits less head mass"}[test.kind]
        reason = f"{name}: {test.mean:+.3g}, {test.z:+.1f} standard errors, {test.count} prefixes"
    return Check(code, test.sampler, "failed" if failed else "passed", reason)


def _not_possible(summary: Summary, role: str, made: set[str]) -> list[Check]:
    """What the dump cannot show of a sampler, and what to log."""
    if "entropy" in made:
        return []
    state = summary.samplers.get(role)
    prefixes, unlogged = (
        0 if state is None else int(state.by_group(term).sum()) for term in ("prefixes", "unlogged")
    )
    if state is None:
        told = f"neither entropy nor top-k log-probs of {role} are logged"
    elif unlogged:
        told = f"{unlogged} log-probs are missing, perhaps because of what was drawn"
    elif prefixes:
        told = f"only {prefixes} prefixes have an entropy of {ENTROPY_FLOOR} nats or more"
    else:
        told = f"no entropy of {role} of {ENTROPY_FLOOR} nats or more is logged"
    unseen = f"a temperature or top-p that {role}'s log-probs leave out cannot be seen"
    if "heads" in made:
        unseen = "the head test alone is weak against top-p"
    reason = f"{told}: {unseen}; log entropy.{role}, one number per token"
    return [Check("sampler-mismatch", role, "not-possible", reason)]


def _chance(log_p: float) -> str:
    return f"{exp(log_p):.2g}" if log_p > -650 else f"1e{log_p / log(10):.0f}"
