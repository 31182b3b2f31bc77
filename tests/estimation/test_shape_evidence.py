from __future__ import annotations

import numpy as np
import pytest

from kullback.columns import pack
from kullback.estimation.question_state import QuestionState
from kullback.estimation.shape_evidence import ALPHA, ShapeEvidence, shape_evidence
from kullback.formulas.shape import shape
from kullback.question import Question

PQ = Question("p", "q")


def seen(p: list[float], q: list[float], count: int, seed: int) -> ShapeEvidence:
    x = np.random.default_rng(seed).choice(len(p), size=count, p=p)
    columns = pack({"p": np.log(p)[x], "q": np.log(q)[x]}, lengths=1, clusters=np.arange(count))
    return shape_evidence(QuestionState.of(columns, PQ))


def shares(p: list[float], q: list[float], count: int, times: int = 300) -> dict[str, float]:
    found = [seen(p, q, count, seed).verdict for seed in range(times)]
    return {name: found.count(name) / times for name in ("holes", "smooth", "cannot-tell")}


def test_a_hole_that_was_not_sampled_shows_as_missing_mass() -> None:
    p, q = [1e-4, 0.3, 0.2, 0.4999], [0.1, 0.3, 0.25, 0.35]
    assert shape(p, q).S > 10
    found = seen(p, q, 500, 1)
    assert found.verdict == "holes"
    assert 0 < found.least < 0.1 < found.most
    told = shares(p, q, 500)
    assert told["holes"] > 0.8
    assert told["smooth"] < 0.02


def test_holes_that_were_sampled_show_in_the_ratios() -> None:
    """Often enough for a mean of squares, or once at a ratio that settles it."""
    p, q = [0.01, 0.49, 0.5], [0.1, 0.45, 0.45]
    found = seen(p, q, 20_000, 2)
    assert found.verdict == "holes"
    assert 1 < found.S_least < shape(p, q).S
    assert found.least < 0 < found.most
    once = np.append(np.random.default_rng(3).normal(0, 0.1, size=499), 9.0)
    columns = pack({"p": 0 * once, "q": once}, lengths=1, clusters=np.arange(500))
    assert shape_evidence(QuestionState.of(columns, PQ)).S_least > 1


@pytest.mark.parametrize("count", [64, 1000])
def test_a_smooth_pair_is_called_holed_no_oftener_than_said(count: int) -> None:
    p, q = [0.25, 0.25, 0.25, 0.25], [0.2, 0.23, 0.27, 0.3]
    assert shape(p, q).S < 1
    # Two ways at ALPHA each; over 300 samples of a seed, four standard errors more.
    assert shares(p, q, count)["holes"] <= 2 * ALPHA + 4 * np.sqrt(2 * ALPHA / 300)


def test_an_exact_column_tells_what_sampled_tokens_cannot() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=(64, 32))
    log_q = 0.1 * z - 0.005
    plain = pack({"p": 0 * z, "q": log_q})
    told = pack({"p": 0 * z, "q": log_q}, exact={"KL(p||q)": np.full(z.shape, 0.005)})
    assert shape_evidence(QuestionState.of(plain, PQ)).verdict == "cannot-tell"
    assert shape_evidence(QuestionState.of(told, PQ)).verdict == "smooth"
    for share, verdict in ((0.7, "smooth"), (0.1, "cannot-tell")):
        some = np.where(rng.random(z.shape) < share, 0.005, np.nan)
        at_some = pack({"p": 0 * z, "q": log_q}, exact={"KL(p||q)": some})
        assert shape_evidence(QuestionState.of(at_some, PQ)).verdict == verdict
    hidden = pack({"p": 0 * z, "q": log_q}, exact={"KL(p||q)": np.full(z.shape, 0.02)})
    found = shape_evidence(QuestionState.of(hidden, PQ))
    assert (found.verdict, found.against) == ("holes", "exact")
    assert found.least == pytest.approx(0.015, rel=0.1)


def test_one_cluster_tells_nothing() -> None:
    found = shape_evidence(QuestionState.of(pack({"p": [[-1.0]], "q": [[-2.0]]}), PQ))
    assert found.verdict == "cannot-tell"
    assert np.isnan(found.missing)
