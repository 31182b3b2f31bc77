"""Damage to dumps, done by seed, and what kullback may make of it: a refusal, or right numbers."""

from __future__ import annotations
