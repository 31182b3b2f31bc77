"""Figures that the pages take from recorded runs are those of the recorded runs."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kullback as kb

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
    said = re.search(
        r"did in (\d+) of them, in no world\s+more than ([\d.]+) %", (ROOT / page).read_text()
    )
    assert said
    assert int(said[1]) == sum(cell["excluded"] for cell in clean)
    largest = max(100 * cell["excluded"] / cell["reports"] for cell in clean)
    assert float(said[2]) == pytest.approx(largest, abs=0.05)


def test_how_often_honest_step_logs_were_accused():
    clean = json.loads((ROOT / "results" / "step_logs.json").read_text())["clean"].values()
    told = f"{sum(c['accused'] for c in clean)} of {sum(c['logs'] for c in clean):,} honest logs"
    for page in ("CHANGELOG.md", "docs/training-log.md"):
        assert told in " ".join((ROOT / page).read_text().split())


def test_how_many_worlds_and_faults_there_are():
    """The counts that pages say in words."""
    words = {12: "twelve", 16: "sixteen", 27: "twenty-seven"}
    for page in ("CHANGELOG.md", "docs/architecture.md", "docs/is-my-sampler-my-policy.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert f"{words[len(kb.worlds.CLEAN_WORLDS)]} clean" in text
        assert f"{words[len(kb.worlds.FAULTS)]} faults" in text
    page = (ROOT / "docs" / "training-log.md").read_text()
    faulty = json.loads((ROOT / "results" / "step_logs.json").read_text())["faulty"].values()
    found, logs = min(cell["found"] for cell in faulty), {cell["logs"] for cell in faulty}
    said = f"each of {words[len(kb.worlds.LOG_FAULTS)]} faults was named in {found} or more of "
    assert f"{said}{logs.pop()} logs" in page


def test_how_often_the_interval_held():
    """The finding and two pages: of auto (widened) and of k1 and k3, from 8 to 50 prompts."""
    cells = json.loads((ROOT / "results" / "coverage.json").read_text())["cells"]
    for kind, sigma, low, high in (
        ("coverage", 0.6, 92, 94),
        ("coverage", 1.2, 79, 87),
        ("widened", 0.6, 94, 95),
        ("widened", 1.2, 87, 93),
    ):
        few = [c[kind] for c in cells if c["sigma"] == sigma and c["prompts"] <= 50]
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
    "auto": {"holes in the reference"},
    "k1": {"hole", "holes in the reference"},
    "k3": {
        *("hole", "holes in the reference", "diffuse holes", "three-valued holes"),
        *("drift with few holes", "peaked with holes", "prompts with holes"),
        *("drift", "gaussian shift", "gaussian scale", "real"),
    },
}
ARENA = (ROOT / "results" / "arena" / "cells.jsonl").read_text(encoding="utf-8").splitlines()


def arena_page() -> ModuleType:
    """The file of the arena that writes tables into pages; its folder is no package."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "arena"))
    return importlib.import_module("page")


@pytest.mark.parametrize("method", FAILING)
def test_where_intervals_fail_in_the_arena(method: str):
    """What docs/intervals.md says of it in words."""
    for cell in map(json.loads, ARENA):
        one = cell["sums"][method]
        held = 1 - (one["below"] + one["above"] + one["none"]) / one["seeds"]
        few = cell["clusters"] <= 32
        assert held >= 0.9 or few or cell["family"] in FAILING[method], cell["name"]


def test_the_tables_of_the_pages_are_those_of_the_arena():
    """`make docs-arena` writes them."""
    page = arena_page()
    found, parts = page.recorded(ARENA), []
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.filled(text, found) == text, path.name
        parts += [part for _, part, _ in page.MARKED.findall(text)]
    assert sorted(parts) == sorted(page.PARTS)


def test_how_often_the_adviser_is_wrong():
    lines = (ROOT / "results" / "arena" / "advice.jsonl").read_text(encoding="utf-8").splitlines()
    cells = [json.loads(line) for line in lines]
    wrong = {"k1": "smooth", "k3": "holes"}
    shares = [one["sampled"].get(wrong[one["better"]], 0) / 200 for one in cells]
    page = (ROOT / "docs" / "what-to-log.md").read_text(encoding="utf-8")
    assert f"{len(cells)} kinds of sample" in page
    assert f"wrong one in {sum(shares) / len(shares):.1%} of".replace("%", " %") in " ".join(
        page.split()
    )
    assert f"in {max(shares):.0%} of the worst kind".replace("%", " %") in page
    assert all(sum(one["sampled"].values()) == 200 for one in cells)


def recorded_looks() -> tuple[int, dict[tuple[str, int, float], dict]]:
    found = json.loads((ROOT / "results" / "looks.json").read_text())
    cells = {(c["world"], c["prompts"], c["over"]): c["rules"] for c in found["cells"]}
    return found["runs"], cells


