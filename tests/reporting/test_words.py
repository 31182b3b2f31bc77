from __future__ import annotations

import pytest

from kullback.explaining.marks import MARKS
from kullback.reporting.words import (
    clamped,
    forgotten_weight,
    headline,
    in_words,
    interval,
    number,
    opening,
    reasons,
    trust,
    what_was_read,
)

ESTIMATE = {
    "mean": 0.12345,
    "low": 0.1,
    "high": 0.15,
    "standard_error": 0.012,
    "confidence": 0.95,
    "unit": "nats per token",
    "method": "k1",
    "scope": "new prompts",
    "reason": None,
}
HEAD = {
    "question": "KL(a||b)",
    "estimate": ESTIMATE,
    "unweighted_k1": None,
    "clusters": 64,
    "trust": "yes",
    "because": [],
    "untrusted": 0,
    "of": 1,
}


@pytest.mark.parametrize(
    ("value", "spoken"), [(0.0, "0"), (-0.031, "-0.031"), (1234.5, "1.23e+03"), (None, "–")]
)
def test_numbers_have_three_digits_and_none_is_a_dash(value, spoken):
    assert number(value) == spoken


def test_the_headline_says_which_how_big_and_how_sure():
    assert headline({"headline": HEAD}) == (
        "KL(a||b) is 0.123 nats per token, 95% interval 0.1 to 0.15 (k1, 64 prompts)."
    )


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (("mean", "low", "high"), "KL(a||b) has no number: one cluster."),
        (("low", "high"), "KL(a||b) is 0.123 nats per token, without an interval: one cluster."),
    ],
)
def test_what_is_not_there_has_its_reason(missing, said):
    one = ESTIMATE | dict.fromkeys(missing) | {"reason": "one cluster"}
    assert headline({"headline": HEAD | {"estimate": one}}) == said
    assert interval(one) == "–"


@pytest.mark.parametrize(
    ("verdict", "because", "untrusted", "of", "said"),
    [
        ("yes", [], 0, 1, "Nothing that was found speaks against this number."),
        ("with-care", ["too-few-clusters"], 0, 3, "Read it with care: too few prompts for the "
         "interval to hold what it says."),
        ("no", ["shifted-by-one"], 1, 1, "Do not act on KL(a||b): one role's log-probs stand one "
         "token off."),
        ("no", ["x"], 2, 3, "Do not act on KL(a||b): x. 1 of the other 2 numbers cannot be "
         "trusted."),
    ],
)  # fmt: skip
def test_trust_is_one_sentence_and_counts_the_others(verdict, because, untrusted, of, said):
    head = HEAD | {"trust": verdict, "because": because, "untrusted": untrusted, "of": of}
    assert trust({"headline": head}) == said


def test_a_question_is_said_in_words_with_its_weight():
    asked = {"p": "current", "q": "reference", "sampler": "rollout", "prefixes": "rollout"}
    said = in_words(asked)
    assert said.startswith("The mean of log current − log reference over what current samples, ")
    assert said.endswith("from tokens that rollout drew: each is weighed by current/rollout.")
    assert in_words(asked | {"prefixes": "current"}).endswith("rollout of all tokens up to it.")


def test_every_mark_has_words():
    for mark in MARKS:
        assert reasons([mark]) != mark


def test_a_number_that_is_not_to_be_acted_on_stands_behind_the_verdict():
    spoiled = HEAD | {"trust": "no", "because": ["misaligned"], "unweighted_k1": -0.03}
    kinds = [kind for kind, _ in opening({"headline": spoiled})]
    assert kinds == ["trust", "number", "plain"]
    kinds = [kind for kind, _ in opening({"headline": HEAD})]
    assert kinds == ["number", "trust"]


def test_a_forgotten_weight_is_told_where_one_is_needed():
    assert forgotten_weight({"headline": HEAD}) == ""
    near = forgotten_weight({"headline": HEAD | {"unweighted_k1": 0.12}})
    assert near == ""  # within the error of the estimate
    told = forgotten_weight({"headline": HEAD | {"unweighted_k1": -0.03}})
    assert told == "A log that forgets the importance weight shows -0.03 for it."


def test_what_was_read_counts_sequences_tokens_and_damage():
    counts = {"sequences": 2, "tokens": 7}
    report = {"source": {}, "questions": [{"counts": counts}]}
    assert what_was_read(report) == "arrays: 2 sequences, 7 tokens"
    source = {"files": ["a.parquet"], "sampler": "rollout", "damaged_rows": 3}
    assert what_was_read(report | {"source": source}) == (
        "a.parquet: 2 sequences, 7 tokens, sampled by rollout; 3 damaged rows left out"
    )


def test_clamps_that_do_the_same_are_one_line_and_idle_ones_none():
    clamp = {"rule": "k3 at most 10", "used_by": "A", "tokens": 3, "share": 0.0015, "form": "k3"}
    clamp |= {"mean": 0.0164, "clamped_mean": 0.0121}
    also = clamp | {"rule": "log r at least −10, k3 at most 10", "used_by": "B"}
    other = clamp | {"rule": "k1 within ±10", "used_by": "C", "form": "k1", "clamped_mean": 0.01}
    lines = clamped({"clamps": [also, clamp, other, clamp | {"tokens": 0}]})
    assert lines[0].startswith("Clamped as in B, A (k3 at most 10), 3 tokens")
    assert len(lines) == 2
    assert clamped({"clamps": []}) == []
