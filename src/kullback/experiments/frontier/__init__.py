"""Reward against KL: where each way of optimizing goes, and where a noisy KL stops it."""

from __future__ import annotations

from kullback.experiments.frontier.story import run

__all__ = ["run"]
