from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.alignment import diagnose_alignment
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import shifted_by_one

LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))


def diagnosis(columns):
    return diagnose_alignment(summarize([columns]))


def test_a_shifted_role_is_named_by_all_its_pairs():
    columns = shifted_by_one(LOOP.sample(np.random.default_rng(0)), "rollout")
    (finding,) = diagnosis(columns).findings
    assert finding.code == "shifted-by-one"
    assert "So the log-probs of rollout stand one token off." in finding.claim


def test_a_single_shifted_pair_names_no_side():
    world = CLEAN_WORLDS["smooth"](16)
    columns = shifted_by_one(world.sample(np.random.default_rng(0)), "reference")
    (finding,) = diagnosis(columns).findings
    assert "one side of KL(rollout||reference)" in finding.claim
    assert finding.numbers["lag"] == 1.0


@pytest.mark.parametrize("lag", [-1, 1])
def test_the_lag_has_a_sign(lag):
    values = np.random.default_rng(0).normal(-2.0, 1.0, size=(20, 30))
    (finding,) = diagnosis(pack({"p": values, "q": np.roll(values, lag, axis=1)})).findings
    assert finding.numbers["lag"] == lag


def test_sequences_of_one_token_cannot_be_shifted():
    check = diagnosis(pack({"p": np.full((300, 1), -1.0), "q": np.full((300, 1), -2.0)})).checks[-1]
    assert (check.code, check.status) == ("shifted-by-one", "not-possible")


def test_misspelled_sequences_are_named_with_the_token_and_their_cost():
    columns = FAULTS["retokenized"].inject(LOOP, np.random.default_rng(0))
    found = diagnosis(columns)
    (finding,) = found.findings
    assert finding.code == "tokens-do-not-match-text"
    assert finding.numbers["sequences"] == len(finding.numbers["rows"])
    assert finding.numbers["of"] == len(columns.lengths)
    assert len(finding.where) == min(20, finding.numbers["sequences"])


def test_the_cost_compares_k3_with_and_without_the_misspelled():
    """Two good sequences with k3 of 0.1065 and a misspelled one with e⁴ − 5."""
    columns = pack({"p": [[-1.0], [-1.0], [-5.0]], "q": [[-1.5], [-1.5], [-1.0]]})
    columns = replace(columns, token_bytes=[b"a", b"b", b"c"], text=["a", "b", "x"])
    (finding,) = diagnosis(columns).findings
    good, bad = np.exp(-0.5) - 1 + 0.5, np.exp(4) - 1 - 4
    assert finding.numbers["k3_without"] == pytest.approx(good, rel=1e-12)
    assert finding.numbers["k3_with"] == pytest.approx((2 * good + bad) / 3, rel=1e-12)
    assert finding.questions == ("KL(p||q)",)


def test_the_cost_is_not_told_where_no_sequence_spells_its_text():
    columns = pack({"p": [[-1.0], [-1.0]], "q": [[-1.5], [-1.5]]})
    (finding,) = diagnosis(replace(columns, token_bytes=[b"a", b"b"], text=["x", "y"])).findings
    assert finding.cost == "Their share of the estimates cannot be told."
    assert finding.numbers.keys() == {"sequences", "of", "rows"}
    assert finding.questions == ("KL(p||q)",)


def test_misspelled_sequences_that_move_nothing_spoil_no_question():
    columns = LOOP.sample(np.random.default_rng(0))
    text = list(columns.text or [])
    text[3] = "another text"
    (finding,) = diagnosis(replace(columns, text=text)).findings
    assert finding.severity == "error"
    assert finding.questions == ()


def test_without_text_it_says_what_to_log():
    checks = diagnosis(replace(LOOP.sample(np.random.default_rng(0)), text=None)).checks
    assert checks[0].status == "not-possible"
    assert "log text and token_bytes" in checks[0].reason


@pytest.mark.parametrize("places", [[0], [0, 1], [1], [-1], [-2], [-2, -1], [3]])
def test_a_format_token_that_the_reference_dislikes_is_no_shift(places):
    """Sixty short peaked sequences; at the same places the reference gives e⁻²⁰."""
    rng = np.random.default_rng(0)
    policy = -rng.gamma(0.15, 2.0, size=(60, 40))
    reference = policy + rng.normal(0.0, 0.1, size=policy.shape)
    policy[:, places], reference[:, places] = -0.01, -20.0
    assert not diagnosis(pack({"old": policy, "reference": reference})).accused


def test_sequences_of_three_tokens_have_too_few_neighbors_to_tell():
    """All inner tokens stand at one place, whose neighbors may agree by their nature."""
    world = CLEAN_WORLDS["three_token_language"](64)
    found = diagnosis(world.sample(np.random.default_rng(0)))
    assert not found.accused
    assert {c.status for c in found.checks if c.code == "shifted-by-one"} == {"not-possible"}


@pytest.mark.parametrize("place", [1, -2])
@pytest.mark.parametrize("length", [9, 20])
def test_nor_is_it_at_the_second_or_second_last_place_of_a_short_sequence(place, length):
    rng = np.random.default_rng(1)
    policy = -rng.gamma(0.1, 1.0, size=(200, length))
    reference = policy + rng.normal(0.0, 0.1, size=policy.shape)
    policy[:, place], reference[:, place] = -0.01, -12.0
    assert not diagnosis(pack({"old": policy, "reference": reference})).accused
