"""A corridor: the KL of actions, the states that a policy visits, and what a clip shows of both."""

from __future__ import annotations

from kullback.experiments.occupancy.story import run

__all__ = ["run"]
