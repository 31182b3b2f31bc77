"""Two distributions of one KL, one of them with a hole."""

from __future__ import annotations

from kullback.experiments.holes.story import run

__all__ = ["run"]
