from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kullback.cli import app
from kullback.diagnosis.finding import CODES
from kullback.formulas import k_family
from kullback.selftest import run as selftest
from kullback.selftest.run import FAULTS, PARTS
from kullback.worlds import FAULTS as INJECTED

run = CliRunner().invoke


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One run of everything: what it printed, and its data."""
    path = tmp_path_factory.mktemp("selftest") / "made.json"
    done = run(app, ["selftest", "--json", str(path)], env={"COLUMNS": "80"})
    return done, json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.fixture
def short(monkeypatch):
    """The formulas alone."""
    title = next(iter(PARTS))
    monkeypatch.setattr(selftest, "PARTS", {title: PARTS[title]})


def lines(data, title):
    [part] = [part for part in data["parts"] if part["title"] == title]
    return {line["name"]: line for line in part["lines"]}


def test_it_passes_here(whole):
    done, data = whole
    assert done.exit_code == 0, done.stdout
    assert data["passed"]
    assert data["counts"]["failed"] == 0
    assert "computes right here" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    assert done.stderr.splitlines() == [f"{title} …" for title in PARTS]


def test_the_table_of_faults_has_every_fault_and_every_code(whole):
    _, data = whole
    table = lines(data, FAULTS)
    assert table.keys() == INJECTED.keys()
    assert all(line["numbers"]["told"].keys() == CODES.keys() for line in table.values())
    for name, line in table.items():
        assert (line["verdict"] == "not-reached") == (not INJECTED[name].names(CODES)), name
    told = {code for line in table.values() for code, n in line["numbers"]["told"].items() if n}
    assert told >= {code for code, known in CODES.items() if known.accuses and known.of == "dump"}


def test_its_data_have_no_time_and_their_keys_in_order(whole):
    _, data = whole
    assert data["schema"] == "kullback.selftest/1"
    assert list(data) == sorted(data)


def test_a_broken_formula_fails_it_with_exit_status_1(short, monkeypatch):
    monkeypatch.setattr(k_family, "k3", k_family.k2)
    done = run(app, ["selftest"])
    assert done.exit_code == 1
    assert "3 of 13 checks failed: k3, other_direction, truncated sampler." in done.stdout


def test_data_on_the_output_stand_there_alone_and_are_the_same_each_time(short):
    once, again = (run(app, ["selftest", "--json", "-"]) for _ in range(2))
    assert json.loads(once.stdout)["passed"]
    assert once.stdout == again.stdout


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(short):
    done = run(app, ["selftest", "--json", "nowhere/made.json"])
    assert done.exit_code == 2
    assert "there is no folder" in done.stderr
    assert done.stderr.count("\n") == 1
