from __future__ import annotations

import pytest

from kullback.diagnosis.finding import CODES
from kullback.explaining import examples
from kullback.explaining.examples import SEED, example


@pytest.mark.parametrize("code", CODES)
def test_the_example_of_a_code_shows_it(code, shown):
    assert shown(code).finding(code).code == code


@pytest.mark.parametrize("code", CODES)
def test_its_clean_twin_does_not_nor_accuses_anybody(code, shown):
    twin = shown(code).twin
    assert code not in {one.code for one in twin.findings}
    assert not twin.accused


@pytest.mark.parametrize("code", [code for code, said in CODES.items() if said.accuses])
def test_the_twin_of_an_accusing_code_passed_its_check(code, shown):
    assert shown(code).passed(code) != "nothing of it is found"


@pytest.mark.parametrize("code", CODES)
def test_an_example_is_the_same_whenever_it_is_computed(code, shown):
    assert example(code) == shown(code)


@pytest.mark.parametrize(("name", "top_k"), [("smooth", 0), ("smooth", 20), ("training_loop", 0)])
def test_so_is_the_honest_twin_that_examples_share(name, top_k):
    assert examples._honest.__wrapped__(name, top_k) == examples._honest(name, top_k)


def test_what_was_done_can_be_done_again(shown):
    simulated = [one.told for one in map(shown, CODES) if one.told.startswith("Simulated")]
    assert len(simulated) == len(CODES) - 2
    assert all(f"tokens, seed {SEED})" in told for told in simulated)
