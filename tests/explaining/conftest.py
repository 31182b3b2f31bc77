from __future__ import annotations

from functools import cache

import pytest

from kullback.explaining.examples import example


@pytest.fixture(scope="session")
def shown():
    """The example of a code, computed once."""
    return cache(example)
