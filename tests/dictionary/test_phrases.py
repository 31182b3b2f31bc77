from __future__ import annotations

import pytest

from kullback.dictionary import phrases
from kullback.dictionary.find import METRICS


@pytest.mark.parametrize("name", [name for name in vars(phrases) if name.isupper()])
def test_what_stands_here_is_said_by_several_entries(name):
    said = getattr(phrases, name)
    assert sum(said in repr(metric) for metric in METRICS) > 1
