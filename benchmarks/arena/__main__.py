"""How good is each estimate where the truth is known? Error, coverage, width, regret, cell by cell.

    python benchmarks/arena [--seeds 2000] [--jobs 2] [--only FAMILY]

Every cell of cells.py is drawn as often as there are seeds; the sums are kept in
results/arena/cells.jsonl with the rounds of 250 that they are of, so that it goes on where it
stopped and no seed counts twice. Delete a line to measure its cell anew. results/arena/README.md is
the table. About an hour and a half of CPU time for 2000 seeds.
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


def work(name: str, number: int) -> tuple[str, int, dict[str, Any]]:
    """The sums of one round of one cell."""
    cell, world = world_of(name)
    truth, sums = world.exact(cell.question), {}
    for seed in range(number * ROUND, (number + 1) * ROUND):
        columns = drawn(world, np.random.default_rng([cell.seed, seed]))
        sums = added(sums, scored(columns, cell.question, truth))
    return name, number, sums


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
        "rounds": [],
        "sums": {},
    }


def left(found: dict[str, dict[str, Any]], seeds: int) -> Iterator[tuple[str, int]]:
    """The rounds that are not done, one of every cell before the next of any."""
    for number in range(math.ceil(seeds / ROUND)):
        for name, one in found.items():
            if number not in one["rounds"]:
                yield name, number


def counted(one: dict[str, Any], number: int, sums: dict[str, Any]) -> dict[str, Any]:
    """A cell with one more round."""
    return one | {"rounds": sorted([*one["rounds"], number]), "sums": added(one["sums"], sums)}


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
    todo = list(left(chosen, asked.seeds))
    with (
        ProcessPoolExecutor(asked.jobs) as pool,
        Progress(console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bar,
    ):
        task = bar.add_task("cells", total=len(todo))
        for count, done in enumerate(as_completed(pool.submit(work, *one) for one in todo)):
            name, number, sums = done.result()
            found[name] = counted(found[name], number, sums)
            bar.advance(task)
            if count % 20 == 0:
                save(found)
    save(found)
    write_table(found.values(), RESULTS / "README.md", asked.seeds)


if __name__ == "__main__":
    main()
