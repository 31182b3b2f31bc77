"""Heads, ids and logits as people hold them, put beside the log-probs of a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.arrays import to_numpy
from kullback.columns import Columns, TopK, floating
from kullback.estimation.rungs_state import too_heavy
from kullback.formulas import categorical
from kullback.heads import ABSENT, cut, in_order, nominal
from kullback.question import Question
from kullback.uneven import end_to_end

LOGITS = 1 << 22  # of one side, in one block


def with_given(
    columns: Columns,
    question: Question,
    *,
    logits_p: Any,
    logits_q: Any,
    top_p: tuple[Any, Any] | None,
    top_q: tuple[Any, Any] | None,
    tokens: Any,
) -> Columns:
    """A batch with the heads of both sides, and the exact KL from their logits, if given.

    Raises:
        ValueError: One side is given and the other is not, something does not have the shape of
            the log-probs, or is not what its name says.
    """
    if (logits_p is None) != (logits_q is None):
        raise ValueError("logits_p and logits_q go together: a KL needs both")
    if (top_p is None) != (top_q is None):
        raise ValueError("top_p and top_q go together: what counts is what both list")
    if tokens is not None:
        columns = replace(columns, tokens=_ids(tokens, "tokens", len(columns)))
    if logits_p is not None:
        name = f"KL({question.p}||{question.q})"
        if columns.exact:
            raise ValueError("give either exact= or the logits, from which it is summed")
        columns = replace(columns, exact={name: _exact(columns, logits_p, logits_q)})
    if top_p is None or top_q is None:
        return columns
    if columns.tokens is None:
        raise ValueError(
            "top_p and top_q need tokens=, the sampled ids: without them nobody knows whether the "
            "sampled token is in a list, and whether it was appended"
        )
    heads = {
        question.p: _head(columns, top_p, "top_p"),
        question.q: _head(columns, top_q, "top_q"),
    }
    return replace(columns, top_k=heads)


def _ids(values: Any, name: str, size: int) -> NDArray[np.int64]:
    ids = to_numpy(end_to_end({name: values})[0][name], name)
    if ids.size != size:
        raise ValueError(f"{name} holds {ids.size} ids for {size} tokens")
    return _whole(ids, name).reshape(-1)


def _whole(ids: NDArray[Any], name: str) -> NDArray[np.int64]:
    if ids.dtype.kind not in "iu":
        raise ValueError(f"{name} holds {ids.dtype}, not whole numbers")
    return ids.astype(np.int64)


def _head(columns: Columns, given: tuple[Any, Any], name: str) -> TopK:
    """The k largest log-probs at each prefix, without a token that was appended."""
    if len(given) != 2:
        raise ValueError(f"{name} is a pair: ids and log-probs")
    ids = _whole(to_numpy(given[0], f"ids of {name}"), f"ids of {name}")
    log_probs = floating(given[1], f"log-probs of {name}")
    if ids.shape != log_probs.shape:
        raise ValueError(f"{name} has ids of shape {ids.shape}, log-probs {log_probs.shape}")
    if ids.ndim not in (2, 3) or ids.shape[-1] * len(columns) != ids.size or not ids.size:
        raise ValueError(
            f"{name} has shape {ids.shape}, expected k entries for each of {len(columns)} tokens: "
            "[sequences, tokens, k] or [tokens, k]"
        )
    width, tokens = ids.shape[-1], columns.tokens
    assert tokens is not None
    table = np.where(ids < 0, ABSENT, ids).reshape(-1, width)
    table[~columns.mask] = ABSENT
    head = in_order(table, log_probs.reshape(-1, width).copy(), tokens)
    head = cut(head, nominal(head, tokens))
    if not head.ids.size:
        raise ValueError(f"{name} lists nothing but the sampled token: that is no head")
    if (heavy := too_heavy(head)).any():
        raise ValueError(
            f"{name} weighs more than 1 at {columns.place(int(heavy.argmax()))}: give "
            "log-probabilities, not logits or probabilities"
        )
    return head


def _exact(columns: Columns, logits_p: Any, logits_q: Any) -> NDArray[np.float64]:
    """The KL at each token of the mask, NaN elsewhere; in blocks, on the device of the logits."""
    sides = []
    for name, values in (("logits_p", logits_p), ("logits_q", logits_q)):
        values = values if hasattr(values, "reshape") else to_numpy(values, name)
        shape = tuple(values.shape)
        if len(shape) not in (2, 3) or int(np.prod(shape[:-1])) != len(columns):
            raise ValueError(
                f"{name} has shape {shape}, expected a row for each of {len(columns)} tokens: "
                "[sequences, tokens, vocabulary] or [tokens, vocabulary]"
            )
        sides.append(values.reshape((len(columns), shape[-1])))
    found = np.full(len(columns), np.nan)
    step = max(1, LOGITS // max(int(sides[0].shape[1]), 1))
    for start in range(0, len(columns), step):
        here = slice(start, start + step)
        rows = categorical.exact(logits_p=sides[0][here], logits_q=sides[1][here])
        found[here] = np.where(columns.mask[here], to_numpy(rows, "the KL"), np.nan)
    lost = columns.mask & np.isnan(found)
    if lost.any():
        raise ValueError(
            f"the logits have no KL at {columns.place(int(lost.argmax()))}, one of {lost.sum()}: "
            "rows hold NaN, or nothing finite"
        )
    return found
