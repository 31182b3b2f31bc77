from __future__ import annotations

from typing import Any

import pytest

from kullback.reporting.comparison_words import (
    about_the_pairing,
    caption,
    headline,
    in_common,
    not_compared,
    pairing,
    row,
    sides,
    whose,
)

PAIRED = {"by": "prompt", "shared": 64, "only_a": 0, "only_b": 0}


def change(difference: Any = 0.0123, low: Any = 0.004, high: Any = 0.0206, **more: Any) -> Any:
    verdict = "within-noise" if low is None or low <= 0 <= high else "rose" if low > 0 else "fell"
    estimate = {"mean": 0.05}
    return {
        "a": estimate, "b": estimate, "difference": difference, "low": low, "high": high,
        "standard_error": 0.004, "confidence": 0.95, "unit": "nats per token", "method": "k1",
        "scope": "new prompts", "verdict": verdict, "on_shared": None, "reason": None, **more,
    }  # fmt: skip


def made(change: dict[str, Any], pairing: dict[str, Any] = PAIRED) -> dict[str, Any]:
    return {
        "headline": {"question": "KL(a||b)", "change": change, "pairing": pairing},
        "questions": [{"changes": {"auto": change}}],
    }


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            change(),
            "KL(a||b) rose by 0.0123 nats per token from A to B, 95% interval 0.004 to 0.0206 "
            "(k1, paired by 64 prompts).",
        ),
        (
            change(-0.0123, -0.0206, -0.004),
            "KL(a||b) fell by 0.0123 nats per token from A to B, 95% interval 0.004 to 0.0206 "
            "(k1, paired by 64 prompts).",
        ),
        (
            change(-0.001, -0.0206, 0.004),
            "KL(a||b) did not change beyond noise: B − A is -0.001 nats per token, 95% interval "
            "-0.0206 to 0.004 (k1, paired by 64 prompts).",
        ),
        (
            change(0.0, 0.0, 0.0, standard_error=0.0),
            "KL(a||b) is the same in A and B: 0.05 nats per token (k1, paired by 64 prompts).",
        ),
        (
            change(0.1, None, None, reason="A: one effective cluster"),
            "KL(a||b): B − A is 0.1 nats per token, without an interval: A: one effective cluster.",
        ),
        (
            change(None, None, None, reason="B: infinite"),
            "KL(a||b) cannot be compared: B: infinite.",
        ),
    ],
)
def test_the_headline_says_whether_it_changed(one, said) -> None:
    assert headline(made(one)) == said


def test_the_pairing_in_words() -> None:
    assert pairing(PAIRED) == "paired by 64 prompts"
    assert pairing(PAIRED | {"shared": 1, "only_a": 2, "only_b": 3}) == (
        "paired by 1 prompt; only A has 2 more and only B has 3 more"
    )
    assert pairing(PAIRED | {"shared": 0}) == "unpaired: no shared prompt"


def test_what_the_pairing_leaves_open_is_said() -> None:
    partly = PAIRED | {"shared": 40, "only_a": 24}
    alone = {"difference": -0.002, "low": -0.004, "high": -0.001}
    assert about_the_pairing(made(change())) == ""
    assert about_the_pairing(made(change(on_shared=alone), partly)).startswith(
        "Over the 40 shared prompts alone B − A is -0.002 nats per token, 95% interval -0.004 to "
        "-0.001. The whole difference is also one of the prompts"
    )
    endless = alone | {"low": None, "high": None}
    assert about_the_pairing(made(change(on_shared=endless), partly | {"shared": 1})).startswith(
        "Over the shared one alone B − A is -0.002 nats per token, without an interval."
    )
    # More than 1024: they share groups, so the shared ones cannot be told from the others.
    assert about_the_pairing(made(change(), partly)).startswith("The whole difference")
    apart = PAIRED | {"shared": 0}
    assert "may be one of the prompts" in about_the_pairing(made(change(), apart))
    assert "Log prompt_id" in about_the_pairing(made(change(), apart | {"by": "sequence"}))
    assert about_the_pairing(made(change(None, None, None), apart)) == ""


def test_a_row_has_the_change_by_every_method() -> None:
    question = {
        "question": {"text": "KL(a||b)"},
        "trust": {"verdict": "with-care"},
        "changes": {"auto": change(), "k3": change(-0.01, -0.02, 0.01)},
    }
    assert row(question) == (
        "KL(a||b)", "0.05", "0.05", "+0.0123", "0.004 … 0.0206", "rose", "-0.01", "–", "with care",
    )  # fmt: skip
    question["changes"]["exact"] = change(-0.01, -0.02, -0.001)
    assert row(question)[7] == "-0.01 fell"


def test_the_caption_warns_of_many_intervals_where_there_are_many() -> None:
    one = made(change())
    assert "expected to say otherwise" not in caption(one)
    one["questions"] *= 8
    assert "of 8 where nothing changed, 0.4 are expected" in caption(one)


def test_findings_are_of_a_side_or_of_both() -> None:
    mine = {"code": "stale", "side": "a", "alone": True}
    common = {"code": "holes", "side": "b", "alone": False}
    assert (whose(mine), whose(common)) == ("Only A", "B")
    assert in_common({"findings": [mine]}) == ""
    assert in_common({"findings": [mine, common, common]}).endswith("kullback report: holes.")


def test_sides_and_what_one_of_them_alone_answers() -> None:
    side = {
        "name": "a.parquet",
        "source": {"sampler": "old"},
        "counts": {"sequences": 1, "tokens": 9},
    }
    assert sides({"a": side, "b": side | {"name": "step 7"}}) == [
        "A: a.parquet: 1 sequence, 9 tokens, sampled by old",
        "B: step 7: 1 sequence, 9 tokens, sampled by old",
    ]
    assert not_compared({"only_a": [], "only_b": ["KL(a||b)", "KL(a||c)"]}) == [
        "Only B answers KL(a||b), KL(a||c)."
    ]
