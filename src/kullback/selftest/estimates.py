"""What ``estimate`` says of every sequence of a small language: its mean is known to 34 digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from functools import partial as bound
from typing import Any

import numpy as np

from kullback.columns import Columns
from kullback.estimation.estimate import Estimate, estimate, from_state
from kullback.estimation.summary import summarize
from kullback.selftest.line import Line, Pairs, attempted, compared
from kullback.selftest.oracles import oracle
from kullback.worlds.catalogue import CLEAN_WORLDS
from kullback.worlds.tabular import Tabular, three_tokens

P, Q, S = "current", "reference", "old"  # the oracle's pi, ref and mu
PARTS = 5  # into which a batch is cut to be added again


def estimates() -> tuple[Line, ...]:
    """A line for each question that an estimate can answer."""
    return tuple(attempted(name, bound(_line, name)) for name in CHECKS)


def _line(name: str) -> Line:
    return compared(name, CHECKS[name]())


@cache
def _languages() -> tuple[tuple[Tabular, Any], ...]:
    """Three tokens, three steps; with an early end and without."""
    told = oracle("d_tabular_autoregressive")
    return ((three_tokens(ends=False), told["fixed"]), (three_tokens(ends=True), told["eos"]))


def _estimate(world: Tabular, rows: slice, method: str, third: bool, **asked: Any) -> Estimate:
    """The estimate of some sequences; the exact KL goes with a method that takes it."""
    alive = world.tree.alive[rows]
    exact = world.by_context(world.kl(P, Q))[rows] if method == "exact" else None
    return estimate(
        log_p=world.by_token(P)[rows],
        log_q=world.by_token(Q)[rows],
        log_sampler=world.by_token(S)[rows] if third else None,
        mask=alive,
        exact=exact,
        method=method,
        **asked,
    )


def _each(world: Tabular, method: str, third: bool = False, **asked: Any) -> Any:
    """The estimate of each sequence alone: what its mean and its variance are exact in."""
    rows = range(len(world.lengths))
    made = (_estimate(world, slice(i, i + 1), method, third, **asked) for i in rows)
    return np.array([one.mean for one in made])


def _sums() -> Pairs:
    names = {"k1": "k1", "k2": "k2_token_sum", "k3": "k3_token_sum", "exact": "rao_blackwell"}
    for world, right in _languages():
        for method, name in names.items():
            values = _each(world, method, level="sequence_sum")
            known = right["value_estimators_on_policy"][name]
            yield world.mean(values, by=P), known["mean"]
            yield world.variance(values, by=P), known["var"]


def _token_means() -> Pairs:
    """A ratio of means: of sums, and of lengths."""
    for world, right in _languages():
        length = world.mean(world.lengths, by=P)
        for method in ("k1", "k3", "exact"):
            total = world.mean(_each(world, method) * world.lengths, by=P)
            yield total / length, right["KL_pi_ref_per_token_ratio_of_means"]


def _sequence_means() -> Pairs:
    for world, right in _languages():
        values = _each(world, "k1", level="sequence_mean")
        yield world.mean(values, by=P), right["KL_pi_ref_mean_of_per_sequence_token_means"]


def _token_weights() -> Pairs:
    for world, right in _languages():
        known = right["value_estimators_off_policy_mu"]
        k1, k3 = (_each(world, k, third=True, level="sequence_sum") for k in ("k1", "k3"))
        yield world.mean(k1, by=S), known["token_IS_target_sum_prefix_mu"]
        yield world.mean(k3, by=S), known["k3_token_sum_token_IS_deepseek_v32"]["mean"]
        yield world.variance(k3, by=S), known["k3_token_sum_token_IS_deepseek_v32"]["var"]


def _cumulative_weights() -> Pairs:
    asked = {"third": True, "level": "sequence_sum", "prefixes": "p"}
    for world, right in _languages():
        known = right["value_estimators_off_policy_mu"]["k3_token_sum_prefix_IS"]
        k1, k3 = (_each(world, k, **asked) for k in ("k1", "k3"))
        yield world.mean(k1, by=S), right["KL_pi_ref"]
        yield world.mean(k3, by=S), known["mean"]
        yield world.variance(k3, by=S), known["var"]


def _batches() -> Pairs:
    """One batch of all sequences is what the single ones give, by the textbook's formulas."""
    for world, _ in _languages():
        length, n = world.lengths, len(world.lengths)
        for method in ("k1", "k3"):
            sums = _each(world, method, level="sequence_sum")
            whole = {
                level: _estimate(world, slice(None), method, False, level=level)
                for level in ("token_mean", "sequence_sum", "sequence_mean")
            }
            yield whole["sequence_sum"].mean, sums.mean()
            yield whole["sequence_sum"].standard_error, sums.std(ddof=1) / n**0.5
            yield whole["sequence_mean"].mean, (sums / length).mean()
            ratio = sums.sum() / length.sum()
            spread = ((sums - ratio * length) ** 2).sum() / (n - 1)
            yield whole["token_mean"].mean, ratio
            yield whole["token_mean"].standard_error, (spread / n) ** 0.5 / length.mean()


def _merged() -> Pairs:
    """Adding the states of parts is one pass: every question, every method."""
    columns = CLEAN_WORLDS["training_loop"](64).sample(np.random.default_rng(0), exact=True)
    parts = list(_cut(columns))
    whole = summarize([columns])
    added = summarize([parts[0]])
    for part in parts[1:]:
        added = added + summarize([part])
    for question, state in whole.questions.items():
        for method in ("auto", "k1", "k2", "k3"):
            one, many = from_state(state, method), from_state(added.questions[question], method)
            yield many.mean, one.mean
            yield many.standard_error, one.standard_error
            yield [many.low, many.high], [one.low, one.high]


def _cut(columns: Columns) -> Iterator[Columns]:
    part = np.random.default_rng(1).integers(0, PARTS, size=len(columns.lengths))
    return (columns.take(np.flatnonzero(part == i)) for i in range(PARTS))


CHECKS: dict[str, Callable[[], Pairs]] = {
    "sequence sums": _sums,
    "token means": _token_means,
    "sequence means": _sequence_means,
    "token weights": _token_weights,
    "cumulative weights": _cumulative_weights,
    "batches and errors": _batches,
    "added parts": _merged,
}
