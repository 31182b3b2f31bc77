"""How good is each estimate where the truth is known? Error, coverage, width, regret, cell by cell.

    python benchmarks/arena [--seeds 2000] [--jobs 2] [--only FAMILY]

Every cell of cells.py is drawn as often as there are seeds; the sums are kept in
results/arena/cells.jsonl after every round of 250, so that it goes on where it stopped. Delete a
line to measure its cell anew. results/arena/README.md is the table. About an hour and a half of
CPU time for 2000 seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, World, cells, drawn
from exact import error
from rich.console import Console
from rich.progress import Progress
from score import added, scored
from table import write_table

RESULTS = Path(__file__).parents[2] / "results" / "arena"
ROUND = 250  # seeds of a cell between two savings


@cache
def world_of(name: str) -> tuple[Cell, World]:
    """A cell and its world; a process builds each once."""
    (cell,) = (one for one in cells() if one.name == name)
    return cell, cell.build()


def work(name: str, first: int, last: int) -> tuple[str, dict[str, Any]]:
    """The sums of one round of one cell."""
    cell, world = world_of(name)
    truth, sums = world.exact(cell.question), {}
    for seed in range(first, last):
        columns = drawn(world, np.random.default_rng([cell.seed, seed]))
        sums = added(sums, scored(columns, cell.question, truth))
    return name, sums


def known(cell: Cell) -> dict[str, Any]:
    """What a cell is, before anything is drawn."""
    world = cell.build()
    exact = {method: error(world, cell.question, method) for method in ("k1", "k3")}
    return {
        "name": cell.name,
        "family": cell.family,
        "truth": world.exact(cell.question),
        "clusters": world.sequences if hasattr(world, "sequences") else world.prompts,
        "exact": {name: one if math.isfinite(one) else None for name, one in exact.items()},
        "sums": {},
    }


def rounds(found: dict[str, dict[str, Any]], seeds: int) -> Iterator[tuple[str, int, int]]:
    """What is left to do, a round of every cell before the next round of any."""
    done = {name: int(one["sums"].get("k1", {}).get("seeds", 0)) for name, one in found.items()}
    for first in range(0, seeds, ROUND):
        for name, count in done.items():
            if count <= first:
                yield name, first, min(first + ROUND, seeds)


def save(found: dict[str, dict[str, Any]]) -> None:
    """All cells, a line each."""
    lines = [json.dumps(one, sort_keys=True) for one in found.values()]
    draft = RESULTS / ".cells.jsonl.tmp"
    draft.write_text("\n".join(lines) + "\n")
    draft.replace(RESULTS / "cells.jsonl")


def main() -> None:
    """Draw what is missing, save as it comes, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", metavar="FAMILY")
    asked = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "cells.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    before = {one["name"]: one for one in map(json.loads, lines)}
    found = {cell.name: before.get(cell.name) or known(cell) for cell in cells()}
    chosen = {name: one for name, one in found.items() if asked.only in one["family"]}
    left = list(rounds(chosen, asked.seeds))
    with (
        ProcessPoolExecutor(asked.jobs) as pool,
        Progress(console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bar,
    ):
        task = bar.add_task("cells", total=len(left))
        for count, done in enumerate(as_completed(pool.submit(work, *one) for one in left)):
            name, sums = done.result()
            found[name]["sums"] = added(found[name]["sums"], sums)
            bar.advance(task)
            if count % 20 == 0:
                save(found)
    save(found)
    write_table(found.values(), RESULTS / "README.md", asked.seeds)


if __name__ == "__main__":
    main()
