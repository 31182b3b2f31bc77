"""The baseline: the same numbers of one pair, as a competent user writes them over whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def whole_array(
    log_p: NDArray[np.float32], log_q: NDArray[np.float32], prompts: NDArray[np.int64]
) -> dict[str, float]:
    """Means, clustered errors, quantiles and shares of k1, k2 and k3.

    Args:
        log_p: Log-probs of the sampled tokens, [sequences, tokens].
        log_q: The same under the other policy.
        prompts: The prompt of each sequence, numbered from 0, [sequences].
    """
    log_r = (log_q - log_p).astype(np.float64)
    r = np.exp(log_r)
    kinds = {"k1": -log_r, "k2": 0.5 * log_r**2, "k3": np.expm1(log_r) - log_r}
    found = {"mean_r": r.mean(), "mean_r2": (r * r).mean(), "max_r": r.max()}
    found["clipped"] = ((r < 0.8) | (r > 1.2)).mean()
    found["truncated"] = np.minimum(r, 2.0).mean()
    tokens = np.bincount(prompts, minlength=prompts.max() + 1) * log_p.shape[1]
    for name, values in kinds.items():
        mean = values.mean()
        sums = np.bincount(prompts, weights=values.sum(axis=1))
        residuals = sums - mean * tokens
        scale = len(sums) / (len(sums) - 1)
        found[name] = mean
        found[f"{name}_error"] = np.sqrt(scale * (residuals**2).sum()) / values.size
        found[f"{name}_std"] = values.std()
        for level in (0.5, 0.95, 0.99):
            found[f"{name}_p{level}"] = np.quantile(values, level)
        found[f"{name}_min"], found[f"{name}_max"] = values.min(), values.max()
        found[f"{name}_sequence_mean"] = values.mean(axis=1).mean()
    found["negative"] = (kinds["k1"] < 0).mean()
    top = np.argsort(-kinds["k3"].ravel())[:10]
    found["top_share"] = kinds["k3"].ravel()[top].sum() / kinds["k3"].sum()
    for lag in (-1, 1):
        moved = log_p[:, max(0, -lag) : log_p.shape[1] - max(0, lag)]
        other = log_q[:, max(0, lag) : log_q.shape[1] - max(0, -lag)]
        found[f"lag_{lag}"] = (moved - other).var()
    return found
