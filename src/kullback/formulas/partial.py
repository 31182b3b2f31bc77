"""Top-k log-probs of both policies: the likeliest tokens summed exactly, the others sampled.

K are the ids of which both log-probs are known at a prefix, T all others. What stands in K must
not depend on what was drawn: a token that an engine appended to its list because it was drawn is
none of K. From `head`, the sums over K, and log_q_over_p = log q(x) - log p(x) of the token x ~ p
follow one number per token. Without any id in K all of them are k1, 0 or a control that is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kullback.arrays import at_least_float32, namespace, only_where, quiet, wide
from kullback.formulas.claim import Q_FIXED, Q_INSIDE_P, UNSELECTED, Claim
from kullback.formulas.k_family import k1, k3

HEAVIEST = 1.01  # what a head may weigh: rounding to bfloat16 moves a sum by so much
K_FIXED = "the ids of the head do not depend on what was drawn"
_NOISE = 16  # units of rounding, below which nothing is known of the mass outside a head


class Head(NamedTuple):
    """The sums over K at each prefix.

    Attributes:
        nats: sum over K of p log(p/q); it can be negative.
        p: mass of K under p.
        q: mass of K under q.
        p_tail: mass outside K under p, >= 0.
        q_tail: mass outside K under q, at least what rounding could hide.
    """

    nats: Any
    p: Any
    q: Any
    p_tail: Any
    q_tail: Any

    @property
    def mean(self) -> Any:
        """The mean of log(p/q) over K, nats; 0 where p has no mass there."""
        xp = namespace(self.p)
        return xp.where(self.p > 0, self.nats / xp.where(self.p > 0, self.p, 1.0), 0.0)


def head(*, log_p: Any, log_q: Any) -> Head:
    """The sums over the ids of which both log-probs are known.

    Args:
        log_p: log-probabilities under p, [..., k], nats; NaN where an id is not known.
        log_q: log-probabilities under q of the same ids.

    Returns:
        Sums in float64 where the device has it, [...].

    Raises:
        ValueError: when the ids of a row weigh more than 1.01 under p or q.

    Example:
        >>> from math import log
        >>> found = head(log_p=[log(0.5), log(0.25)], log_q=[log(0.25), float("nan")])
        >>> round(float(found.nats), 6), float(found.p_tail), float(found.q_tail)
        (0.346574, 0.5, 0.75)
    """
    xp = namespace(log_p, log_q)
    p, q = at_least_float32(log_p, xp), at_least_float32(log_q, xp)
    least = _NOISE * float(max(xp.finfo(p.dtype).eps, xp.finfo(q.dtype).eps))
    known = ~(xp.isnan(p) | xp.isnan(q))
    p, q = (wide(xp.where(known, one, -xp.inf), xp) for one in (p, q))
    possible = p > -xp.inf
    log_p_over_q = xp.where(possible, p, 0.0) - xp.where(possible, q, 0.0)
    probs = xp.exp(p)
    nats = xp.sum(probs * log_p_over_q, axis=-1)
    mass_p, mass_q = (
        only_where(mass <= HEAVIEST, mass, xp, _too_heavy(side, mass))
        for side, mass in (("p", xp.sum(probs, axis=-1)), ("q", xp.sum(xp.exp(q), axis=-1)))
    )
    return Head(
        nats,
        mass_p,
        mass_q,
        xp.where(mass_p < 1, 1 - mass_p, 0.0),
        xp.where(mass_q < 1 - least, 1 - mass_q, least),
    )


def _too_heavy(side: str, mass: Any) -> Any:
    return lambda ok: ValueError(
        f"a head of {side} weighs {mass.ravel()[int(ok.ravel().argmin())]:.6g}, expected 1 at "
        "most; give log-probabilities, not logits or probabilities"
    )


def plain(*, log_q_over_p: Any, inside: Any, head: Head) -> Any:
    """The head exactly, and k1 where the token is outside.

    sum over K of p log(p/q) + 1[x in T] k1(x)

    Unbiased for KL(p||q) when q was fixed before x ~ p was drawn, nothing was selected on the
    outcome and K does not depend on x. Its variance can be above that of k1.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, [...], nats.
        inside: whether x is in K, bool, [...].
        head: the sums over K.

    Returns:
        One number per sample, nats.

    Example:
        >>> from math import log
        >>> known = head(log_p=[log(0.5)], log_q=[log(0.25)])
        >>> round(float(plain(log_q_over_p=-0.1, inside=False, head=known)), 6)
        0.446574
    """
    return head.nats + _outside(k1, log_q_over_p, inside)


def conditional(*, log_q_over_p: Any, inside: Any, head: Head) -> Any:
    """k1 where the token is outside the head, its mean over the head where it is inside.

    1[x in K] (sum over K of p log(p/q)) / P(K) + 1[x in T] k1(x)

    Unbiased for KL(p||q) on the conditions of `plain`. It is the mean of k1 given all but which
    token of K was drawn, so its variance is that of k1 at most, whatever p and q are.
    Source: the theorem of Rao and Blackwell.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, [...], nats.
        inside: whether x is in K, bool, [...].
        head: the sums over K.

    Returns:
        One number per sample, nats.

    Example:
        >>> from math import log
        >>> known = head(log_p=[log(0.5)], log_q=[log(0.25)])
        >>> round(float(conditional(log_q_over_p=0.4, inside=True, head=known)), 6)
        0.693147
    """
    xp = namespace(log_q_over_p, head.p)
    # A token of a head without mass cannot have been drawn; if one was, k1 is all there is.
    summed = inside & (head.p > 0)
    return xp.where(summed, head.mean, 0.0) + _outside(k1, log_q_over_p, summed)


def head_control(*, inside: Any, head: Head) -> Any:
    """Whether the token is outside the head, less the probability of that.

    1[x in T] - P(T)

    Mean zero on the conditions of `plain`, and given the prefix, so any number that the prefix
    decides times it may be taken off an estimate. Between -1 and 1.

    Args:
        inside: whether x is in K, bool, [...].
        head: the sums over K.

    Returns:
        One number per sample.

    Example:
        >>> from math import log
        >>> known = head(log_p=[log(0.75)], log_q=[log(0.25)])
        >>> round(float(head_control(inside=False, head=known)), 6)
        0.75
    """
    xp = namespace(head.p)
    return xp.where(inside, 0.0, 1.0) - head.p_tail


def tail_control(*, log_q_over_p: Any, inside: Any, head: Head) -> Any:
    """The other policy over the sampler, less 1, outside the head; less the mean of that.

    1[x in T] (r - 1) - (Q(T) - P(T)),  r = q(x)/p(x)

    Mean zero on the conditions of `plain` when, besides, q puts no mass where p has none. As
    heavy-tailed as k3 where p dropped tokens of q that are in no head.

    Args:
        log_q_over_p: log q(x) - log p(x) of the samples, [...], nats.
        inside: whether x is in K, bool, [...].
        head: the sums over K.

    Returns:
        One number per sample.

    Example:
        >>> from math import log
        >>> known = head(log_p=[log(0.5)], log_q=[log(0.25)])
        >>> round(float(tail_control(log_q_over_p=log(1.5), inside=False, head=known)), 6)
        0.25
    """
    xp = namespace(log_q_over_p, head.p)
    with quiet(xp):
        return _outside(xp.expm1, log_q_over_p, inside) + (head.q - head.p)


def lower_bound(head: Head) -> Any:
    """What the KL is at least: all tokens outside the head taken for one.

    sum over K of p log(p/q) + P(T) log(P(T) / Q(T)) <= KL(p||q)

    A bound, not an estimate: the mean over prefixes is below the KL by what the tokens of T differ
    among themselves. Never negative. Source: data processing (Cover and Thomas, ch. 2).

    Args:
        head: the sums over K.

    Returns:
        [...] nats.

    Example:
        >>> from math import log
        >>> round(float(lower_bound(head(log_p=[log(0.5)], log_q=[log(0.25)]))), 6)
        0.143841
    """
    # As in `exact`, as sums of q - p - p log(q/p), each of them >= 0: then an error of the masses
    # enters squared.
    xp, some = namespace(head.p), head.p_tail > 0
    gap = head.nats + (head.q - head.p)
    log_r = xp.log(head.q_tail) - xp.log(xp.where(some, head.p_tail, 1.0))
    return xp.where(gap > 0, gap, 0.0) + xp.where(some, head.p_tail * k3(log_r), 0.0)


def centre(head: Head) -> Any:
    """By how much log(p/q) is taken to be larger outside the head than inside.

    log(P(T) / Q(T)) - (sum over K of p log(p/q)) / P(K)

    A guess that the prefix decides; 0 where either side has no mass.

    Args:
        head: the sums over K.

    Returns:
        [...] nats.

    Example:
        >>> from math import log
        >>> round(float(centre(head(log_p=[log(0.5)], log_q=[log(0.25)]))), 6)
        -1.098612
    """
    xp, both = namespace(head.p), (head.p_tail > 0) & (head.p > 0)
    log_p = xp.log(xp.where(both, head.p_tail, 1.0))
    return xp.where(both, log_p - xp.log(xp.where(both, head.q_tail, 1.0)) - head.mean, 0.0)


def biased_head(head: Head) -> Any:
    """The sum over the head alone, as if nothing were outside. No estimate of the KL.

    sum over K of p log(p/q)

    Args:
        head: the sums over K.

    Returns:
        [...] nats; it can be negative.

    Example:
        >>> from math import log
        >>> round(float(biased_head(head(log_p=[log(0.5)], log_q=[log(0.25)]))), 6)
        0.346574
    """
    return head.nats


def biased_head_renormalized(head: Head) -> Any:
    """The KL of the heads, each divided by its mass. No estimate of the KL, and no bound.

    (sum over K of p log(p/q)) / P(K) - log(P(K) / Q(K))

    Args:
        head: the sums over K.

    Returns:
        [...] nats; 0 where p has no mass in the head.

    Example:
        >>> from math import log
        >>> found = biased_head_renormalized(head(log_p=[log(0.5)], log_q=[log(0.25)]))
        >>> round(float(found), 6) + 0.0
        0.0
    """
    xp, some = namespace(head.p), head.p > 0
    with quiet(xp):
        log_q = xp.log(xp.where(some, head.q, 1.0))
        return xp.where(some, head.mean - xp.log(xp.where(some, head.p, 1.0)) + log_q, 0.0)


def _outside(formula: Any, log_q_over_p: Any, inside: Any) -> Any:
    """A formula of log r outside the head, 0 inside; selected before anything is computed."""
    xp = namespace(log_q_over_p)
    log_r = at_least_float32(log_q_over_p, xp)
    return xp.where(inside, 0.0, formula(xp.where(inside, 0.0, log_r)))


_CONDITIONS = (Q_FIXED, UNSELECTED, K_FIXED)

# The head is a constant that was logged; what is differentiated is log_p of the token alone.
CLAIMS = {
    "plain": Claim(
        "KL(p||q)", "p", _CONDITIONS, can_be_negative=True, expected_gradient="P(T)"
    ),
    "conditional": Claim(
        "KL(p||q)", "p", _CONDITIONS, can_be_negative=True, expected_gradient="P(T)"
    ),
    "head_control": Claim("0", "p", _CONDITIONS, can_be_negative=True, expected_gradient="0"),
    "tail_control": Claim(
        "0",
        "p",
        (*_CONDITIONS, Q_INSIDE_P),
        can_be_negative=True,
        expected_gradient="sum over T of q log(q/p)",
        mean_without_support="-Q(T outside supp p)",
    ),
}  # fmt: skip
