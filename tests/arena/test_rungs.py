"""What better data buys: the samples are those of the cells, and their sums add."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import kullback as kb

FOLDER = Path(__file__).parents[2] / "benchmarks" / "arena"

sys.path.insert(0, str(FOLDER))  # the scripts import each other
spec = importlib.util.spec_from_file_location("arena_rungs", FOLDER / "rungs.py")
assert spec
assert spec.loader
rungs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rungs)


def test_every_cell_is_one_of_the_arena():
    assert set(rungs.CELLS) <= {cell.name for cell in rungs.cells()}
    assert len(set(rungs.CELLS)) == len(rungs.CELLS)


@pytest.mark.parametrize("name", ["drift 0.2 n 256", "smollm2 light prompts 64"])
def test_a_sample_has_heads_of_both_and_the_exact_kl_of_its_prefixes(name):
    columns, exact = rungs.logged(name, np.random.default_rng(0))
    for role in ("rollout", "reference"):
        assert columns.top_k[role].ids.shape == (len(columns), rungs.LISTED)
        assert np.exp(columns.top_k[role].log_probs.astype(float)).sum(axis=1).max() < 1 + 1e-6
    log_r = columns.log_probs["reference"] - columns.log_probs["rollout"]
    assert abs((-log_r).mean() - exact.mean()) < 6 * log_r.std() / np.sqrt(len(log_r))
    # Where the token is listed, the log-ratio is the listed one.
    p, q = columns.top_k["rollout"], columns.top_k["reference"]
    for t in range(0, len(columns), 40):
        for i in np.flatnonzero(p.ids[t] == columns.tokens[t]):
            for j in np.flatnonzero(q.ids[t] == columns.tokens[t]):
                listed = q.log_probs[t, j] - p.log_probs[t, i]
                assert listed == pytest.approx(log_r[t], rel=1e-3, abs=1e-5)


def test_scores_add_and_each_method_has_its_own():
    name = "peaked holes n 256"
    one, other = rungs.scored(name, 0), rungs.scored(name, 1)
    both = rungs.added(one, other)
    for method in rungs.METHODS:
        assert both[method]["seeds"] == 2
        assert both[method]["error"] == one[method]["error"] + other[method]["error"]
    assert len({sums["error"] for sums in one.values()}) == 6  # 13 positions: subset stands alone
    lines = rungs.lines([rungs.known(name) | {"sums": both}]).splitlines()
    assert len(lines) == 2 + len(rungs.METHODS)
    assert all(line.startswith(f"| peaked with holes: {name} |") for line in lines[2:])


def test_no_interval_holds_nothing():
    none = kb.estimate(log_p=[[-1.0]], log_q=[[-1.5]])
    kept = rungs.kept(none, none, 0.5)
    assert (kept["none"], kept["error"], kept["seeds"]) == (1, 0, 1)
    certain = kb.estimate(log_p=[[-1.0]] * 2, log_q=[[-1.5]] * 2, method="k1")
    assert rungs.kept(certain, certain, 0.25)["below"] == 1
    assert rungs.kept(certain, certain, 0.75)["above"] == 1


def test_the_recorded_page_is_made_of_the_recorded_sums():
    text = (rungs.RESULTS / "rungs.jsonl").read_text(encoding="utf-8")
    found = [rungs.json.loads(line) for line in text.splitlines()]
    page = (rungs.RESULTS / "rungs.md").read_text(encoding="utf-8")
    assert tuple(one["name"] for one in found) == rungs.CELLS
    assert page.endswith(rungs.lines(found) + "\n")
    assert all(sums["seeds"] == 500 for one in found for sums in one["sums"].values())
