"""The six sums of a pair of rows, or of pieces of them, in plain torch: fast, or with care.

Everything is weighted by p and made of x = log q/p and e = q/p - 1 = expm1(x), so that equal
distributions give 0 and close ones no noise. There is no torch.where in what runs as a rule: on a
CPU it costs four exponentials.
"""

from __future__ import annotations

from math import expm1, factorial, log
from typing import Any

from kullback.arrays import sum_dtype
from kullback.formulas.weights import weighted_k3

# Categories whose log q/p leaves these ends (or is infinite) are added with care: beyond them p may
# underflow where p (q/p)^2 does not, or q where log(p/q) does not.
LEAST, MOST = -40.0, 30.0

# e^x - 1 - x is a series on [-1/16, 1/16], and beyond it the difference, which costs 5 bits.
_EDGE = 1 / 16
_TERMS = {"float32": 4, "float64": 8}
_TINY = 1e-37  # a normal float32: p/q where both have underflowed


def workspace(rows: int, categories: int, like: Any) -> Any:
    """The arrays that `six_sums` works in, to be made once and used for all pieces.

    New ones for every piece would be fetched from the system each time: three quarters of the work.
    """
    return like.new_empty((7, rows, categories))


def log_normalizers(z: Any, p: Any) -> Any:
    """Log sum exp z of each row in the precision of sums; the probabilities go to p.

    softmax is torch's fastest exponential. Its float32 sum is off by 1e-5, so the sum is taken
    again; the largest probability is then 1 / sum exp(z - max z).
    """
    import torch

    torch.softmax(z, -1, out=p)
    p.div_(p.sum(-1, keepdim=True))
    wide = sum_dtype(z, torch)
    top = z.amax(-1).to(wide)
    # A piece without any possible category has no probabilities, but it has this.
    return top.where(top == -torch.inf, top - p.amax(-1).to(wide).log())


def log_ratio(a: Any, b: Any, log_z_p: Any, log_z_q: Any, x: Any) -> bool:
    """Put log q/p of each category into x, 0 where neither can occur; can float32 hold them all?"""
    import torch

    shift = (log_z_q - log_z_p)[:, None]
    whole = shift.round()
    # Taking off an integer rounds nothing, nor does the difference of what is then close.
    torch.sub(b, whole.to(x.dtype), out=x).sub_(a).sub_((shift - whole).to(x.dtype))
    low, high = x.amin(), x.amax()
    if low.isnan():  # -inf less -inf; a logit that is NaN shows in its row's normalizer
        x.nan_to_num_(0.0, float("inf"), float("-inf"))
        low, high = x.amin(), x.amax()
    return bool((low >= LEAST) & (high <= MOST))


def k3_by(e: Any, x: Any, y: Any, series: Any, beyond: Any) -> Any:
    """e^x - 1 - x, given e = expm1(x), without its cancellation and without a branch.

    k3(x) = k3(y) + (e - e_y) - (x - y) with y = x clamped to where the series holds; there the two
    differences are 0 exactly. The last three arguments are written to.
    """
    import torch

    torch.clamp(x, -_EDGE, _EDGE, out=y)
    terms = _TERMS[str(x.dtype).removeprefix("torch.")]
    torch.mul(y, 1 / factorial(terms + 1), out=series)
    for n in range(terms, 2, -1):
        series.add_(1 / factorial(n)).mul_(y)
    series.add_(0.5).mul_(y).mul_(y)
    torch.clamp(e, expm1(-_EDGE), expm1(_EDGE), out=beyond)
    return series.add_(torch.sub(e, beyond, out=beyond).sub_(x).add_(y))


def six_sums(
    a: Any, b: Any, room: Any, log_z_p: Any = None, log_z_q: Any = None, *, js: bool = True
) -> tuple[Any, ...]:
    """KL(p||q), KL(q||p), H(p), H(q), chi2(q||p) and JS of each row, or their shares of a piece.

    Args:
        a: [rows, categories] logits of p in float32 or float64.
        b: [rows, categories] logits of q.
        room: a `workspace` of at least as many rows, and as many categories.
        log_z_p: [rows], where the rows are pieces of longer ones: the normalizers of those.
        log_z_q: the same of q.
        js: without it 0 stands for JS, which is a fifth of the work.

    Returns:
        The normalizers of both sides, [rows], and the sums, [rows, 6], in the precision of sums.
    """
    room = room[:, : len(a)]
    if log_z_p is None:
        log_z_p, log_z_q = log_normalizers(a, room[0]), log_normalizers(b, room[1])
    else:
        _log_probs(a, log_z_p, room[0]).exp_()
        _log_probs(b, log_z_q, room[1]).exp_()
    p, q, x = room[:3]
    if log_ratio(a, b, log_z_p, log_z_q, x):
        return log_z_p, log_z_q, _sums(a, b, log_z_p, log_z_q, room, js=js)
    # The odd categories are taken out, as if neither side had them, and added with care.
    odd = (x < LEAST) | (x > MOST)
    rows = odd.nonzero()[:, 0]
    wide = log_z_p.dtype
    log_p, log_q = a[odd].to(wide) - log_z_p[rows], b[odd].to(wide) - log_z_q[rows]
    for one in (p, q, x):
        one[odd] = 0.0
    sums = _sums(a, b, log_z_p, log_z_q, room, js=js)
    return log_z_p, log_z_q, sums.index_add_(0, rows, terms_with_care(log_p, log_q))


