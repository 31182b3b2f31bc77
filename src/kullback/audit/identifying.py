"""Which number is this? What, of given tokens, reproduces a logged scalar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from kullback.audit.candidates import SYMMETRIC, Candidate, Valued, candidates, counted
from kullback.columns import Columns, pack
from kullback.dictionary import METRICS
from kullback.question import LEVELS, Question, presumed_sampler

# What one rounding of a number near 1 can do, and a float of a log is right to.
ROUNDING = {"float32": 2.0**-22, "bfloat16": 2.0**-8}
DIGITS = 1e-6
OVER_TOKENS = "1/tokens"
_SHOWN = 5
_AROUND = 100  # tolerances within which numbers are counted, to tell how many fit by chance
_NAMES = {"|log r|": "abs"}  # what the dictionary calls a method


@dataclass(frozen=True, slots=True)
class Match:
    """What reproduces the number.

    Args:
        candidate: Method, policies, weight, clamp, unit and level.
        sampler: Who drew the tokens.
        scale: What it is multiplied by.
        scaled_by: What that is, where it is no plain number.
        value: What it gives.
        cost: How far-fetched it is; the least comes first.
    """

    candidate: Candidate
    sampler: str
    scale: float
    scaled_by: str
    value: float
    cost: int

    @property
    def question(self) -> Question:
        """The KL that it is named after, with the sampler that there was."""
        one = self.candidate
        level = one.level if one.level in LEVELS else "token_mean"
        return Question(one.p, one.q, self.sampler, level=level)

    @property
    def is_inverted(self) -> bool:
        """Whether its ratio stands upside down: k3 with p/q where p sampled, which is no KL."""
        one = self.candidate
        return one.method == "k3" and one.q == self.sampler and not one.weight

    @property
    def logged_as(self) -> tuple[str, ...]:
        """Who logs such a number, and under which name, as far as `kullback.dictionary` knows."""
        one, sign = self.candidate, int(math.copysign(1, self.scale))
        if abs(self.scale) != 1:
            return ()
        wanted = (_NAMES.get(one.method, one.method), one.p, one.q, one.weight, one.level, sign)
        found = (
            f"{m.framework} {m.name}"
            for m in METRICS
            if (m.method, m.p, m.q, m.weight, m.level, m.sign) == wanted
            and (bool(m.clamp) or not one.clamp)
        )
        return tuple(dict.fromkeys(found))

    def __str__(self) -> str:
        one = self.candidate
        scale = "" if self.scale == 1 else f" × {self.scaled_by or f'{self.scale:g}'}"
        weight = f" × {one.weight}" if one.weight else ""
        unit = {"sequence": " of sums", "average": " of averages"}.get(one.unit, "")
        clamp = f", {one.clamp}" if one.clamp else ""
        said = f"{one.method}{unit} of KL({one.p}||{one.q}){weight}{clamp}"
        said += f", {_LEVEL_WORDS.get(one.level, one.level)}{scale}"
        return f"{said} (ratio upside down)" if self.is_inverted else said


_LEVEL_WORDS = {
    "token_mean": "mean over tokens",
    "sequence_sum": "sum of a sequence, mean over sequences",
    "sequence_mean": "mean of a sequence, mean over sequences",
    "sum": "sum over all tokens",
    "padded_mean": "over all positions",
    "sum over the width": "sum over all tokens, over the longest sequence",
    "every position": "mean over every position, masked ones too",
    "every position of a row": "sum of a row, masked positions too, mean over rows",
}


@dataclass(frozen=True, slots=True)
class Identification:
    """What a logged number can be.

    Args:
        value: The number.
        tolerance: How far from it counts as reproduced, before rounding of the terms.
        matches: All that reproduce it, the simplest first.
        nearest: What comes nearest, whether it reproduces it or not.
        tried: How many were tried.
        by_chance: How many of as many unrelated numbers would be as near as that; an estimate from
            how many lie around.
    """

    value: float
    tolerance: float
    matches: tuple[Match, ...]
    nearest: Match
    tried: int
    by_chance: float

    @property
    def verdict(self) -> str:
        """``one``, ``same`` (several, but one number on these tokens), ``several`` or ``none``."""
        if not self.matches:
            return "none"
        first = self.matches[0].value
        if len(self.matches) == 1:
            return "one"
        alike = all(_alike(one.value, first) for one in self.matches)
        return "same" if alike else "several"

    @property
    def best(self) -> Match | None:
        """The simplest that reproduces it."""
        return self.matches[0] if self.matches else None

    def __str__(self) -> str:
        if not self.matches:
            return (
                f"{self.value:g}: none of {self.tried} fits. The nearest is {self.nearest.value:g}:"
                f" {self.nearest}"
            )
        first, *others = self.matches
        lines = [f"{self.value:g}: {first}"]
        same = [one for one in others if _alike(one.value, first.value)]
        apart = [one for one in others if not _alike(one.value, first.value)]
        if same:
            lines.append("The same number on these tokens:")
            lines += _listed(same)
        if apart:
            lines.append("As near, to the digits that there are:")
            lines += _listed(apart)
        lines.append(f"{self.tried} were tried; about {self.by_chance:.2g} fit by chance.")
        return "\n".join(lines)


def _listed(matches: Sequence[Match]) -> list[str]:
    more = [f"  and {len(matches) - _SHOWN} more"] if len(matches) > _SHOWN else []
    return [f"  {one}" for one in matches[:_SHOWN]] + more


def _alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)


def identify(
    value: float | str,
    columns: Columns | Mapping[str, Any],
    *,
    mask: Any = None,
    lengths: Any = None,
    sampler: str | None = None,
    microbatches: int | Sequence[int] | None = None,
    coefficients: Iterable[float] | float = (),
    precision: str = "float32",
) -> Identification:
    """Say which formula, of which two policies, averaged how, gives a logged number.

        value = scale · level(weight · clamp(method(log q/p)))

    Every method (k1, k2, k3, |log r|, r log r − (r − 1), r, a k3 of a ratio, the exact column) is
    tried with every pair of roles both ways, without a weight and with each that the roles allow,
    with the clamps of the trainers where they bind, at every level, with the mask forgotten where
    the masked positions hold log-probs, and times 1, 2, ½, the number of micro-batches or its
    inverse, what is given, one over the tokens, in bits, and −1. Nothing is estimated: a match says
    what the number is, and not whether that is a KL. What has few digits is matched by much; so
    all matches are given, the simplest first, with how many fit by chance.

    Args:
        value: The number. As a text (``"0.0164"``) it is right to half a unit of its last digit;
            as a float to a millionth and the rounding of the terms.
        columns: The tokens that it was made of: `Columns`, or log-probs by role as for `pack`.
        mask: Which of them count, where arrays are given.
        lengths: The tokens of each sequence of flat arrays.
        sampler: Who drew the tokens; presumed by the names of the roles, if left out.
        microbatches: How many micro-batches there were, or how many sequences each had.
        coefficients: What else it may be multiplied by, one number or several: a KL coefficient.
        precision: What the trainer computed in, ``float32`` or ``bfloat16``.

    Returns:
        All that reproduce it, what comes nearest, and how many were tried.

    Raises:
        ValueError: The value is no finite number, there are fewer than two roles and nothing
            exact, a log-prob is missing where a token counts, the sampler is no role, the
            precision is unknown, or the micro-batches do not add up.

    Example:
        >>> logs = {"old": [[-1.2, -0.35, -2.75]], "current": [[-1.05, -0.6, -2.4]]}
        >>> print(identify("0.0366", logs).best)
        k3 of KL(old||current), mean over tokens
        >>> print(identify(0.25 / 3, logs).best)
        k1 of KL(old||current), mean over tokens × -1
    """
    number, tolerance = _read(value)
    if precision not in ROUNDING:
        raise ValueError(f"precision {precision!r} is none of {', '.join(ROUNDING)}")
    batch = columns if isinstance(columns, Columns) else pack(columns, mask=mask, lengths=lengths)
    if len(batch.log_probs) < 2 and not batch.exact:
        raise ValueError("a number compares two policies: give the log-probs of two roles")
    drew = sampler or presumed_sampler(batch.log_probs).role
    if drew not in batch.log_probs:
        raise ValueError(f"there are no log-probs of {drew}, only of {', '.join(batch.log_probs)}")
    tokens = counted(batch, microbatches)
    scales = _scales(len(tokens.microbatches), coefficients, int(batch.mask.sum()))
    tried = [
        (found, scale, said, added)
        for found in candidates(tokens)
        if _is_written_so(found.candidate, drew)
        for scale, said, added in scales
        # Over the tokens twice; the sum over them is the mean.
        if OVER_TOKENS not in said or found.candidate.level == "token_mean"
    ]
    return _judged(number, tolerance, tried, drew, ROUNDING[precision])


def _judged(
    number: float,
    tolerance: float,
    tried: Sequence[tuple[Valued, float, str, int]],
    sampler: str,
    rounding: float,
) -> Identification:
    values = np.array([found.value * scale for found, scale, _, _ in tried])
    sizes = np.array([found.size * abs(scale) for found, scale, _, _ in tried])
    errors, rooms = np.abs(values - number), tolerance + rounding * sizes

    def match(i: int) -> Match:
        found, scale, said, added = tried[i]
        cost = added + _cost(found.candidate, sampler)
        return Match(found.candidate, sampler, scale, said, float(values[i]), cost)

    fits = np.flatnonzero(errors <= rooms).tolist()
    around = np.unique(values[(errors <= _AROUND * rooms) & (errors > rooms)]).size
    matches = sorted(map(match, fits), key=lambda one: (one.cost, abs(one.value - number)))
    nearest, chance = match(int(errors.argmin())), around / (_AROUND - 1)
    return Identification(number, tolerance, tuple(matches), nearest, len(tried), chance)


def _read(value: float | str) -> tuple[float, float]:
    """The number, and how far from it is still it."""
    if isinstance(value, str):
        try:
            told = Decimal(value.strip())
        except InvalidOperation:
            raise ValueError(f"value {value!r} is no number") from None
        exponent = told.as_tuple().exponent
        if not isinstance(exponent, int):
            raise ValueError(f"value {value!r} is not finite: no formula of finite terms gives it")
        number = float(told)
        return number, 0.5 * 10.0**exponent
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"value {number} is not finite: no formula of finite terms gives it")
    return number, DIGITS * abs(number)


def _scales(
    microbatches: int, coefficients: Iterable[float] | float, tokens: int = 0
) -> list[tuple[float, str, int]]:
    """Each factor, what it is called, and how far-fetched it is."""
    found = {1.0: ("", 0), 2.0: ("", 3), 0.5: ("", 3), 1 / math.log(2): ("1/ln 2, in bits", 3)}
    if tokens > 2:
        found[1 / tokens] = (OVER_TOKENS, 3)
    if microbatches > 1:
        found[1 / microbatches] = ("1/micro-batches", 2)
        found[float(microbatches)] = ("micro-batches", 2)
    for one in coefficients if isinstance(coefficients, Iterable) else (coefficients,):
        if one and math.isfinite(one):
            found.setdefault(float(one), ("", 2))
    turned = {
        -scale: (f"−{said}" if said else "", cost + 1) for scale, (said, cost) in found.items()
    }
    return [(scale, said, cost) for scale, (said, cost) in (turned | found).items()]


def _is_written_so(one: Candidate, sampler: str) -> bool:
    """Whether its sampler, or its policy, comes first, where the order is a matter of sign."""
    if one.method not in SYMMETRIC or one.weight:
        return True
    return _rank(one.p, sampler) < _rank(one.q, sampler)


def _rank(role: str, sampler: str) -> tuple[int, str]:
    """Who comes first in a KL: the sampler, older policies, others, and what they are held to."""
    known = {"rollout": 1, "old": 2, "reference": 4, "teacher": 4}
    return (0 if role == sampler else known.get(role, 3), role)


_METHOD_COSTS = {
    "k1": 0,
    "exact": 0,
    "k3": 1,
    "k2": 2,
    "|log r|": 2,
    "r log r - (r - 1)": 4,
    "r": 4,
}
_LEVEL_COSTS = {"token_mean": 0, "sequence_sum": 1, "sequence_mean": 1, "mean of micro-batches": 2,
                "every position": 2}  # fmt: skip


def _cost(one: Candidate, sampler: str) -> int:
    """How far-fetched it is."""
    cost = _METHOD_COSTS.get(one.method, 5) + _LEVEL_COSTS.get(one.level, 3)
    cost += 2 * (one.unit != "token") + 2 * len(one.clamp.split(", ")) * bool(one.clamp)
    if one.weight:
        cost += 2 if one.weight.removesuffix(" by sequence") == f"{one.p}/{sampler}" else 3
        cost += 2 * one.weight.endswith("by sequence")
        cost += 3 * (one.p in (sampler, "reference", "teacher"))  # nobody weights for these
    elif one.p != sampler:
        cost += 1 + 2 * (one.q == sampler)
    return cost
