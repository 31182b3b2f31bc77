from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from kullback.cli.report import demo_report
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.reporting.along import cell_caption, cell_heads, cell_rows, left_out
from kullback.reporting.document import document
from kullback.reporting.html import page
from kullback.reporting.text import print_report
from kullback.worlds import CLEAN_WORLDS

DEMO = demo_report(by=["position", "length"])
HEAD = "KL(current||reference) ~ rollout"


def question(report: dict[str, Any], text: str = HEAD) -> dict[str, Any]:
    return next(one for one in report["questions"] if one["question"]["text"] == text)


def labelled(by: str, *, level: str = "token_mean") -> dict[str, Any]:
    return labelled_report(by, level=level)["questions"][0]


def labelled_report(by: str, *, level: str = "token_mean") -> dict[str, Any]:
    columns = CLEAN_WORLDS["training_loop"](16).sample(np.random.default_rng(0))
    task = np.array(["rare", *["a"] * 60, *[None] * (len(columns.lengths) - 61)], dtype=object)
    columns = replace(columns, labels={"task": task, "reward": task})
    asked = [Question("rollout", "current", level=level)]
    return document(summarize([columns], questions=asked, by=[by]))


def printed(report: dict[str, Any], width: int, **how: Any) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=width), **how)
    return out.getvalue()


def test_a_table_has_a_line_for_each_cell_and_exact_only_where_it_is():
    one = question(DEMO)
    assert cell_heads(one, "position") == (
        "position", "tokens", "clusters", "KL", "interval", "k3", "exact"
    )  # fmt: skip
    assert cell_rows(one, "position")[0] == (
        "0", "128", "64", "0.0943", "0.0401 … 0.296", "0.0898", "0.11"
    )  # fmt: skip
    assert "exact" not in cell_heads(question(DEMO, "KL(rollout||old)"), "position")


def test_the_caption_says_that_each_interval_stands_alone():
    assert cell_caption(question(DEMO), "position") == (
        "KL by auto in nats per token. Each interval holds at 95% on its own: of 7, 0.35 are "
        "expected to miss."
    )


def test_a_split_that_may_select_says_so_and_a_settled_one_does_not():
    assert "selected-on-outcome" in cell_caption(question(DEMO), "length")
    assert "Nothing says that reward was settled" in cell_caption(labelled("reward"), "reward")
    assert "selected-on-outcome" not in cell_caption(labelled("task"), "task")


def test_missing_labels_and_intervals_have_their_words():
    one = labelled("task")
    assert [row[0] for row in cell_rows(one, "task")] == ["a", "rare", "not logged"]
    assert cell_rows(one, "task")[1][4] == "–"
    said = cell_caption(one, "task")
    assert "of 2, 0.1 are expected to miss" in said
    assert "At rare: one effective cluster" in said
    assert "Marked few-clusters: every cell." in said


def test_parts_of_sequences_are_said_to_be_per_token():
    one = labelled("position", level="sequence_sum")
    assert "nats per token" in cell_caption(one, "position")
    assert "parts of sequences, so its KL is per token" in cell_caption(one, "position")
    assert "nats per sequence" in cell_caption(labelled("task", level="sequence_sum"), "task")


def test_no_token_no_table():
    one = question(DEMO)
    assert cell_rows(one | {"by": {"step": []}}, "step") == []
    assert "nothing by step" in cell_caption(one | {"by": {"step": []}}, "step")


def test_the_terminal_shows_the_headline_and_what_was_asked_and_names_the_rest():
    text = printed(DEMO, 80, by=["position"])
    assert f"{HEAD} by position" in text
    assert "KL(rollout||old) by" not in text
    assert "the other 7 questions" in text
    assert "By length: in the page and the JSON, or here with --by length." in " ".join(
        text.split()
    )
    more = printed(DEMO, 80, asked=["KL(rollout||old)"], by=["position", "length"])
    assert "KL(rollout||old) by length" in more
    assert "By position, length, too, in the page and the JSON: the other 6" in more
    assert left_out(labelled_report("task"), ["KL(rollout||current)"], ["task"]) == ""


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, printed(DEMO, width).splitlines())) <= width


def test_the_page_has_the_tables_of_every_question():
    text = page(DEMO)
    tables = len(DEMO["questions"])
    assert text.count("<th>length</th>") == tables
    assert text.count("<th>position</th>") == tables + 1  # the parts of the drift
    assert "<th>step</th>" not in text  # it has one cell, which says nothing
