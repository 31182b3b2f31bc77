"""What each KL loss descends, as arrows beside the true gradient, and where a policy goes by it."""

from __future__ import annotations

from kullback.experiments.gradients.story import run

__all__ = ["run"]
