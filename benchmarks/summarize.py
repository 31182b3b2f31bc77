"""What does a summary cost, against the same numbers over whole NumPy arrays?

    python benchmarks/summarize.py [--tokens 4000000] [--rounds 5]

CPU time (of the process, all threads) is the median of interleaved rounds, the worst beside it;
peak memory is what NumPy and Python allocate beyond the input, by tracemalloc, in a round of its
own. Both sides hold the log-probs in memory; the summary gets them in chunks of 2^17 tokens, as a
dump gives them.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from whole_array import whole_array

import kullback as kb

LENGTH = 500
RESULTS = Path(__file__).parent.parent / "results" / "summarize.json"


def data(tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-probs of a peaked policy and a drifted one, 8 sequences per prompt."""
    rng = np.random.default_rng(0)
    sequences = tokens // LENGTH
    log_p = -rng.gamma(0.4, 2.0, size=(sequences, LENGTH)).astype(np.float32)
    log_q = log_p + rng.normal(0.0, 0.1, size=log_p.shape).astype(np.float32)
    return log_p, log_q, np.arange(sequences) // 8


def blocked(log_p: np.ndarray, log_q: np.ndarray, prompts: np.ndarray) -> kb.Summary:
    """The summary, from chunks of whole sequences."""
    step = (1 << 17) // LENGTH
    chunks = (
        kb.pack({"p": log_p[part], "q": log_q[part]}, clusters=prompts[part])
        for part in (slice(i, i + step) for i in range(0, len(log_p), step))
    )
    return kb.summarize(chunks)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak(work: Callable[[], object]) -> int:
    """Bytes allocated at the worst moment of one run."""
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    arrays = data(given.tokens)
    sides = {"whole_array": lambda: whole_array(*arrays), "summarize": lambda: blocked(*arrays)}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(given.rounds):
        for name, work in sides.items():
            times[name].append(cpu(work))
    per_token = 1e9 / arrays[0].size
    ns = {name: round(per_token * median(seconds), 1) for name, seconds in times.items()}
    result = {
        "command": f"benchmarks/summarize.py --tokens {given.tokens} --rounds {given.rounds}",
        "versions": {
            "kullback": kb.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
        "seed": 0,
        "ns_per_token": ns,
        "worst_ns_per_token": {name: round(per_token * max(t), 1) for name, t in times.items()},
        "peak_bytes": {name: peak(work) for name, work in sides.items()},
        "speed_ratio": round(ns["whole_array"] / ns["summarize"], 2),
    }
    RESULTS.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
