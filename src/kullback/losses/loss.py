"""A KL loss by name: its value is the estimate, its gradient what it says."""

from __future__ import annotations

from typing import Any

from kullback.arrays import held, own
from kullback.formulas.k_family import k3
from kullback.levels import Totals
from kullback.losses.forms import coefficients
from kullback.losses.loss_claim import WEIGHTS, LossClaim, loss_claim
from kullback.losses.tokens import Tokens, like_result, tokens_of


def loss(
    *,
    log_p: Any,
    log_q: Any,
    log_sampler: Any = None,
    mask: Any = None,
    lengths: Any = None,
    aggregate: str = "token_mean",
    gradient: str = "token",
    learn: str = "p",
    form: str = "auto",
    prefixes: str | None = None,
    weights: str | None = None,
    exact: Any = None,
    baseline: Any = None,
    truncate: float | None = None,
    clamp: float | None = None,
    biased: bool = False,
    pooled: Totals | None = None,
) -> Any:
    """KL(p||q) as a loss, whose value is the estimate and whose gradient is the KL's.

    value = v k3 of each token,  gradient = sum of c_t d log p(token)

    Autograd of an estimate is the gradient of something else: of k1 it is zero in the mean, of k3
    that of KL(q||p). Here value and gradient are made apart. The value, weighted k3 (or the exact
    KL), is unbiased for KL(p||q) and never negative; the gradient is in the mean that of KL(p||q),
    at each prefix (``token``) or of whole sequences (``sequence``). What would be something else is
    refused unless ``biased=True``; `kb.loss_claim` says what it is. It is unbiased if p and q were
    fixed before the tokens were drawn, nothing was selected on the outcome, and no support is
    missing; at token_mean up to 1/n, the error of every ratio of means. Sources: Tang and Munos
    2025 on value and gradient; Schulman et al. 2015 on the score term.

    ``form``, of which all but those marked have the same mean and differ in noise:

        k2             v log(p/q): straight through, the default for token
        ratio_k1       v (log(p/q) + 1): autograd of (p/s) k1, weight in the graph
        ratio_k3       autograd of (p/s) k3; for ``token`` it is k2, token by token
        score          v (log(p/q) - baseline); for ``sequence`` the default, with what comes later
        rao_blackwell  the gradient of exact=, for ``sequence`` with the score of what comes later
        k1, k3         autograd with the weight held: right where q learns, else biased
        ratio_k2       biased

    Args:
        log_p: Log-probs of the sampled tokens under p, [sequences, tokens] or flat with
            ``lengths``, nats; of torch or JAX (NumPy gives the value alone).
        log_q: Under q. Who does not learn is a constant.
        log_sampler: Under the policy that drew the tokens, a constant; without it p drew them.
        mask: Which tokens count, bool or 0/1, of the same shape. What stands at the others is
            never read, neither for the value nor for the gradient.
        lengths: Tokens of each sequence of flat (packed) values.
        aggregate: ``token_mean`` or ``sequence_sum``; ``sequence_mean`` is biased.
        gradient: ``token``: the prefixes are held fixed; ``sequence``: with the score term, by
            which a token answers for the KL of those that follow it. With token_mean that is the
            gradient of E[sum] / E[length], not of E[sum] / length.
        learn: Who is differentiated, ``p`` or ``q``.
        form: How; ``auto`` takes exact= if it is given.
        prefixes: Whose prefixes the KL is over: ``sampler`` (weights p/s of the token) or ``p``
            (of all tokens up to it). Default: p's for ``sequence``.
        weights: Overrules that: ``sequence`` is noisier, ``none`` and ``token`` can be biased.
        exact: KL(p||q) at each prefix with its graph, as `kb.exact` gives it of logits.
        baseline: b of the score form, [sequences, tokens], a constant that is known before the
            token is drawn.
        truncate: What a weight counts at most; biased.
        clamp: What a log-ratio counts at most, of either sign; biased.
        biased: Whether it may be biased.
        pooled: `kb.loss_totals` of the whole step, added over ranks and micro-batches. The loss is
            then this batch's share: the shares add to the loss of the step.

    Returns:
        A scalar, nats, in the precision of log_p, float32 at least. Infinite where q rules out a
        token that counts; that token then has no gradient.

    Raises:
        ValueError: Options do not go together, a bias is not allowed, or shapes differ; with torch
            and JAX a mask of other numbers than 0 and 1 gives NaN.
        TypeError: The arrays belong to different libraries.

    Example:
        >>> import numpy as np
        >>> log_p, log_q = np.log([[0.5, 0.25]]), np.log([[0.25, 0.5]])
        >>> round(float(loss(log_p=log_p, log_q=log_q)), 6)
        0.25
    """
    claim = loss_claim(
        learn=learn,
        gradient=gradient,
        form=form,
        aggregate=aggregate,
        other_sampler=log_sampler is not None,
        prefixes=prefixes,
        weights=weights,
        truncate=truncate,
        clamp=clamp,
        exact=exact is not None,
    )
    if claim.biased and not biased:
        raise ValueError(f"this is no unbiased KL loss; biased=True takes it as it is.\n{claim}")
    if baseline is not None and claim.form != "score":
        raise ValueError(f"a baseline goes with form='score', not with {claim.form}")
    tokens = tokens_of(
        log_p=log_p,
        log_q=log_q,
        log_sampler=log_sampler,
        mask=mask,
        lengths=lengths,
        weights=claim.weights,
        clamp=clamp,
    )
    known = None if exact is None else tokens.selected(exact)
    ahead = 0.0 if baseline is None else held(tokens.selected(baseline), tokens.xp)
    value = _value(tokens, known, truncate)
    step = _step(value, tokens, claim, truncate) if pooled is None else pooled
    slope = _slope(tokens, claim, known, truncate, step, ahead)
    # The value of the one and the gradient of the other.
    share = tokens.totals(held(value, tokens.xp) + (slope - held(slope, tokens.xp)))
    found = Totals(share.total, step.tokens, share.sequence_means, step.sequences).at(aggregate)
    return like_result(found, log_p if learn == "p" else log_q, tokens.xp)


