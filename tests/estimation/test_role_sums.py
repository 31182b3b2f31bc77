from __future__ import annotations

import numpy as np

from kullback.columns import SENTINEL
from kullback.estimation.role_sums import added, logged, scored

VALUES = np.array([-1.0, 0.0, np.nan, -np.inf, SENTINEL, -0.5], dtype=np.float32)


def test_what_was_not_logged_is_not_counted_and_0_is_no_score():
    assert logged(VALUES) == (3, -1.5)
    assert scored(VALUES) == (2, -1.5)
    assert logged(VALUES[:0]) == scored(VALUES[:0]) == (0, 0.0)


def test_they_add_by_role():
    one, other = {"old": (2, -1.5), "new": (1, -1.0)}, {"old": (3, -2.0), "far": (4, -4.0)}
    assert added(one, other) == {"old": (5, -3.5), "new": (1, -1.0), "far": (4, -4.0)}
    assert added({}, one) == added(one, {}) == one