def _log_probs(z: Any, log_z: Any, out: Any) -> Any:
    """Logits less their normalizer, which is taken off in two parts: large logits round it away."""
    import torch

    high = log_z.to(z.dtype)
    low = (log_z - high).to(z.dtype)
    return torch.sub(z, high[:, None], out=out).sub_(low[:, None])


def _sums(a: Any, b: Any, log_z_p: Any, log_z_q: Any, room: Any, *, js: bool) -> Any:
    import torch

    p, q, x, e, s, t, u = room
    wide = sum_dtype(a, torch)

    def entropy(z: Any, log_z: Any, weight: Any) -> Any:
        # Where the probability is 0 its logarithm may be -inf.
        return -_log_probs(z, log_z, s).clamp_(min=-1e4).mul_(weight).sum(-1).to(wide)

    entropies = entropy(a, log_z_p, p), entropy(b, log_z_q, q)
    torch.expm1(x, out=e)
    kl_pq = k3_by(e, x, s, t, u).mul_(p).sum(-1).to(wide)
    torch.mul(p, e, out=s)
    jeffreys = torch.mul(s, x, out=t).sum(-1).to(wide)
    chi2 = s.mul_(e).sum(-1).to(wide)
    # Every category's share of KL(q||p) is at least a 40th of its share of J: the difference of
    # the two sums loses no more than that.
    kl_qp = (jeffreys - kl_pq).clamp_(0.0)
    mixed = _js(p, q, jeffreys, s, u) if js else torch.zeros_like(kl_pq)
    return torch.stack([kl_pq, kl_qp, *entropies, chi2, mixed], -1)


def _js(p: Any, q: Any, jeffreys: Any, chi2: Any, room: Any) -> Any:
    """JS of each row from p, q, its J, and the terms p e^2 of its chi2.

    With m = (p + q) / 2 and t = tanh(x / 2) it is sum m (t x + log(1 - t^2)) / 2, where sum m t x
    is J / 2, and 1 / (1 - t^2) - 1 = e^2 p / (4 q) has no cancellation at either end.
    """
    import torch

    torch.add(q, _TINY, out=room).mul_(4.0)
    curve = torch.div(chi2, room, out=room).log1p_().mul_(p.add_(q)).sum(-1)
    return ((jeffreys - curve.to(jeffreys.dtype)) / 4).clamp_(0.0)


def where_defined(log_z_p: Any, log_z_q: Any, sums: Any) -> Any:
    """The sums of whole rows; NaN where a side has no possible category, or a logit that is NaN."""
    import torch

    p, q = log_z_p.isfinite(), log_z_q.isfinite()
    both = p & q
    return sums.where(torch.stack([both, both, p, q, both, both], -1), torch.nan)


def terms_with_care(log_p: Any, log_q: Any) -> Any:
    """What categories add to the six, by the formulas as they stand, infinities included.

    Args:
        log_p: [...] log-probabilities in the precision of sums.
        log_q: the same of q.

    Returns:
        [..., 6].
    """
    import torch

    impossible = float("-inf")
    dead = (log_p == impossible) & (log_q == impossible)
    x = (log_q - log_p).masked_fill_(dead, 0.0)
    # (p - q)^2 / p is p e^2 or, where q is the larger, q (q/p) (1 - p/q)^2.
    e = (-x.abs()).expm1_()
    chi2 = torch.where(x > 0, log_q + x, log_p).exp_().mul_(e).mul_(e)
    log_m = torch.logaddexp(log_p, log_q) - log(2.0)
    to_middle = weighted_k3(log_p=log_p, log_q=log_m, log_sampler=0.0)
    terms = (
        weighted_k3(log_p=log_p, log_q=log_q, log_sampler=0.0),
        weighted_k3(log_p=log_q, log_q=log_p, log_sampler=0.0),
        -log_p.exp() * log_p.masked_fill(log_p == impossible, 0.0),
        -log_q.exp() * log_q.masked_fill(log_q == impossible, 0.0),
        chi2.masked_fill_(dead, 0.0),
        (to_middle + weighted_k3(log_p=log_q, log_q=log_m, log_sampler=0.0)) / 2,
    )
    return torch.stack(terms, -1)
