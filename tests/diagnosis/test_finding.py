from __future__ import annotations

import pytest

from kullback.diagnosis.finding import CODES, Diagnosis, Finding, decided


def finding(code: str, severity: str) -> Finding:
    return Finding(code, severity, "certain", "claim", "cost", "advice")


def test_a_code_that_is_not_listed_is_refused():
    with pytest.raises(ValueError, match="'negative-kl' is no finding code"):
        finding("negative-kl", "error")


def test_the_most_severe_finding_comes_first_and_of_equals_the_earlier():
    note, error = finding("too-few-clusters", "note"), finding("shifted-by-one", "error")
    second = finding("not-log-probs", "error")
    joined = Diagnosis((note,)) + Diagnosis((error,)) + Diagnosis((second,))
    assert joined.findings == (error, second, note)


def test_only_an_accusing_code_accuses():
    assert not Diagnosis((finding("mean-owned-by-few", "note"),)).accused
    assert Diagnosis((finding("shifted-by-one", "error"),)).accused
    assert {code for code, entry in CODES.items() if not entry.accuses} == {
        "holes-suspected",
        "not-finite",
        "controller-saturated",
        "penalty-not-used",
        "noise-above-signal",
        "level-changed",
        "far-apart",
        "rows-left-out",
        "column-not-read",
        "rows-repeated",
        "weight-missing",
        "weights-degenerate",
        "mean-owned-by-few",
        "selected-on-outcome",
        "stale",
        "precision-floor",
        "stochastic-forward",
        "reference-not-start",
        "end-not-counted",
        "clamp-active",
        "too-few-clusters",
        "drift-behind-small-steps",
    }


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        (0.2, 0.1, "between 0.1 and 0.2 decides the other way"),
        (0.1, 0.2, "between 0.1 and 0.2 decides the other way"),
        (-0.1, 0.0, "Its sign is wrong"),
        (0.1, 0.1, ""),
        (float("nan"), 0.1, ""),
        (0.1, float("nan"), ""),
    ],
)
def test_a_wrong_number_flips_what_lies_between_it_and_the_right_one(wrong, right, said):
    assert said in decided(wrong, right)
    assert bool(said) is bool(decided(wrong, right))
