"""A logged KL that is too large for what it is used for: the policies are far apart."""

from __future__ import annotations

from math import exp, log

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.diagnosis.log_labels import Labelled
from kullback.diagnosis.log_tokens import Tokens

CODE = "far-apart"
FAR = 1.0  # nats per token: a sampled token is e times as likely under the one as under the other
SHARE = 0.1  # share of the steps beyond that, at least,
FEWEST = 3  # and so many: fewer are single steps
MOST = 1e5  # times as likely, beyond which the number is of no help
_PER_TOKEN = ("token_mean", "sequence_mean", "padded_mean")


def diagnose_distance(one: Labelled, tokens: Tokens | None) -> Diagnosis:
    """Whether a KL is above a nat per token for good; it accuses nobody.

    Args:
        one: The series. Where its level is not known, it is taken for one per token.
        tokens: The tokens of a step, for the length of a sequence.
    """
    level = one.agreed("level")
    if any("teacher" in (metric.p, metric.q) for metric in one.metrics):
        return Diagnosis()  # a student starts far from its teacher
    values = -one.series.values if one.agreed("sign") == -1 else one.series.values
    if level == "sequence_sum":
        if tokens is None or not np.isfinite(tokens.lengths).any():
            why = "it is a sum over a sequence: log the mean length of the responses"
            return Diagnosis.not_possible(CODE, one.name, why)
        values = values / tokens.at(one.series.steps)[1]
    elif level is not None and level not in _PER_TOKEN:
        return Diagnosis()
    finite = np.isfinite(values)
    far = np.flatnonzero(finite & (values > FAR))
    if len(far) < max(FEWEST, SHARE * finite.sum()):
        said = f"above {FAR:g} nat per token at {len(far)} of {finite.sum()} steps"
        return Diagnosis.passed(CODE, one.name, said)
    return _far(one, values, far, known=level is not None)


def _far(one: Labelled, values: np.ndarray, far: np.ndarray, *, known: bool) -> Diagnosis:
    steps, usual = one.series.steps, float(np.median(values[far]))
    first, share = steps[far[0]], len(far) / len(values)
    times = f"{exp(usual):.0f}" if usual < log(MOST) else f"more than {MOST:,.0f}"
    finding = Finding(
        CODE,
        "warning" if known else "note",
        "certain",
        f"{one.name} is above {FAR:g} nat per token at {len(far)} of {len(values)} steps, first at "
        f"step {first:g}; there it is {usual:.3g} in the median and {values[far].max():.3g} at "
        f"most{'' if known else ' (if it is per token)'}. At {usual:.3g} nats a token that the one "
        f"policy draws is {times} times as likely under it as under the other, in the geometric "
        "mean.",
        "The policies have little in common any more: a few tokens decide k3 and every importance "
        "weight, a clip of the ratio acts on nearly all tokens, and no usual limit holds.",
        _advice(one),
        numbers={
            "share": share,
            "median": usual,
            "largest": float(values[far].max()),
            "first_step": float(first),
        },
        where=tuple(f"step {steps[i]:g}" for i in far[:1]),
    )
    said = f"above {FAR:g} nat per token at {share:.0%} of the steps"
    return Diagnosis.failed(finding, one.name, said)


def _advice(one: Labelled) -> str:
    """By what the two sides are, where the name says it."""
    sides = {(metric.p, metric.q) for metric in one.metrics}
    if sides and all("reference" in pair for pair in sides):
        return (
            "Lower the learning rate, or raise the coefficient of the KL, and read what the policy "
            "writes: a reward that is being gamed looks like this. Check that the reference is the "
            "policy that training started from."
        )
    if sides and all(pair == ("old", "current") for pair in sides):
        return (
            "Lower the learning rate, take fewer epochs or larger minibatches of each batch, and "
            "stop a batch early (target_kl): one batch moves the policy this far."
        )
    if sides and all(set(pair) == {"rollout", "old"} for pair in sides):
        return (
            "The engine and the trainer should be one policy: check that the weights were sent, "
            "temperature, top-p and top-k, the template, and that prompts and padding do not count."
        )
    return (
        "If it is the KL of an update, lower the learning rate and take fewer steps per batch; if "
        "it is that to the reference, raise its coefficient, and read what the policy writes. If "
        "it is a sum over sequences, or in bits, log the mean over tokens in nats."
    )
