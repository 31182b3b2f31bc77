"""The arena's truths: exact errors by recursion against closed forms and against draws."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import kullback as kb
from kullback.estimation.estimate import from_state
from kullback.estimation.question_state import QuestionState
from kullback.worlds.gaussian import Gaussian

FOLDER = Path(__file__).parents[2] / "benchmarks" / "arena"


def loaded(name: str) -> ModuleType:
    """A file of the arena; it is a folder of scripts, not a package."""
    spec = importlib.util.spec_from_file_location(f"arena_{name}", FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(FOLDER))  # they import each other as scripts do
arena, exact, score = loaded("cells"), loaded("exact"), loaded("score")
CELLS = {cell.name: cell for cell in arena.cells()}


def test_names_are_seeds_and_so_unique():
    assert len(CELLS) == len(list(arena.cells())) >= 151
    assert len({cell.seed for cell in CELLS.values()}) == len(CELLS)


@pytest.mark.parametrize("depth", [1.5, 3.5])
@pytest.mark.parametrize("method", ["k1", "k3"])
def test_the_error_of_independent_draws_is_that_of_the_shape(depth, method):
    a = 10.0**-depth
    told = kb.shape([a, (1 - a) / 2, (1 - a) / 2], [0.1, 0.45, 0.45])
    cell = CELLS[f"hole {depth} n 1024"]
    found = exact.error(cell.build(), cell.question, method)
    assert found == pytest.approx(math.sqrt(getattr(told, f"variance_{method}") / 1024), rel=1e-12)


@pytest.mark.parametrize("mean", [0.1, 1.0, 2.4])
def test_the_error_between_shifted_normals_has_a_closed_form(mean):
    """k1 = μ²/2 − μx has variance μ²; r is log-normal: Var k3 = e^{μ²} − 1 − μ²."""
    world, asked = Gaussian({"p": (0.0, 1.0), "q": (mean, 1.0)}, "p", 100), kb.Question("p", "q")
    square = mean * mean
    for method, variance in (("k1", square), ("k3", math.expm1(square) - square)):
        found = exact.error(world, asked, method)
        assert found == pytest.approx(math.sqrt(variance / 100), rel=1e-9)


def test_weights_of_infinite_variance_have_an_infinite_error():
    cell = CELLS["scale 1.6 shift 0.3 n 64"]
    world = cell.build()
    assert exact.error(world, cell.question, "k3") == math.inf
    assert 0 < exact.error(world, cell.question, "k1") < math.inf


@pytest.mark.parametrize(
    "name",
    ["twin 2.0 n 64", "third 0.8 0.2 n 256", "heavy 64", "ends 64", "smollm2 light prompts 64"],
)
def test_the_exact_error_is_that_of_the_draws(name):
    """To first order only where prompts and lengths vary: a part of 1/prompts is left out."""
    cell, seeds = CELLS[name], 100
    world = cell.build()
    truth, squares = world.exact(cell.question), []
    for seed in range(seeds):
        columns = arena.drawn(world, np.random.default_rng([7, seed]))
        state = QuestionState.of(columns, cell.question)
        squares.append([(from_state(state, m).mean - truth) ** 2 for m in ("k1", "k3")])
    errors = [exact.error(world, cell.question, method) for method in ("k1", "k3")]
    ratio = np.array(squares) / np.square(errors)
    z = (ratio.mean(axis=0) - 1) / (ratio.std(axis=0, ddof=1) / math.sqrt(seeds))
    assert (np.abs(z) < 5).all()
    assert ratio.mean(axis=0) == pytest.approx([1, 1], abs=0.5)


def test_scores_of_two_rounds_add_to_those_of_one():
    cell = CELLS["twin 2.0 n 64"]
    world, truth = cell.build(), cell.build().exact(cell.question)

    def sums(seeds: range) -> dict:
        found: dict = {}
        for seed in seeds:
            columns = arena.drawn(world, np.random.default_rng([cell.seed, seed]))
            found = score.added(found, score.scored(columns, cell.question, truth))
        return found

    whole, both = sums(range(20)), score.added(sums(range(8)), sums(range(8, 20)))
    for method in score.METHODS:
        assert both[method] == pytest.approx(whole[method], rel=1e-12)
    told = score.row({"sums": whole, "truth": truth, "exact": {"k1": 0.1, "k3": None}}, "k1")
    assert told["seeds"] == 20
    assert told["regret"] == pytest.approx(told["rmse"] * truth / 0.1)
    assert told["coverage"] == pytest.approx(1 - told["too_high"] - told["too_low"])


def test_no_interval_holds_nothing():
    columns = kb.pack({"rollout": [[-1.0]], "reference": [[-1.5]]})
    found = score.scored(columns, kb.Question("rollout", "reference"), 0.5)
    assert found["k1"]["none"] == 1
    assert found["k1"]["error"] == 0
    told = score.row({"sums": found, "truth": 0.5, "exact": {"k1": 0.1, "k3": 0.1}}, "k1")
    assert told["coverage"] == told["coverage_90"] == told["too_high"] == 0


def test_the_recorded_results_are_of_these_cells_and_their_page_is_made_of_them():
    """A cell is never removed or renamed; what the page says follows from the sums."""
    import json

    folder = FOLDER.parents[1] / "results" / "arena"
    lines = (folder / "cells.jsonl").read_text(encoding="utf-8").splitlines()
    found = {one["name"]: one for one in map(json.loads, lines)}
    assert set(found) == set(CELLS)
    runner = loaded("__main__")
    for one in found.values():
        assert one["rounds"] == sorted(set(one["rounds"]))
        assert one["sums"]["k1"]["seeds"] == len(one["rounds"]) * runner.ROUND
    for name in ("hole 2.0 n 64", "drift 0.2 n 256", "smollm2 light prompts 64"):
        world = CELLS[name].build()
        assert found[name]["truth"] == pytest.approx(world.exact(CELLS[name].question), rel=1e-9)
        again = exact.error(world, CELLS[name].question, "k1")
        assert found[name]["exact"]["k1"] == pytest.approx(again, rel=1e-6)
    told = (folder / "README.md").read_text(encoding="utf-8")
    least = min(one["sums"]["k1"]["seeds"] for one in found.values())
    assert f"at least {least:.0f} seeds" in told
    said = score.row(found["hole 3.5 n 64"], "k3")
    assert f"| {said['coverage']:.3f} ± {said['coverage_error']:.3f} |" in told
    regrets = [score.row(one, "auto")["regret"] for one in found.values()]
    assert f"**auto**: regret {np.median(regrets):.3g} in the median cell" in told


def test_a_run_that_was_stopped_goes_on_with_the_rounds_that_are_missing():
    runner = loaded("__main__")
    fresh = {"rounds": [], "sums": {}}
    one = {"k1": dict.fromkeys(score.KEPT, 1.0)}
    # Rounds come in any order: the second of a was saved, the first was not.
    found = {"a": runner.counted(fresh, 1, one), "b": fresh}
    assert list(runner.left(found, 3 * runner.ROUND)) == [
        ("a", 0), ("b", 0), ("b", 1), ("a", 2), ("b", 2)
    ]  # fmt: skip
    for number in (2, 0):
        found["a"] = runner.counted(found["a"], number, one)
    assert found["a"]["rounds"] == [0, 1, 2]
    assert found["a"]["sums"]["k1"]["seeds"] == 3
    assert [name for name, _ in runner.left(found, 3 * runner.ROUND)] == ["b"] * 3
