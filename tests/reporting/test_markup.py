from __future__ import annotations

from kullback.reporting.markup import Raw, shell, table


def test_a_table_escapes_what_is_not_marked_as_markup():
    made = table(("a", "b"), [("<i>", Raw("<b>x</b>"))], caption="c & d", text=(1,))
    assert "<td>&lt;i&gt;</td>" in made
    assert '<td class="text"><b>x</b></td>' in made
    assert "<caption>c &amp; d</caption>" in made


def test_a_title_cannot_become_markup():
    assert "<title>&lt;/title&gt;</title>" in shell("</title>", "")


def test_a_page_is_loaded_anew_only_where_that_is_asked():
    assert '<meta http-equiv="refresh" content="7">' in shell("a", "b", refresh=7)
    assert 'http-equiv="refresh"' not in shell("a", "b")
