from __future__ import annotations

import numpy as np
import pytest

from kullback.estimation.grids import DECIMALS, GRIDS, grids_of
from kullback.worlds.faults import rounded_to_bf16


def values(count: int = 5000, dtype: type = np.float64):
    return -np.random.default_rng(0).gamma(0.4, 2.0, size=count).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_not_rounded_stands_on_no_grid(dtype: type) -> None:
    assert grids_of(values(dtype=dtype)) == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "digits"), DECIMALS.items())
def test_printed_decimals_are_recognized_in_either_precision(name, digits, dtype) -> None:
    found = grids_of(np.array([float(f"{x:.{digits}f}") for x in values()], dtype=dtype))
    assert next(iter(found)) == name
    assert found[name] == pytest.approx(5000 * 10.0 ** (-2 * digits))


def test_formats_are_recognized() -> None:
    assert grids_of(values().astype(np.float16).astype(np.float32)).keys() == {"float16"}
    assert "bfloat16" in grids_of(rounded_to_bf16(values()))


@pytest.mark.parametrize(
    ("grid", "rounded"),
    [
        ("bfloat16", rounded_to_bf16),
        ("float16", lambda x: x.astype(np.float16).astype(np.float64)),
        ("2 decimals", lambda x: np.round(x, 2)),
    ],
)
def test_the_spacing_tells_the_variance_of_the_error(grid: str, rounded) -> None:
    exact = -np.random.default_rng(1).gamma(4.0, 1.0, size=200_000)
    squares = grids_of(rounded(exact))[grid]
    assert float(((rounded(exact) - exact) ** 2).mean()) == pytest.approx(
        squares / 12 / len(exact), rel=0.02
    )


def test_one_value_off_the_grid_is_enough() -> None:
    on = rounded_to_bf16(values())
    assert "bfloat16" not in grids_of(np.append(on, -1.001))
    assert "bfloat16" not in grids_of(np.append(-1.001, on))


def test_nothing_stands_on_every_grid() -> None:
    assert grids_of(np.zeros(0)) == dict.fromkeys(GRIDS, 0.0)
