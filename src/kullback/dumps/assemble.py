"""Decoded rows to ``Columns``: nulls filled, ids whole, heads cut, clusters keyed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback import heads
from kullback.clusters import cluster_keys
from kullback.columns import Columns, TopK, floating
from kullback.dumps.batch import Batch, Fault, Use
from kullback.dumps.checks import per_token, sound
from kullback.dumps.errors import Damaged
from kullback.dumps.heads import ranked
from kullback.dumps.ids import mixed_keys
from kullback.dumps.layout import LABEL, is_label, role_of
from kullback.dumps.ragged import Ragged, TokenBytes, starts

NO_HEAD = "lists nothing but the sampled token, or nothing: that is no head of a distribution"
NO_RANK = "without tokens or top_k the rank of the sampled token, and so the head, is unknown"


class Assembler:
    """The batches of one file, turned into columns.

    Args:
        path: The file.
        name: What it is called where its tokens are placed.
        counted: How its rows are counted for a person: ``row`` (from 0) or ``line`` (from 1).
        nominal: The k of each role's heads, as far as rows before these have shown it.

    ``damaged`` names the rows that the last batch lost; ``unused`` the columns that turned out to
    be of no use, with the reason.
    """

    def __init__(
        self, path: str, name: str, counted: str, nominal: Mapping[str, int] | None = None
    ) -> None:
        self.path = path
        self.name = name
        self.counted = counted
        self.damaged: list[Damaged] = []
        self.unused: dict[str, str] = {}
        self.nominal: dict[str, int] = dict(nominal or {})

    def columns(self, batch: Batch) -> Columns | None:
        """The usable rows of a batch; None if there are none."""
        self.unused |= batch.unused
        batch, lengths = sound(batch)
        faults = sorted(batch.faults, key=lambda fault: (fault.row, fault.within or 0))
        self.damaged = [self._damaged(fault) for fault in faults]
        if not len(batch.rows):
            return None
        filled = _filled(batch, lengths)
        tokens = _ids(filled["tokens"]) if "tokens" in filled else None
        whole = {use.part: v for use, v in zip(batch.uses, batch.values, strict=True)}
        numbers = batch.rows if batch.numbers is None else batch.numbers
        keys, kind = self._clusters(whole, numbers)
        return Columns(
            lengths=lengths,
            mask=_mask(batch, lengths),
            log_probs=_by_role(filled, "log_probs."),
            clusters=keys,
            cluster_kind=kind,
            entropy=_by_role(filled, "entropy."),
            top_k=self._heads(batch.uses, whole, filled, tokens, lengths),
            exact={part: v for part, v in filled.items() if part.startswith("KL(")},
            tokens=tokens,
            token_bytes=_token_bytes(filled.get("token_bytes")),
            text=whole.get("text"),
            versions=_versions(filled, whole, lengths),
            labels=_labels(whole),
            source=self.name,
            rows=batch.rows,
            within=batch.within,
        )

    def _damaged(self, fault: Fault) -> Damaged:
        place = self.place(fault.row)
        if fault.within is not None:
            place += f", sequence {fault.within}"
        return Damaged(self.path, fault.row, place, fault.reason)

    def place(self, row: int) -> str:
        """A row as a person counts it: ``row 16`` or ``line 17``."""
        return f"line {row + 1}" if self.counted == "line" else f"row {row}"

    def _clusters(
        self, whole: dict[str, Any], numbers: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], str]:
        if "prompt_id" in whole:
            return mixed_keys(whole["prompt_id"]), "prompt"
        if "prompt" in whole:
            return cluster_keys(_prompt_texts(whole["prompt"])), "prompt"
        # Unique over all files: the file's key sets where its sequences begin to count.
        return cluster_keys(cluster_keys([self.path]) + numbers.astype(np.uint64)), "sequence"

    def _heads(
        self,
        uses: Sequence[Use],
        whole: dict[str, Any],
        filled: dict[str, Any],
        tokens: NDArray[np.int64] | None,
        lengths: NDArray[np.int64],
    ) -> dict[str, TopK]:
        found = {}
        for use in uses:
            if use.family != "top_ids":
                continue
            role = role_of(use.part)
            ids, log_probs = filled[use.part], filled[f"top_log_probs.{role}"]
            ids = replace(ids, values=_ids(ids.values))
            log_probs = replace(log_probs, values=floating(log_probs.values, use.column))
            head = ranked(ids, log_probs, tokens)
            if stated := whole.get(f"top_k.{role}"):
                found[role] = heads.cut(head, np.repeat(np.array(stated), lengths))
            elif tokens is None:
                self.unused[use.column] = NO_RANK
            elif k := self._nominal_k(role, head, tokens):
                found[role] = heads.cut(head, k)
            else:
                self.unused[use.column] = NO_HEAD
        return found

    def _nominal_k(self, role: str, head: TopK, tokens: NDArray[np.int64]) -> int:
        """The k of the file, by the first batch that shows it: all its heads are cut alike."""
        if not self.nominal.get(role):
            self.nominal[role] = heads.nominal(head, tokens)
        return self.nominal[role]


def _filled(batch: Batch, lengths: NDArray[np.int64]) -> dict[str, Any]:
    """The entries of every column with one per token; a null list becomes missing entries.

    The mask, which may be several columns, is not among them.
    """
    filled = {}
    for use, value in per_token(batch):
        if use.family in ("log_probs", "entropy", "exact"):
            value = replace(value, values=floating(value.values, use.column))
        missing = heads.ABSENT if _whole(value) else np.nan
        if use.family != "mask":
            filled[use.part] = value.filled(lengths, missing)
    return filled


def _whole(value: Ragged) -> bool:
    return isinstance(value.values, np.ndarray) and value.values.dtype.kind in "iu"


def _by_role(filled: dict[str, Any], prefix: str) -> dict[str, NDArray[Any]]:
    return {role_of(part): values for part, values in filled.items() if part.startswith(prefix)}


def _ids(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), heads.ABSENT, values)
    return values.astype(np.int64)


def _mask(batch: Batch, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A token counts if every mask column says so; with no mask, every token does."""
    mask = np.ones(int(lengths.sum()), dtype=np.bool_)
    for use, value in zip(batch.uses, batch.values, strict=True):
        if use.family == "mask":
            mask &= value.values.astype(np.bool_)
        elif use.family == "sequence_mask":
            mask &= np.repeat(np.array(value, dtype=np.bool_), lengths)
    return mask


