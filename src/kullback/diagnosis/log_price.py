"""The sign of a logged KL: impossible, or at a price, P(Σ k1 ≤ −c) ≤ e^−c."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import exp, log

import numpy as np

from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.log_labels import COARSE, ROUNDED, UNFIT, Labelled
from kullback.diagnosis.log_tokens import Tokens
from kullback.diagnosis.sampler_tests import ALPHA, FLOAT32_FLOOR, chance
from kullback.dictionary import Metric

# Nats per token that the policy's own steps within a batch may make, where a name does not say
# whether it moves while it is compared.
MOVED = 0.01
ONE_EACH = "one sequence of each step alone"
LONGEST = 10_000.0  # tokens of a sequence, for what rounding can make of its sum
# What trainers call the KL of an update, by which they stop.
_UPDATE = re.compile(r"approx|ppo|update|pre_post", re.IGNORECASE)
_FIXED = ("reference", "old", "teacher")  # sides that are no part of what the batch trains


@dataclass(frozen=True, slots=True)
class Price:
    """What the negative steps of a series cost, if its sampler is honest.

    Args:
        name: The series.
        log_p: Log of the probability, at most, that any stretch from the start sums so low.
        nats: The lowest such sum.
        step: The step at which it is reached.
        single: The same of the lowest single step, times the number of steps.
        at: That step.
        mean: The mean over all tokens up to ``step``.
        tokens: How many these are.
    """

    name: str
    log_p: float
    nats: float
    step: float
    single: float
    at: float
    mean: float
    tokens: float

    @property
    def least(self) -> float:
        """Log of the smaller of the two, twice, since there are two."""
        return min(0.0, min(self.log_p, self.single) + log(2))


def _sign(one: Labelled) -> float:
    """−1 for a series that everybody of its name logs as minus its KL."""
    return -1.0 if {metric.sign for metric in one.known} == {-1} else 1.0


def price(one: Labelled, tokens: Tokens) -> Price | None:
    """The price of a series; None where its level has no sum, or no step has both.

    The product of q/p over all tokens of all steps is a non-negative martingale if p sampled and q
    was fixed before each batch. So the running sum of k1 falls to −c with a probability of e^−c at
    most, whenever one looks.
    """
    counts, units = _units(one, tokens)
    sums = _sign(one) * one.series.values * units
    there = np.isfinite(sums) & np.isfinite(counts) & (counts > 0)
    if not there.any():
        return None
    steps, counts = one.series.steps[there], counts[there]
    sums = sums[there] + FLOAT32_FLOOR * counts  # what rounding may have taken
    running = np.cumsum(sums)
    low, single = int(np.argmin(running)), int(np.argmin(sums))
    held = float(counts[: low + 1].sum())
    return Price(
        name=one.name,
        log_p=min(0.0, float(running[low])),
        nats=float(-running[low]),
        step=float(steps[low]),
        single=min(0.0, float(sums[single]) + log(len(sums))),
        at=float(steps[single]),
        mean=float(running[low] / held) - FLOAT32_FLOOR,
        tokens=held,
    )


def _units(one: Labelled, tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of each step, and what a value is to be multiplied by for the sum over them."""
    counts, lengths = tokens.at(one.series.steps)
    level = one.agreed("level")
    if level == "sequence_sum":
        return counts, counts / lengths
    return counts, np.ones(len(counts)) if level == "sum" else counts


def _known(one: Labelled, tokens: Tokens | None) -> Tokens | None:
    """What is known of a series' tokens.

    Of a KL per sequence every step holds one sequence at least, and that alone can be enough.
    """
    if one.agreed("level") != "sequence_sum":
        return None if tokens is None or tokens.whole else tokens
    if tokens is not None and not tokens.whole and np.isfinite(tokens.lengths).any():
        return tokens
    longest = np.array([LONGEST])
    return Tokens(np.empty(0), longest, longest, ONE_EACH)


