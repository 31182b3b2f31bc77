"""What becomes of a damaged dump: a refusal, named rows, right numbers, or a failure of kullback?

    python benchmarks/fuzz.py [--files 100000]
    python benchmarks/fuzz.py --seed 2850

Each seed is a small valid dump, damaged as the tables of tests/broken/damage.py say, read,
summarized, diagnosed and reported; every tenth report is also held against its schema, drawn, and
compared with that of the undamaged rows. A failure is a traceback, a warning, a wrong number, more
than 20 seconds or 4 GiB, the end of the process. Goes on where it stopped, and judges the failures
anew (what is none any more is listed as mended, be it the reader or the judge that was); without
results/fuzz.json it begins from seed 0. With --seed, one of them, in this process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import sys
import time
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import kullback as kb

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "fuzz.json"
sys.path.insert(0, str(ROOT / "tests"))  # where the damage is done, for the tests do it too
SECONDS, BYTES = 20, 4 << 30
THOROUGH = 10
SAVED_EVERY = 500
NAMED_AT_MOST = 100


def work(first: int, last: int, other_end: Connection, out: Connection) -> None:
    """Judge these seeds, and send what came of each."""
    other_end.close()  # else nothing would tell this process that nobody listens any more
    from broken.cases import case
    from broken.judge import judge

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    with TemporaryDirectory() as folder:
        for seed in range(first, last):
            damaged = case(seed)
            start = time.perf_counter()
            outcome = judge(damaged, Path(folder), thorough=seed % THOROUGH == 0)
            seconds = time.perf_counter() - start
            peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            why = outcome.why.replace(f"{folder}/", "")
            out.send((damaged.kind, outcome.kind, why, seconds, peak))


def note(found: dict[str, Any], seed: int, kind: str, outcome: str, why: str) -> None:
    """Count one outcome; name it if it is a failure."""
    counts = found["outcomes"].setdefault(kind, {})
    counts[outcome] = counts.get(outcome, 0) + 1
    if outcome == "failed":
        found["failures"] += 1
        found["failed"] = [*found["failed"], [seed, kind, why[-300:]]][:NAMED_AT_MOST]
        sys.stderr.write(f"seed {seed}, {kind}: {why[-300:]}\n")


def retry(found: dict[str, Any]) -> None:
    """Judge the failures anew, each in a process of its own; those that are none are mended."""
    before, found["failed"] = found["failed"], []
    for seed, kind, why in before:
        found["outcomes"][kind]["failed"] -= 1
        found["failures"] -= 1
        run(found, seed, seed + 1)
        if [seed, kind] not in [one[:2] for one in found["failed"]]:
            found["mended"] = [*found["mended"], [seed, kind, why]]
    save(found)


def save(found: dict[str, Any]) -> None:
    """Write what is known so far."""
    totals: dict[str, int] = {}
    for counts in found["outcomes"].values():
        for outcome, count in counts.items():
            totals[outcome] = totals.get(outcome, 0) + count
    text = json.dumps(found | {"totals": totals}, indent=1, sort_keys=True)
    RESULTS.write_text(text + "\n")


def run(found: dict[str, Any], seed: int, end: int) -> None:
    """Judge seeds in a process of their own, and start the next one where it ended."""
    from broken.cases import case

    fork = multiprocessing.get_context("fork")
    while seed < end:
        ours, theirs = fork.Pipe(duplex=False)
        last = min(end, seed + SAVED_EVERY)
        child = fork.Process(target=work, args=(seed, last, ours, theirs))
        child.start()
        theirs.close()
        while seed < last:
            try:
                if not ours.poll(SECONDS):
                    raise TimeoutError(f"took more than {SECONDS} seconds")
                kind, outcome, why, seconds, peak = ours.recv()
            except (EOFError, TimeoutError) as error:
                child.kill()
                child.join()
                ended = str(error) or f"ended the process with {-(child.exitcode or 0)}"
                note(found, seed, case(seed).kind, "failed", ended)
                seed += 1
                break
            note(found, seed, kind, outcome, why)
            seed += 1
            found["seconds"] += seconds
            found["slowest"] = max(found["slowest"], [round(seconds, 3), seed - 1, kind])
            found["peak_bytes"] = max(found["peak_bytes"], peak)
        child.join()
        found["files"] = max(found["files"], seed)
        save(found)


def main() -> None:
    """Go on with the seeds that are not yet in the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        from broken.cases import case
        from broken.judge import judge

        with TemporaryDirectory() as folder:
            print(judge(case(given.seed), Path(folder), thorough=True))
        return
    found: dict[str, Any] = {
        "outcomes": {},
        "failures": 0,
        "failed": [],
        "mended": [],
        "files": 0,
        "seconds": 0.0,
        "slowest": [0.0, 0, ""],
        "peak_bytes": 0,
    }
    if RESULTS.exists():
        found |= json.loads(RESULTS.read_text())  # failures are tried again, perhaps mended
    found["command"] = f"benchmarks/fuzz.py --files {given.files}"
    found["seeds"] = f"0 to {given.files - 1}"
    found["versions"] = {
        "kullback": kb.__version__,
        "numpy": np.__version__,
        "pyarrow": version("pyarrow"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    retry(found)
    run(found, found["files"], given.files)
    print(json.dumps(found["outcomes"], indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
