from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.in_sample import diagnose_in_sample
from kullback.diagnosis.sampler import sampler_check
from kullback.diagnosis.sampler_tests import lead, sampler_tests
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture
from kullback.worlds.faults import drawn_from, older, trained_on_sample, with_policy
from kullback.worlds.tables import tempered

CODE = "in-sample"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def world(name: str = "training_loop", prompts: int = 64) -> Mixture:
    made = CLEAN_WORLDS[name](prompts)
    assert isinstance(made, Mixture)
    return made


def accusations(columns: Columns) -> set[str]:
    return {f.code for f in diagnose(summarize([columns])).findings if f.accuses}


@pytest.mark.parametrize("role", ["old", "current"])
def test_a_role_that_was_trained_on_its_tokens_is_named_and_nobody_else(role: str) -> None:
    before = with_policy(world(), role, world().log_probs["rollout"])
    summary = summarize([trained_on_sample(before, rng(), role)])
    (finding,) = [one for one in diagnose(summary).findings if one.accuses]
    assert (finding.code, finding.severity, finding.certainty) == (CODE, "error", "likely")
    assert finding.claim.startswith(f"{role} was fitted to these tokens")
    assert finding.questions
    assert all(role in question for question in finding.questions)
    assert finding.numbers["gain"] > finding.numbers["of_own_samples"]
    assert "Its sign is wrong" in finding.cost
    # The engine is not the culprit.
    assert sampler_check(summary, Question("rollout", "reference")).verdict == "consistent"
    assert "failed" not in {
        check.status for check in diagnose(summary).checks if check.code != CODE
    }


def test_without_the_entropy_nobody_vouches_for_the_sampler() -> None:
    columns = replace(trained_on_sample(world(), rng(), "old"), entropy={})
    assert accusations(columns) == {"negative-beyond-chance"}


@pytest.mark.parametrize("sampled", ["current", "reference", "between"])
def test_tokens_of_another_role_are_the_samplers_fault(sampled: str) -> None:
    made = world()
    table = older(made) if sampled == "between" else made.log_probs[sampled]
    for seed in range(3):
        assert CODE not in accusations(drawn_from(made, rng(seed), table))


def test_a_temperature_is_the_samplers_fault_even_if_current_is_sharper() -> None:
    made = with_policy(world(), "current", tempered(world().log_probs["rollout"], 0.97))
    columns = drawn_from(made, rng(), tempered(made.log_probs["rollout"], 0.8))
    assert CODE not in accusations(columns)


@pytest.mark.parametrize("fault", FAULTS)
def test_no_other_fault_is_taken_for_it(fault: str) -> None:
    """Of a reference with holes; ``test_diagnose`` shows the same of the other worlds."""
    made = world("holes_in_reference", 16)
    found = diagnose_in_sample(summarize([FAULTS[fault].inject(made, rng(1))]))
    assert not found.findings


def test_a_reference_is_not_suspected_of_training() -> None:
    columns = trained_on_sample(world("light_drift"), rng(), "reference")
    assert accusations(columns) == {"negative-beyond-chance"}


def test_of_own_samples_the_gain_is_half_the_square() -> None:
    """Which is what a policy fixed before shows at best."""
    made = world()
    summary = summarize([drawn_from(made, rng(), made.log_probs["current"])])
    (test,) = [t for t in sampler_tests(summary) if (t.kind, t.other) == ("bound", "current")]
    gain, own, z = lead(summary, test)
    assert gain == pytest.approx(own, rel=0.1)
    assert abs(z) < 5


def test_what_no_column_shows_is_said_of_current() -> None:
    columns = world().sample(rng())
    checks = {check.subject: check for check in diagnose_in_sample(summarize([columns])).checks}
    assert checks["KL(rollout||old)"].status == "passed"
    assert checks["KL(rollout||current)"].status == "not-possible"
    assert "held-out" in checks["KL(rollout||current)"].reason
    assert "KL(rollout||reference)" not in checks
