"""Half precision is computed in float32, everything wider in its own precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.formulas.precision import at_least_float32


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float16(1), np.float32),
        (np.float32(1), np.float32),
        (np.float64(1), np.float64),
        (np.ones(2, dtype=np.int64), np.float64),
        (1, np.float64),
        ([0.5, 1.5], np.float64),
    ],
)
def test_dtype_is_at_least_float32(given: Any, expected: Any) -> None:
    assert at_least_float32(given).dtype == expected
    assert np.array_equal(at_least_float32(given), np.asarray(given))


def test_nothing_is_copied_that_need_not_be() -> None:
    values = np.ones(3, dtype=np.float32)
    assert at_least_float32(values) is values
