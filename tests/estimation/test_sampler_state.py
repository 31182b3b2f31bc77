from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from kullback.clusters import cluster_keys
from kullback.columns import Columns, TopK, pack
from kullback.estimation.sampler_state import ENTROPY_FLOOR, SamplerState

NAN = float("nan")


def columns_of(log_probs, tokens, entropy, top_k: TopK, **changes) -> Columns:
    packed = pack({"old": log_probs}, **changes)
    flat = np.asarray(tokens).reshape(-1)
    return replace(
        packed, tokens=flat, entropy={"old": np.asarray(entropy).ravel()}, top_k={"old": top_k}
    )


def totals(columns: Columns) -> dict[str, float]:
    state = SamplerState.of(columns, "old")
    return {term: state.by_group(term).sum() for term in ("prefixes", "surprise", "heads", "hits")}


def test_both_sums_are_zero_over_the_population() -> None:
    """At a prefix with p = (1/2, 1/4, 1/4), seen as often as p says, with a head of one id."""
    tokens = np.array([[0, 0, 1, 2]])
    p = np.array([0.5, 0.25, 0.25])
    found = totals(
        columns_of(
            np.log(p[tokens]),
            tokens,
            np.full(4, 1.5 * np.log(2)),
            TopK(np.zeros((4, 1), np.int64), np.full((4, 1), np.log(0.5))),
        )
    )
    assert found == pytest.approx({"prefixes": 4, "surprise": 0, "heads": 4, "hits": 0}, abs=1e-15)


def test_what_the_sums_are_made_of() -> None:
    log_probs = np.array([[-1.0, -2.0, -3.0, NAN, -9999.0, -1.0]])
    entropy = np.array([[0.5, ENTROPY_FLOOR - 1e-9, ENTROPY_FLOOR, 0.5, 0.5, NAN]])
    ids = np.array([[7, 8], [8, -1], [-1, -1], [7, 8], [7, 8], [7, 8]])
    head = np.log([[0.5, 0.25], [0.5, NAN], [NAN, NAN], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25]])
    columns = columns_of(log_probs, [8, -1, -1, 7, 7, 8], entropy, TopK(ids, head))
    found = totals(columns)
    assert found["prefixes"] == 2
    assert found["surprise"] == pytest.approx((1.0 - 0.5) + (3.0 - ENTROPY_FLOOR), rel=1e-12)
    # Token 1 is unknown and no hit of a head that ends in −1; token 2 has no head.
    state = SamplerState.of(replace(columns, mask=np.arange(6) < 3), "old")
    assert state.by_group("heads").tolist() == [2]
    assert state.by_group("hits") == pytest.approx((1 - 0.75) + (0 - 0.5), rel=1e-12)
    assert state.by_group("hits_variance") == pytest.approx(0.75 * 0.25 + 0.5 * 0.5, rel=1e-12)
    squares = 0.5**2 + (3.0 - ENTROPY_FLOOR) ** 2
    assert state.by_group("surprise_variance") == pytest.approx(squares, rel=1e-12)


def test_a_head_is_counted_whatever_the_sampled_token_turned_out_to_be() -> None:
    """Head and mask are known before the draw; a log-prob that is missing is not."""
    head = TopK(np.zeros((2, 1), np.int64), np.full((2, 1), np.log(0.5)))
    found = totals(columns_of([[-0.7, NAN]], [[0, 5]], np.ones(2), head))
    assert (found["heads"], found["hits"]) == (2, pytest.approx(0))


def test_only_what_is_logged_of_the_role_is_summed() -> None:
    columns = columns_of([[-1.0]], [[0]], [[1.0]], TopK(np.array([[0]]), np.array([[-1.0]])))
    assert totals(replace(columns, entropy={"new": np.ones(1)}))["prefixes"] == 0
    assert totals(replace(columns, top_k={}))["heads"] == 0
    assert totals(replace(columns, tokens=None))["heads"] == 0
    assert totals(replace(columns, mask=np.zeros(1, bool))) == dict.fromkeys(totals(columns), 0)


def test_sums_are_by_cluster_and_add() -> None:
    def part(log_probs: list[float], clusters: list[int]) -> SamplerState:
        n = len(log_probs)
        head = TopK(np.full((n, 1), 3), np.full((n, 1), np.log(0.25)))
        columns = columns_of(log_probs, [3] * n, np.ones(n), head, lengths=1, clusters=clusters)
        return SamplerState.of(columns, "old")

    whole = part([-1.0, -2.0, -4.0, -8.0], [5, 6, 5, 7])
    both = part([-1.0, -2.0], [5, 6]) + part([-4.0, -8.0], [5, 7])
    order = np.argsort(cluster_keys([5, 6, 7]))
    for state in (whole, both):
        assert state.by_group("surprise").tolist() == np.array([3.0, 1.0, 7.0])[order].tolist()
        assert state.by_group("hits").tolist() == np.array([1.5, 0.75, 0.75])[order].tolist()
        assert state.by_group("heads").tolist() == np.array([2, 1, 1])[order].tolist()


class Drawn(NamedTuple):
    """The totals over 6400 tokens, in exact standard errors."""

    surprise: float
    hits: float


def drawn(temperature: float, logged: float = 1.0) -> Drawn:
    """Draw at one temperature and log the log-probs, entropies and heads of another."""
    rng = np.random.default_rng(7)
    logits = 2 * rng.normal(size=(6400, 20))

    def policy(at: float) -> np.ndarray:
        p = np.exp(logits / at)
        return p / p.sum(axis=1, keepdims=True)

    p, rows = policy(logged), np.arange(6400)
    tokens = (policy(temperature).cumsum(axis=1) < rng.random((6400, 1))).sum(axis=1)
    entropy = -(p * np.log(p)).sum(axis=1)
    ids = np.argsort(-p, axis=1)[:, :3]
    head = np.take_along_axis(p, ids, axis=1)
    columns = columns_of(
        np.log(p[rows, tokens]), tokens, entropy, TopK(ids, np.log(head)), lengths=100
    )
    found = totals(columns)
    told = entropy >= ENTROPY_FLOOR
    variance = ((p * np.log(p) ** 2).sum(axis=1) - entropy**2)[told].sum()
    mass = head.sum(axis=1)
    assert found["prefixes"] == told.sum() > 5000
    return Drawn(
        found["surprise"] / np.sqrt(variance), found["hits"] / np.sqrt((mass * (1 - mass)).sum())
    )


def test_an_honest_sampler_has_mean_zero() -> None:
    for temperature in (1.0, 0.9):
        assert max(map(abs, drawn(temperature, logged=temperature))) < 5


@pytest.mark.parametrize(("temperature", "sign"), [(0.8, -1), (1.2, 1)])
def test_a_temperature_that_was_not_logged_is_seen(temperature: float, sign: int) -> None:
    """A colder sampler surprises less than it says and hits its head more often."""
    found = drawn(temperature)
    assert sign * found.surprise > 10
    assert -sign * found.hits > 10


def test_clusters_that_share_groups_are_counted_one_by_one() -> None:
    """Kish's number of the 256 groups themselves would be about 230."""
    columns = replace(pack({"old": np.full((3000, 1), -1.0)}), entropy={"old": np.ones(3000)})
    state = SamplerState.of(columns, "old")
    assert state.groups.folded
    assert state.effective_clusters("prefixes") == pytest.approx(3000, rel=0.2)
