"""Numeric cases made from public bug reports, and how kullback answers what each of them asks."""

from __future__ import annotations
