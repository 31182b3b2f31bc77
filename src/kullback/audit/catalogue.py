"""All forms that are looked for, the simplest first, and how one is found among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from kullback.audit.forms import EXACT, SAMPLED, SCALES, Form, Weight, slopes, values
from kullback.audit.scenes import APART, Array, Batch, sequence, staged, together

EXACTLY = 1e-9  # the error, relative to the whole, of float64
ROUGHLY = 2e-5  # and of what was computed in float32 somewhere

# Of each pair the first that comes; k1 of the turned pair is minus k1.
_PAIRS = (
    ("current", "reference"),
    ("reference", "current"),
    ("current", "old"),
    ("old", "current"),
    ("current", "rollout"),
    ("rollout", "current"),
    ("old", "reference"),
    ("reference", "old"),
    ("rollout", "reference"),
    ("reference", "rollout"),
    ("old", "rollout"),
    ("rollout", "old"),
)
_WEIGHTED = ("k1", "k2", "k3", "|log r|", "r log r - (r - 1)")
_SPANS = ("token", "prefix", "sequence", "average")


@cache
def all_sequences() -> Batch:
    """Every sequence of both worlds, all policies apart; log-probs are 0 past an end."""
    worlds = [staged(APART.name, ends=ends) for ends in (False, True)]
    rows = [sequence(world, row) for world in worlds for row in range(len(world.lengths))]
    return together(rows, padding=0.0)


class Table(NamedTuple):
    """Forms, and what each gives for all sequences, in one row: [forms, numbers]."""

    forms: list[Form]
    rows: Array


class Reading(NamedTuple):
    """A form that gives what was seen.

    ``factor`` times the form, divided by the length where ``averaged``; ``error`` is what is left,
    relative to all. ``second`` is a form that is added, with its factor.
    """

    form: Form
    factor: float
    averaged: bool
    error: float
    second: tuple[Form, float] | None = None


@cache
def value_table(roles: tuple[str, ...], *, logits: bool, by_token: bool) -> Table:
    """The forms' values, per token or as sums over each sequence."""
    batch = all_sequences()
    forms = [form for form in _forms(roles, logits) if not by_token or form.unit == "token"]

    def row(form: Form) -> Array:
        found = values(form, batch)
        if by_token:
            return found[batch.mask]
        return found.sum(axis=1) if found.ndim == 2 else found

    return Table(forms, np.stack([row(form) for form in forms]))


@cache
def slope_table(roles: tuple[str, ...], *, logits: bool) -> Table:
    """The forms' derivatives, where the current policy is in them."""
    batch = all_sequences()
    forms = [*_forms(roles, logits), *_differentiated(roles, logits)]
    rows = np.stack([slopes(form, batch)[batch.mask].ravel() for form in forms])
    moves = np.any(rows != 0, axis=1)
    return Table([form for form, one in zip(forms, moves, strict=True) if one], rows[moves])


def recognized(
    seen: Array, table: Table, lengths: Array, like: Form | None = None
) -> Reading | None:
    """The simplest form that gives what was seen, up to a factor; else a sum of two.

    Args:
        seen: One number for each column of the table.
        table: The forms.
        lengths: The length of the sequence that each number belongs to.
        like: Of several that do, one of this form's method and weight is taken.
    """
    if not np.any(seen):
        return None
    for error in (EXACTLY, ROUGHLY):
        for averaged in (False, True):
            if found := _one(seen * lengths if averaged else seen, table, error, like):
                return found._replace(averaged=averaged)
    for averaged in (False, True):
        if found := _two(seen * lengths if averaged else seen, table):
            return found._replace(averaged=averaged)
    return None


def _one(seen: Array, table: Table, error: float, like: Form | None) -> Reading | None:
    squares = np.einsum("ij,ij->i", table.rows, table.rows)
    factors = table.rows @ seen / squares
    near = np.linalg.norm(seen)
    left = np.linalg.norm(seen - factors[:, None] * table.rows, axis=1) / near
    places = np.flatnonzero(left < error)
    if not len(places):
        return None
    alike = [place for place in places if like and _is_alike(table.forms[place], like)]
    place = int((alike or places)[0])
    return Reading(table.forms[place], float(factors[place]), False, float(left[place]))


