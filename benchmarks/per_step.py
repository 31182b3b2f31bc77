"""What does it cost to log the KL of sequences at every step?

    python benchmarks/per_step.py

A batch of a step, 256 sequences of 1024 tokens in float32, as a trainer has it: ``kb.estimate`` per
sequence (auto, with its interval, and the exact KL where it is known) against what a trainer
logs now, the masked mean of k3 in NumPy (float32, three temporaries). Rounds are interleaved. The
limit to compare with is that of the formula: one pass of expm1 over the batch. Results go to
results/per_step.json.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kullback as kb

RESULT = Path(__file__).parents[1] / "results" / "per_step.json"
SHAPE, ROUNDS = (256, 1024), 15


def batch() -> dict[str, np.ndarray]:
    """Log-probs of two close policies, a mask of ragged lengths, and an exact KL."""
    rng = np.random.default_rng(0)
    log_p = rng.normal(-2, 1, size=SHAPE).astype(np.float32)
    log_q = log_p + rng.normal(-0.005, 0.1, size=SHAPE).astype(np.float32)
    mask = np.arange(SHAPE[1]) < rng.integers(256, SHAPE[1] + 1, size=(SHAPE[0], 1))
    exact = rng.gamma(1.0, 0.005, size=SHAPE).astype(np.float32)
    return {"log_p": log_p, "log_q": log_q, "mask": mask, "exact": exact}


def usual(log_p: np.ndarray, log_q: np.ndarray, mask: np.ndarray) -> float:
    """The masked mean of k3, per token, as most trainers log it."""
    log_r = log_q - log_p
    k3 = np.exp(log_r) - 1 - log_r
    return float((k3 * mask).sum() / mask.sum())


def main() -> None:
    """Time all in turn; print and keep the medians."""
    one = batch()
    plain = {name: one[name] for name in ("log_p", "log_q", "mask")}
    prompts = np.arange(SHAPE[0]) // 8
    how = {"clusters": prompts, "level": "sequence_sum"}
    tasks: dict[str, Callable[[], object]] = {
        "masked mean of k3": lambda: usual(**plain),
        "one expm1": lambda: np.expm1(plain["log_q"]),
        "kb.estimate, auto": lambda: kb.estimate(**plain, **how),
        "kb.estimate, rao_blackwell": lambda: kb.estimate(**one, **how),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            times[name].append(time.process_time() - start)
    base = float(np.median(times["masked mean of k3"]))
    rows = {
        name: {"ms": round(1e3 * float(np.median(spent)), 2),
               "worst_ms": round(1e3 * max(spent), 2),
               "ratio": round(float(np.median(spent)) / base, 1)}
        for name, spent in times.items()
    }  # fmt: skip
    told = {
        "command": "python benchmarks/per_step.py",
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "seed": 0,
        "tokens": int(one["mask"].sum()),
        "cpu_time": rows,
    }
    RESULT.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    for name, row in rows.items():
        print(f"{name:28} {row['ms']:8.2f} ms, worst {row['worst_ms']:8.2f}, {row['ratio']:6.1f} x")


if __name__ == "__main__":
    main()
