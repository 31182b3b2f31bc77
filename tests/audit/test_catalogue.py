from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.catalogue import all_sequences, recognized, slope_table, value_table
from kullback.audit.forms import Form, Weight, values

ROLES = ("current", "reference", "old")
LENGTHS = all_sequences().mask.sum(axis=1)
TOTALS = value_table(ROLES, logits=True, by_token=False)


def sums(form):
    found = values(form, all_sequences())
    return found.sum(axis=1) if found.ndim == 2 else found


def test_all_sequences_of_both_worlds():
    batch = all_sequences()
    assert batch.mask.shape == (27 + 15, 3)
    assert sorted(set(LENGTHS)) == [1, 2, 3]


def test_every_form_has_a_row_and_rows_are_finite():
    for table in (TOTALS, slope_table(ROLES, logits=True)):
        assert len(table.forms) == len(table.rows)
        assert np.isfinite(table.rows).all()


def test_every_form_is_recognized_as_itself_or_a_simpler_one():
    for place, form in enumerate(TOTALS.forms):
        found = recognized(3 * TOTALS.rows[place], TOTALS, LENGTHS)
        assert found is not None
        assert TOTALS.forms.index(found.form) <= place
        if not form.weight and form.scale == "nats":
            assert abs(found.factor) == pytest.approx(3)


def test_a_mean_over_the_tokens_is_told_from_a_sum():
    form = Form("k3", "current", "reference")
    found = recognized(sums(form) / LENGTHS, TOTALS, LENGTHS)
    assert found is not None
    assert (found.form, found.averaged) == (form, True)


def test_float32_is_near_enough_and_half_a_percent_is_not():
    seen = sums(Form("k2", "current", "reference"))
    found = recognized(seen.astype(np.float32).astype(float), TOTALS, LENGTHS)
    assert found is not None
    assert 1e-9 < found.error < 1e-6
    noise = np.random.default_rng(0).standard_normal(seen.shape)
    assert recognized(seen * (1 + 0.005 * noise), TOTALS, LENGTHS) is None


def test_a_sum_of_two_forms_is_taken_apart():
    one, other = Form("k1", "current", "reference"), Form("k3", "current", "old")
    found = recognized(2 * sums(one) + 0.5 * sums(other), TOTALS, LENGTHS)
    assert found is not None
    assert found.second is not None
    assert (found.form, found.second[0]) == (one, other)
    assert (found.factor, found.second[1]) == (pytest.approx(2), pytest.approx(0.5))


def test_of_several_forms_with_one_derivative_that_of_the_value_is_taken():
    # With its ratio attached k3 has the derivative of k2 with its ratio held constant.
    table = slope_table(ROLES, logits=False)
    like = Form("k3", "current", "reference", weight=Weight("current", "old", "token"))
    attached = Form("k3", "current", "reference", weight=Weight("current", "old", "token", "yes"))
    row = table.rows[table.forms.index(attached)]
    lengths = np.ones(row.shape)
    alone, beside = recognized(row, table, lengths), recognized(row, table, lengths, like)
    assert alone is not None
    assert beside is not None
    assert alone.form.method == "k2"
    assert beside.form == attached
