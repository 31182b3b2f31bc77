"""What every formula has to obey, and wrong formulas that must not pass."""

from __future__ import annotations
