from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

from kullback.cli.report import demo_report
from kullback.columns import pack
from kullback.estimation.summary import summarize
from kullback.reporting.document import document
from kullback.reporting.html import finding_card, page

VOID = {"meta", "br"}


class Balanced(HTMLParser):
    """Every tag is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_asks_for_nothing():
    text = page(demo_report())
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # Vega's, and ours
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(", own)
    assert "default-src 'none'" in own  # what the scripts ask for, a browser refuses
    assert len(own) < 500_000
    assert len(text) < 1_500_000


def test_it_shows_every_question_finding_and_check():
    report = demo_report()
    text = page(report)
    for one in report["questions"]:
        assert one["question"]["text"] in text
    for code in {one["code"] for one in report["findings"] + report["checks"]}:
        assert code in text
    assert "A log that forgets the importance weight shows -0.0296 here." in text
    assert "The mean of log current − log reference over what current samples, from" in text


def test_a_card_names_the_first_places_and_counts_the_others():
    found = demo_report()["findings"][0]
    card = finding_card(found | {"where": [f"row {i}" for i in range(20)]})
    assert "At row 0; row 1; row 2; row 3 and 16 more." in card


def test_text_from_a_dump_cannot_become_markup():
    report = demo_report()
    top = report["questions"][0]["top"][0]
    top |= {"text": "<script>alert(1)</script>", "before": "<b>", "after": "&"}
    report["findings"][0]["claim"] = "<img src=x onerror=alert(1)>"
    text = page(report)
    own = re.sub(r"<script>\W*(!|\"use strict\").*?</script>", "", text, flags=re.DOTALL)
    assert "<script>" not in own
    assert "<img" not in own
    assert "&lt;b&gt;<mark>&lt;script&gt;alert(1)&lt;/script&gt;</mark>&amp;" in text


def test_a_method_without_a_number_says_why_beside_its_marks():
    columns = pack({"old": [[-1.0, -0.5]] * 4, "current": [[-1.0, -np.inf]] * 4})
    text = page(document(summarize([columns])))
    assert "few-clusters, infinite: 4 tokens outside a support" in text
