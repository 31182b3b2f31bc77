"""What an added epsilon does to a KL that is infinite, and supports that move apart."""

from __future__ import annotations

from kullback.experiments.epsilon.story import run

__all__ = ["run"]
