"""How often does a report on clean data accuse anybody, and is each fault found?

    python benchmarks/accusations.py [--reports 600] [--fault-reports 50]

Clean worlds: at most one report in a hundred may accuse, per world and number of prompts, with the
twenty largest log-probs of each role logged and without. Faults:
the share of reports that accuse anybody, and by which codes. Resumes where it stopped; each
finished cell is a line of results/accusations.jsonl. The seed of a report is its number.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import kullback as kb

RESULTS = Path(__file__).parent.parent / "results" / "accusations.jsonl"
PROMPTS = (16, 64)
FAULTY_WORLDS = ("smooth", "holes_in_policy", "training_loop")
Draw = Callable[[np.random.Generator], kb.Columns]


def cells(reports: int, fault_reports: int) -> Iterator[tuple[str, int, Draw]]:
    """Every cell: its name, its number of reports, and how to draw one."""
    for name, build in kb.worlds.CLEAN_WORLDS.items():
        for prompts in PROMPTS:
            yield f"clean/{name}/{prompts}", reports, build(prompts).sample
        world = build(PROMPTS[0])
        if isinstance(world, kb.worlds.Mixture):
            logged = partial(world.sample, top_k=20)
            yield f"clean/{name}/{PROMPTS[0]} with heads", reports // 2, logged
    for fault, entry in kb.worlds.FAULTS.items():
        for name in FAULTY_WORLDS:
            world = kb.worlds.CLEAN_WORLDS[name](64)
            assert isinstance(world, kb.worlds.Mixture)
            yield f"fault/{fault}/{name}", fault_reports, partial(entry.inject, world)


def run(name: str, reports: int, draw: Draw) -> dict:
    """One cell: how many reports accuse, by which codes, and how many exclude who sampled."""
    codes: Counter[str] = Counter()
    accused = excluded = 0
    for seed in range(reports):
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        summary = kb.summarize([draw(rng)])
        diagnosis, said = kb.diagnose(summary), kb.who_sampled(summary).candidates[0]
        accused += diagnosis.accused
        excluded += said.verdict == "cannot-have-sampled"
        codes.update({finding.code for finding in diagnosis.findings if finding.accuses})
    counts = {"reports": reports, "accused": accused, "excluded": excluded}
    return {"cell": name, **counts, "codes": dict(codes)}


def main() -> None:
    """Run the cells that are not yet in the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=600)
    parser.add_argument("--fault-reports", type=int, default=50)
    given = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    done = {json.loads(line)["cell"] for line in lines}
    todo = [cell for cell in cells(given.reports, given.fault_reports) if cell[0] not in done]
    for i, (name, reports, draw) in enumerate(todo):
        result = run(name, reports, draw)
        sys.stderr.write(f"{i + 1}/{len(todo)} {json.dumps(result)}\n")
        with RESULTS.open("a") as file:
            file.write(json.dumps(result, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
