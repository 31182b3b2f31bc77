"""Which estimate to read, how sure that is, where the holes are, and what to log next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kullback.estimation.contributors import Contributor
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rungs import best_rung, rungs_of
from kullback.estimation.shape_evidence import ShapeEvidence, shape_evidence
from kullback.estimation.summary import Summary
from kullback.formulas.shape import shape
from kullback.question import Question

DEEP = 3.0  # nats: of tokens that q likes so much more than p, the places are named
NAMED = 3
# What each rung above sampled log-probs needs, from the cheapest on.
NEEDS = {
    "partial": "the 20 largest log-probs of both policies at each prefix, with the sampled ids",
    "subset": "the exact KL at 5 % of the positions, chosen at random",
    "rao_blackwell": "the exact KL at every prefix: one pass over the logits of both",
}
CANNOT_TELL = "cannot tell from this"


@dataclass(frozen=True, slots=True)
class Rung:
    """What better data would buy.

    Args:
        method: ``partial``, ``subset`` or ``rao_blackwell``.
        log: What has to be logged for it.
        gain: How many times narrower its interval is than that of sampled log-probs, clustered
            alike; NaN where this dump cannot tell.
    """

    method: str
    log: str
    gain: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What to make of one question.

    Args:
        question: The question.
        method: The estimate to read: the highest rung that the data reach, else ``auto``; of whole
            distributions ``k1`` or ``k3``, whichever varies less.
        verdict: ``holes``: k3 is too low or hangs on a few ratios (of whole distributions: k1
            varies less). ``smooth``: k3 errs less than k1. ``cannot-tell``.
        certainty: ``exact`` (from whole distributions), ``beyond-chance``, or ``none``.
        S: χ²/(2J), exact; NaN where only samples are known, as are the next three.
        lam: λ* = J/χ², the best coefficient of r − 1 for independent tokens.
        chi2: Var_p(r).
        jeffreys: J = KL(p‖q) + KL(q‖p), in nats.
        why: The evidence, in sentences.
        where: The deepest sampled holes: tokens and their places.
        next_rungs: What better data would buy, the cheapest first.
        estimate: By ``method``; None of whole distributions, of which nothing was estimated.
        half_width: Half its interval, or 1.96 standard deviations of a token, in nats.
        count: The clusters that it rests on, or 1 token.

    Example:
        >>> [found] = advise(p=[0.001, 0.4995, 0.4995], q=[0.1, 0.45, 0.45])
        >>> found.verdict, found.method, round(found.S, 2), found.needed(0.01)
        ('holes', 'k1', 10.52, 852)
    """

    question: Question
    method: str
    verdict: str
    certainty: str
    S: float
    lam: float
    chi2: float
    jeffreys: float
    why: tuple[str, ...]
    where: tuple[str, ...]
    next_rungs: tuple[Rung, ...]
    estimate: Estimate | None
    half_width: float
    count: int

    def needed(self, half_width: float) -> int | None:
        """The clusters (of whole distributions: tokens) that give an interval of ± half_width.

        They grow as its inverse square. None where there is no interval to start from.

        Raises:
            ValueError: The half-width is not positive.
        """
        if not half_width > 0:
            raise ValueError(f"half_width {half_width} is not positive: give it in nats")
        needed = self.count * (self.half_width / half_width) ** 2
        return math.ceil(needed) if math.isfinite(needed) else None


def advise(
    summary: Summary | None = None, *, p: ArrayLike | None = None, q: ArrayLike | None = None
) -> tuple[Advice, ...]:
    """Say which estimate to read, why, and what to log to make it tighter.

    Whether k1 or k3 errs less depends on S = χ²/(2J), which whole distributions tell exactly. From
    sampled log-probs it cannot be read where holes were not sampled: then the verdict rests on
    what shows (``estimation/shape_evidence.py``), or is ``cannot-tell``. It never follows from
    the smaller sample variance. A sampler that did not sample looks like a hole.

    Args:
        summary: What ``kb.summarize`` made; one advice for each of its questions.
        p: In place of it, probabilities of p, [..., categories]; rows are prefixes and count alike.
        q: Those of q.

    Returns:
        One for each question of the summary, or one for the two distributions.

    Raises:
        ValueError: Neither a summary nor both distributions are given, or both are.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> x = np.random.default_rng(1).normal(0.1, 1.0, size=(64, 32))
        >>> batch = pack({"old": -0.5 * (x - 0.1) ** 2, "current": -0.5 * x**2})
        >>> [found] = advise(summarize([batch]))
        >>> found.method, found.verdict, found.certainty
        ('auto', 'cannot-tell', 'none')
        >>> found.needed(0.0005)  # sequences for ± 0.0005 nats; there are 64
        951
    """
    if summary is not None and p is None and q is None:
        return tuple(_of_state(one, state) for one, state in summary.questions.items())
    if summary is None and p is not None and q is not None:
        return (_of_distributions(p, q),)
    raise ValueError("give a summary, or both p= and q= as probabilities of whole distributions")


