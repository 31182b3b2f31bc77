from __future__ import annotations

import re
from dataclasses import replace

from kullback.reporting.experiment import Experiment, Part, Printed, Table
from kullback.reporting.experiment_html import experiment_page

MADE = Experiment(
    name="one", source="A & B", question="Is it?", claim="It is <sure>.", answer="It is 2.",
    method="By hand.", parts=(Part("First", "Seen.", (Table("All.", ("of", "x"), [("a", 1.5)]),)),),
    printed=(Printed("two", "2.0", 2.04), Printed("a tie", "0.002", 0.0025, "It is a tie.")),
    limits=("None.",), seed=3,
)  # fmt: skip


def test_a_page_of_one_says_the_answer_first_and_asks_for_nothing():
    page = experiment_page([MADE])
    assert "<title>It is 2.</title>" in page
    assert page.count("<h1>") == 1
    assert "<sure>" not in page
    assert not re.search(r"https?:|\bsrc=|@import|url\(", page)
    order = ["<h1>It is 2.", "Question.", "First", "1 of 2 printed", "It is a tie.", "Limits"]
    places = [page.index(part) for part in order]
    assert places == sorted(places)


def test_a_gallery_begins_with_a_list_that_leads_to_each():
    page = experiment_page([MADE, replace(MADE, name="two", answer="It is 3.")])
    for name in ("one", "two"):
        assert f'href="#{name}"' in page
        assert f'id="{name}"' in page
    assert page.count("<article") == page.count("</article>") == 2
    assert page.index("rerun</h1>") < page.index("<h1>It is 2.") < page.index("<h1>It is 3.")


def test_no_table_where_the_document_prints_no_number():
    page = experiment_page([replace(MADE, printed=())])
    assert "The document prints no number on this." in page
    assert page.count("<table") == experiment_page([MADE]).count("<table") - 1