def loss_totals(
    *,
    log_p: Any,
    log_q: Any,
    log_sampler: Any = None,
    mask: Any = None,
    lengths: Any = None,
    prefixes: str = "sampler",
    exact: Any = None,
) -> Totals:
    """What `kb.loss` divides by, to be added over ranks and micro-batches.

    A mean of the means of micro-batches is another number, with another gradient. Add these four
    numbers over the step and give the sum as ``pooled=``; then the losses add, and so do their
    gradients. Where a trainer takes the mean over N ranks or accumulation steps, multiply by N.

    Args:
        log_p: As in `kb.loss`, like all that follow.
        log_q: Under q.
        log_sampler: Under the policy that drew the tokens, if that is not p.
        mask: Which tokens count.
        lengths: Tokens of each sequence of flat values.
        prefixes: ``sampler`` or ``p``, as the loss has it (p's for gradient="sequence").
        exact: KL(p||q) at each prefix, if the loss is made of it.

    Returns:
        `kb.Totals`, constants: k3 (or the exact KL) in all, tokens, means of sequences, sequences;
        over p's prefixes from another sampler's tokens all of it weighted.

    Raises:
        ValueError: Shapes differ or the name of the prefixes is unknown.

    Example:
        >>> import numpy as np
        >>> one = loss_totals(log_p=np.log([[0.5]]), log_q=np.log([[0.25]]))
        >>> two = loss_totals(log_p=np.log([[0.5, 0.2]]), log_q=np.log([[0.25, 0.2]]))
        >>> (one + two).tokens
        3
    """
    claim = loss_claim(
        other_sampler=log_sampler is not None, prefixes=prefixes, exact=exact is not None
    )
    tokens = tokens_of(
        log_p=log_p,
        log_q=log_q,
        log_sampler=log_sampler,
        mask=mask,
        lengths=lengths,
        weights=claim.weights,
        clamp=None,
    )
    known = None if exact is None else tokens.selected(exact)
    return _step(_value(tokens, known, None), tokens, claim, None)


def _value(tokens: Tokens, exact: Any, truncate: float | None) -> Any:
    """The estimate on each token; its mean is KL(p||q) if nothing is wrong with it."""
    if exact is not None:
        return tokens.weight_before(truncate) * exact
    return tokens.weight(truncate) * k3(tokens.log_q_over_p) + tokens.q_alone


def _step(value: Any, tokens: Tokens, claim: LossClaim, truncate: float | None) -> Totals:
    """What the loss of a step divides by, if this is all of it."""
    found = tokens.totals(held(value, tokens.xp))
    if WEIGHTS[claim.weights] == "sampler":
        return found
    # Over p's prefixes the expected length is p's too: the weights count the tokens.
    exact = claim.form == "rao_blackwell"
    counts = tokens.weight_before(truncate) if exact else tokens.weight(truncate)
    return Totals(found.total, tokens.totals(counts).total, *found[2:])


def _slope(
    tokens: Tokens,
    claim: LossClaim,
    exact: Any,
    truncate: float | None,
    step: Totals,
    baseline: Any,
) -> Any:
    """On each token, what has the gradient of the form; its value is of no use."""
    xp, sequence = tokens.xp, claim.gradient == "sequence"
    # d(E[sum] / E[length]): a token more adds the KL that it has beyond the mean.
    mean = 0.0
    if sequence and claim.aggregate == "token_mean":
        mean = held(own(step.at("token_mean"), xp), xp)
        mean = xp.where(xp.isinf(mean), 0.0, mean)
    learner = tokens.log_p if claim.learn == "p" else tokens.log_q
    learner = xp.where(xp.isinf(learner), 0.0, learner)  # the value says so; it has no gradient
    if exact is None:
        return learner * coefficients(
            tokens,
            learn=claim.learn,
            gradient=claim.gradient,
            form=claim.form,
            weights=claim.weights,
            truncate=truncate,
            mean=mean,
            baseline=baseline,
        )
    exact = xp.where(xp.isinf(exact), 0.0, exact)
    weights = tokens.weight_before(truncate)
    pathwise = weights * exact
    if claim.learn == "q" or not sequence:
        return pathwise
    free = 1.0 if truncate is None else xp.where(weights < truncate, 1.0, 0.0)
    ahead = weights * (held(exact, xp) - mean) * free * tokens.counted
    return pathwise + learner * (tokens.along.from_here(ahead) - ahead)
