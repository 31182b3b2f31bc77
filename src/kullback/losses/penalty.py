"""A KL for the reward, and for the advantage: constants per token, k1 unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kullback.arrays import at_least_float32, held, namespace
from kullback.formulas.k_family import k1, k2, k3
from kullback.formulas.partial import head, lower_bound
from kullback.levels import log_q_over_p, selected
from kullback.losses.along import Along


@dataclass(frozen=True, slots=True)
class PenaltyClaim:
    """What the policy gradient of minus this term descends in the mean: plus, less minus.

    Attributes:
        plus: With the score term, of whole sequences, if what comes later counts (reward-to-go);
            at each prefix, if only the token itself does.
        minus: At each prefix, the prefixes held fixed; None for nothing.
        reason: What that does; None where it is the gradient of KL(p||q).
    """

    plus: str
    minus: str | None = None
    reason: str | None = None


# E[k d log p] = d E[k] - E[d k]: a score function has the slope of the mean of k less k's own.
CLAIMS = {
    "k1": PenaltyClaim("KL(p||q)"),
    "k2": PenaltyClaim(
        "E_p[x^2] / 2", "KL(p||q)", "near q that is a difference of two gradients that are equal"
    ),
    "k3": PenaltyClaim(
        "KL(p||q)",
        "KL(q||p)",
        "near q the two cancel, so that hardly a leash is left while the KL in the log looks right",
    ),
    "exact": PenaltyClaim(
        "KL(p||q)",
        "KL(p||q)",
        "the exact KL is the same whichever token is drawn, so that only what the token does to "
        "later prefixes is left; as kb.loss(form='rao_blackwell') it is right",
    ),
}
_FORMULAS: dict[str, Callable[[Any], Any]] = {"k1": k1, "k2": k2, "k3": k3}
_AUTO = (
    "auto is an estimate, k1 + w lambda (r - 1), and no penalty: as a reward its part r - 1 adds "
    "-w lambda times the gradient of KL(q||p), and w depends on the batch; take k1"
)


def penalty(
    *,
    log_p: Any,
    log_q: Any,
    mask: Any = None,
    form: str = "k1",
    exact: Any = None,
    biased: bool = False,
) -> Any:
    """KL(p||q) for the reward: what to take off it at each token, a constant.

    k1 = log p(x) - log q(x)

    The policy gradient with reward-to-go then descends KL(p||q) of whole sequences, if p sampled
    them (or its importance weights stand in the policy gradient). k1 can be negative, and has to
    be: of what is never negative the policy gradient is another one. k2, k3 and the exact KL are
    refused unless ``biased=True``: k3 gives the gradient of KL(p||q) - KL(q||p), which nearly
    vanishes near q. Do not put the same KL in the loss as well: that is twice of it.
    Source: Schulman et al. 2015 on rewards; Tang and Munos 2025.

    Args:
        log_p: Log-probs of the sampled tokens under p, any shape, nats: those that the policy
            had when it was rewarded.
        log_q: Under q, the reference.
        mask: Which tokens count, bool or 0/1; the others get 0.
        form: ``k1``, or with biased=True ``k2``, ``k3`` or ``exact``.
        exact: KL(p||q) at each prefix, for that form.
        biased: Whether it may be biased.

    Returns:
        One number per token, nats, through which no gradient flows; float32 at least.

    Raises:
        ValueError: The form is unknown, is ``auto``, or is biased and that is not allowed; exact=
            is missing or not used; shapes differ.
        TypeError: The arrays belong to different libraries.

    Example:
        >>> import numpy as np
        >>> penalty(log_p=np.array([-1.0, -2.0]), log_q=np.array([-1.5, -1.0])).tolist()
        [0.5, -1.0]
    """
    _allow(form, biased)
    if (form == "exact") != (exact is not None):
        raise ValueError("form='exact' takes exact=, the KL at each prefix, and no other form does")
    log_r = log_q_over_p(log_p=log_p, log_q=log_q, mask=mask)
    xp = namespace(log_r)
    if exact is not None:
        return held(_of_tokens(exact, log_r, mask, xp), xp)
    return held(_FORMULAS[form](log_r), xp)


def advantage(
    *,
    log_p: Any,
    log_q: Any,
    mask: Any = None,
    lengths: Any = None,
    form: str = "k1",
    gradient: str = "token",
    exact: Any = None,
    top_log_p: Any = None,
    top_log_q: Any = None,
    biased: bool = False,
) -> Any:
    """On-policy distillation as an advantage: how much better q likes each token of p than p does.

    A = baseline - k1,  k1 = log p(x) - log q(x)

    The policy gradient of A descends KL(p||q), p the student that sampled and q the teacher: at
    each prefix (``token``), or of whole sequences, if what comes later counts (``sequence``). A
    baseline that the prefix decides leaves that mean as it is. With exact= it is KL(p||q) at the
    prefix, with top_log_p= and top_log_q= the KL of the head and one bucket for the rest. It need
    not take noise: an exact one adds 0.6 to 25 % in small languages (results/gradients.json).
    Source: Thinking Machines 2025 (on-policy distillation); vOPD 2026 for the baseline.

    Args:
        log_p: Log-probs of the sampled tokens under the student, [sequences, tokens] or flat, nats.
        log_q: Under the teacher.
        mask: Which tokens count, bool or 0/1; the others get 0.
        lengths: Tokens of each sequence of flat values, for ``sequence``.
        form: ``k1``, or with biased=True ``k2`` or ``k3``.
        gradient: ``token`` or ``sequence``.
        exact: KL(p||q) at each prefix, for the baseline.
        top_log_p: Log-probs of ids that do not depend on the token drawn, [..., k], under p.
        top_log_q: Of the same ids under q.
        biased: Whether it may be biased.

    Returns:
        One number per token, nats, through which no gradient flows; float32 at least.

    Raises:
        ValueError: The form is unknown, is ``auto``, or is biased and that is not allowed; the
            gradient is unknown; two baselines are given, or half of one; shapes differ.
        TypeError: The arrays belong to different libraries.

    Example:
        >>> import numpy as np
        >>> advantage(log_p=np.array([[-1.0, -2.0]]), log_q=np.array([[-1.5, -1.0]])).tolist()
        [[-0.5, 1.0]]
    """
    if form == "exact":
        raise ValueError("the exact KL is a baseline here: give exact= and leave form='k1'")
    _allow(form, biased)
    if gradient not in ("token", "sequence"):
        raise ValueError(f"gradient {gradient!r} is none of token, sequence")
    log_r = log_q_over_p(log_p=log_p, log_q=log_q, mask=mask)
    xp = namespace(log_r)
    cost = _FORMULAS[form](log_r)
    if gradient == "sequence":
        if (lengths is None) != (cost.ndim == 2):
            raise ValueError(
                "what comes later takes [sequences, tokens] and a mask, or flat values and lengths"
            )
        cost = Along(cost, lengths, xp).from_here(cost)
    baseline = _baseline(exact, top_log_p, top_log_q)
    if baseline is None:
        return held(0.0 - cost, xp)
    return held(_of_tokens(baseline, cost, mask, xp) - cost, xp)


def _of_tokens(values: Any, tokens: Any, mask: Any, xp: Any) -> Any:
    """What is known at each token, 0 outside the mask."""
    known = at_least_float32(values, xp)
    if known.shape != tokens.shape:
        raise ValueError(
            f"what is known at each prefix has shape {tuple(known.shape)}, the tokens "
            f"{tuple(tokens.shape)}"
        )
    return known if mask is None else selected(known, mask, xp)[0]


def _baseline(exact: Any, top_log_p: Any, top_log_q: Any) -> Any:
    halves = (top_log_p is None) + (top_log_q is None)
    if halves == 1 or (exact is not None and not halves):
        raise ValueError("give one baseline: exact=, or both top_log_p= and top_log_q=")
    return exact if halves else lower_bound(head(log_p=top_log_p, log_q=top_log_q))


def _allow(form: str, biased: bool) -> None:
    if form == "auto":
        raise ValueError(_AUTO)
    if form not in CLAIMS:
        raise ValueError(f"form {form!r} is none of {', '.join(CLAIMS)}")
    claim = CLAIMS[form]
    if claim.reason and not biased:
        raise ValueError(
            f"{form} as a reward descends {claim.plus} less {claim.minus}: {claim.reason}; take "
            "k1, or biased=True"
        )
