"""Two normal policies a shift apart."""

from __future__ import annotations

from kullback.experiments.gaussian.story import run

__all__ = ["run"]