def share_rows() -> list[str]:
    """Percent of runs with an alarm in 100 looks at the limit, with 16 and with 64 prompts each."""
    runs, cells = recorded_looks()
    worlds = list(dict.fromkeys(world for world, _, _ in cells))
    rows = []
    for rule in cells["alike", 16, 1.0]:
        columns = []
        for world in worlds:
            alarms = [cells[world, prompts, 1.0][rule]["alarms"] for prompts in (16, 64)]
            columns.append(", ".join(f"{100 * count / runs:.0f}" for count in alarms))
        rows.append(f"| {rule} | {' | '.join(columns)} |")
    return rows


def power_rows() -> list[str]:
    """Median look of the alarm with 16 prompts each: one state, anew every 10, at every look."""
    _, cells = recorded_looks()
    states = ("evidence", "evidence, anew every 10 looks", "evidence, anew every look")
    rows = []
    for world in dict.fromkeys(world for world, _, _ in cells):
        columns = []
        for over in (1.25, 1.5, 2.0, 4.0):
            looks = [cells[world, 16, over][one]["median_look"] for one in states]
            columns.append(", ".join("–" if look is None else str(look) for look in looks))
        rows.append(f"| {world} | {' | '.join(columns)} |")
    return rows


def stop_rows() -> list[str]:
    """Where PPO's rules stop: median of the exact KL over the limit, and shares below it."""
    found = json.loads((ROOT / "results" / "reused_batch.json").read_text())
    rows = []
    for rule in found["cells"][0]["rules"]:
        columns = []
        for cell in found["cells"]:
            one = cell["rules"][rule]
            low, middle, high = one["exact_over_limit"]
            columns.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
            early = (one["too_early"], one["too_early_here"])
            columns += [f"{100 * stops / found['runs']:.0f} %" for stops in early]
        rows.append(f"| {rule} | {' | '.join(columns)} |")
    return rows


def test_how_often_rules_alarm_and_where_they_stop():
    """The three tables of docs/is-the-kl-above-my-limit.md."""
    page = (ROOT / "docs" / "is-the-kl-above-my-limit.md").read_text(encoding="utf-8")
    for rows in (share_rows(), power_rows(), stop_rows()):
        assert len(rows) > 5
        assert "\n".join(rows) in page


