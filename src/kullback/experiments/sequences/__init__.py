"""What one sequence tells of a KL, as it grows, ends at random, and is selected."""

from __future__ import annotations

from kullback.experiments.sequences.story import run

__all__ = ["run"]
