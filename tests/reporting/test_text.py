from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.console import Console

from kullback.cli.report import demo_report
from kullback.columns import pack
from kullback.estimation.summary import summarize
from kullback.explaining.explain import explain
from kullback.question import Question
from kullback.reporting.document import document
from kullback.reporting.text import print_explanation, print_report
from kullback.worlds import CLEAN_WORLDS


def printed(report, width: int, *, color: bool = False) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=width, force_terminal=color))
    return out.getvalue()


def explained(name: str | None, width: int, *, color: bool = False) -> str:
    out = io.StringIO()
    print_explanation(explain(name), Console(file=out, width=width, force_terminal=color))
    return out.getvalue()


@pytest.mark.parametrize("name", [None, "misaligned", "k3"])
@pytest.mark.parametrize("width", [80, 160])
def test_an_explanation_is_printed_as_it_is(name, width):
    assert explained(name, width).splitlines() == explain(name).lines(width)


def test_color_marks_the_title_and_the_labels_of_an_explanation_and_changes_no_letter():
    colored = explained("k3", 80, color=True)
    assert colored.startswith("\x1b[1mk3: ")
    assert "\x1b[36mMeans       \x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == explained("k3", 80)
    assert "\x1b[36mFindings that accuse\x1b[0m" in explained(None, 80, color=True)


@pytest.mark.parametrize("width", [80, 160])
def test_no_line_is_wider_than_the_terminal(width):
    lines = printed(demo_report(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 30


def test_the_headline_stands_first_then_trust_then_findings_then_numbers():
    text = " ".join(printed(demo_report(), 160).split())
    parts = [
        "128 sequences, 7632 tokens, sampled by rollout",
        "KL(current||reference) ~ rollout is 0.0319 nats per token",
        "A log that forgets the importance weight shows -0.0296 for it.",
        "Read it with care: this dump cannot tell whether its sampler drew these tokens. 6 of",
        "error tokens-do-not-match-text 4 of 128 sequences",
        "Cost: With them KL(rollout||reference)",
        "Do: Leave these sequences out",
        "question KL interval k3 exact trust",
        "Passed:",
        "Cannot be told (sampler-mismatch of rollout)",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_wide_terminal_shows_sampler_and_weights_and_a_narrow_one_does_not():
    assert "weights left" in printed(demo_report(), 160)
    assert "weights left" not in printed(demo_report(), 80)


def test_weights_that_leave_nothing_are_a_dash():
    columns = pack({"p": [[-np.inf] * 3] * 4, "q": [[-1.0] * 3] * 4, "s": [[-1.0] * 3] * 4})
    report = document(summarize([columns], questions=[Question("p", "q", "s")]))
    assert report["questions"][0]["weights"]["ess_fraction"] is None
    assert "KL(p||q) ~ s" in printed(report, 160)


def test_color_is_for_terminals_only():
    assert "\x1b[" in printed(demo_report(), 80, color=True)
    assert "\x1b[" not in printed(demo_report(), 80)


def test_a_clean_report_has_no_findings_but_its_notes():
    world = CLEAN_WORLDS["smooth"](64)
    text = printed(document(summarize([world.sample(np.random.default_rng(0))])), 80)
    assert "\nerror" not in text
    assert "warning" not in text


def test_guesses_are_printed_with_their_reason():
    report = demo_report()
    guess = {"role": "old", "column": "logp", "how": "alias", "reason": "so somebody calls it"}
    lost = {"file": "a.jsonl", "row": 2, "place": "line 3", "reason": "no JSON object"}
    more = {"columns": [guess], "unused": dict.fromkeys(["loss", "n"], "no part"), "damaged": [lost]}
    text = printed(report | {"source": report["source"] | more}, 160)
    assert "Read logp as old: so somebody calls it" in text
    assert "Took rollout as the sampler: the engine's own log-probs" in text
    assert "Did not read loss, n: no part" in text  # one reason, said once
    assert "Left out a.jsonl, line 3: no JSON object" in text


def test_a_name_in_a_file_does_not_move_the_cursor():
    batch = pack({"a": [[-1.0], [-2.0]], "b": [[-1.5], [-2.5]]})
    unused = {"\x1b[2Jlog_probs\n": "no name that is known here"}
    text = printed(document(summarize([batch]), {"unused": unused}), 200)
    assert "\x1b" not in text
    assert text.count(r"\x1b[2Jlog_probs\n") == 3  # the claim, the advice, the columns


def test_a_question_is_broken_where_one_would_pause_and_only_where_it_must():
    narrow, wider = printed(demo_report(), 80), printed(demo_report(), 100)
    assert "\nKL(current " in narrow
    assert "\n  ||reference)" in narrow
    assert "\n  ~ rollout" in narrow
    assert "\nKL(current||reference) " in wider
