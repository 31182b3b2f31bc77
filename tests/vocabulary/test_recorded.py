"""What the pages say of the benchmark is what results/vocabulary.json holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "results" / "vocabulary.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "exact-kl-over-a-vocabulary.md").read_text(encoding="utf-8")

# Of each case: what the page calls it, what it is compared with, and the rows it shows.
SHOWN = {
    "logits, float32, 512 tokens": ("naive", ("plain", "compiled")),
    "logits, bfloat16, 512 tokens": ("naive", ("plain", "compiled")),
    "hidden, 256 tokens, width 1024": ("two bare products", ("naive", "plain", "compiled")),
    "loss, 256 tokens, width 512": (
        "naive",
        ("written down", "liger, chunks of 128", "liger, chunks of 1024"),
    ),
    "loss, 1024 tokens, width 512": (
        "naive",
        ("written down", "liger, chunks of 128", "liger, chunks of 1024"),
    ),
}


def table() -> str:
    lines = [
        "| case | method | CPU time | memory | speed against the first |",
        "|---|---|---|---|---|",
    ]
    for case, (first, others) in SHOWN.items():
        found = RECORDED["cases"][case]
        seconds, mib = found["cpu_seconds"], found["extra_peak_mib"]
        for name in (first, *others):
            ratio = seconds[first] / seconds[name]
            against = "" if name == first else f"{ratio:.1f}×" if ratio >= 2 else f"{ratio:.2f}×"
            lines.append(
                f"| {case if name == first else ''} | {name} | {seconds[name]:.2f} s | "
                f"{mib[name]:,.0f} MiB | {against} |"
            )
    return "\n".join(lines)


def test_the_table_of_the_page():
    assert table() in PAGE, f"the page should hold\n{table()}"


def test_the_figures_in_the_text_of_the_page():
    cases, accuracy = RECORDED["cases"], RECORDED["accuracy"]
    logits = cases["logits, float32, 512 tokens"]
    worst = {
        kind: max(way[kind] for way in accuracy.values())
        for kind in ("others, relative", "others below 1e-9, absolute", "entropies, nats")
    }
    for said in (
        f"{logits['extra_peak_mib']['naive'] / 1024:.1f} GB",
        f"it takes {logits['cpu_seconds']['torch.compile of naive']:.2f} s here",
        f"relative error was {worst['others, relative']:.0e}",
        f"below, {worst['others below 1e-9, absolute']:.0e} nats",
        f"off by {worst['entropies, nats']:.0e} nats",
    ):
        assert said in " ".join(PAGE.split()), said
    assert all(way["least"] == 0.0 for way in accuracy.values())


@pytest.mark.parametrize("case", RECORDED["cases"])
def test_every_goal_has_its_figures(case):
    for goal in RECORDED["cases"][case]["goals"]:
        limit = float(goal["goal"].split()[-1])
        below = "<=" in goal["goal"]
        assert goal["met"] == (goal["measured"] <= limit if below else goal["measured"] >= limit)
