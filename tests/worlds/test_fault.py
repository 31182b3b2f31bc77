from __future__ import annotations

import numpy as np

from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.fault import in_log, other_role


def test_a_fault_is_named_by_its_own_code_and_by_those_that_may_stand_for_it():
    fault = FAULTS["wrong-sampler"]
    assert fault.codes == ("sampler-mismatch", "negative-beyond-chance")
    assert fault.names({"negative-beyond-chance", "misaligned"})
    assert not fault.names({"misaligned"})
    assert not any(fault.code in fault.also for fault in FAULTS.values())


def test_a_change_of_the_log_is_given_who_sampled_and_the_first_other_role():
    world = CLEAN_WORLDS["training_loop"](2)
    assert isinstance(world, Mixture)
    assert other_role(world) == "old"
    seen = []
    inject = in_log(lambda columns, *roles: seen.append(roles) or columns)
    changed, clean = inject(world, np.random.default_rng(0)), world.sample(np.random.default_rng(0))
    assert seen == [("rollout", "old")]
    assert (changed.log_probs["old"] == clean.log_probs["old"]).all()
