from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kullback.experiments.sampling import story
from kullback.experiments.sampling.measure import P, Q, means, zipf

ORACLE = json.loads(
    (Path(__file__).parents[2] / "oracles" / "e_truncated_sampling.json").read_text()
)
CASES = {case["name"]: case for case in ORACLE["cases"]}
ROWS = {
    "nothing": "none",
    "temperature 0.7": "temperature=0.7",
    "temperature 1.3": "temperature=1.3",
    "top-p 0.9, top-k 4 or min-p 0.2": "top_p=0.9 (smallest prefix with cum>=0.9)",
    "top-k 3": "top_k=3",
    "temperature 0.7, top-k 4": "temperature=0.7 + top_k=4",
    "top-k 1 (greedy)": "top_k=1 greedy",
}
RAW = (
    "kept_mass_policy",
    "kept_mass_reference",
    "KL_behaviour_vs_ref",
    "naive_k1_mean",
    "naive_k3_mean",
)
REPAIRED = (
    "corrected_k1_mean_processed_logprobs",
    "k3_mean_processed_logprobs",
    "generalised_k3_r_minus_qS_mean",
    "is_k1_mean",
    "is_k3_mean",
    "KL_behaviour_vs_truncated_ref",
    "data_processing_lower_bound_on_raw_KL",
)


def test_the_tables_of_six_tokens_are_the_oracle(made):
    parts = made("sampling").parts
    for table, names in ((parts[0].shows[1], RAW), (parts[2].shows[0], REPAIRED)):
        assert [row[0] for row in table.rows] == list(ROWS)
        for row in table.rows:
            told = [float(CASES[ROWS[row[0]]][name]) for name in names]
            assert row[1 : len(names) + 1] == pytest.approx(told, rel=1e-12, abs=1e-15)
    for row in parts[0].shows[1].rows:
        told = -float(CASES[ROWS[row[0]]]["naive_mean_r_minus_1"])
        assert row[-1] == pytest.approx(told, abs=1e-12)
    assert "0.1094 in every row" in parts[0].shows[1].caption
    assert round(float(CASES["none"]["KL_raw_policy_vs_ref"]), 4) == 0.1094


def test_what_is_said_in_words_holds(made):
    one = made("sampling")
    assert "103 % too high and 50 % too low" in one.answer
    it = means(P, story.CUT(P), Q)
    assert (it.raw_k1 / it.policy, it.raw_k3 / it.policy) == pytest.approx((2.03, 0.5), abs=5e-3)
    temperature = one.parts[1].says
    for said in ("35 % too high", "29 % too low", "28 % too low", "21 % too high"):
        assert said in temperature
    for name, place, value in (
        ("temperature=0.7", "naive_k1", 1.35),
        ("temperature=0.7", "naive_k3", 0.71),
        ("temperature=1.3", "naive_k1", 0.72),
        ("temperature=1.3", "naive_k3", 1.21),
    ):
        told = CASES[name]
        ratio = float(told[f"{place}_mean"]) / float(told["KL_raw_policy_vs_ref"])
        assert ratio == pytest.approx(value, abs=5e-3)


def test_below_temperature_1_k1_is_too_high_and_k3_too_low_and_above_the_other_way(made):
    (figure,) = made("sampling").parts[1].shows
    at = {}
    for row in figure.rows:
        at.setdefault(row["at"], {})[row["series"]] = row["value"]
    for temperature, it in at.items():
        policy = it["KL(p‖q), the policy"]
        high, low = it["mean of k1, raw"] - policy, policy - it["mean of k3, raw"]
        if temperature == 1:
            assert (high, low) == pytest.approx((0, 0), abs=1e-12)
        else:
            assert min(high * (1 - temperature), low * (1 - temperature)) > 0


def test_where_a_sampler_cannot_be_accused_from_drawn_tokens_alone(made):
    """No cut makes the bet grow or k1 fall below 0, in any row of the last table."""
    table, verdicts = made("sampling").parts[-1].shows
    bets = {row[0]: row[2] for row in table.rows}
    warm = "six tokens: temperature 1.3"
    assert [name for name, bet in bets.items() if bet != "never"] == [warm]
    for name, alone, with_entropy in verdicts.rows:
        assert (alone == "accused") == (name == warm)
        assert (with_entropy == "not") == name.endswith(": nothing")
    pairs = [(P, Q, story.SIX), (P, story.SAME_TAIL, story.SIX), (*zipf(), story.WIDE)]
    assert all(
        means(p, filtered(p), q).raw_k1 > 0
        for p, q, filters in pairs
        for filtered in filters.values()
    )


@pytest.mark.parametrize("part", [0, 3])
def test_the_dials_have_three_distributions_at_every_setting(made, part):
    figure = made("sampling").parts[part].shows[0]
    beside, _ = figure.spec["concat"]
    totals = {}
    for row in beside["data"]["values"]:
        key = row["at"], row["series"]
        totals[key] = totals.get(key, 0.0) + row["value"]
    settings = {row["at"] for row in figure.rows}
    assert set(totals) == {(at, series) for at in settings for series in story.COLORS}
    assert list(totals.values()) == pytest.approx(np.ones(len(totals)))
    json.dumps(figure.vega(), allow_nan=False)


def test_only_the_policys_kl_moves_with_what_was_cut_off(made):
    (figure,) = made("sampling").parts[3].shows
    for series in ("KL(p‖q) is at least", "mean of k1, raw", "mean of k3, raw"):
        values = [row["value"] for row in figure.rows if row["series"] == series]
        assert max(values) - min(values) < 1e-12
    policy = [row["value"] for row in figure.rows if row["series"] == "KL(p‖q), the policy"]
    assert max(policy) > 2.9 * min(policy)


def test_a_document_that_prints_no_number_of_it(made):
    one = made("sampling")
    assert one.printed == ()
    assert one.verdict() == "The document prints no number on this."
