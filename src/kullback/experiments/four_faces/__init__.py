"""One target, two candidates, four outcomes, and the same with densities."""

from __future__ import annotations

from kullback.experiments.four_faces.story import run

__all__ = ["run"]
