"""All checks, one after the other, and what they come to."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from kullback.diagnosis.finding import CODES
from kullback.selftest.detectors import SEEDS, WORLDS, clean_worlds, detectors
from kullback.selftest.estimates import estimates
from kullback.selftest.files import files
from kullback.selftest.formulas import formulas
from kullback.selftest.libraries import libraries
from kullback.selftest.line import VERDICTS, Line

FAULTS = f"Faults, each put into {len(WORLDS)} simulated worlds {SEEDS} times"
PARTS: dict[str, Callable[[], tuple[Line, ...]]] = {
    "Formulas, held to numbers of 34 digits": formulas,
    "Estimates of every sequence of a small language": estimates,
    "The same in torch and JAX": libraries,
    "Dumps, written and read again": files,
    FAULTS: detectors,
    "Honest worlds": clean_worlds,
}
INSTALLED = ("numpy", "scipy", "pyarrow", "torch", "jax")


@dataclass(frozen=True, slots=True)
class Selftest:
    """What every check came to.

    Args:
        parts: The lines, by the title of their part.
        versions: Of what it ran on, by name.
    """

    parts: dict[str, tuple[Line, ...]]
    versions: dict[str, str]

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of them."""
        return tuple(line for lines in self.parts.values() for line in lines)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not any(line.verdict == "failed" for line in self.lines)

    def verdict(self) -> str:
        """The outcome in a sentence or two."""
        counts = Counter(line.verdict for line in self.lines)
        failed = [line.name for line in self.lines if line.verdict == "failed"]
        unseen = [line for line in self.parts.get(FAULTS, ()) if line.verdict == "not-reached"]
        if failed:
            said = f"{len(failed)} of {counts['passed'] + len(failed)} checks failed: "
            said += f"{', '.join(failed)}. Do not trust what kullback says of these here."
        else:
            said = f"All {counts['passed']} checks passed: kullback computes right here."
        if unseen:
            said += f" No detector claims to see {len(unseen)} of {len(self.parts[FAULTS])} faults."
        return said

    def as_data(self) -> dict[str, Any]:
        """As plain dictionaries, lists, strings and numbers; without the time that it took."""
        counts = Counter(line.verdict for line in self.lines)
        return {
            "schema": "kullback.selftest/1",
            "versions": self.versions,
            "passed": self.passed,
            "verdict": self.verdict(),
            "counts": {verdict: counts[verdict] for verdict in VERDICTS},
            "codes": {code: {"accuses": said.accuses} for code, said in CODES.items()},
            "parts": [
                {"title": title, "lines": [asdict(line) for line in lines]}
                for title, lines in self.parts.items()
            ],
        }


def selftest(release: str, started: Callable[[str], Any]) -> Selftest:
    """Run every check.

    Args:
        release: The version of kullback.
        started: Is told the title of each part before it runs.
    """
    parts = {}
    for title, run in PARTS.items():
        started(title)
        parts[title] = run()
    return Selftest(parts, {"kullback": release, **versions()})


def versions() -> dict[str, str]:
    """What it runs on; no name of a host."""
    built: Any = np.show_config(mode="dicts")
    blas = built.get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in INSTALLED},
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
