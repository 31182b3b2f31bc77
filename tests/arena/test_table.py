"""The page of the arena: what stands at its top, and the regret that no rule avoids."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "arena"))
table = importlib.import_module("table")
score = importlib.import_module("score")


def cell(name: str, *, k1: float | None = 1.0, k3: float | None = 1.0, **sums: float) -> Any:
    """A cell in which each method has the same sums, over 100 seeds."""
    kept = dict.fromkeys(score.KEPT, 0.0) | {"seeds": 100.0, "square": 100.0} | sums
    return {
        "name": name, "family": "drift", "truth": 0.1, "clusters": 64,
        "exact": {"k1": k1, "k3": k3}, "sums": dict.fromkeys(score.METHODS, kept),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("k1", "k3", "bound"),
    [
        (3.0, 1.0, 1.34),
        (1.0, 1 / 100, 2.6),
        (1e9, 1.0, 2.6),  # constant beyond the table
        (14**0.5 * 28**0.5, 1.0, (1.85 + 2.11) / 2),  # in log R
    ],
)
def test_the_bound_follows_from_how_much_noisier_k1_is(k1, k3, bound):
    assert table.unavoidable(cell("a", k1=k1, k3=k3)) == pytest.approx(bound)


def test_where_k1_is_not_the_noisier_one_there_is_no_bound():
    for k1, k3 in ((1.0, 1.0), (1.0, 2.0), (1.0, None)):
        assert math.isnan(table.unavoidable(cell("a", k1=k1, k3=k3)))


def test_the_bounds_are_those_of_the_game():
    from tests.estimation.test_tapered import MINIMAX

    assert {1.0: 1.0} | MINIMAX == table.UNAVOIDABLE


def test_the_worst_stand_at_the_top(tmp_path):
    cells = [cell(f"cell {i}", square=100.0 * i * i, below=50.0 - i) for i in range(1, 8)]
    assert [one["name"] for one in table.worst(cells, "coverage")] == [
        f"cell {i}" for i in (1, 2, 3, 4, 5)
    ]
    assert [one["name"] for one in table.worst(cells, "regret")] == [
        f"cell {i}" for i in (7, 6, 5, 4, 3)
    ]
    table.write_table(cells, tmp_path / "README.md", 100)
    told = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "**auto**: regret 4 in the median cell, at most 7; coverage below 90% in 7 cells" in told
    assert told.index("worst cells of auto, by coverage") < told.index("of auto, by regret")
    assert told.index("of auto, by regret") < told.index("## Every cell")
