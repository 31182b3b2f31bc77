"""All that a logged number could be of given tokens: formula, policies, weight, clamp and mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, is_sentinel
from kullback.formulas import k_family
from kullback.levels import segment_sums

Array = NDArray[np.float64]

# Of x = log q/p of a sampled token. The last is a slip: a k3 whose log-ratio is a ratio already.
METHODS: Mapping[str, Callable[[Array], Array]] = {
    "k1": k_family.k1,
    "k2": k_family.k2,
    "k3": k_family.k3,
    "|log r|": np.abs,
    "r log r - (r - 1)": k_family.other_direction,
    "r": np.exp,
    "k3 of the ratio": lambda x: np.expm1(np.exp(x)) - np.exp(x),
}
SYMMETRIC = ("k1", "k2", "|log r|")  # but for a sign, the same with p and q exchanged
_WEIGHTED = ("k1", "k2", "k3", "|log r|")
_INNER, _OUTER = 20.0, 10.0  # where frameworks clamp the log-ratio, and the term
LEVELS = (
    "token_mean",
    "sequence_sum",
    "sequence_mean",
    "sum",
    "padded_mean",
    "sum over the width",
    "mean of micro-batches",
    "mean over sequences",
)
# Where nobody took the mask: what else a level is then called.
FORGOTTEN = {"token_mean": "every position", "sequence_sum": "every position of a row"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a number can be, up to a factor.

    Args:
        method: A name of ``METHODS``, or ``exact``.
        p: The role whose expectation it is said to be.
        q: The other.
        level: How tokens become one number, a name of ``LEVELS`` or ``FORGOTTEN``.
        weight: The factor of a token: ``p/SAMPLER``; or its geometric mean over the sequence,
            ``p/SAMPLER by sequence``.
        clamp: What is held constant: ``log-ratio at 20``, ``term at 10``, ``weighted term at 10``,
            joined by a comma.
        unit: ``token``; or ``sequence`` or ``average``, where the log-ratio is summed or averaged
            over the sequence before the formula.
    """

    method: str
    p: str
    q: str
    level: str
    weight: str = ""
    clamp: str = ""
    unit: str = "token"


class Valued(NamedTuple):
    """A candidate, its value, and how much its terms add up to (what rounding is measured by)."""

    candidate: Candidate
    value: float
    size: float


class Tokens(NamedTuple):
    """What counts of a batch.

    Attributes:
        log_probs: Of the tokens that count, by role.
        exact: The exact KL at each, by question.
        lengths: How many count in each sequence.
        width: Positions of the longest sequence, counted or not.
        microbatches: Where each micro-batch ends, in sequences; empty if none are known.
        every: Those of every position, counted or not; None where no number stands there.
    """

    log_probs: Mapping[str, Array]
    exact: Mapping[str, Array]
    lengths: NDArray[np.int64]
    width: int
    microbatches: tuple[int, ...] = ()
    every: Tokens | None = None


def counted(columns: Columns, microbatches: int | Sequence[int] | None = None) -> Tokens:
    """The tokens that count.

    Raises:
        ValueError: No token counts, one of those that do has no log-prob, or the micro-batches do
            not add up.
    """
    mask = columns.mask
    if not mask.any():
        raise ValueError("no token counts: the mask is 0 everywhere")
    log_probs = {}
    for role, values in columns.log_probs.items():
        chosen = values[mask].astype(np.float64)
        missing = int((np.isnan(chosen) | (chosen <= -9999.0) & np.isfinite(chosen)).sum())
        if missing:
            raise ValueError(
                f"log-probs of {role} are missing at {missing} of {len(chosen)} tokens that count"
            )
        log_probs[role] = chosen
    exact = {name: values[mask].astype(np.float64) for name, values in columns.exact.items()}
    lengths = segment_sums(mask.astype(np.float64), columns.lengths).astype(np.int64)
    width = int(columns.lengths.max())
    every = _every(columns, width)
    return Tokens(log_probs, exact, lengths, width, _ends(microbatches, len(lengths)), every)


def _every(columns: Columns, width: int) -> Tokens | None:
    """The tokens as if all counted, of the roles that have a log-prob at each.

    None where that says nothing new: no two roles differ where the mask is 0.
    """
    there = {
        role: values.astype(np.float64)
        for role, values in columns.log_probs.items()
        if np.isfinite(values).all() and not is_sentinel(values).any()
    }
    masked = [values[~columns.mask] for values in there.values()]
    if not any((values != masked[0]).any() for values in masked):
        return None
    return Tokens(there, {}, columns.lengths, width)


