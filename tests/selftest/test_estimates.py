from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.selftest import estimates as checked


def failed() -> set[str]:
    return {line.name for line in checked.estimates() if line.verdict == "failed"}


def test_all_hold():
    lines = checked.estimates()
    assert [line.name for line in lines] == list(checked.CHECKS)
    assert {line.verdict for line in lines} == {"passed"}


def test_an_estimate_that_forgets_the_weight_fails(monkeypatch):
    right = checked.estimate
    monkeypatch.setattr(
        checked, "estimate", lambda **named: right(**{**named, "log_sampler": None})
    )
    assert failed() == {"token weights", "cumulative weights"}


def test_an_estimate_of_another_level_fails(monkeypatch):
    right = checked.estimate
    other = {"sequence_sum": "sequence_mean", "sequence_mean": "sequence_sum"}

    def confused(level: str = "token_mean", **named):
        return right(level=other.get(level, level), **named)

    monkeypatch.setattr(checked, "estimate", confused)
    assert failed() >= {"sequence sums", "sequence means", "batches and errors"}


def test_a_standard_error_of_tokens_fails(monkeypatch):
    right = checked.estimate

    def unclustered(**named):
        found = right(**named)
        return replace(found, standard_error=found.standard_error / np.sqrt(3))

    monkeypatch.setattr(checked, "estimate", unclustered)
    assert failed() == {"batches and errors"}


def test_parts_that_do_not_add_fail(monkeypatch):
    right = checked._cut
    monkeypatch.setattr(checked, "_cut", lambda columns: list(right(columns))[1:])
    assert failed() == {"added parts"}


@pytest.mark.parametrize("part", range(checked.PARTS))
def test_a_batch_is_cut_into_parts_that_are_not_empty(part):
    columns = checked.CLEAN_WORLDS["smooth"](4).sample(np.random.default_rng(0))
    parts = list(checked._cut(columns))
    assert len(parts[part].lengths) > 0
    assert sum(len(one.lengths) for one in parts) == len(columns.lengths)
