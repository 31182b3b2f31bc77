"""Top-k lists as files hold them, ragged, to heads: the k largest log-probs at each prefix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import TopK
from kullback.dumps.ragged import Ragged
from kullback.heads import ABSENT, in_order


def ranked(ids: Ragged, log_probs: Ragged, tokens: NDArray[np.int64] | None) -> TopK:
    """The lists as [tokens, longest], largest first; a shorter list ends in id −1 and NaN.

    Args:
        ids: The ids of each list, one list per token, as int64.
        log_probs: Their log-probs, in nats; lists of the same lengths.
        tokens: The sampled ids, [tokens], if known.
    """
    width = int(ids.lengths.max(initial=0))
    filled = np.arange(width) < ids.lengths[:, None]
    table = _table(ids.values, filled, ABSENT)
    return in_order(table, _table(log_probs.values, filled, np.nan), tokens)


def _table(values: NDArray[Any], filled: NDArray[np.bool_], missing: float) -> NDArray[Any]:
    if filled.all():
        return values.reshape(filled.shape).copy()
    table = np.full(filled.shape, missing, dtype=values.dtype)
    table[filled] = values
    return table