def _ends(microbatches: int | Sequence[int] | None, sequences: int) -> tuple[int, ...]:
    if microbatches is None:
        return ()
    if isinstance(microbatches, int):
        if microbatches < 1 or sequences % microbatches:
            raise ValueError(f"{sequences} sequences are not {microbatches} equal micro-batches")
        microbatches = [sequences // microbatches] * microbatches
    if sum(microbatches) != sequences or min(microbatches) < 1:
        raise ValueError(f"micro-batches of {list(microbatches)} are not {sequences} sequences")
    return tuple(int(end) for end in np.cumsum(microbatches))


def candidates(tokens: Tokens) -> Iterator[Valued]:
    """Each with its value; those that are not finite are left out."""
    for method, p, q in _pairs(tokens):
        x = tokens.log_probs[q] - tokens.log_probs[p]
        for unit in ("token", "sequence", "average") if method != "k1" else ("token",):
            if unit != "token":
                yield from _of_sequences(Candidate(method, p, q, LEVELS[-1], unit=unit), x, tokens)
                continue
            for weight, factor in _weights(method, p, tokens):
                for clamp, terms in _clamped(method, x, factor):
                    yield from _at_levels(Candidate(method, p, q, "", weight, clamp), terms, tokens)
    if tokens.every is not None:
        for one in candidates(tokens.every):
            level = FORGOTTEN.get(one.candidate.level)
            if level and one.candidate.unit == "token":
                yield one._replace(candidate=replace(one.candidate, level=level))
    for question, values in tokens.exact.items():
        p, _, q = question.removeprefix("KL(").partition(")")[0].partition("||")
        yield from _at_levels(Candidate("exact", p, q, ""), values, tokens)


def _pairs(tokens: Tokens) -> Iterator[tuple[str, str, str]]:
    for p, q in permutations(tokens.log_probs, 2):
        yield from ((method, p, q) for method in METHODS)


def _weights(method: str, p: str, tokens: Tokens) -> Iterator[tuple[str, Array | float]]:
    yield "", 1.0
    if method not in _WEIGHTED:
        return
    for sampler, log_s in tokens.log_probs.items():
        if sampler != p:
            log_w = tokens.log_probs[p] - log_s
            with np.errstate(over="ignore"):
                yield f"{p}/{sampler}", np.exp(log_w)
                means = segment_sums(log_w, tokens.lengths) / np.maximum(tokens.lengths, 1)
                yield f"{p}/{sampler} by sequence", np.exp(np.repeat(means, tokens.lengths))


def _clamped(method: str, x: Array, factor: Array | float) -> Iterator[tuple[str, Array]]:
    """The terms, free and held at the usual places; only where that changes any."""
    formula, far = METHODS[method], bool((np.abs(x) > _INNER).any())
    held = method in _WEIGHTED
    for inner in ("", "log-ratio at 20") if far and held else ("",):
        with np.errstate(over="ignore", invalid="ignore"):
            terms = formula(np.clip(x, -_INNER, _INNER) if inner else x)
            yield inner, terms * factor
            if not held:
                continue
            if (np.abs(terms) > _OUTER).any():
                yield _joined(inner, "term at 10"), np.clip(terms, -_OUTER, _OUTER) * factor
            if not isinstance(factor, float) and (np.abs(terms * factor) > _OUTER).any():
                weighted = np.clip(terms * factor, -_OUTER, _OUTER)
                yield _joined(inner, "weighted term at 10"), weighted


def _joined(*clamps: str) -> str:
    return ", ".join(one for one in clamps if one)


def _at_levels(base: Candidate, terms: Array, tokens: Tokens) -> Iterator[Valued]:
    if not np.isfinite(terms).all():
        return
    sizes = np.abs(terms) + 1.0  # rounding of a term is that of its parts, which are of size 1
    for level, value, size in zip(
        LEVELS, _levels(terms, tokens), _levels(sizes, tokens), strict=False
    ):
        if value is not None and size is not None:
            made = Candidate(base.method, base.p, base.q, level, base.weight, base.clamp, base.unit)
            yield Valued(made, value, size)


def _levels(terms: Array, tokens: Tokens) -> Iterator[float | None]:
    """The number at each of LEVELS, in their order; none where nothing is known of it."""
    lengths, rows = tokens.lengths, len(tokens.lengths)
    sums, filled = segment_sums(terms, lengths), lengths > 0
    total = float(sums.sum())
    yield total / len(terms)
    yield total / int(filled.sum())
    yield float((sums[filled] / lengths[filled]).mean())
    yield total
    yield total / (rows * tokens.width)
    yield total / tokens.width
    yield _microbatch_mean(sums, lengths, tokens.microbatches)


def _microbatch_mean(
    sums: Array, lengths: NDArray[np.int64], ends: tuple[int, ...]
) -> float | None:
    if not ends:
        return None
    starts = (0, *ends[:-1])
    pieces = [(sums[a:b].sum(), lengths[a:b].sum()) for a, b in zip(starts, ends, strict=True)]
    return float(np.mean([total / count for total, count in pieces if count]))


def _of_sequences(made: Candidate, x: Array, tokens: Tokens) -> Iterator[Valued]:
    filled = tokens.lengths > 0
    sums, lengths = segment_sums(x, tokens.lengths)[filled], tokens.lengths[filled]
    with np.errstate(over="ignore", invalid="ignore"):
        terms = METHODS[made.method](sums if made.unit == "sequence" else sums / lengths)
    if np.isfinite(terms).all():
        yield Valued(made, float(terms.mean()), float(np.abs(terms).mean()) + 1.0)
