"""kullback: a KL divergence you can trust. The public names, on one screen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kullback import worlds
    from kullback.columns import Columns, pack
    from kullback.diagnosis.diagnose import diagnose
    from kullback.diagnosis.finding import Diagnosis, Finding
    from kullback.dumps import Dump, demo_path, read, write
    from kullback.estimation.estimate import Estimate, estimate
    from kullback.estimation.summary import Summary, summarize
    from kullback.formulas.categorical import entropy, exact
    from kullback.formulas.divergences import divergence
    from kullback.formulas.k_family import f_form, k1, k2, k3, k_lambda, other_direction
    from kullback.formulas.shape import Shape, shape
    from kullback.levels import Totals, totals
    from kullback.question import Question
    from kullback.reporting.write import report

__version__ = "0.1.0"

# Where each name lives; it is loaded when first used, so that an import costs nothing.
_HOMES = {
    "Columns": "columns",
    "Diagnosis": "diagnosis.finding",
    "Dump": "dumps",
    "Estimate": "estimation.estimate",
    "Finding": "diagnosis.finding",
    "Question": "question",
    "Shape": "formulas.shape",
    "Summary": "estimation.summary",
    "Totals": "levels",
    "demo_path": "dumps",
    "diagnose": "diagnosis.diagnose",
    "divergence": "formulas.divergences",
    "entropy": "formulas.categorical",
    "estimate": "estimation.estimate",
    "exact": "formulas.categorical",
    "f_form": "formulas.k_family",
    "k1": "formulas.k_family",
    "k2": "formulas.k_family",
    "k3": "formulas.k_family",
    "k_lambda": "formulas.k_family",
    "other_direction": "formulas.k_family",
    "pack": "columns",
    "read": "dumps",
    "report": "reporting.write",
    "shape": "formulas.shape",
    "summarize": "estimation.summary",
    "totals": "levels",
    "worlds": "",
    "write": "dumps",
}

__all__ = [
    "Columns",
    "Diagnosis",
    "Dump",
    "Estimate",
    "Finding",
    "Question",
    "Shape",
    "Summary",
    "Totals",
    "demo_path",
    "diagnose",
    "divergence",
    "entropy",
    "estimate",
    "exact",
    "f_form",
    "k1",
    "k2",
    "k3",
    "k_lambda",
    "other_direction",
    "pack",
    "read",
    "report",
    "shape",
    "summarize",
    "totals",
    "worlds",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kullback' has no attribute {name!r}")
    home = import_module(f"kullback.{_HOMES[name] or name}")
    return getattr(home, name) if _HOMES[name] else home


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
