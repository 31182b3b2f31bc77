from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import CODES, Diagnosis
from kullback.estimation.summary import summarize
from kullback.selftest import detectors as checked
from kullback.worlds import CLEAN_WORLDS, FAULTS

SHIFTED = FAULTS["shifted-by-one"]


def line(monkeypatch, fault):
    """What becomes of one fault."""
    monkeypatch.setattr(checked, "FAULTS", {"the fault": fault})
    [found] = checked.detectors()
    return found


def test_its_own_code_in_every_world(monkeypatch):
    found = line(monkeypatch, SHIFTED)
    assert (found.verdict, found.says) == ("passed", "6 of 6: shifted-by-one 6")
    assert found.numbers["told"].keys() == CODES.keys()
    assert (found.numbers["found"], found.numbers["reports"]) == (6, 6)


def test_a_code_that_may_stand_for_it_is_marked(monkeypatch):
    other = replace(SHIFTED, code="temperature-mismatch", also=("shifted-by-one",))
    found = line(monkeypatch, other)
    assert (found.verdict, found.says) == ("passed", "6 of 6: shifted-by-one* 6")


def test_a_code_that_accuses_of_another_fault_fails_and_is_marked(monkeypatch):
    found = line(monkeypatch, replace(SHIFTED, code="misaligned"))
    assert (found.verdict, found.says) == ("failed", "0 of 6: shifted-by-one! 6")
    both = line(monkeypatch, replace(FAULTS["unnormalized"], also=()))
    assert both.verdict == "failed"
    assert both.says == "6 of 6: not-normalized 6, not-log-probs! 6"


def test_a_code_that_nobody_tells_is_not_reached_whatever_else_is_told(monkeypatch):
    found = line(monkeypatch, replace(SHIFTED, code="told-by-nobody"))
    assert found.verdict == "not-reached"
    assert found.says == "no detector claims to see it: shifted-by-one! 6"


@pytest.mark.parametrize(("everywhere", "verdict"), [(True, "failed"), (False, "passed")])
def test_a_fault_that_some_worlds_hide_has_to_be_found_in_one(everywhere, verdict, monkeypatch):
    def inject(world, rng):
        return SHIFTED.inject(world, rng) if len(world.roles) > 2 else world.sample(rng)

    found = line(monkeypatch, replace(SHIFTED, inject=inject, everywhere=everywhere))
    assert (found.verdict, found.says) == (verdict, "2 of 6: shifted-by-one 2")


def test_a_blind_detector_fails(monkeypatch):
    monkeypatch.setattr(checked, "diagnose", lambda summary: Diagnosis())
    found = line(monkeypatch, replace(SHIFTED, everywhere=False))
    assert (found.verdict, found.says) == ("failed", "0 of 6")


def test_accusations_of_honest_worlds_are_counted(monkeypatch):
    names = ("smooth", "training_loop", "shifted_normals")
    monkeypatch.setattr(checked, "CLEAN", {4: 2})
    monkeypatch.setattr(checked, "CLEAN_WORLDS", {name: CLEAN_WORLDS[name] for name in names})
    [quiet] = checked.clean_worlds()
    assert quiet.verdict == "passed"
    assert quiet.numbers == {"reports": 8, "accused": 0, "allowed": 2}
    shifted = SHIFTED.inject(checked._world("smooth"), np.random.default_rng(0))
    told = diagnose(summarize([shifted]))
    monkeypatch.setattr(checked, "diagnose", lambda summary: told)
    [loud] = checked.clean_worlds()
    assert (loud.verdict, loud.numbers["accused"]) == ("failed", 8)
    assert "training_loop with 4 prompts: shifted-by-one" in loud.says
