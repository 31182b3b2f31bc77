from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np

from kullback.estimation.summary import summarize
from kullback.reporting.comparison import comparison
from kullback.reporting.comparison_html import comparison_page
from kullback.worlds import CLEAN_WORLDS

COLUMNS = CLEAN_WORLDS["training_loop"](16).sample(np.random.default_rng(0), exact=True)
A, B = (summarize([COLUMNS.take(slice(8 * a, 8 * b))]) for a, b in ((0, 12), (4, 16)))
MADE = comparison(A, B, names=("<b>one</b>", "two"))


def test_the_page_is_well_formed_and_asks_for_nothing() -> None:
    text = re.sub(r"<script>.*?</script>", "", comparison_page(MADE), flags=re.DOTALL)
    opened = re.findall(r"<(p|h1|h2|div|table|tr|td|th|details|summary|span)\b", text)
    closed = re.findall(r"</(p|h1|h2|div|table|tr|td|th|details|summary|span)>", text)
    assert sorted(opened) == sorted(closed)
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(", text)


def test_it_says_what_the_terminal_says_in_the_same_order() -> None:
    body = comparison_page(MADE).partition("<body>")[2]
    text = unescape(re.sub(r"<script.*?</script>|<[^>]+>", "", body, flags=re.DOTALL))
    parts = [
        "A: <b>one</b>: 96 sequences",
        "KL(current||reference) ~ rollout did not change beyond noise",
        "Over the 8 shared prompts alone B − A is 0 nats per token",
        "What one side has and the other has not",
        "On both sides, and told in full by kullback report: too-few-clusters.",
        "The numbers",
        "0 of 4 KLs changed beyond noise.",
        "KL(rollout||old)",
        "The sides are paired by 8 prompts; only A has 4 more and only B has 4 more",
        "auto (k1), shared alone",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    for one in MADE["questions"]:
        assert text.count(one["question"]["text"]) >= 2


def test_text_from_a_dump_cannot_become_markup() -> None:
    assert "<b>one</b>" not in comparison_page(MADE)
    finding = MADE["findings"][0] | {"alone": True, "claim": "<img src=x>", "side": "a"}
    text = comparison_page(MADE | {"findings": [finding]})
    text = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in text
    assert "Only A: <b>" in text


def test_a_difference_without_a_number_says_why() -> None:
    logs = dict(COLUMNS.log_probs)
    logs["old"] = np.where(np.arange(len(COLUMNS)) == 7, -np.inf, logs["old"])
    broken = summarize([replace(COLUMNS, log_probs=logs)])
    text = comparison_page(comparison(broken, summarize([COLUMNS])))
    assert "A: infinite: 1 tokens outside a support" in text
