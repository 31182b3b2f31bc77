from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.diagnosis.causes import EXPLAINS, without_consequences
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import CODES, Diagnosis, Finding
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](64))


def finding(code: str, severity: str, *questions: str) -> Finding:
    return Finding(code, severity, "likely", "C.", "C.", "A.", questions)


def codes(*findings: Finding) -> list[str]:
    return [one.code for one in without_consequences(Diagnosis(findings)).findings]


def test_every_cause_and_consequence_is_a_code():
    assert set(EXPLAINS) <= set(CODES)
    assert {code for told in EXPLAINS.values() for code in told} <= set(CODES)


def test_no_two_codes_explain_each_other():
    """Else both would be left out."""
    pairs = {(cause, told) for cause, codes in EXPLAINS.items() for told in codes}
    assert not {(a, b) for a, b in pairs if (b, a) in pairs}


def test_gaps_explain_nothing_and_zeros_do():
    few = finding("mean-owned-by-few", "note", "KL(a||b)")
    assert len(codes(finding("missing-values", "warning", "KL(a||b)"), few)) == 2
    assert codes(finding("missing-values", "error", "KL(a||b)"), few) == ["missing-values"]


def test_what_a_cause_spoils_is_not_told_twice():
    cause = finding("shifted-by-one", "error", "KL(a||b)", "KL(c||b)")
    assert codes(cause, finding("mean-owned-by-few", "note", "KL(a||b)")) == ["shifted-by-one"]


def test_other_questions_other_codes_and_notes_stand():
    cause = finding("misaligned", "error", "KL(a||b)")
    for other in (
        finding("mean-owned-by-few", "note", "KL(a||c)"),
        finding("sentinel-inside-mask", "error", "KL(a||b)"),
        finding("clamp-active", "note"),
    ):
        assert codes(cause, other) == ["misaligned", other.code]
    note = finding("clamp-active", "note", "KL(a||b)")
    assert len(codes(note, finding("mean-owned-by-few", "note", "KL(a||b)"))) == 2


@pytest.mark.parametrize("fault", ["shifted-by-one", "misaligned"])
def test_a_fault_of_one_column_is_one_finding_of_its_questions(fault):
    columns = FAULTS[fault].inject(WORLD, np.random.default_rng(1))
    (first, *others) = diagnose(summarize([columns])).findings
    assert first.code == fault
    assert not any(set(one.questions) & set(first.questions) for one in others)


def test_a_shift_that_fills_up_with_0_is_a_shift():
    columns = WORLD.sample(np.random.default_rng(2))
    moved = columns.log_probs["current"].copy()
    moved[1:] = columns.log_probs["current"][:-1]
    moved[columns.starts] = 0.0
    shifted = replace(columns, log_probs={**columns.log_probs, "current": moved})
    accused = [one.code for one in diagnose(summarize([shifted])).findings if one.accuses]
    assert accused == ["shifted-by-one"]


@pytest.mark.parametrize("ahead", [1, -1])
def test_a_shift_explains_the_zero_that_it_leaves_at_an_end(ahead):
    columns = WORLD.sample(np.random.default_rng(0))
    values = np.roll(columns.log_probs["rollout"], ahead)
    values[columns.starts if ahead > 0 else columns.ends - 1] = 0.0
    moved = replace(columns, log_probs={**columns.log_probs, "rollout": values}, entropy={})
    found = diagnose(summarize([replace(moved, top_k={})])).findings
    assert [finding.code for finding in found if finding.accuses] == ["shifted-by-one"]
