"""What the documentation takes from the arena: every cell in one row, and what is advised."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "arena"
sys.path.insert(0, str(FOLDER))
page = importlib.import_module("page")
score = importlib.import_module("score")
cells_of_the_arena = importlib.import_module("cells").cells


def cell(clusters: int = 64, **by_method: tuple[float, float]) -> Any:
    """A cell of peaked policies with a regret and a coverage for each method."""
    sums = {
        method: dict.fromkeys(score.KEPT, 0.0)
        | {"seeds": 1000.0, "square": 1000.0 * regret**2, "below": 1000.0 * (1 - coverage)}
        | {"width": 1000.0}
        for method, (regret, coverage) in (
            {"k1": (3.0, 0.95), "k3": (3.0, 0.95)} | by_method
        ).items()
    }
    return {
        "name": f"cell {clusters}", "family": "peaked", "truth": 0.1, "clusters": clusters,
        "exact": {"k1": 1.0, "k3": 1.0}, "sums": sums,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([cell(auto=(1.5, 0.97))], "auto"),
        ([cell(auto=(1.5, 0.97), k3=(1.0, 0.95))], "auto; k3 if certain"),
        ([cell(auto=(1.05, 0.97), k3=(1.0, 0.95))], "auto"),  # not worth its risk
        ([cell(auto=(1.5, 0.97), k3=(1.0, 0.89))], "auto"),  # it errs less, and does not say it
        ([cell(16, auto=(1.5, 0.5)), cell(64, auto=(1.5, 0.97))], "auto, from 64 prompts on"),
        ([cell(16, auto=(1.5, 0.97)), cell(64, auto=(1.5, 0.5))], "better data"),
    ],
)
def test_what_is_advised(cells, said):
    assert page.advice(cells) == said
    assert f"| peaked policies | {said} |" in page.kinds(cells)


def test_every_cell_of_the_arena_has_its_kind():
    for one in cells_of_the_arena():
        assert page.kind({"family": one.family, "truth": 0.1, "clusters": 16})


def test_only_what_is_marked_is_written():
    found = [cell(auto=(1.5, 0.8994))]
    text = "a\n<!-- arena: held -->\nold\n<!-- arena: end -->\nb\n"
    made = page.filled(text, found)
    assert made.startswith("a\n<!-- arena: held -->\n\n| the 95 %")
    assert made.endswith("\n\n<!-- arena: end -->\nb\n")
    assert "| auto | 1 of 1 cells | 89.9 % | 89.9 % |" in made
    assert page.filled(made, found) == made
    assert "| 1.5 (1.5) | 3 (3) | 3 (3) | 89 (89) | 95 (95) | 95 (95) | 1 |" in page.kinds(found)


def test_a_cell_of_which_nothing_was_drawn_is_left_out():
    lines = [json.dumps(one) for one in (cell(auto=(1.0, 0.95)), {"name": "b", "sums": {}})]
    assert [one["name"] for one in page.recorded(lines)] == ["cell 64"]
