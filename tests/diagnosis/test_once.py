from __future__ import annotations

import pickle
from dataclasses import replace

import kullback as kb
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.once import once
from kullback.diagnosis.sampler_tests import sampler_tests
from kullback.estimation.stored import load, store

SUMMARY = kb.summarize(kb.read(kb.demo_path()))


def test_it_is_found_once_for_each_summary_and_argument():
    asked = []

    @once
    def find(summary, role):
        asked.append((len(summary.questions), role))
        return role * 2

    other = replace(SUMMARY)
    for summary in (SUMMARY, other, SUMMARY, other):
        for role in ("old", "current"):
            assert find(summary, role) == 2 * role
    assert len(asked) == 4


def test_what_was_found_is_no_part_of_a_summary():
    fresh, used = replace(SUMMARY), replace(SUMMARY)
    tests = sampler_tests(used)
    assert tests
    assert sampler_tests(used) is tests
    assert store(used) == store(fresh)
    assert repr(used) == repr(fresh)
    assert "_found" not in vars(used + used)
    assert "_found" not in vars(replace(used))
    for copy in (load(store(used)), pickle.loads(pickle.dumps(used))):
        assert diagnose(copy) == diagnose(fresh)
