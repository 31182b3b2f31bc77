"""The chain rule: divergences within two parts, and between the parts, to those of the whole."""

from __future__ import annotations

from typing import Any, NamedTuple

from kullback.vocabulary.sums import terms_with_care


class Part(NamedTuple):
    """A part of the vocabulary: how much of either side it holds, and the six within it.

    KL(p||q) of the whole is that of the masses of its parts, plus the mass under p of each part
    times KL(p||q) within it. Entropies and chi2 are built likewise, JS is not: it depends on the
    balance of p and q at each category, which only the whole knows. No term is negative, so none
    cancels.

    Attributes:
        log_z_p: [rows] log sum exp of the logits of p in this part.
        log_z_q: the same of q.
        sums: [rows, 6] within the part, as if it were a whole vocabulary.
    """

    log_z_p: Any
    log_z_q: Any
    sums: Any

    def joined(self, other: Part) -> Part:
        """The two parts as one."""
        import torch

        log_z_p = torch.logaddexp(self.log_z_p, other.log_z_p)
        log_z_q = torch.logaddexp(self.log_z_q, other.log_z_q)
        log_p = torch.stack([self.log_z_p, other.log_z_p], -1) - log_z_p[:, None]
        log_q = torch.stack([self.log_z_q, other.log_z_q], -1) - log_z_q[:, None]
        between = terms_with_care(log_p, log_q)  # [rows, 2 parts, 6]
        p, q = log_p.exp(), log_q.exp()
        weights = torch.stack([p, q, p, q, (2 * log_q - log_p).exp(), torch.zeros_like(p)], -1)
        within = torch.stack([self.sums, other.sums], 1)
        # Where a side has nothing in a part, nothing within the part is defined; what counts of it
        # stands between the parts. So does an infinite weight.
        counted = (weights > 0) & weights.isfinite() & ~within.isnan()
        total = between + torch.where(counted, weights * within, 0.0)
        return Part(log_z_p, log_z_q, total.sum(1))
