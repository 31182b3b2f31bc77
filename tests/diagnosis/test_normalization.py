from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import TopK, pack
from kullback.diagnosis.normalization import diagnose_normalization
from kullback.dumps import demo_path, read
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture


def diagnosis(columns):
    return diagnose_normalization(summarize([columns]))


@pytest.mark.parametrize("name", ["smooth", "holes_in_policy", "training_loop"])
def test_logits_are_found_by_what_their_heads_weigh(name):
    world = CLEAN_WORLDS[name](8)
    assert isinstance(world, Mixture)
    (finding,) = diagnosis(FAULTS["unnormalized"].inject(world, np.random.default_rng(0))).findings
    role = next(role for role in world.roles if role != "rollout")
    assert (finding.code, finding.certainty) == ("not-normalized", "certain")
    assert 1.01 < finding.numbers["mass"] <= np.e + 1e-9
    assert all(role in question for question in finding.questions)
    assert finding.where[0].startswith("row ")


def test_each_impossible_thing_is_said_with_its_place():
    columns = pack({"p": [[-0.5, -1.0, -0.1]], "q": [[-1.0, -1.0, -1.0]]})
    heads = TopK(np.array([[4, 5], [4, 5], [4, 5]]), np.log([[0.9, 0.3], [0.5, 0.2], [0.8, 0.1]]))
    columns = replace(columns, tokens=np.array([9, 4, 6]), top_k={"p": heads})
    (finding,) = diagnosis(replace(columns, entropy={"p": np.array([1.0, 1.0, -3.0])})).findings
    assert "At 2 of 3 prefixes the logged tokens of p weigh more than 1" in finding.claim
    assert "1 sampled tokens have another log-prob of p than the same id" in finding.claim
    assert "1 entropies of p are below 0, the lowest -3." in finding.claim
    assert finding.where == ("row 0, token 0", "row 0, token 1", "row 0, token 2")


def test_the_demo_and_clean_worlds_pass():
    (check,) = [c for c in diagnose_normalization(summarize(read(demo_path()))).checks
                if c.subject == "rollout"]  # fmt: skip
    assert check.status == "passed"
    assert "7632 heads, the largest weighs 1" in check.reason
    for name, build in CLEAN_WORLDS.items():
        world = build(2)
        if isinstance(world, Mixture):
            found = diagnosis(world.sample(np.random.default_rng(0), top_k=200))
            assert not found.findings, name
            assert {check.status for check in found.checks} == {"passed"}


def test_without_heads_and_entropies_it_says_what_to_log():
    (check,) = diagnosis(pack({"p": [[-1.0]], "q": [[-1.1]]})).checks
    assert (check.status, "log top_ids" in check.reason) == ("not-possible", True)
