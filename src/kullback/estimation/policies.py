"""Four policies: every useful pair of them, with the correction that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from kullback.estimation.conditions import ess_fraction, prefixes_unseen
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.summary import Summary
from kullback.question import Question

POLICIES = ("rollout", "old", "current", "reference")
ENOUGH_LEFT = 0.5  # share of the tokens below which particle filters, too, give up on their weights


@dataclass(frozen=True, slots=True)
class PolicyPair:
    """One pair of policies over the tokens of the rollout, under each correction.

    Args:
        p: The first policy.
        q: The other one.
        plain: The mean of log p − log q without any weight, as a log prints it; it is KL(p‖q) only
            if p sampled. Else it is KL(sampler‖q) − KL(sampler‖p) and can be negative.
        token: KL(p‖q) with the weight of each token, at the sampler's prefixes; None: not asked,
            or p sampled and needs no weight (then ``own`` is it).
        own: KL(p‖q) at the prefixes of p: with no weight if p sampled, else with the cumulative
            one; None where it was not asked.
        weights_left: The share of the tokens that the cumulative weights leave; NaN if not asked.
        right: The correction to read: ``none``, ``cumulative``, or ``token`` where the cumulative
            weights leave less than half, or not enough of p's prefixes were seen, or none asked.
        bias: What is wrong with each of the others, in a sentence.

    Example:
        >>> import kullback as kb
        >>> *_, last = policy_table(kb.summarize(kb.read(kb.demo_path())))
        >>> last.p, last.q, round(last.plain, 4), last.right, round(last.token.mean, 4)
        ('current', 'reference', -0.0296, 'token', 0.0319)
    """

    p: str
    q: str
    plain: float
    token: Estimate | None
    own: Estimate | None
    weights_left: float
    right: str
    bias: str


def policy_questions(roles: Iterable[str], sampler: str) -> tuple[Question, ...]:
    """Every useful pair of the four policies, at the sampler's prefixes and at those of p.

    Args:
        roles: The roles that have log-probs.
        sampler: The one that sampled.

    Returns:
        The questions, for ``kb.summarize(…, questions=…)``; at the prefixes of p beside those of
        the sampler where p did not sample.

    Example:
        >>> for question in policy_questions(["rollout", "current", "reference"], "rollout"):
        ...     print(question)
        KL(rollout||current)
        KL(rollout||reference)
        KL(current||reference) ~ rollout
        KL(current||reference) ~ rollout prefixes current
    """
    asked: list[Question] = []
    for p, q in _pairs(roles, sampler):
        asked.append(Question(p, q, sampler))
        if p != sampler:
            asked.append(Question(p, q, sampler, p))
    return tuple(asked)


def _pairs(roles: Iterable[str], sampler: str) -> Iterable[tuple[str, str]]:
    there = set(roles)
    later = POLICIES[POLICIES.index(sampler) :] if sampler in POLICIES else POLICIES
    chain = [sampler, *(role for role in later if role in there and role != sampler)]
    return combinations(chain, 2)


def policy_table(summary: Summary, *, confidence: float = 0.95) -> tuple[PolicyPair, ...]:
    """Each pair of the four policies under no, the token's and the cumulative correction.

    Which is right follows from the prefixes that are meant: the token's weight answers for the
    sampler's prefixes, the cumulative weight for p's own, which alone is the KL of the sequence
    policies; its weights spread with the length of a sequence, and where they leave less than
    half of the tokens, or it is marked ``prefixes-unseen``, the token's is what can be told.
    Estimates are by ``auto`` and unbiased under the conditions of ``kb.estimate``; the plain mean
    is k1 without a weight.

    Args:
        summary: What ``summarize`` made with ``questions=policy_questions(…)``, or of any: what
            was not asked is None.
        confidence: Nominal coverage of the intervals.

    Returns:
        One for each pair of roles of which any question was asked.

    Example:
        >>> import numpy as np
        >>> import kullback as kb
        >>> world = kb.worlds.CLEAN_WORLDS["training_loop"](prompts=32)
        >>> batch = world.sample(np.random.default_rng(0))
        >>> asked = policy_questions(batch.log_probs, "rollout")
        >>> for one in policy_table(kb.summarize([batch], questions=asked)):
        ...     told = one.own if one.right in ("none", "cumulative") else one.token
        ...     print(f"{one.p:8}{one.q:10}{one.plain:8.4f} {one.right:11}{told.mean:8.4f}")
        rollout old        -0.0000 none         0.0000
        rollout current     0.0054 none         0.0049
        rollout reference   0.0722 none         0.0749
        old     current     0.0054 cumulative   0.0050
        old     reference   0.0722 cumulative   0.0754
        current reference   0.0668 token        0.0826
    """
    sampler = sampler_of(summary)
    per_token = [one for one in summary.questions if one.level == "token_mean"]
    asked = {(one.p, one.q) for one in per_token if one.sampler == sampler}
    pairs = [pair for pair in _pairs(summary.columns, sampler) if pair in asked]
    return tuple(_pair(summary, p, q, sampler, confidence) for p, q in pairs)


def sampler_of(summary: Summary) -> str:
    """Who sampled, as the questions have it: those with a weight say so of another role than p."""
    asked = list(summary.questions)
    weighted = [one for one in asked if one.weight != "none"]
    return (weighted or asked)[0].sampler


def _pair(summary: Summary, p: str, q: str, sampler: str, confidence: float) -> PolicyPair:
    token, own = (
        summary.questions.get(Question(p, q, sampler, prefixes)) for prefixes in (sampler, p)
    )
    some = token or own
    assert some is not None  # the pair comes from a question
    left, enough = float("nan"), False
    if own is not None and p != sampler:
        left = ess_fraction(own)
        enough = left >= ENOUGH_LEFT and not prefixes_unseen(own, "auto")
    right = "none" if p == sampler else "cumulative" if enough else "token"
    return PolicyPair(
        p=p,
        q=q,
        plain=some.mean("raw_k1"),
        token=None if token is None or p == sampler else from_state(token, "auto", confidence),
        own=None if own is None else from_state(own, "auto", confidence),
        weights_left=left,
        right=right,
        bias=_bias(p, q, sampler, right),
    )


def unweighted(p: str, q: str, sampler: str) -> str:
    """What the mean of log p − log q estimates over tokens that a third policy, or q, sampled."""
    return f"KL({sampler}||{q}) − KL({sampler}||{p})" if q != sampler else f"−KL({sampler}||{p})"


def _bias(p: str, q: str, sampler: str, right: str) -> str:
    if right == "none":
        return f"{p} sampled: no weight is needed, and its prefixes are its own"
    plain = f"without a weight it estimates {unweighted(p, q, sampler)}"
    if right == "token":
        return f"{plain}; the token's weight answers for the prefixes of {sampler}, not of {p}"
    return f"{plain}; with the token's weight, KL({p}||{q}) at the prefixes of {sampler}"
