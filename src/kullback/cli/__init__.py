"""The command line: one file per verb; parse, call, print."""

from __future__ import annotations

from kullback.cli.main import app, main

__all__ = ["app", "main"]
