"""Pairs of a real language model: smooth or holed, and which estimate is the least noisy."""

from __future__ import annotations

from kullback.experiments.real_lm.story import run

__all__ = ["run"]
