"""kullback: a KL divergence you can trust. The public names, on one screen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kullback.estimation.estimate import Estimate, estimate
    from kullback.levels import Totals, totals
    from kullback.question import Question

__version__ = "0.1.0"

_HOMES = {
    "Estimate": "kullback.estimation.estimate",
    "Question": "kullback.question",
    "Totals": "kullback.levels",
    "estimate": "kullback.estimation.estimate",
    "totals": "kullback.levels",
}

__all__ = ["Estimate", "Question", "Totals", "estimate", "totals"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kullback' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
