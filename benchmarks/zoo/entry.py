"""One KL term of a released framework: what is called, with which settings, for what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Entry:
    """A term as the auditor calls it; ``where`` names the released code that runs, unmodified.

    ``called`` says how it runs: as a function of its own, or inside the method of a trainer that
    has a stand-in for ``self`` (then nothing but the KL term is left: advantages are 0).
    """

    name: str
    term: Callable[..., Any]
    where: str
    settings: str
    used: Literal["loss", "reward", "advantage", "metric"]
    called: Literal["function", "method"] = "function"
