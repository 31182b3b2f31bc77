"""The script that waits for a GPU runs on a CPU, and finds what it checks to be right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "vocabulary" / "gpu.py"


def test_the_gpu_script_runs_on_a_cpu(tmp_path):
    out = tmp_path / "gpu.json"
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--small", "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    told = json.loads(out.read_text(encoding="utf-8"))
    assert max(told["largest_relative_error"].values()) < 1e-4
    assert told["copy_gb_per_second"] > 0
    for dtype in ("bfloat16", "float32"):
        for what in ("logits", "heads", "loss"):
            found = told[f"of {what}, torch.{dtype}"]
            assert {"kullback", "naive", "byte_limit_ms"} <= found.keys()
            assert found["kullback"]["ms"] > 0