def _two(seen: Array, table: Table) -> Reading | None:
    """The first pair of forms, of those without a weight, whose sum gives what was seen."""
    plain = [i for i, form in enumerate(table.forms) if _is_plain(form)]
    rows = table.rows[plain]
    rows, sizes = rows / np.linalg.norm(rows, axis=1, keepdims=True), np.linalg.norm(rows, axis=1)
    gram, with_seen = rows @ rows.T, rows @ seen
    gap = 1 - gram**2
    apart = gap > 1e-6
    first = np.where(apart, with_seen[:, None] - gram * with_seen, 0) / np.where(apart, gap, 1)
    left = seen @ seen - first * with_seen[:, None] - first.T * with_seen
    pairs = np.argwhere(np.triu(apart & (left < 1e-7 * (seen @ seen))))
    for one, other in pairs[np.argsort(pairs.sum(axis=1), kind="stable")][:50]:
        basis = rows[[one, other]].T
        factors, *_ = np.linalg.lstsq(basis, seen)
        error = float(np.linalg.norm(seen - basis @ factors) / np.linalg.norm(seen))
        if error < EXACTLY:
            a, b = factors / sizes[[one, other]]
            second = (table.forms[plain[other]], float(b))
            return Reading(table.forms[plain[one]], float(a), False, error, second)
    return None


def _is_alike(form: Form, other: Form) -> bool:
    """Whether they have one value, and differ in what of their weight is held constant alone."""
    weight = form.weight and replace(form.weight, attached="no")
    return replace(form, weight=weight) == other


def _is_plain(form: Form) -> bool:
    return form.weight is None and form.scale == "nats"


def _forms(roles: Sequence[str], logits: bool) -> list[Form]:
    """Those whose values differ, the simplest first."""
    pairs = [pair for pair in _PAIRS if set(pair) <= set(roles)]
    found = [Form(method, p, q) for (p, q), method in product(pairs, SAMPLED)]
    if logits:
        two_sided = [name for name in EXACT if name != "entropy"]
        found += [Form(method, p, q) for (p, q), method in product(pairs, two_sided)]
        found += [Form("entropy", role, role) for role in roles]
    found += [Form("log-prob", role, role) for role in roles]
    found += [Form("p log p/q", p, q) for p, q in pairs]
    units = ("sequence", "average")
    bent = [name for name in SAMPLED if name != "k1"]  # of k1 each is its sum, or its mean
    found += [Form(m, p, q, unit) for unit, (p, q), m in product(units, pairs, bent)]
    scales = SCALES[1:]
    found += [Form(m, p, q, scale=scale) for scale, (p, q), m in product(scales, pairs, SAMPLED)]
    return [*found, *_with(_weights(roles), pairs, logits)]


def _differentiated(roles: Sequence[str], logits: bool) -> list[Form]:
    """Those that differ in their derivatives only: attached weights, and costs held constant."""
    pairs = [pair for pair in _PAIRS if set(pair) <= set(roles)]
    weights = list(_weights(roles, attached=True))
    found = list(_with(weights, pairs, logits))
    credits = ("full_return", "reward_to_go", "immediate")
    for weight in (None, *_weights(roles)):
        for credit, method, (p, q) in product(credits, _WEIGHTED, pairs):
            found.append(Form(method, p, q, weight=weight, credit=credit))
    if logits:
        ways = (*credits, "future")
        found += [Form("KL", p, q, credit=credit) for credit, (p, q) in product(ways, pairs)]
    return found


def _weights(roles: Sequence[str], *, attached: bool = False) -> Iterator[Weight]:
    samplers = [role for role in ("old", "rollout") if role in roles and "current" in roles]
    sides = [("current", sampler) for sampler in samplers]
    sides += [(sampler, "current") for sampler in samplers]
    if {"old", "rollout"} <= set(roles):
        sides.append(("old", "rollout"))
    if attached:
        sides = [("current", "itself"), *[pair for pair in sides if "current" in pair]]
    for (target, sampler), span in product(sides, _SPANS):
        for how in ("yes", "own") if attached else ("no",):
            if how != "own" or span == "prefix":
                yield Weight(target, sampler, span, how)


def _with(
    weights: Iterator[Weight] | Sequence[Weight], pairs: Sequence[tuple[str, str]], logits: bool
) -> Iterator[Form]:
    for weight in weights:
        for (p, q), method in product(pairs, _WEIGHTED):
            yield Form(method, p, q, weight=weight)
            if weight.span in ("sequence", "average") and method != "k1":
                yield Form(method, p, q, "sequence", weight=weight)
                yield Form(method, p, q, "average", weight=weight)
        if logits:
            for p, q in pairs:
                yield Form("KL", p, q, weight=weight)