def diagnose_signs(
    series: tuple[Labelled, ...], tokens: Tokens | None, *, named: bool = False
) -> Diagnosis:
    """What the signs of all KL series say; the accusing tests share one per cent.

    Args:
        series: The series, labelled.
        tokens: The tokens of a step, where known.
        named: Whether the framework is named, so that a name means what it means there.
    """
    kls = [one for one in series if one.kind == "kl"]
    found = sum((_impossible(one, named) for one in kls), Diagnosis())
    asked = [one for one in kls if _may_be_negative(one, named)]
    priced = {}
    for one in asked:
        why, sure = _who_sampled(one)
        held = _known(one, tokens)
        made = price(one, held) if held and not why else None
        if made is None:
            found += Diagnosis((), (_not_priced(one, tokens, why),))
        else:
            priced[one.name] = (one, made, sure, held)
    for one, made, sure, held in priced.values():
        found += _judged(one, made, sure, len(priced), held)
    return found


def _impossible(one: Labelled, named: bool) -> Diagnosis:
    """A value below 0 that nothing of this name can have.

    Where the framework is not named, somebody else may use the name for another number: then only
    a name that says itself what its terms are can be held to it.
    """
    values = one.series.values[np.isfinite(one.series.values)]
    if not len(values) or (one.metrics and values.min() < -ROUNDED):
        return Diagnosis()
    if not (one.never_negative or any(not metric.can_be_negative for metric in one.known)):
        return Diagnosis()
    low = float(values.min())
    code, subject = "sign-impossible", one.name
    if low >= -ROUNDED:
        said = f"lowest value {low:.3g}; {one.said} is never below 0"
        return Diagnosis((), (Check(code, subject, "passed", said),))
    if not (named or one.never_negative):
        said = f"it is {low:.3g} at least once, so it is not that; name the framework (--framework)"
        return Diagnosis((), (Check(code, subject, "not-possible", f"{one.said}: {said}"),))
    count, place = int((values < -ROUNDED).sum()), int(np.nanargmin(one.series.values))
    near = (
        f" Values as close to 0 as these are what bfloat16 makes of k3 (up to {COARSE:.2g} off)."
        if low >= -COARSE
        else ""
    )
    finding = Finding(
        code,
        "warning" if near else "error",
        "certain",
        f"{one.name} is negative at {count} of {len(values)} steps, down to {low:.4g}. It is "
        f"{one.said.removesuffix(UNFIT)}, which is never below 0.{near}",
        "Its sign is wrong: a penalty by it is a reward, and no stop rule fires.",
        "Look for the ratio upside down in one of its two places, a clamp of the ratio and not of "
        "its logarithm, a mask or a coefficient inside the mean, k1 under this name; and compute "
        "the term in float32.",
        numbers={"lowest": low, "negative_steps": count, "steps": len(values)},
        where=(f"step {one.series.steps[place]:g}",),
    )
    return Diagnosis((finding,), (Check(code, subject, "failed", f"lowest value {low:.3g}"),))


def _may_be_negative(one: Labelled, named: bool) -> bool:
    """Whether it has negative steps that its method allows, or turned about, positive ones."""
    values = one.series.values[np.isfinite(one.series.values)]
    somebody_elses = not one.metrics and not one.never_negative and not (named and one.known)
    allowed = somebody_elses or any(_is_k1(metric) for metric in one.metrics)
    return allowed and bool((_sign(one) * values < -ROUNDED).any())


def _is_k1(metric: Metric) -> bool:
    return metric.method == "k1" and not metric.weight


def _who_sampled(one: Labelled) -> tuple[str, bool]:
    """Why no price can be told of it, and whether all that its name can be has one."""
    if _UPDATE.search(one.name) and not one.metrics:
        return (
            "it seems to compare the policy before and after its update on these very tokens, so "
            "that a negative mean needs no other cause"
        ), False
    fair = [metric for metric in one.metrics if _is_k1(metric) and _is_fixed(metric)]
    if one.metrics and not fair:
        metric = next(metric for metric in one.metrics if _is_k1(metric))
        if metric.q in _FIXED:
            return (
                f"{metric.sampler} sampled, and {metric.p} moves away from it within the batch: "
                "a negative mean can come from these steps alone"
            ), False
        return (
            f"{metric.q} is trained on these very tokens, so that a negative mean needs no other "
            "cause"
        ), False
    if one.agreed("level") in ("sequence_mean", "padded_mean"):
        return (
            "it is a mean of the means of sequences, which no count of tokens turns into a sum, "
            "and which is negative where the policy ends later than the other side: log the mean "
            "over all tokens"
        ), False
    return "", bool(one.metrics) and len(fair) == len(one.metrics)


