"""Files to columns and back: rollout dumps, ours and other projects'."""

from __future__ import annotations

from pathlib import Path

from kullback.dumps.dump import Dump, read
from kullback.dumps.errors import Damaged, DumpError
from kullback.dumps.recognize import Guess
from kullback.dumps.write import write

__all__ = ["Damaged", "Dump", "DumpError", "Guess", "demo_path", "read", "write"]


def demo_path() -> Path:
    """The bundled rollouts of SmolLM2-135M: 128 completions, 7,632 tokens, six policies."""
    return Path(__file__).with_name("demo.parquet")
