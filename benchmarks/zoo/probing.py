"""Inside the environment of a framework: probe its terms and write what was found.

    build/zoo/trl/bin/python benchmarks/zoo/probing.py trl

An entry that has its result for the same versions is not probed again, unless ``--again`` says so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import time
import warnings
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from entry import Entry

import kullback as kb

RESULTS = Path(__file__).parents[2] / "results" / "zoo"


def probed(entry: Entry) -> dict[str, Any]:
    """What the auditor says of an entry, or why it could not say anything."""
    style = "reward" if entry.used == "reward" else "loss"
    try:
        found = kb.audit.probe(entry.term, library="torch", style=style)
    except ValueError as error:
        return {"refused": str(error)}
    data = found.as_data()
    for one in data["gradients"]:
        del one["distances"]  # the nearest of them is said beside
    del data["details"]  # in words what is said in numbers
    return {"probe": rounded(data)}


def rounded(data: Any) -> Any:
    """Without the digits that differ from machine to machine."""
    if isinstance(data, dict):
        return {name: rounded(one) for name, one in data.items()}
    if isinstance(data, list | tuple):
        return [rounded(one) for one in data]
    if isinstance(data, float):
        return 0.0 if abs(data) < 1e-9 else float(f"{data:.6g}")
    return data


def described(entry: Entry) -> dict[str, Any]:
    """An entry without its function."""
    told = asdict(entry)
    del told["term"]
    return told


def main() -> None:
    """Probe what has no result yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("framework")
    parser.add_argument("--again", action="store_true", help="probe what has its result, too")
    asked = parser.parse_args()
    with warnings.catch_warnings():  # what the frameworks say of each other while imported
        warnings.simplefilter("ignore")
        module = importlib.import_module(f"of_{asked.framework}")
    versions = {name: version(name) for name in (*module.PACKAGES, "torch", "kullback")}
    versions["python"] = platform.python_version()
    path = RESULTS / f"{asked.framework}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept = known.get("entries", {}) if known.get("versions") == versions and not asked.again else {}
    entries = {}
    for entry in module.ENTRIES:
        told = described(entry)
        before = kept.get(entry.name)
        if before and all(before.get(key) == value for key, value in told.items()):
            entries[entry.name] = before
            continue
        start = time.perf_counter()
        entries[entry.name] = told | probed(entry)
        print(f"{asked.framework}: {entry.name}, {time.perf_counter() - start:.1f} s", flush=True)
    measures = {
        one.name: {"where": one.where, "words": one.words, "numbers": rounded(one.measured())}
        for one in getattr(module, "MEASURES", ())
    }
    result = {"framework": asked.framework, "versions": versions, "entries": entries}
    result["measures"] = measures
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
