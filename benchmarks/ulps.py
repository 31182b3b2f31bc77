"""How exact is k3? Units in the last place in NumPy, torch and JAX, as they are and compiled.

    python benchmarks/ulps.py

At nine million log-ratios from 1e-12 to 80 of either sign, most of them between 1 and 3, where
the series meets the difference. The reference is the same sum in 80-bit long doubles, itself held
against mpmath at a thousand of the points. Needs torch, JAX, an x86 processor and, for
torch.compile with inductor, a C++ compiler. The worst case of each is printed and recorded.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from math import factorial
from pathlib import Path
from typing import Any

import jax
import mpmath
import numpy as np
import torch
from rich.progress import track

import kullback as kb

RESULTS = Path(__file__).parent.parent / "results" / "ulps.json"
LIMITS = {"float64": 4.0, "float32": 3.0}
SEED = 0


ROUNDS = 5
LONG = np.longdouble
TAYLOR = [LONG(1) / LONG(factorial(n)) for n in range(30, 1, -1)]


def points(rng: np.random.Generator) -> np.ndarray:
    """Log-ratios over all sizes, and around the seam."""
    small = 10 ** rng.uniform(-12, 0, 200_000)
    seam = rng.uniform(1, 3, 400_000)
    wide = rng.uniform(-80, 80, 200_000), rng.uniform(-5, 5, 400_000)
    return np.concatenate([small, -small, seam, -seam, *wide])


def long_k3(log_r: np.ndarray) -> np.ndarray:
    """k3 in 80 bits: the series below 0.5, the difference above."""
    x = log_r.astype(LONG)
    near = np.abs(x) < 0.5
    small, series = np.where(near, x, 0), np.zeros_like(x)
    for coefficient in TAYLOR:
        series = series * small + coefficient
    return np.where(near, small * small * series, np.expm1(x) - x)


def check_reference(x: np.ndarray) -> None:
    """The reference is right to a hundredth of a float64's last place."""
    with mpmath.workdps(50):
        for one, value in zip(x.tolist(), long_k3(x), strict=True):
            exact = mpmath.expm1(one) - mpmath.mpf(one)
            high = float(value)  # mpmath reads floats: the long double in two pieces
            off = mpmath.mpf(high) + mpmath.mpf(float(value - LONG(high))) - exact
            assert abs(off) <= 0.01 * float(np.spacing(high)), one


def ways(dtype: str) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Each way to compute k3, as a function from NumPy to NumPy."""
    yield "NumPy", kb.k3

    def of_torch(k3: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: k3(torch.from_numpy(x)).numpy()

    yield "torch", of_torch(kb.k3)
    yield "torch.compile, inductor", of_torch(torch.compile(kb.k3, fullgraph=True))

    def of_jax(k3: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
        def function(x: np.ndarray) -> np.ndarray:
            with jax.enable_x64(dtype == "float64"):
                return np.asarray(k3(jax.numpy.asarray(x)))

        return function

    yield "JAX", of_jax(kb.k3)
    yield "jax.jit", of_jax(jax.jit(kb.k3))


def measure(dtype: str) -> dict[str, dict[str, float]]:
    """The largest error of each way, in ulp, and where it is."""
    rng = np.random.default_rng(SEED)
    worst = {name: {"ulp": 0.0, "log_q_over_p": 0.0} for name, _ in ways(dtype)}
    for _ in track(range(ROUNDS), dtype):
        x = points(rng).astype(dtype)
        check_reference(x[:: len(x) // 200].astype(np.float64))
        truth = long_k3(x)
        unit = np.spacing(truth.astype(dtype)).astype(LONG)
        for name, k3 in ways(dtype):
            off = np.abs(k3(x).astype(LONG) - truth) / unit
            i = int(np.argmax(off))
            if off[i] > worst[name]["ulp"]:
                worst[name] = {"ulp": round(float(off[i]), 2), "log_q_over_p": float(x[i])}
    for name, one in worst.items():
        print(f"{dtype} {name:25} {one['ulp']:.2f} ulp, limit {LIMITS[dtype]}")
    return worst


def main() -> None:
    """Measure, print, record."""
    worst = {dtype: measure(dtype) for dtype in LIMITS}
    recorded = {
        "command": "benchmarks/ulps.py",
        "seed": SEED,
        "machine": platform.machine(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "jax": jax.__version__,
        },
        "limits": LIMITS,
        "worst": worst,
    }
    RESULTS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
