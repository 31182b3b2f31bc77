from __future__ import annotations

import pytest

from kullback.cli import app
from kullback.cli.report import report


@pytest.mark.parametrize("name", ["questions", "maps", "by", "html", "json", "jobs"])
def test_an_option_is_spelled_alike_in_every_verb_that_has_it(name):
    (mine,) = (one for one in report.params if one.name == name)
    same = [one for verb in app.commands.values() for one in verb.params if one.name == name]
    assert len(same) >= 2
    assert {(*one.opts, one.metavar, one.multiple) for one in same} == {
        (*mine.opts, mine.metavar, mine.multiple)
    }