def _of_distributions(p: ArrayLike, q: ArrayLike) -> Advice:
    pair = shape(p, q)
    kl, other, chi2 = (float(np.mean(x)) for x in (pair.kl_pq, pair.kl_qp, pair.chi2_qp))
    verdict, s, why = _of_moments(kl, other, chi2)
    method = "k3" if verdict == "smooth" else "k1"
    within = pair.variance_k3 if method == "k3" else pair.variance_k1
    return Advice(
        question=Question("p", "q"),
        method=method,
        verdict=verdict,
        certainty="none" if verdict == "cannot-tell" else "exact",
        S=s,
        lam=(kl + other) / chi2 if 0 < chi2 < math.inf else math.nan,
        chi2=chi2,
        jeffreys=kl + other,
        why=(why,),
        where=(),
        next_rungs=(),
        estimate=None,
        # A token is drawn at one of the rows, whose KLs differ.
        half_width=1.96 * math.sqrt(float(np.mean(within) + _spread(pair.kl_pq))),
        count=1,
    )


def _spread(kl: Any) -> float:
    with np.errstate(invalid="ignore"):  # of infinite ones
        return float(np.var(kl))


def _of_moments(kl: float, other: float, chi2: float) -> tuple[str, float, str]:
    """The verdict, S, and why, from KL(p‖q), KL(q‖p) and χ²."""
    if kl == math.inf:
        return "cannot-tell", math.nan, "KL(p||q) is infinite: p has mass where q has none"
    if other == math.inf:
        said = "q has mass where p has none: no sample of p shows it, and k3 is too low by it"
        return "holes", math.nan, said
    if not kl + other > 0:
        return "cannot-tell", math.nan, "p and q are equal: k1 and k3 are 0"
    s = chi2 / (2 * (kl + other))
    less = "k3 varies less than k1" if s < 1 else "k1 varies less than k3"
    return "smooth" if s < 1 else "holes", s, f"S = χ²/(2J) is {s:.3g}: {less}"


def _of_state(question: Question, state: QuestionState) -> Advice:
    evidence, method = shape_evidence(state), best_rung(state)
    auto, best = from_state(state), from_state(state, method)
    certain = evidence.verdict != "cannot-tell"
    return Advice(
        question=question,
        method=method,
        verdict=evidence.verdict,
        certainty="beyond-chance" if certain else "none",
        S=math.nan,
        lam=math.nan,
        chi2=math.nan,
        jeffreys=math.nan,
        why=_why(question, evidence),
        where=tuple(_named(one) for one in state.top_k3 if one.log_q - one.log_p > DEEP)[:NAMED],
        next_rungs=_rungs(state, auto),
        estimate=best,
        half_width=(best.high - best.low) / 2,
        count=best.clusters,
    )


def _why(question: Question, seen: ShapeEvidence) -> tuple[str, ...]:
    if math.isnan(seen.missing):
        return (f"{CANNOT_TELL}: too few clusters, or a sum overflows",)
    q, s = question.q, question.sampler
    said = []
    if seen.least > 0:
        said.append(
            f"{seen.against} − k3 is {seen.missing:.3g}, at least {seen.least:.2g}: k3 is too low "
            f"by that, since mass of {q} was not sampled, or {s} did not sample"
        )
    if seen.S_least > 1:
        said.append(
            f"ratios were sampled so large that S = χ²/(2J) is at least {seen.S_least:.2g}: k3 "
            "hangs on how often they come"
        )
    if seen.verdict == "smooth":
        said.append(
            f"k3's error ({seen.error_k3:.2g}) and all that may be missing "
            f"({max(seen.most, 0.0):.2g}) are together less than k1's error ({seen.error_k1:.2g})"
        )
    if seen.verdict == "cannot-tell":
        said.append(
            f"{CANNOT_TELL}: nothing shows a hole, and up to {max(seen.most, 0.0):.2g} of {q}'s "
            f"mass may be hidden. If none is, k3's error is {seen.error_k3:.2g} where k1's is "
            f"{seen.error_k1:.2g}; by what is hidden k3 is too low"
        )
    return tuple(said)


def _named(one: Contributor) -> str:
    text = f"{one.text[1]!r} " if one.text else f"id {one.token} " if one.token is not None else ""
    return f"{text}({one.place}), q/p = {math.exp(min(one.log_q - one.log_p, 700.0)):.3g}"


def _rungs(state: QuestionState, auto: Estimate) -> tuple[Rung, ...]:
    there: dict[str, Any] = {
        name: from_state(state, name) for name in rungs_of(state) if name in NEEDS
    }
    width = auto.high - auto.low

    def gain(name: str) -> float:
        if name not in there or not there[name].high > there[name].low:
            return math.nan
        return width / (there[name].high - there[name].low)

    return tuple(Rung(name, log, gain(name)) for name, log in NEEDS.items())
