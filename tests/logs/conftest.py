from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).with_name("data")


@pytest.fixture
def data() -> Path:
    """The logs that scripts/step_logs.py wrote with the loggers themselves."""
    return DATA
