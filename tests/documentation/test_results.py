"""Figures that the pages take from recorded runs are those of the recorded runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_how_often_clean_data_was_accused():
    lines = (ROOT / "results" / "accusations.jsonl").read_text(encoding="utf-8").splitlines()
    clean = [cell for cell in map(json.loads, lines) if cell["cell"].startswith("clean/")]
    found = sum(c["accused"] for c in clean), sum(c["reports"] for c in clean)
    for page in ("CHANGELOG.md", "docs/is-my-sampler-my-policy.md"):
        said = re.search(r"(\d+) of ([\d,]+)\s+reports", (ROOT / page).read_text())
        assert said
        assert (int(said[1]), int(said[2].replace(",", ""))) == found
    assert all(cell["accused"] <= 0.01 * cell["reports"] for cell in clean)


def test_how_often_the_interval_held():
    """The finding and the architecture page: 92 to 94 % and 79 to 87 % from 8 to 50 prompts."""
    cells = json.loads((ROOT / "results" / "coverage.json").read_text())["cells"]
    for sigma, low, high in ((0.6, 92, 94), (1.2, 79, 87)):
        few = [c["coverage"] for c in cells if c["sigma"] == sigma and c["prompts"] <= 50]
        assert (round(100 * min(few)), round(100 * max(few))) == (low, high)
        for page in ("architecture.md", "intervals.md"):
            text = (ROOT / "docs" / page).read_text(encoding="utf-8")
            assert re.search(rf"{low}\s+to\s+{high}\s+%", text)


def test_damaged_dumps_became_no_traceback_and_no_wrong_number():
    found = json.loads((ROOT / "results" / "fuzz.json").read_text(encoding="utf-8"))
    said = re.search(r"Of ([\d,]+) damaged dumps", (ROOT / "CHANGELOG.md").read_text())
    assert said
    assert found["files"] == sum(found["totals"].values()) == int(said[1].replace(",", ""))
    assert (found["failures"], found["failed"]) == (0, [])
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert all(
        f"{count:,}" in changes for kind, count in found["totals"].items() if kind != "failed"
    )
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    for form, name in FLIPPED.items():
        outcomes = found["outcomes"][f"bytes/flip/{form}"]
        told = f"{outcomes.get('other values', 0)} of {sum(outcomes.values())}"
        assert re.search(rf"^\| {name}.* \| {told} \|$", page, re.MULTILINE), form


# Formats of the fuzzer, and what the table of docs/format.md calls them.
FLIPPED = {
    "gzip": "gzip of JSON lines",
    "npz": "NPZ",
    "checked parquet": "Parquet with page checksums",
    "zstd": "zstd of JSON lines",
    "arrow": "Arrow file",
    "parquet": "Parquet without page checksums",
    "jsonl": "JSON lines",
}


def test_the_demo_and_the_help_keep_their_limits():
    recorded = json.loads((ROOT / "results" / "startup.json").read_text())["seconds"]
    limited = [one for one in recorded.values() if one["limit"]]
    assert len(limited) == 2
    assert all(one["worst"] < one["limit"] for one in limited)


def test_how_exact_k3_is():
    recorded = json.loads((ROOT / "results" / "ulps.json").read_text())
    worst = {
        dtype: max(one["ulp"] for one in ways.values()) for dtype, ways in recorded["worst"].items()
    }
    assert all(worst[dtype] <= limit for dtype, limit in recorded["limits"].items())
    said = re.search(r"at worst ([\d.]+) and ([\d.]+)", (ROOT / "docs" / "arrays.md").read_text())
    assert said
    assert (float(said[1]), float(said[2])) == (worst["float64"], worst["float32"])


# Where an interval may fail with more than 32 prompts: holes on either side, policies far apart.
FAILING = {
    "k1": {"hole", "holes in the reference"},
    "k3": {
        *("hole", "holes in the reference", "diffuse holes", "three-valued holes"),
        *("peaked with holes", "drift", "gaussian shift", "gaussian scale", "real"),
    },
}


def test_how_often_intervals_held_in_the_arena():
    """The counts, the worst cells and the largest regrets of docs/intervals.md."""
    lines = (ROOT / "results" / "arena" / "cells.jsonl").read_text(encoding="utf-8").splitlines()
    cells = list(map(json.loads, lines))
    page = " ".join((ROOT / "docs" / "intervals.md").read_text(encoding="utf-8").split())
    regrets = {}
    for method in ("k1", "k3"):
        sums = [cell["sums"][method] for cell in cells]
        held = [1 - (one["below"] + one["above"]) / one["seeds"] for one in sums]
        low = sum(share < 0.9 for share in held)
        assert (
            f"| {method} | {low} of {len(cells)} cells | {min(held):.1%} |".replace("%", " %")
            in page
        )
        for cell, share in zip(cells, held, strict=True):
            few = cell["clusters"] <= 32
            assert share >= 0.9 or few or cell["family"] in FAILING[method], cell["name"]
        regrets[method] = max(
            (one["square"] / one["seeds"]) ** 0.5
            / min(error for error in cell["exact"].values() if error is not None)
            for one, cell in zip(sums, cells, strict=True)
        )
    assert f"k1 is up to {regrets['k1']:.0f} times as far off as k3" in page
    assert f"k3 up to {regrets['k3']:.0f} times as far off as k1" in page
