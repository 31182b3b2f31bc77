"""A coefficient that is set by an estimate of the KL, in closed loop."""

from __future__ import annotations

from kullback.experiments.controller.story import run

__all__ = ["run"]
