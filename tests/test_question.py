from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.question import (
    LEVELS,
    Question,
    default_questions,
    is_role,
    metric_keys,
    presumed_sampler,
)

PROPERTY = settings(derandomize=True, deadline=None)

# The words of the grammar are roles as well as any other.
roles = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,5}", fullmatch=True) | st.sampled_from(
    ["prefixes", "per", "token", "sequence", "sequence-mean", "KL", "current", "reference"]
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    p, q = draw(st.lists(roles, min_size=2, max_size=2, unique=True))
    sampler = draw(st.sampled_from([p, q]) | roles)
    prefixes = draw(st.sampled_from([p, sampler]))
    return Question(p, q, sampler, prefixes, draw(st.sampled_from(list(LEVELS))))


def test_what_may_name_a_policy():
    assert all(map(is_role, ("old", "my.role-2", "A_1", "prefixes")))
    assert not any(map(is_role, ("", "old policy", "2nd", "_old", "old\n", "KL(a||b)")))


@PROPERTY
@given(questions(), st.sampled_from(["||", "‖"]), st.sampled_from([" ", "  ", "\t"]))
def test_what_is_printed_is_read_back(question: Question, bars: str, space: str) -> None:
    text = str(question)
    assert Question.parse(text) == question
    assert Question.parse(f" {text.replace('||', bars).replace(' ', space)} ") == question


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (Question("a", "b"), "KL(a||b)"),
        (Question("a", "b", "a", "a", "token_mean"), "KL(a||b)"),
        (Question("a", "b", "b"), "KL(a||b) ~ b"),
        (Question("a", "b", "s", "s"), "KL(a||b) ~ s"),
        (Question("a", "b", "s", "a"), "KL(a||b) ~ s prefixes a"),
        (Question("a", "b", level="sequence_sum"), "KL(a||b) per sequence"),
        (
            Question("a", "b", "s", "a", "sequence_mean"),
            "KL(a||b) ~ s prefixes a per sequence-mean",
        ),
    ],
)
def test_defaults_are_not_printed(question: Question, text: str) -> None:
    assert str(question) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("KL(a||a)", r"KL\(a\|\|a\) is 0 whatever the data: name two roles"),
        ("KL(a||b) prefixes b", r"prefixes b: .* their sampler \(a\) or, .* of a"),
        ("KL(a||b) ~ s prefixes b", r"prefixes b: .* their sampler \(s\) or, .* of a"),
        *(
            (junk, r"is no question: write KL\(P\|\|Q\) \[~ SAMPLER\] \[prefixes ROLE\]")
            for junk in (
                "",
                "KL(a|b)",
                "KL(a||2b)",
                "KL(a||b) per word",
                "KL(a||b) per token per token",
                "KL(a||b) prefixes a ~ s",
                "KL(a||b), KL(b||a)",
                "kl(a||b)",
            )
        ),
    ],
)
def test_what_is_no_question_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Question.parse(text)


@pytest.mark.parametrize("role", ["2b", "a b", "a\n", "ä", "-a"])
def test_a_role_is_a_name(role: str) -> None:
    with pytest.raises(ValueError, match="is no role: a role is a letter, then"):
        Question("a", role)


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'mean' is none of token_mean, sequence_sum, sequence_me"):
        Question("a", "b", level="mean")


@pytest.mark.parametrize(
    ("text", "weight", "roles"),
    [
        ("KL(a||b)", "none", ("a", "b")),
        ("KL(a||b) ~ b", "token", ("a", "b")),
        ("KL(a||b) ~ s", "token", ("a", "b", "s")),
        ("KL(a||b) ~ s prefixes a", "cumulative", ("a", "b", "s")),
    ],
)
def test_the_question_decides_the_weight(text: str, weight: str, roles: tuple[str, ...]) -> None:
    question = Question.parse(text)
    assert (question.weight, question.roles) == (weight, roles)


def test_each_level_has_its_own_unit() -> None:
    assert [Question("a", "b", level=level).unit for level in LEVELS] == [
        "nats per token",
        "nats per sequence",
        "nats per token, mean over sequences",
    ]


@PROPERTY
@given(questions(), st.text())
def test_a_metric_key_holds_only_what_every_logger_takes(question: Question, method: str) -> None:
    assert re.fullmatch(r"kl/[a-z0-9_/]+", question.metric_key(method))
    assert question.metric_key(method).count("/") == (5 if question.weight == "cumulative" else 4)


def test_the_metric_key_tells_prefixes_and_level() -> None:
    asked = Question("current", "reference", "rollout", "current", "sequence_sum")
    key = "kl/current_over_reference/by_rollout/prefixes_current/k1/sequence_sum"
    assert metric_keys([asked, asked], "k1") == {asked: key}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Question("Old", "b"), Question("old", "b")),
        (Question("a.1", "b"), Question("a-1", "b")),
        (Question("a_over_b", "c"), Question("a", "b_over_c", sampler="a_over_b")),
    ],
)
def test_questions_that_share_a_metric_key_are_refused(one: Question, other: Question) -> None:
    assert one.metric_key("k1") == other.metric_key("k1")
    with pytest.raises(ValueError, match=r"share the metric key kl/.*: rename a role"):
        metric_keys([one, other], "k1")


@pytest.mark.parametrize(
    ("roles", "sampler", "asked"),
    [
        (["reference", "rollout"], None, ["KL(rollout||reference)"]),
        (["current", "reference"], None, ["KL(current||reference)"]),
        (
            ["current", "old", "reference"],
            None,
            ["KL(old||current)", "KL(old||reference)", "KL(current||reference) ~ old"],
        ),
        (
            ["rollout", "old", "reference"],
            None,
            ["KL(rollout||old)", "KL(rollout||reference)", "KL(old||reference) ~ rollout"],
        ),
        (["student", "teacher"], "teacher", ["KL(teacher||student)"]),
        (["b", "a"], None, ["KL(b||a)"]),
    ],
)
def test_default_questions(roles: list[str], sampler: str | None, asked: list[str]) -> None:
    assert [str(question) for question in default_questions(roles, sampler)] == asked


def test_the_engine_is_the_likeliest_sampler_then_the_copy_before_the_update() -> None:
    ranked = ["rollout", "old", "student", "current", "reference"]
    for i in range(4):
        presumed = presumed_sampler(reversed(ranked[i:]))
        assert presumed.role == ranked[i]
        assert presumed.reason
    for roles, role in (
        (["teacher", "mine", "x"], "mine"),
        (["reference", "teacher"], "reference"),
    ):
        assert presumed_sampler(roles).role == role


@pytest.mark.parametrize(
    ("roles", "sampler", "sentence"),
    [
        (["old"], None, "needs the log-probs of two roles; there are only those of old"),
        ([], None, "needs the log-probs of two roles; there are none"),
        (["old", "current"], "rollout", "no log-probs of rollout, only of old, current"),
    ],
)
def test_no_default_questions(roles: list[str], sampler: str | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        default_questions(roles, sampler)


def test_a_question_is_its_own_parse() -> None:
    asked = Question("current", "reference", "rollout")
    assert Question.parse(asked) is asked
