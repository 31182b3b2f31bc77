from __future__ import annotations

import numpy as np
import pytest

from kullback.experiments.real_lm.batches import batches
from kullback.experiments.real_lm.measure import DRAWN, PAIRS, other_direction, pair

PAIR = {name: pair(name) for name in PAIRS}


def test_the_answer(made):
    assert "k3 errs 1.9 to 13 times less than k1" in made("real-lm").answer
    times = {name: one.error("k1", 1) / one.error("k3", 1) for name, one in PAIR.items()}
    close = ("bf16", "engine", "from engine", "light")
    assert [round(times[name], 1) for name in close] == [13.3, 7.1, 7.0, 1.9]
    assert times["strong"] < 0.01
    assert made("real-lm").printed == ()


def test_what_is_said_of_shapes():
    assert {round(PAIR[n].pooled, 2) for n in ("bf16", "engine", "from engine")} == {0.50, 0.51}
    for name in ("bf16", "engine", "from engine"):
        assert not PAIR[name].holed.any()
    assert round(PAIR["strong"].holed.mean(), 2) == 0.74
    for name in ("T 0.7", "T 1.4"):
        variance = PAIR[name].variances["k3"]
        assert variance.max() < 1e-3 * variance.sum()
    assert PAIR["light"].mean < 0.035 < 0.125 < PAIR["noise"].mean < PAIR["T 0.7"].mean


def test_what_is_said_of_prefixes():
    one = PAIR["noise"]
    low, high = ((one.kl > a) & (one.kl <= b) for a, b in ((1e-5, 0.01), (0.1, 20)))
    assert one.holed[low].mean() == pytest.approx(1 / 2, abs=0.03)
    assert one.holed[high].mean() == pytest.approx(1 / 6, abs=0.02)


def test_what_is_said_of_tokens():
    share = {name: one.bias("k2") / one.mean for name, one in PAIR.items()}
    assert (round(share["light"], 2), round(share["strong"], 2)) == (0.09, 1.76)
    assert all(abs(share[name]) < 0.013 for name in ("bf16", "engine", "from engine"))
    spread = {k: np.sqrt(PAIR["noise"].within(k).mean()) for k in ("k1", "k3", "best λ")}
    assert spread["best λ"] / min(spread["k1"], spread["k3"]) == pytest.approx(0.71, abs=0.005)


def test_what_is_said_of_prompts():
    one = PAIR["strong"]
    assert one.error("exact", 64) / one.error("k1", 64) == pytest.approx(0.91, abs=0.005)
    between = {n: (PAIR[n].error("exact", 1) / PAIR[n].error("k1", 1)) ** 2 for n in PAIRS}
    assert between["strong"] > 0.8
    assert max(between["bf16"], between["engine"]) < 0.01
    assert round(len(one.kl) / 64) == 119


def test_auto_comes_near_the_better_one():
    one, other = batches("noise", 64, 0), batches("strong", 8, 0)
    assert one.error("auto") < one.better() == one.error("k3")
    assert other.better() == other.error("k1")
    assert 1.2 < other.error("auto") / other.better() < 1.7


def test_what_is_said_of_the_other_direction():
    more = {name: other_direction(name)[1] / PAIR[name].pooled for name in DRAWN}
    assert more["light"] == pytest.approx(1.1, abs=0.05)
    assert more["noise"] == pytest.approx(2, abs=0.15)
    for name in DRAWN:
        assert (other_direction(name)[1] > 1) == (PAIR[name].pooled > 1)


def test_two_prefixes_make_the_variance_of_strong(made):
    worst = np.sort(PAIR["strong"].variances["k3"])
    assert worst[-2:].sum() / worst.sum() == pytest.approx(0.98, abs=0.005)
    holes = made("real-lm").parts[5].shows[0]
    assert [row[2] for row in holes.rows[:2]] == [3, 3]
