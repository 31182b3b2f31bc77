from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from kullback.cli.report import demo_report
from kullback.columns import pack
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.reporting.document import document
from kullback.reporting.question_figures import along, log_ratios, methods, overview, per_sequence

DEMO = demo_report(by=["position", "length"])
QUESTIONS = {one["question"]["text"]: one for one in DEMO["questions"]}
HEAD = QUESTIONS[DEMO["headline"]["question"]]


def by_step(shift: float, *, level: str = "token_mean") -> dict[str, Any]:
    """Four steps of a hundred sequences, log q/p normal, whose KL is 0.02 + shift × step."""
    rng = np.random.default_rng(0)
    p = rng.normal(-2.0, 0.5, (400, 60))
    steps = np.arange(400) // 100
    kl = 0.02 + shift * steps[:, None]
    quantiles = ndtri((np.arange(6000) + 0.5) / 6000)
    z = np.concatenate([rng.permutation(quantiles).reshape(100, 60) for _ in range(4)])
    q = p - kl + np.sqrt(2 * kl) * z
    columns = replace(pack({"old": p, "current": q}), labels={"step": steps})
    asked = [Question("old", "current", level=level)]
    return document(summarize([columns], questions=asked, by=["step"]))


def test_the_overview_counts_what_cannot_be_trusted_and_has_every_question():
    made = overview(DEMO)
    assert made is not None
    assert made.title == "6 of 8 numbers cannot be trusted."
    assert [row["name"] for row in made.rows] == list(QUESTIONS)
    assert {row["group"] for row in made.rows} == {"no", "with care"}


def test_the_overview_names_what_lies_below_0():
    negative = [-2.0 + 0.1 * np.random.default_rng(0).random((60, 20)) for _ in "ab"]
    columns = pack({"old": negative[0], "current": negative[0] + 0.5, "reference": negative[1]})
    made = overview(document(summarize([columns])))
    assert made is not None
    assert "below 0: KL(old||current)" in made.title


def test_one_question_needs_no_overview():
    assert overview(by_step(0.0)) is None
    assert overview(DEMO | {"questions": DEMO["questions"][:1]}) is None


def test_methods_are_told_with_the_exact_one_inside_or_outside():
    made = methods(HEAD)
    assert made is not None
    assert "k1 says 0.0365, k3 0.0327" in made.title
    assert "The exact 0.0323 is inside the interval of auto." in made.title
    assert [row["name"] for row in made.rows] == [
        "auto",
        "k1",
        "k2",
        "k3",
        "exact",
        "rao_blackwell",
    ]
    elsewhere = HEAD["estimates"]["exact"] | {"mean": 0.1}
    moved = methods(HEAD | {"estimates": HEAD["estimates"] | {"exact": elsewhere}})
    assert moved is not None
    assert "The exact 0.1 is outside the interval of auto." in moved.title


def test_on_policy_the_gap_of_k1_and_k3_is_told_in_standard_errors():
    one = QUESTIONS["KL(rollout||strong)"]
    gap, error = (one["sampler_check"][key] for key in ("missing_mass", "standard_error"))
    estimates = one["estimates"]
    assert estimates["k1"]["mean"] - estimates["k3"]["mean"] == pytest.approx(gap, rel=1e-9)
    made = methods(one)
    assert made is not None
    assert f"{abs(gap) / error:.2g} standard errors apart" in made.title
    weighted = methods(HEAD)
    assert weighted is not None
    assert "standard errors" not in weighted.title


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (0.01, "By step the KL rises from 0.02 at 0 to 0.05 at 3."),
        (-0.005, "By step the KL falls from 0.02 at 0 to 0.005"),
        (0.0, "By step no change shows beyond the noise: 0.02 at 0, 0.02 at 3."),
    ],
)
def test_a_drift_is_said_where_the_intervals_of_the_ends_part(shift, said):
    made = along(by_step(shift)["questions"][0], "step")
    assert made is not None
    assert made.title.startswith(said)
    assert [row["at"] for row in made.rows[:4]] == [0, 1, 2, 3]


def test_one_cell_is_not_drawn_and_bins_are_named():
    assert along(QUESTIONS["KL(rollout||old)"], "step") is None
    made = along(HEAD, "position")
    assert made is not None
    assert made.spec["layer"][-1]["encoding"]["x"]["type"] == "ordinal"
    assert {row["series"] for row in made.rows} == {"auto", "k3", "exact"}
    chosen = along(HEAD, "length")
    assert chosen is not None
    assert "selected-on-outcome" in chosen.note


def test_sequences_are_all_in_bars_or_counted_beyond():
    made = per_sequence(HEAD)
    assert made is not None
    inside = sum(row["count"] for row in made.rows)
    assert f"{128 - inside:g} sequences beyond the picture" in made.note
    assert "nine in ten lie between" in made.title
    sums = per_sequence(by_step(0.0, level="sequence_sum")["questions"][0])
    assert sums is not None
    assert "nats per sequence" in str(sums.spec)


def test_log_ratios_are_shares_and_the_tail_is_told_by_what_it_makes_of_k3():
    made = log_ratios(HEAD)
    assert made is not None
    for series in ("tokens", "sum of k3"):
        total = sum(row["share"] for row in made.rows if row["series"] == series)
        assert total == pytest.approx(1)
    assert made.title == "The 1.0% of tokens with |log p/q| of 1 or more make 49% of the sum of k3."
    assert "without the importance weight" in made.note
    far = [one for one in HEAD["histogram"] if one["low"] >= 1 or one["high"] <= -1]
    assert sum(one["tokens"] for one in far) / 7632 == pytest.approx(0.01035, abs=5e-6)


def test_where_nothing_differs_nothing_is_drawn_of_it():
    columns = pack({"old": [[-1.0, -2.0]] * 4, "current": [[-1.0, -2.0]] * 4})
    one = document(summarize([columns]))["questions"][0]
    assert log_ratios(one) is None
    assert per_sequence(one) is None
    assert methods(one) is not None


def test_tokens_all_alike_have_no_tail():
    columns = pack({"old": [[-1.0, -2.0]] * 4, "current": [[-1.5, -2.5]] * 4})
    made = log_ratios(document(summarize([columns]))["questions"][0])
    assert made is not None
    assert made.title == "No token is far from the others."


def test_an_exact_kl_of_0_is_drawn_as_any_other():
    p = np.full((40, 6), -1.0)
    columns = pack({"old": p, "current": p - 0.1}, exact={"KL(old||current)": np.zeros((40, 6))})
    one = document(summarize([columns], by=["position"]))["questions"][0]
    made = along(one, "position")
    assert made is not None
    assert [row["mean"] for row in made.rows if row["series"] == "exact"] == [0.0] * 4


def test_per_sequence_the_gap_per_token_is_not_told():
    made = methods(by_step(0.01, level="sequence_sum")["questions"][0])
    assert made is not None
    assert "standard errors" not in made.title
    token = methods(by_step(0.01)["questions"][0])
    assert token is not None
    assert "standard errors apart" in token.title
