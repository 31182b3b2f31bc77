from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.diagnosis.finding import CODES
from kullback.explaining.marks import MARKS, explain_mark

SAID = {name: explain_mark(name) for name in MARKS}


@pytest.mark.parametrize("name", MARKS)
def test_every_mark_is_explained_on_one_screen(name):
    labels = [section.label for section in SAID[name].sections]
    assert labels == ["Means", "Set when", "Example", "No worry", "Do"]
    assert 12 <= len(SAID[name].lines(80)) <= 40
    assert max(map(len, SAID[name].lines(80))) <= 80


def test_every_mark_of_an_estimate_has_an_explanation():
    """Of lengths 1 and 2, weighed, in-sample, with a gap; and of k2."""
    log_q = np.array([[-1.0, -2.0], [-0.5, np.nan], [-3.0, np.nan]])
    weight = np.zeros((3, 2))
    weight[0] = 9.0
    made = kb.estimate(
        log_p=log_q + weight,
        log_q=log_q,
        log_sampler=np.where(np.isnan(log_q), -1.0, log_q),
        mask=[[1, 1], [1, 0], [1, 1]],
        level="sequence_mean",
        method="k2",
        in_sample=True,
    )
    assert set(made.marks) >= {"in-sample", "selected-on-outcome", "missing-values"}
    plain = kb.estimate(log_p=[[-1.0, -2.0]] * 2, log_q=[[-1.5, -1.0]] * 2, method="k2")
    assert set(plain.marks) == {"biased", "few-clusters"}
    for mark in {*made.marks, *plain.marks}:
        assert kb.explain(mark).name in {*CODES, *MARKS}


def test_a_temperature_is_seen_with_the_entropy_and_not_without():
    assert SAID["sampler-not-verifiable"].numbers == {"accused_without": 0.0, "accused_with": 1.0}
    example = dict(SAID["sampler-not-verifiable"].sections)["Example"]
    assert "the sampler is not-verifiable; with it, accused." in example


def test_the_other_marks_show_how_far_off_the_number_is():
    assert SAID["biased"].numbers["mean"] > 1.3 * SAID["biased"].numbers["kl"]
    plain = SAID["as-if-sampled-by"].numbers
    assert plain["without"] < 0 < plain["with"]


def test_a_lower_bound_is_marked_and_below():
    shown = SAID["lower-bound"].numbers
    assert shown["mean"] < shown["kl"]


def test_what_the_sampler_did_not_see_the_interval_does_not_know():
    shown = SAID["prefixes-unseen"].numbers
    assert shown["high"] < shown["kl"]
    assert shown["weight"] < 0.7