def _token_bytes(values: Any) -> TokenBytes | None:
    if isinstance(values, Ragged):
        return TokenBytes(values.values.astype(np.uint8), starts(values.lengths), values.known)
    if isinstance(values, np.ndarray):  # Nothing but nulls was seen: every id is special.
        size = len(values)
        return TokenBytes(np.zeros(0, np.uint8), np.zeros(size + 1, int), np.zeros(size, bool))
    return values


def _versions(
    filled: dict[str, Any], whole: dict[str, Any], lengths: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    if "versions" in filled:
        return _ids(filled["versions"])
    if "versions" not in whole:
        return None
    each = [one if isinstance(one, int) else heads.ABSENT for one in whole["versions"]]
    return np.repeat(np.array(each, dtype=np.int64), lengths)


def _labels(whole: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """What is known of each sequence, [sequences]; an unknown number is NaN."""
    labels = {}
    for part, values in whole.items():
        if not is_label(part):
            continue
        name = part.removeprefix(LABEL)
        if any(isinstance(one, str | bool) for one in values) or part == "sampling.log_probs":
            labels[name] = np.array(values, dtype=object)
        elif all(isinstance(one, int) for one in values):
            labels[name] = np.array(values, dtype=np.int64 if max(values) < 2**63 else object)
        else:
            labels[name] = np.array(values, dtype=np.float64)
    return labels


def _prompt_texts(prompts: Ragged | list[Any]) -> list[str]:
    """Each prompt as one text: itself, its ids, or its messages as JSON."""
    if isinstance(prompts, Ragged):
        ids, cuts = _ids(prompts.values), starts(prompts.lengths)
        return [ids[start:end].tobytes().hex() for start, end in pairwise(cuts)]
    return [
        one if isinstance(one, str) else json.dumps(one, sort_keys=True, default=str)
        for one in prompts
    ]
