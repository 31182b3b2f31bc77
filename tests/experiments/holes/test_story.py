from __future__ import annotations

import pytest

from kullback.experiments.holes import batches, measure


def test_what_the_document_prints_agrees(made):
    printed = made("holes").printed
    assert [one.printed for one in printed] == ["0.0996504851", "0.0996504851", "0.22314"]
    assert all(one.agrees for one in printed)


def test_what_is_said_in_words_holds(made):
    one = measure.matched(measure.RECOVERED_HOLE, measure.RECOVERED_Q)
    assert round(one.of_hole.variance_k3 / one.of_hole.variance_k1) == 402
    assert round(one.of_smooth.variance_k1 / one.of_smooth.variance_k3) == 27
    at = {depth: measure.at_depth(depth).of_smooth for depth in (0.5, 2.0)}
    left = {depth: it.variance_k_lambda / it.variance_k3 for depth, it in at.items()}
    assert left == pytest.approx({0.5: 1 / 3, 2.0: 0.1}, abs=0.01)
    cut = {depth: measure.at_depth(depth) for depth in (1.5, 2.0)}
    lost = {
        depth: round(100 * (measure.clamped(it.hole, measure.Q)[0] / it.of_hole.kl_pq - 1))
        for depth, it in cut.items()
    }
    assert lost == {1.5: -56, 2.0: -80}
    seen = batches.seen(1024, 3.0)
    assert (round(100 * seen.error_k1, 1), round(100 * seen.error_k3)) == (1.4, 198)
    assert (round(seen.median_k1, 3), round(seen.median_k3, 3)) == (0.223, 0.023)
    assert round(seen.median_missing, 3) == 0.2
    assert made("holes").answer.endswith("in 81% of batches.")


def test_the_dial_has_both_distributions_at_every_depth(made):
    (figure,) = made("holes").parts[1].shows
    beside, _ = figure.spec["concat"]
    bars = beside["data"]["values"]
    for depth in measure.DEPTHS:
        there = [row for row in bars if row["at"] == depth]
        for series in ("q", "p1, hole", "p2, smooth"):
            total = sum(row["value"] for row in there if row["series"] == series)
            assert total == pytest.approx(1)


def test_up_to_the_size_in_the_title_the_median_batch_has_no_hit(made):
    _, typical, *_ = made("holes").parts[4].shows
    (last,) = (int(word.replace(",", "")) for word in typical.title.split() if word[0].isdigit())
    assert batches.seen(last, 3.0).unseen > 0.5 > batches.seen(last + 1, 3.0).unseen
    by = {(row["series"], row["at"]): row["value"] for row in typical.rows}
    for (series, size), value in by.items():
        if series == "missing mass":
            assert value == pytest.approx(by["k1", size] - by["k3", size])
            assert (value == by["missing mass", 64]) == (size <= last)
