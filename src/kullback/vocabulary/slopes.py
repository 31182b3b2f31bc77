"""One KL of each row of logits and its derivative, which takes the place of the logits."""

from __future__ import annotations

from typing import Any

from kullback.arrays import sum_dtype
from kullback.formulas.weights import weighted_k3
from kullback.vocabulary.sums import LEAST, MOST, k3_by, log_normalizers, log_ratio


def kl_and_slope(p: Any, q: Any, room: Any, *, slope_in: str) -> Any:
    """KL(p||q) of each row; the logits that are learned are overwritten by its derivative in them.

    d KL(p||q) / d logits of p = p (log p/q - KL);  d KL(p||q) / d logits of q = q - p

    Args:
        p: [rows, categories] logits of p, float32 or float64, overwritten if slope_in is "p".
        q: the same of q, overwritten if slope_in is "q".
        room: a `workspace` of as many categories and at least as many rows.
        slope_in: which side is learned, or "" for the KL alone.

    Returns:
        [rows] KL in the precision of sums.
    """
    import torch

    room = room[:, : len(p)]
    probability, x, e, y, s, t = room[:6]
    log_z_q = log_normalizers(q, x)  # the probabilities of q are not needed
    log_z_p = log_normalizers(p, probability)
    fine = log_ratio(p, q, log_z_p, log_z_q, x)
    odd = None if fine else (x < LEAST) | (x > MOST)
    if odd is not None:
        rows = odd.nonzero()[:, 0]
        log_p = p[odd].to(log_z_p.dtype) - log_z_p[rows]
        log_q = q[odd].to(log_z_q.dtype) - log_z_q[rows]
        probability[odd] = x[odd] = 0.0
    torch.expm1(x, out=e)
    wide = sum_dtype(p, torch)
    kl = k3_by(e, x, y, s, t).mul_(probability).sum(-1).to(wide)
    if odd is not None:
        kl.index_add_(0, rows, weighted_k3(log_p=log_p, log_q=log_q, log_sampler=0.0))
    if slope_in == "q":
        torch.mul(probability, e, out=q)
        if odd is not None:
            q[odd] = (log_q.exp() - log_p.exp()).to(q.dtype)
    elif slope_in == "p":
        torch.add(x, kl[:, None].to(x.dtype), out=p).mul_(probability).neg_()
        if odd is not None:
            # Where p is 0 so is the derivative, whatever the logarithm is.
            ratio = (log_q - log_p).masked_fill(log_p == -torch.inf, 0.0)
            p[odd] = -(log_p.exp() * (ratio + kl[rows])).to(p.dtype)
    return kl
