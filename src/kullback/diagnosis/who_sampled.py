"""Who sampled? Which roles can have drawn these tokens, and which KL each logged mean is of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kullback.diagnosis.alignment import shifted_roles
from kullback.diagnosis.sampler import sampler_check
from kullback.diagnosis.sampler_tests import ALPHA, chance, mean_test, sum_rounding
from kullback.diagnosis.soundness import scored
from kullback.estimation.estimate import from_state
from kullback.estimation.policies import sampler_of, unweighted
from kullback.estimation.summary import Summary
from kullback.question import Question

CANNOT = "cannot-have-sampled"
FITS = "fits"
UNTOLD = "cannot-tell"
WAYS = 3  # the likelihood ratio, the entropy test and the head test, which share a role's level


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the tokens say of a role as their sampler.

    Args:
        role: The role.
        said: Whether a question takes it as the sampler.
        verdict: ``cannot-have-sampled``; ``fits``: its own entropies agree with what was drawn,
            which no temperature and no top-p would leave so; or ``cannot-tell``.
        log_p: Log of the most that the probability of these tokens' evidence against it can be if
            it sampled them; 0 where there is none.
        against: The role that finds these tokens likelier; where another test speaks, nothing.
        likelier: By how many nats in all, negative where every other role finds them less likely.
        reason: The evidence in a sentence, or what to log.
    """

    role: str
    said: bool
    verdict: str
    log_p: float
    against: str
    likelier: float
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Which question the plain mean of log p − log q over these tokens answers.

    Args:
        p: The first role.
        q: The second.
        mean: The mean of log p − log q over the tokens, in nats: what a log shows as k1.
        is_kl_of: The question that it answers, or nothing.
        sampler: The role taken as the sampler.
        excluded: Whether that role cannot have sampled; then it answers no question.
        instead: The question to ask for KL(p‖q); where the mean answers it, the same.
        value: What ``instead`` comes out at by k1, where it was asked; else NaN.
    """

    p: str
    q: str
    mean: float
    is_kl_of: str
    sampler: str
    excluded: bool
    instead: str
    value: float

    def __str__(self) -> str:
        told = f"mean(log {self.p} − log {self.q}) = {self.mean:.4g}"
        if self.excluded:
            return f"{told} is no KL: {self.sampler} cannot have sampled; name who did"
        if self.is_kl_of:
            return f"{told}: it estimates {self.is_kl_of}"
        off = unweighted(self.p, self.q, self.sampler)
        known = "" if math.isnan(self.value) else f" ({self.value:.4g} by k1)"
        asked = f"for KL({self.p}||{self.q}) ask {self.instead}{known}"
        return f"{told} is no KL: it estimates {off}; {asked}"


@dataclass(frozen=True, slots=True)
class WhoSampled:
    """Every role as a candidate, and what the logged means are of.

    Args:
        candidates: One for each role, those that are said to have sampled first.
        answers: One for each pair of roles that a question was asked of and that every counted
            token has log-probs of.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> batch = pack({"old": [[-3.0] * 9], "current": [[-2.0] * 9]})
        >>> found = who_sampled(summarize([batch]))
        >>> [(one.role, one.verdict) for one in found.candidates]
        [('old', 'cannot-have-sampled'), ('current', 'cannot-tell')]
        >>> print(found.answers[0])
        mean(log old − log current) = -1 is no KL: old cannot have sampled; name who did
    """

    candidates: tuple[Candidate, ...]
    answers: tuple[Answer, ...]


def who_sampled(summary: Summary) -> WhoSampled:
    """Which roles can have drawn these tokens, and which KL each logged mean is then of.

    If R drew them, the product over all tokens of O/R has mean 1 at most for any policy O that was
    fixed before, and so has the mean of these products over all other roles: P(it is ≥ e^c) ≤ e^−c,
    however the tokens depend on each other. Every role is tried as R, and so each pair is looked
    at both ways. Beside it stand the entropy and the head test, where a role logs them; the three
    share one per cent for each role. Only one role sampled, so the whole table errs about it in
    one per cent at most, and in as much again where it is accused by a finding, which excludes it
    too. That a role *can* have sampled excludes no other that is near to it.

    Over tokens that s sampled, mean(log p − log q) estimates KL(s‖q) − KL(s‖p), without bias if
    the policies were fixed before. It is KL(p‖q) only if p = s, and can be negative. As s is taken
    the sampler of the questions with a weight, or else that of the first question.

    Args:
        summary: What ``summarize`` made.

    Returns:
        The candidates and the answers.

    Example:
        >>> import kullback as kb
        >>> world = kb.worlds.CLEAN_WORLDS["training_loop"](prompts=16)
        >>> import numpy as np
        >>> found = who_sampled(kb.summarize([world.sample(np.random.default_rng(0))]))
        >>> for one in found.candidates:
        ...     print(f"{one.role:9} {one.verdict}")
        rollout   fits
        old       fits
        current   cannot-have-sampled
        reference cannot-have-sampled
        >>> print(found.answers[-1])  # doctest: +NORMALIZE_WHITESPACE
        mean(log current − log reference) = 0.05896 is no KL: it estimates KL(rollout||reference) −
        KL(rollout||current); for KL(current||reference) ask KL(current||reference) ~ rollout
        (0.06642 by k1)
    """
    said = dict.fromkeys(question.sampler for question in summary.questions)
    roles = dict.fromkeys([*said, *summary.columns])
    pairs = dict.fromkeys((q.p, q.q) for q in summary.questions)
    sampler = sampler_of(summary)
    candidates = tuple(_candidate(summary, role, role in said) for role in roles)
    excluded = any(one.role == sampler and one.verdict == CANNOT for one in candidates)
    means = (_answer(summary, p, q, sampler, excluded) for p, q in pairs if _whole(summary, p, q))
    return WhoSampled(candidates, tuple(means))


def _whole(summary: Summary, *roles: str) -> bool:
    """Whether every counted token has a log-prob of each role: nothing is left out of the sums."""
    return all(
        scored(summary, role) and not (c.nan or c.sentinel or c.negative_infinite) and c.tokens > 0
        for role in roles
        for c in (summary.columns[role],)
    )


def _answer(summary: Summary, p: str, q: str, sampler: str, excluded: bool) -> Answer:
    column, other = summary.columns[p], summary.columns[q]
    instead = Question(p, q, sampler)
    state = summary.questions.get(instead, summary.weighted.get(Question(p, q)))
    value = math.nan if state is None else from_state(state, "k1").mean
    return Answer(
        p=p,
        q=q,
        mean=(column.total - other.total) / column.tokens,
        is_kl_of=str(instead) if p == sampler and not excluded else "",
        sampler=sampler,
        excluded=excluded,
        instead=str(instead),
        value=value,
    )


def _candidate(summary: Summary, role: str, said: bool) -> Candidate:
    column = summary.columns[role]
    if column.negative_infinite and scored(summary, role):
        reason = f"it gives {column.negative_infinite} of these tokens no probability at all"
        return Candidate(role, said, CANNOT, -math.inf, "", math.inf, reason)
    others = [o for o in summary.columns if o != role and _fit(summary, role, o)]
    log_p, against, likelier = _likelihood(summary, role, others)
    tests = [test for kind in ("entropy", "heads") if (test := mean_test(summary, role, kind))]
    worst = min(tests, key=lambda test: test.log_p, default=None)
    least = math.log(ALPHA / WAYS)
    if log_p < least and (worst is None or log_p <= worst.log_p):
        reason = (
            f"{against} finds these {column.tokens} tokens likelier by {likelier:.4g} nats in all; "
            f"a probability of at most {chance(log_p)}, unless {against} was fitted to them"
        )
        return Candidate(role, said, CANNOT, log_p, against, likelier, reason)
    if worst is not None and worst.log_p < least:
        what = {"entropy": "mean(−log p − H)", "heads": "head hits less head mass"}[worst.kind]
        reason = f"{what} is {worst.mean:+.3g}, {worst.z:+.1f} standard errors from 0"
        return Candidate(role, said, CANNOT, worst.log_p, "", likelier, reason)
    accused = said and any(
        sampler_check(summary, question).verdict == "accused"
        for question in summary.questions
        if question.sampler == role
    )
    if accused:
        reason = "a finding above says why"
        return Candidate(role, said, CANNOT, math.log(ALPHA), "", likelier, reason)
    entropy = next((test for test in tests if test.kind == "entropy"), None)
    if entropy:
        reason = (
            f"what was drawn is as surprising as its entropies say: mean(−log p − H) is "
            f"{entropy.mean:+.2g}, {entropy.z:+.1f} standard errors"
        )
        return Candidate(role, said, FITS, log_p, "", likelier, reason)
    return Candidate(role, said, UNTOLD, log_p, "", likelier, _untold(role, others, likelier))


def _fit(summary: Summary, role: str, other: str) -> bool:
    return _whole(summary, role, other) and not {role, other} & shifted_roles(summary)


def _untold(role: str, others: list[str], likelier: float) -> str:
    if not others:
        return f"its log-probs are not whole, or no other role's are; log entropy.{role}"
    if likelier < 0:
        told = f"it finds these tokens likelier than any other role does, by {-likelier:.4g} nats"
        return f"{told}; whether it left out a temperature or top-p, only entropy.{role} would show"
    return f"no role finds these tokens likelier by more than chance could; log entropy.{role}"


def _likelihood(summary: Summary, role: str, others: list[str]) -> tuple[float, str, float]:
    """Log P of the mean of all products, at most; who finds the tokens likeliest; by how much."""
    if not others:
        return 0.0, "", 0.0
    mine = summary.columns[role]
    gains = {o: summary.columns[o].total - mine.total for o in others}
    against = max(gains, key=lambda o: gains[o])
    kept = [gains[o] - sum_rounding(summary, (role, o), mine.tokens) for o in others]
    top = max(kept)
    log_mean = top + math.log(sum(math.exp(one - top) for one in kept) / len(kept))
    return min(0.0, -log_mean), against, gains[against]
