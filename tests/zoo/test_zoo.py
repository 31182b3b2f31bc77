"""What is said of released trainers is what results/zoo recorded of them."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import kullback as kb

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "zoo"
sys.path.insert(0, str(FOLDER))
claims = importlib.import_module("claims")
comparing = importlib.import_module("comparing")
environments = importlib.import_module("environments")
reading = importlib.import_module("reading")
zoo_page = importlib.import_module("zoo_page")
zoo_table = importlib.import_module("zoo_table")
RESULTS = zoo_table.results()
PAGE = (ROOT / "docs" / "what-released-trainers-do.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", environments.ENVIRONMENTS)
def test_every_framework_is_probed_in_the_release_that_is_installed(name):
    result, wanted = RESULTS[name], environments.ENVIRONMENTS[name]
    pinned = dict(one.split("==") for one in (*wanted.alone, *wanted.beside) if "==" in one)
    recorded = result["versions"]
    assert all(pinned.get(one, number) == number for one, number in recorded.items())
    assert next(iter(recorded)) in pinned
    assert f"torch=={recorded['torch'].partition('+')[0]}" == environments.TORCH
    assert result["entries"]
    assert not [entry["refused"] for entry in result["entries"].values() if "refused" in entry]


def test_the_table_is_made_of_the_results():
    table = (ROOT / "results" / "zoo" / "table.md").read_text(encoding="utf-8")
    assert table == zoo_table.table(RESULTS)


def test_the_page_is_made_of_the_results():
    assert zoo_page.filled(PAGE, RESULTS) == PAGE
    assert {name for _, name, _ in zoo_page.MARKED.findall(PAGE)} == set(zoo_page.PARTS)


def test_every_claim_is_about_an_entry():
    for framework, told in claims.CLAIMS.items():
        assert told.keys() <= RESULTS[framework]["entries"].keys()
    for framework, told in claims.OF_MEASURES.items():
        assert told.keys() <= RESULTS[framework]["measures"].keys()


def test_every_claim_that_is_not_what_was_measured_is_decided_and_no_other():
    differing = comparing.every_difference(RESULTS).keys()
    decided = {(one, name) for one, told in claims.VERDICTS.items() for name in told}
    assert decided == differing


def test_each_framework_has_its_advice():
    advised = PAGE.partition("## What should I set?")[2].partition("\n## ")[0]
    assert re.findall(r"^\| ([^|]+) \|", advised, re.MULTILINE)[2:] == list(zoo_page.NAMES.values())


def test_the_figures_of_the_page():
    verl, trl = RESULTS["verl"]["measures"], RESULTS["trl"]["measures"]
    hole = {
        row["reference_over_policy"]: row for row in verl["low_var_kl at a hole"]["numbers"]["rows"]
    }[100.0]
    said = re.search(
        r"100\s+times\s+rarer\s+verl's\s+`low_var_kl`\s+sees (\d\.\d+) nats of (\d\.\d+)", PAGE
    )
    assert said
    assert said.groups() == (
        f"{hole['measured']:.3f}",
        f"{hole['KL(policy||reference)']:.3f}",
    )
    pulls = [
        100 * row["size"]
        for row in verl["the reward near the reference"]["numbers"]["rows"]
        if row["kl_penalty"] == "low_var_kl"
    ]
    told = re.search(r"pulls\s+with\s+(\d+), (\d+)\s+and ([\d.]+) %", PAGE)
    assert told
    assert told.groups() == (f"{pulls[0]:.0f}", f"{pulls[1]:.0f}", f"{pulls[2]:.1f}")
    jsd = {row["beta"]: row["measured"] for row in trl["GKD along beta"]["numbers"]["rows"]}
    assert f"{jsd[0.0]:.3f} at 0, {jsd[0.01]:.3f} at 0.01" in PAGE


def test_a_probe_in_few_words():
    def penalty(old, reference):
        return reference - old

    found = {"used": "reward", "probe": kb.audit.probe(penalty, library="numpy").as_data()}
    assert reading.value(found) == "k1 of KL(reference||old)"
    assert reading.gradient(found, "on-policy") == "minus KL(current||reference)"
    assert reading.part(found, "on-policy") == ", whole sequences"
    assert reading.clamps(found) == ""


def test_a_bar_ends_no_cell():
    assert zoo_table.line(["KL(a||b)", "|log r|", ""]) == r"| KL(a‖b) | \|log r\| |   |"
