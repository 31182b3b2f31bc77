from __future__ import annotations

import platform

from kullback.selftest import run
from kullback.selftest.line import Line
from kullback.selftest.run import FAULTS, PARTS, Selftest, selftest, versions

GOOD, BAD, BEYOND = (
    Line("k3", "passed", "6 numbers"),
    Line("k2", "failed", "6 numbers"),
    Line("stale", "not-reached", "no detector claims to see it"),
)


def test_every_part_runs_in_turn_and_is_announced(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(run, "PARTS", dict.fromkeys(PARTS, lambda: (GOOD,)))
    made = selftest("0.1", said.append)
    assert said == list(PARTS) == list(made.parts)
    assert made.versions["kullback"] == "0.1"
    assert made.passed
    assert made.verdict() == "All 6 checks passed: kullback computes right here."


def test_a_failure_is_named_and_what_is_not_reached_is_none():
    made = Selftest({"Formulas": (GOOD, BAD), FAULTS: (GOOD, BEYOND)}, {})
    assert not made.passed
    assert made.verdict() == (
        "1 of 3 checks failed: k2. Do not trust what kullback says of these here. No detector "
        "claims to see 1 of 2 faults."
    )
    data = made.as_data()
    assert data["counts"] == {"passed": 2, "failed": 1, "not-reached": 1}
    assert [part["title"] for part in data["parts"]] == ["Formulas", FAULTS]
    assert data["parts"][0]["lines"][1]["name"] == "k2"


def test_versions_say_what_it_ran_on_and_not_where(monkeypatch):
    found = versions()
    assert found["python"] == platform.python_version()
    assert {"numpy", "scipy", "pyarrow", "torch", "jax", "blas", "platform"} < found.keys()
    assert platform.machine() in found["platform"]
    assert platform.node() not in "".join(found.values())


def test_a_library_that_is_missing_is_no_error(monkeypatch):
    monkeypatch.setattr(run, "INSTALLED", ("numpy", "a-library-that-nobody-has"))
    assert versions()["a-library-that-nobody-has"] == "not installed"
