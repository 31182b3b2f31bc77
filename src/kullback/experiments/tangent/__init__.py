"""KL as a gap, as a quadratic, and as what it is when steps add up."""

from __future__ import annotations

from kullback.experiments.tangent.story import run

__all__ = ["run"]