def test_what_the_readme_says_of_intervals_and_of_stops():
    """The short answers, whose pages have the tables; e^(−0.031 · 149) is just below 1 %."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = arena_page()
    found = page.recorded(ARENA)
    low = {
        method: sum(share < 0.9 for share in page.values(found, method, "coverage"))
        for method in ("auto", "k1", "k3")
    }
    assert "in {auto} settings, that of k1 in {k1}, of k3 in {k3}.".format(**low) in readme
    assert f"in {len(page.values(found, 'auto', 'coverage'))} settings" in readme
    assert math.exp(-0.031 * 149) < 0.01 < math.exp(-0.031 * 148)
    assert "below 1 % from 149 tokens on" in readme
    stopped = json.loads((ROOT / "results" / "reused_batch.json").read_text())
    few, many = (cell["rules"] for cell in stopped["cells"])
    early = {
        rule: tuple(round(100 * cell[rule]["too_early"] / stopped["runs"]) for cell in (few, many))
        for rule in few
    }
    baselines, clean = early["minibatch k3 > 1.5 limit"], early["last minibatch k3 > limit"]
    assert f"in {baselines[0]} % of runs and CleanRL's in {clean[0]} %" in readme
    assert f"on 64 prompts in {baselines[1]} and {clean[1]} %" in readme
    held_out = [rule for rule in few if "held-out" in rule]
    assert [early[rule] for rule in held_out] == [(0, 0), (0, 0)]
    stops = [cell[rule]["exact_over_limit"][1] for cell in (few, many) for rule in held_out]
    assert f"at {min(stops):.1f} to {max(stops):.1f} limits" in readme


def test_how_much_too_large_k3_is_on_what_was_trained_on():
    """The prose below the last table of docs/is-the-kl-above-my-limit.md."""
    page = " ".join((ROOT / "docs" / "is-the-kl-above-my-limit.md").read_text().split())
    cells = json.loads((ROOT / "results" / "reused_batch.json").read_text())["cells"]
    few, many = (cell["over_the_exact_kl_where_it_crosses_the_limit"] for cell in cells)
    mean = {name: (few[name]["mean"], many[name]["mean"]) for name in few}
    assert "{:.2f} times as large with 16 prompts and {:.2f} times".format(*mean["k3"]) in page
    assert "({:.2f} and {:.2f} times)".format(*mean["these prompts"]) in page
    assert {f"{ratio:.2f}" for ratio in mean["held-out k3"]} == {"0.99"}


def test_how_long_one_state_needs_after_a_change():
    page = " ".join((ROOT / "docs" / "is-the-kl-above-my-limit.md").read_text().split())
    few, many = json.loads((ROOT / "results" / "looks.json").read_text())["changes"]
    looks = [cell["rules"]["evidence"]["median_looks_after"] for cell in (few, many)]
    assert "takes one state {} looks more ({} with 64 prompts each)".format(*looks) in page
    for cell in (few, many):
        assert cell["rules"]["evidence, anew every 10 looks"]["median_looks_after"] == 1
        assert all(one["false"] == one["missed"] == 0 for one in cell["rules"].values())


def test_evidence_alarms_falsely_in_at_most_5_percent():
    """In every recorded cell at or below the limit; 400 runs."""
    runs, cells = recorded_looks()
    at_most = [
        one["alarms"] / runs
        for (_, _, over), rules in cells.items()
        for rule, one in rules.items()
        if over <= 1 and rule.startswith("evidence")
    ]
    assert len(at_most) == 72
    assert max(at_most) <= 0.05


def test_what_an_estimate_costs_per_step():
    found = json.loads((ROOT / "results" / "per_step.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "in-training.md").read_text(encoding="utf-8")
    said = re.search(r"A step of (\d+),000 tokens takes (\d+) milliseconds", page)
    assert said
    assert int(said[1]) == round(found["tokens"] / 1000)
    assert int(said[2]) == round(found["cpu_time"]["kb.estimate, auto"]["ms"])
    assert "the bare masked mean of k3 takes two" in page
    assert round(found["cpu_time"]["masked mean of k3"]["ms"]) == 2


def measured(framework: str, name: str) -> dict:
    found = json.loads((ROOT / "results" / "zoo" / f"{framework}.json").read_text())
    return found["measures"][name]["numbers"]


def test_what_is_said_of_measured_terms_of_trainers():
    """The prose of docs/what-released-trainers-do.md below its table."""
    page = " ".join((ROOT / "docs" / "what-released-trainers-do.md").read_text().split())
    rows = measured("verl", "the reward near the reference")["rows"]
    pull = [100 * one["size"] for one in rows if one["kl_penalty"] == "low_var_kl"]
    assert "with {:.0f}, {:.0f} and {:.1f} % of the strength".format(*pull) in page
    (rare,) = (
        one
        for one in measured("verl", "low_var_kl at a hole")["rows"]
        if one["reference_over_policy"] == 100
    )
    assert f"sees {rare['measured']:.3f} nats of {rare['KL(policy||reference)']:.3f}." in page
    at_0, beside, *_ = measured("trl", "GKD along beta")["rows"]
    assert f"{at_0['measured']:.3f} at 0, {beside['measured']:.3f} at {beside['beta']}" in page


def test_how_far_the_policies_of_the_auditor_are_apart():
    world = kb.worlds.three_tokens(ends=True)
    alive = world.tree.alive
    apart = (world.by_token("reference") - world.by_token("current"))[alive]
    page = (ROOT / "docs" / "what-does-my-loss-descend.md").read_text()
    least, most = math.exp(apart.min()), math.exp(apart.max())
    assert f"reference/current lies between {least:.2f} and {most:.1f}" in page


def test_how_much_a_list_holds_at_two_temperatures():
    page = " ".join((ROOT / "docs" / "distillation.md").read_text().split())
    logits = (3, 2.2, 1, 0.5, 0, -0.4, -1, -2)
    for temperature in (1, 4):
        weights = [math.exp(one / temperature) for one in logits]
        share = sum(weights[:3]) / sum(weights)
        assert f"{100 * share:.0f} % " in page
        assert f"at T = {temperature}" in page


def test_how_noisy_the_gradients_are():
    """What docs/which-loss.md and the docstring of kb.advantage say of results/gradients.json."""
    found = json.loads((ROOT / "results" / "gradients.json").read_text(encoding="utf-8"))["forms"]
    keys = ("world", "gradient", "sampler", "weights", "prefixes", "form")
    needs = {tuple(one[k] for k in keys): one["sequences_for_a_tenth"] for one in found
             if one["learn"] == "p"}  # fmt: skip

    def shares(form: str, beside: str, gradient: str) -> list[float]:
        return [
            needs[(*key[:-1], form)] / needs[key]
            for key in needs
            if key[-1] == beside and key[1] == gradient and (*key[:-1], form) in needs
        ]

    exact = shares("rao_blackwell", "k2", "token") + shares("rao_blackwell", "score", "sequence")
    assert 1 / 6.5 < min(exact) < max(exact) < 1 / 2
    halves = shares("ratio_k3", "score", "sequence")
    assert 0.4 < min(halves) < max(halves) < 0.65
    baseline = [
        share - 1
        for gradient in ("token", "sequence")
        for share in shares("score, baseline exact KL", "score", gradient)
    ]
    assert (round(100 * min(baseline), 1), round(100 * max(baseline))) == (0.6, 25)
    assert shares("ratio_k3", "k2", "token") == pytest.approx([1.0] * 12)
    near = [one for one in shares("ratio_k1", "k2", "token") if one > 100]
    assert len(near) == 6
    assert (round(min(near)), round(max(near))) == (189, 263)
    assert "adds 0.6 to 25 %" in (kb.advantage.__doc__ or "")
