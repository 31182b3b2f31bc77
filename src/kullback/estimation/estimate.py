"""A number with its error, its question, its method and its conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from kullback.columns import pack
from kullback.estimation import sequence_k3
from kullback.estimation.auto import Auto, auto
from kullback.estimation.conditions import assumptions, marks
from kullback.estimation.given import with_given
from kullback.estimation.interval import FEWEST_EFFECTIVE, NOTHING, Interval, ratio_interval
from kullback.estimation.question_state import QuestionState
from kullback.question import Question

TOO_FEW = "one effective cluster: no error can be told from fewer than two"
METHODS = ("auto", "k1", "k2", "k3", "exact")
COEFFICIENTS = {"k1": 0.0, "k3": 1.0}  # of r − 1, beside −log r; auto has its own


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a KL, in nats.

    Args:
        mean: The estimate; NaN where there is none, and ``reason`` says why.
        low: Lower end of the interval; low ≤ mean ≤ high.
        high: Upper end.
        standard_error: Clustered standard error of the mean.
        confidence: Nominal coverage of the interval.
        count: Tokens that it rests on.
        clusters: Clusters (prompts, or sequences) that it rests on.
        effective_clusters: Kish's effective number of them.
        question: What it answers.
        method: The estimator.
        lam: The coefficient λ of r − 1 in it: 0 is k1, 1 is k3; NaN for ``k2`` and ``exact``.
        scope: What it speaks of: ``new prompts``, ``new sequences`` or ``these prefixes``.
        assumptions: What must hold for it to be unbiased.
        marks: What is known to be wrong with it.
        reason: Why there is no number or no interval, else None.

    Example:
        >>> print(estimate(log_p=[[-1.0, -0.5]] * 2, log_q=[[-1.5, -0.25]] * 2))
        KL(p||q) by auto (λ = 0.00): 0.125 nats per token, [0, 0.125] at 95%; few-clusters
    """

    mean: float
    low: float
    high: float
    standard_error: float
    confidence: float
    count: int
    clusters: int
    effective_clusters: float
    question: Question
    method: str
    lam: float
    scope: str
    assumptions: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the mean."""
        return self.question.unit

    def __str__(self) -> str:
        how = f" (λ = {self.lam:.2f})" if self.method == "auto" else ""
        what = f"{self.question} by {self.method}{how}"
        if self.mean != self.mean:
            return f"{what}: no number ({self.reason})"
        span = f"[{self.low:.3g}, {self.high:.3g}] at {100 * self.confidence:.4g}%"
        marks = f"; {', '.join(self.marks)}" if self.marks else ""
        return f"{what}: {self.mean:.4g} {self.unit}, {self.reason or span}{marks}"


def estimate(
    *,
    log_p: ArrayLike,
    log_q: ArrayLike,
    log_sampler: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: ArrayLike | int | None = None,
    clusters: Any = None,
    exact: ArrayLike | None = None,
    logits_p: Any = None,
    logits_q: Any = None,
    top_p: tuple[Any, Any] | None = None,
    top_q: tuple[Any, Any] | None = None,
    tokens: ArrayLike | None = None,
    question: str | Question | None = None,
    level: str = "token_mean",
    prefixes: str = "sampler",
    method: str = "auto",
    confidence: float = 0.95,
    in_sample: bool = False,
) -> Estimate:
    """Estimate KL(p‖q) from the log-probs of sampled tokens.

        KL(p‖q) = E_{x~p}[log p(x) − log q(x)]; from a third sampler s with weight w = p/s

    Unbiased by k1 if q (and, under a third sampler, p) was fixed before the tokens were sampled
    and nothing was selected on the outcome, at ``sequence_sum`` and, to first order, at
    ``token_mean``, which is a ratio. ``auto`` is k1 + λ(r − 1), with λ from the data and drawn
    back to 0 where k1 and k3 disagree (``estimation/tapered.py``): seldom much worse than the
    better of the two, several times better than k1 where policies are close, and low by up to 1.2,
    1.9 or 2.5 standard errors of k1 (7, 28 or 100 times noisier than k_λ) where q has mass that
    was not sampled. By auto and k1 it can be negative, by k2, k3 and exact it cannot. It is a
    number for a log: it has no gradient, whatever the arrays carry.

    Intervals are clustered. That of auto ends below where k_λ does, less what can hide from it,
    and above where k1 does, both widened for skewness; the others are Student's.

    Args:
        log_p: Log-probs under p, [sequences, tokens], a list of rows of any lengths, or flat with
            ``lengths``, in nats; of NumPy, torch or JAX, on any device.
        log_q: Log-probs under q of the same tokens.
        log_sampler: Log-probs under the policy that sampled, if that was not p.
        mask: Which tokens count, bool or 0/1, of the same shape.
        lengths: The tokens of each sequence of flat arrays; 1 means independent samples.
        clusters: The prompt id of each sequence, [sequences]; by default each stands alone.
        exact: Exact KL(p‖q) at each prefix, in nats, or at some of them, chosen at random, and NaN
            elsewhere.
        logits_p: Logits of p at each prefix, [sequences, tokens, vocabulary] or flat [tokens,
            vocabulary]; in place of ``exact``, from which it is summed block by block.
        logits_q: Those of q.
        top_p: The largest log-probs of p at each prefix, as ids and log-probs, [sequences, tokens,
            k] or flat [tokens, k]; id −1 or NaN where a list is shorter. A sampled token that the
            engine appended may stand in them: with ``tokens`` it is told by its rank.
        top_q: Those of q, its own largest or the same ids.
        tokens: The sampled ids, of the shape of ``log_p``; heads need them.
        question: The question in words, ``KL(current||reference) ~ rollout``, which names the
            roles and, if given, overrides ``level`` and ``prefixes``.
        level: ``token_mean``, ``sequence_sum`` or ``sequence_mean``.
        prefixes: ``sampler`` or ``p``: whose prefixes to average over.
        method: ``auto``: the highest rung that the data reach, ``rao_blackwell`` (the exact KL at
            every prefix), ``subset`` (at some), ``partial`` (heads), else the tapered k_λ. Or one
            by name: these, ``k1``, ``k2``, ``k3``, ``exact`` (of these prefixes), ``bound`` (what
            the KL is at least), ``biased_head``, ``biased_head_renormalized``. ``k3_of_sums``, k3
            of summed log-probs, is refused, and the ``reason`` says how far off it would be.
        confidence: Nominal coverage of the interval.
        in_sample: Whether q (or p) was trained on these very tokens; the estimate is then marked.

    Returns:
        The estimate, in nats per token or per sequence as its ``unit`` says; a number that does
        not exist is NaN and has its ``reason``.

    Raises:
        ValueError: Shapes differ, the question does not fit the arrays, or a name is unknown.
        TypeError: An array is being traced (torch.compile, jit, vmap, grad) and has no value yet.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(0.1, 1.0, size=(64, 32))
        >>> e = estimate(log_p=-0.5 * (x - 0.1) ** 2, log_q=-0.5 * x**2)
        >>> round(e.mean, 4), round(e.low, 4), round(e.high, 4)  # the truth is 0.005
        (0.005, 0.0047, 0.0071)
    """
    from kullback.estimation import rungs

    asked = _question(question, log_sampler is not None, level, prefixes)
    arrays = {asked.p: log_p, asked.q: log_q}
    if log_sampler is not None:
        arrays[asked.sampler] = log_sampler
    known = {} if exact is None else {f"KL({asked.p}||{asked.q})": exact}
    columns = pack(arrays, mask=mask, lengths=lengths, clusters=clusters, exact=known)
    columns = with_given(
        columns,
        asked,
        logits_p=logits_p,
        logits_q=logits_q,
        top_p=top_p,
        top_q=top_q,
        tokens=tokens,
    )
    state = QuestionState.of(columns, asked)
    if method == "auto":
        method = rungs.best_rung(state)
    scope = f"new {columns.cluster_kind}s"
    return from_state(state, method, confidence, scope=scope, in_sample=in_sample)


def _question(question: str | Question | None, third: bool, level: str, prefixes: str) -> Question:
    if question is None:
        if prefixes not in ("sampler", "p"):
            raise ValueError(f"prefixes {prefixes!r} are neither 'sampler' nor 'p'")
        sampler = "sampler" if third else "p"
        return Question("p", "q", sampler, sampler if prefixes == "sampler" else "p", level)
    asked = Question.parse(question)
    needs_third = asked.sampler not in (asked.p, asked.q)
    if third and not needs_third:
        raise ValueError(f"log_sampler is given, but in {asked} the sampler is {asked.sampler}")
    if needs_third and not third:
        raise ValueError(f"{asked} needs log_sampler=: the log-probs under {asked.sampler}")
    return asked


def from_state(
    state: QuestionState,
    method: str = "auto",
    confidence: float = 0.95,
    *,
    scope: str = "new prompts",
    in_sample: bool = False,
) -> Estimate:
    """The estimate that a state holds, by one method.

    Args:
        state: The sums of one question.
        method: One of ``METHODS``, or a rung above sampled log-probs (``rungs.RUNGS``).
        confidence: Nominal coverage of the interval.
        scope: What the clusters stand for: ``new prompts`` or ``new sequences``.
        in_sample: Whether q (or p) was trained on these very tokens; the estimate is then marked.

    Raises:
        ValueError: The method is unknown, or the confidence is not between 0 and 1.
    """
    from kullback.estimation import rungs

    if method not in (known := (*METHODS, *rungs.RUNGS, sequence_k3.SUMMED)):
        raise ValueError(f"method {method!r} is none of {', '.join(known)}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    if method in rungs.RUNGS:
        return rungs.from_rungs(state, method, confidence, scope=scope, in_sample=in_sample)
    question = state.question
    effective = state.effective_clusters(sizes_of(ratio_of(question, method)[1]))
    reason = no_number(state, method)
    found = Auto(NOTHING, COEFFICIENTS.get(method, NOTHING.mean), NOTHING.mean)
    if reason is None:
        found = _of_method(state, method, effective, confidence, found)
        reason = no_interval(state, found.interval, effective)
    interval = found.interval
    if method == "exact" and interval.mean == interval.mean:
        # The mean over these prefixes is known; nothing was estimated.
        mean = interval.mean
        interval, scope, reason = Interval(mean, mean, mean, 0.0), "these prefixes", None
    return Estimate(
        **interval._asdict(),
        confidence=confidence,
        count=state.tokens,
        clusters=state.groups.clusters,
        effective_clusters=effective,
        question=question,
        method=method,
        lam=found.lam,
        scope=scope,
        assumptions=assumptions(state, method, found.unseen),
        marks=marks(state, method, effective, in_sample),
        reason=reason,
    )


def _of_method(
    state: QuestionState, method: str, effective: float, confidence: float, found: Auto
) -> Auto:
    if method == "auto":
        (k1, below), (k3, _) = (ratio_of(state.question, term) for term in ("k1", "k3"))
        sums = map(state.by_group, (k1, k3, below))
        return auto(state, *sums, effective=effective, confidence=confidence)
    above, below = map(state.by_group, ratio_of(state.question, method))
    interval = ratio_interval(above, below, effective=effective, confidence=confidence)
    return found._replace(interval=interval)


def ratio_of(question: Question, term: str) -> tuple[str, str]:
    """The two sums whose ratio is the mean of a term at the level of a question.

    Example:
        >>> ratio_of(Question("p", "q"), "k1")
        ('k1', 'tokens')
    """
    above = f"mean_of_{term}" if question.level == "sequence_mean" else term
    return above, _denominator(question, term)


def sizes_of(below: str) -> str:
    """The sum that says how large a cluster is, where this one stands below the line."""
    return "sequences" if below == "sequences" else "tokens"


def _denominator(question: Question, term: str) -> str:
    if question.level != "token_mean":
        return "sequences"
    if term == "exact":
        return "exact_tokens"
    # Over p's prefixes the expected length is p's too: the weights count the tokens.
    return "weight" if question.weight == "cumulative" else "tokens"


def no_number(state: QuestionState, method: str) -> str | None:
    """Why a state has no mean by a method of ``METHODS``, or None."""
    question = state.question
    if not state.tokens:
        return "no token has both log-probs"
    if method == "exact":
        return _no_exact(state)
    if state.infinite:
        return f"infinite: {state.infinite} tokens outside a support"
    if question.weight == "cumulative" and question.level == "sequence_mean":
        return "prefix weights answer per token and per sequence only"
    if question.level == "sequence_sum" and state.missing:
        return f"{state.missing} missing log-probs leave the sums of their sequences short"
    if question.weight == "cumulative" and state.missing:
        return f"{state.missing} missing log-probs break the weights of the prefixes behind them"
    return sequence_k3.refusal(state) if method == sequence_k3.SUMMED else None


def _no_exact(state: QuestionState) -> str | None:
    known, lost = int(state.total("exact_tokens")), state.missing + state.infinite
    if known < state.tokens + lost:
        return f"the exact KL is known at {known} of {state.tokens + lost} prefixes"
    if lost and state.question.level != "token_mean":
        return f"{lost} tokens have an exact KL but no usable log-probs"
    if state.question.weight == "cumulative":
        return f"the exact columns stand at prefixes of {state.question.sampler}"
    if state.total("exact") == float("inf"):
        return "infinite: the exact KL is infinite at a prefix"
    return None


def no_interval(state: QuestionState, interval: Interval, effective: float) -> str | None:
    """Why a mean, or its interval, could not be told from a state that has numbers; or None."""
    if interval.mean != interval.mean:
        return "the weights are all 0" if not state.total("weight") else "the mean overflows"
    if interval.low == interval.low:
        return None
    return TOO_FEW if effective < FEWEST_EFFECTIVE else "the error overflows"
