from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import kullback as kb
from kullback.estimation.summary import summarize
from kullback.reporting.comparison import comparison
from kullback.reporting.comparison_text import print_comparison


def demo_halves():
    """The first 32 prompts of the demo against the others: the lost ids are all on one side."""
    (columns,) = kb.read(kb.demo_path())
    _, prompt = np.unique(columns.clusters, return_inverse=True)
    a, b = (summarize([columns.take(np.flatnonzero(part))]) for part in (prompt < 32, prompt > 31))
    column = {"role": "mask", "column": "m", "how": "alias", "reason": "TRL calls it so"}
    source = {"columns": [column], "sampler": "rollout", "sampler_reason": "the engine's own"}
    return comparison(a, b, (source, {**source, "unused": {"x": "no idea"}}), names=("one", "two"))


MADE = demo_halves()


def printed(width: int, *, color: bool = False, made=MADE) -> str:
    out = io.StringIO()
    print_comparison(made, Console(file=out, width=width, force_terminal=color))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed(width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 20


def test_the_headline_stands_before_the_findings_and_these_before_the_numbers() -> None:
    text = " ".join(printed(160).split())
    parts = [
        "A: one: 64 sequences, 3863 tokens, sampled by rollout",
        "B: two: 64 sequences, 3769 tokens, sampled by rollout",
        "KL(current||reference) ~ rollout did not change beyond noise: B − A is 0.0101 nats",
        "No prompt is on both sides",
        "Read it with care: ",
        "Only A: error tokens-do-not-match-text",
        "On both sides, and told in full by kullback report: clamp-active, too-few-clusters.",
        "question A B B − A interval change by k3 by exact trust",
        "KL(rollout||old) 0.0339 0.00399 -0.0299",
        "KL by k1 in nats per token",
        "Read m as mask: TRL calls it so",
        "B: Did not read x: no idea",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "A: Read m" not in text


def test_a_narrow_terminal_leaves_the_other_methods_out() -> None:
    assert "by exact" in printed(160)
    assert "by exact" not in printed(80)


def test_color_is_for_terminals_only() -> None:
    assert "\x1b[" in printed(80, color=True)
    assert "\x1b[" not in printed(80)


def test_a_name_cannot_move_the_cursor() -> None:
    made = MADE | {"a": MADE["a"] | {"name": "\x1b[2Jx"}}
    assert "\x1b[2J" not in printed(80, made=made)
