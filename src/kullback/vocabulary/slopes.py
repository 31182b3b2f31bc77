"""One KL of each row of logits and its derivative, which takes the place of the logits."""

from __future__ import annotations

from typing import Any

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
    odd = None if fine else _Odd(p, q, log_z_p, log_z_q, x)
    if odd is not None:
        probability[odd.where] = x[odd.where] = 0.0
    torch.expm1(x, out=e)
    # The normalizers are right to 1e-7, of a log q/p of 1e-3 the fourth digit. q - p sums to 0, so
    # what it sums to tells their error.
    error = torch.mul(probability, e, out=y).sum(-1).to(log_z_p.dtype)
    if odd is not None:
        odd.add_difference(error)
    error = error[:, None].to(x.dtype)
    e.sub_(error).div_(1.0 + error)
    kl = k3_by(e, x.sub_(error.log1p()), y, s, t).mul_(probability).sum(-1).to(log_z_p.dtype)
    if odd is not None:
        odd.add_divergence(kl)
    if slope_in == "q":
        torch.mul(probability, e, out=q)
    elif slope_in == "p":
        torch.add(x, kl[:, None].to(x.dtype), out=p).mul_(probability).neg_()
    if odd is not None:
        odd.write_slope(p, q, kl, slope_in)
    return kl


class _Odd:
    """Categories whose log q/p float32 cannot hold: taken out of the rows, treated with care."""

    def __init__(self, p: Any, q: Any, log_z_p: Any, log_z_q: Any, x: Any) -> None:
        self.where = (x < LEAST) | (x > MOST)
        self._rows = self.where.nonzero()[:, 0]
        self._log_p = p[self.where].to(log_z_p.dtype) - log_z_p[self._rows]
        self._log_q = q[self.where].to(log_z_q.dtype) - log_z_q[self._rows]
        self._difference = self._log_q.exp() - self._log_p.exp()

    def add_difference(self, sums: Any) -> None:
        """Add their q - p to what the others make."""
        sums.index_add_(0, self._rows, self._difference)

    def add_divergence(self, kl: Any) -> None:
        """Add their share of KL(p||q)."""
        terms = weighted_k3(log_p=self._log_p, log_q=self._log_q, log_sampler=0.0)
        kl.index_add_(0, self._rows, terms)

    def write_slope(self, p: Any, q: Any, kl: Any, slope_in: str) -> None:
        """Write their derivatives, by the same formulas."""
        if slope_in == "q":
            q[self.where] = self._difference.to(q.dtype)
        elif slope_in == "p":
            # Where p is 0 so is the derivative, whatever the logarithm is.
            log_q_over_p = (self._log_q - self._log_p).masked_fill_(self._log_p.isneginf(), 0.0)
            p[self.where] = -(self._log_p.exp() * (log_q_over_p + kl[self._rows])).to(p.dtype)
