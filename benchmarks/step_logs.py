"""How often is an honest step log accused, and is each fault of such logs found?

    python benchmarks/step_logs.py [--logs 500] [--faulty 50]

Honest logs have the names of verl, of OpenRLHF or of nobody, 30 to 300 steps and 128 to 4096 tokens
each; they are judged with the tokens that they log, with and without the framework named. At most
one in a hundred may accuse. Writes results/step_logs.json; the seed of a log is its number.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

import kullback as kb
from kullback.worlds.step_logs import NAMES

RESULTS = Path(__file__).parent.parent / "results" / "step_logs.json"


def drawn(rng: np.random.Generator, names: str) -> dict[str, np.ndarray]:
    """One honest log, of a random size."""
    steps, tokens = int(rng.integers(30, 300)), int(2 ** rng.uniform(7, 12))
    return kb.worlds.honest_log(rng, names, steps=steps, tokens=tokens)


def clean(logs: int) -> dict:
    """How many honest logs accuse, by names, and which codes are told."""
    cells = {}
    for names in NAMES:
        accused: Counter[str] = Counter()
        told: Counter[str] = Counter()
        any_accused = 0
        for seed in range(logs):
            log = kb.StepLog.of(drawn(np.random.default_rng([1, seed]), names))
            known = (names,) if names and seed % 2 else (None,)
            found = kb.judge_log(log, framework=known[0])
            codes = {one.code for one in found.findings}
            any_accused += found.diagnosis.accused
            accused.update({one.code for one in found.findings if one.accuses})
            told.update(codes)
        cells[names or "nobody"] = {
            "logs": logs,
            "accused": any_accused,
            "codes": dict(sorted(accused.items())),
            "told": dict(sorted(told.items())),
        }
    return cells


def faulty(logs: int) -> dict:
    """How many logs with a fault name it."""
    cells = {}
    for name, fault in kb.worlds.LOG_FAULTS.items():
        found: Counter[str] = Counter()
        for seed in range(logs):
            rng = np.random.default_rng([2, seed])
            log = fault.inject(drawn(rng, "verl"), NAMES["verl"])
            said = kb.judge_log(kb.StepLog.of(log), framework="verl").findings
            found.update({one.code for one in said})
        cells[name] = {
            "logs": logs,
            "code": fault.code,
            "found": found[fault.code],
            "codes": dict(sorted(found.items())),
        }
    return cells


def main() -> None:
    """Measure both and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--faulty", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    made = {"clean": clean(given.logs), "faulty": faulty(given.faulty)}
    given.out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, cell in made["clean"].items():
        print(
            f"honest, names of {name}: {cell['accused']} of {cell['logs']} accuse; {cell['told']}"
        )
    for name, cell in made["faulty"].items():
        print(f"{name}: {cell['code']} in {cell['found']} of {cell['logs']}; {cell['codes']}")


if __name__ == "__main__":
    main()
