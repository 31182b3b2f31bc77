"""What k1 and k3 estimate when the sampler was filtered."""

from __future__ import annotations

from kullback.experiments.sampling.story import run

__all__ = ["run"]
