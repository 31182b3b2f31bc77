from __future__ import annotations

import numpy as np

from kullback.columns import SENTINEL
from kullback.estimation.role_sums import Logged, logged, scored

VALUES = np.array([-1.0, 0.0, np.nan, -np.inf, SENTINEL, -0.5], dtype=np.float32)


def test_what_was_not_logged_is_not_counted_and_0_is_no_score():
    assert logged(VALUES) == Logged(3, -1.5)
    assert scored(VALUES) == Logged(2, -1.5)
    assert logged(VALUES[:0]) == scored(VALUES[:0]) == Logged(0, 0.0)


def test_they_add():
    assert logged(VALUES[:3]) + logged(VALUES[3:]) == logged(VALUES)
