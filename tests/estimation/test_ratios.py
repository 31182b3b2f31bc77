from __future__ import annotations

import numpy as np

from kullback.columns import SENTINEL, pack
from kullback.estimation.ratios import log_ratios
from kullback.question import Question


def test_what_is_no_number_has_no_ratio() -> None:
    old = [-1.0, np.nan, SENTINEL, -np.inf, 0.0]
    columns = pack({"old": old, "new": [-1.5, -1.0, -1.0, -1.0, -2.0]}, lengths=5)
    asked = Question("old", "new"), Question("new", "old")
    one, other = log_ratios(columns, list(asked)).values()
    assert one.there.tolist() == other.there.tolist() == [True, False, False, False, True]
    assert one.log_r.tolist() == [-0.5, 0.0, 0.0, 0.0, -2.0]
    assert (other.log_r == -one.log_r).all()


def test_single_precision_is_widened_before_the_difference() -> None:
    values = np.array([-1e-8, -20.0], dtype=np.float32)
    columns = pack({"old": values, "new": values[::-1].copy()}, lengths=2)
    (one,) = log_ratios(columns, [Question("old", "new")]).values()
    assert one.log_r[0] == -20.0 - np.float64(values[0])
