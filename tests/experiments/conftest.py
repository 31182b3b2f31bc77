from __future__ import annotations

from functools import cache

import pytest

from kullback.experiments import reproduced


@pytest.fixture(scope="session")
def made():
    """An experiment by its name, run once."""
    return cache(reproduced)
