from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from kullback.control.reading import above_zero, reading


@pytest.mark.parametrize("kl", [-3.0, 0.0, 1e300, inf, np.float32(0.25), np.array(2), 1])
def test_a_reading_is_a_float(kl: float):
    found = reading(kl)
    assert type(found) is float
    assert found == float(kl)


@pytest.mark.parametrize("kl", [nan, -inf, np.float32("nan")])
def test_what_is_no_reading_is_refused(kl: float):
    with pytest.raises(ValueError, match="is no reading: skip a batch that has no tokens"):
        reading(kl)


@pytest.mark.parametrize("value", [0, 0.0, -1, inf, -inf, nan])
def test_what_is_not_above_zero_is_refused_by_its_name(value: float):
    with pytest.raises(ValueError, match=r"^target \S+ is no finite number above 0$"):
        above_zero("target", value)


def test_what_is_above_zero_passes():
    above_zero("target", 1e-300)