def _is_fixed(metric: Metric) -> bool:
    engine = metric.sampler == "rollout" and metric.p == "old"  # which is said to be the same
    return metric.q in _FIXED and (engine or metric.sampler == metric.p)


def _not_priced(one: Labelled, tokens: Tokens | None, why: str) -> Check:
    code = "negative-beyond-chance"
    mean = float(np.nanmean(np.where(np.isfinite(one.series.values), one.series.values, np.nan)))
    if not why and tokens is None:
        why = "log the number of tokens that the mean is over, or give it (--tokens N)"
        if mean < -FLOAT32_FLOOR:
            needed = -log(ALPHA) / (-mean - FLOAT32_FLOOR)
            why += f"; a mean of {mean:.3g} over {needed:.0f} tokens or more would be beyond chance"
    elif not why and tokens is not None and tokens.whole:
        why = (
            f"the tokens {tokens.how} are those of prompts too: log those of responses, or give "
            "them (--tokens N)"
        )
    return Check(code, one.name, "not-possible", why or "no step has its tokens logged")


def _judged(one: Labelled, made: Price, sure: bool, tests: int, tokens: Tokens) -> Diagnosis:
    code = "negative-beyond-chance"
    said = f"P ≤ {chance(made.least)}, {tokens.how}"
    failed = made.least < log(ALPHA / tests)
    per_token = made.mean if made.log_p <= made.single else _lowest(one)
    if not failed or (not sure and per_token > -MOVED):
        if failed:
            said = (
                f"{said}: beyond chance if p sampled and q was fixed, which this name does not "
                "say; name the framework (--framework)"
            )
            return Diagnosis((), (Check(code, one.name, "not-possible", said),))
        return Diagnosis((), (Check(code, one.name, "passed", said),))
    return Diagnosis(
        (_beyond_chance(one, made, sure, tokens),), (Check(code, one.name, "failed", said),)
    )


def _lowest(one: Labelled) -> float:
    return float(np.nanmin(np.where(np.isfinite(one.series.values), one.series.values, np.nan)))


def _beyond_chance(one: Labelled, made: Price, sure: bool, tokens: Tokens) -> Finding:
    running = made.log_p <= made.single
    over = ONE_EACH if tokens.how == ONE_EACH else f"{made.tokens:.0f} tokens"
    what = (
        f"up to step {made.step:g} its terms sum to −{made.nats:.4g} nats over {over}"
        if running
        else f"at step {made.at:g} alone they sum that low"
    )
    asked = one.metrics[0] if one.metrics else None
    who = asked.p if asked and sure else "the first policy"
    other = asked.q if asked and sure else "the other"
    given = "" if sure else " This takes it for the mean of k1 over tokens, as its name allows."
    if tokens.least:
        given += " The tokens are of one sequence a step: with equally many in each it is less yet."
    return Finding(
        "negative-beyond-chance",
        "error" if sure else "warning",
        "beyond-chance" if sure else "likely",
        f"{one.name} is negative beyond chance: {what}, which has a probability of "
        f"{chance(made.least)} at most if {who} sampled and {other} was fixed before.{given}",
        "Its sign is wrong: a penalty by it is a reward, and no stop rule fires. And what k3 says "
        "of the same tokens is not the KL either.",
        f"Take the log-probs of {who} that the engine logged while it drew, after temperature, "
        "top-p and top-k; check that no prompt or padding counts. kullback report on a dump of "
        "one step says which it is.",
        numbers={
            "log_p": made.least,
            "probability_at_most": exp(max(made.least, -700.0)),
            "nats": made.nats,
            "tokens": None if tokens.how == ONE_EACH else made.tokens,
            "mean": None if tokens.how == ONE_EACH else made.mean,
            "tokens_from": tokens.how,
        },
        where=(f"step {(made.step if running else made.at):g}",),
    )
