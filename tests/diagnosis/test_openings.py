from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.openings import diagnose_openings, opens_unscored
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](16))


def batch(blank=0.0, width: int = 2, sequences: int = 40, ids=None, other: float = -2.0):
    """Sequences of twelve tokens, the first few with nothing said of them by p."""
    values = -np.random.default_rng(0).gamma(1.0, 1.0, size=(sequences, 12))
    p, q = values.copy(), values - 0.1
    p[:, :width], q[:, :width] = blank, other
    tokens = np.arange(sequences * 12).reshape(sequences, 12)
    if ids is not None:
        tokens[:, :width] = ids
    return replace(pack({"p": p, "q": q}), tokens=tokens.ravel())


def found(columns):
    return diagnose_openings(summarize([columns])).findings


def test_prompt_tokens_that_the_sampler_did_not_score_are_told_with_their_share():
    columns = FAULTS["prompt"].inject(WORLD, np.random.default_rng(0))
    (finding,) = found(columns)
    assert finding.code == "mask-covers-prompt"
    assert finding.numbers["tokens"] == 8 * len(columns.lengths)
    assert finding.numbers["share"] == pytest.approx(8 / 100)
    assert finding.where == ("row 0, token 0",)


@pytest.mark.parametrize("blank", [0.0, np.nan, -9999.0])
@pytest.mark.parametrize("width", [1, 2])
def test_an_opening_without_a_score_is_found_whatever_stands_there(blank, width):
    (finding,) = found(batch(blank, width))
    assert "40 of 40 sequences begin, inside the mask, with tokens" in finding.claim
    assert finding.numbers["means"] == {"q": -2.0}


def test_a_format_that_the_policy_is_certain_of_may_be_a_prompt_or_not():
    """All begin with the same ids: so does a policy that always thinks first."""
    columns = batch(ids=[7, 8])
    assert not found(columns)
    status = {c.subject: c.status for c in diagnose_openings(summarize([columns])).checks}
    assert status == {"p": "not-possible", "q": "passed"}


def test_an_opening_that_nobody_doubts_is_sampled():
    assert not found(batch(other=-0.01))


def test_a_policy_that_is_often_certain_accuses_nobody():
    columns = batch()
    sure = columns.log_probs["p"].copy()
    sure[5::12] = 0.0
    assert not found(replace(columns, log_probs={**columns.log_probs, "p": sure}))


@pytest.mark.parametrize("blank", [0.0, np.nan])
def test_an_opening_that_no_role_scored_is_one_finding_with_what_it_does_to_a_mean(blank):
    columns = batch(blank, other=blank)
    (finding,) = found(columns)
    assert "for every role, 2 each on average" in finding.claim
    assert finding.numbers["share"] == pytest.approx(2 / 12)
    assert "0.833 times what it is" in finding.cost
    assert {f.code for f in diagnose(summarize([columns])).findings if f.accuses} >= {finding.code}


def test_a_beginning_of_which_all_are_certain_is_the_same_one():
    assert not found(batch(other=0.0, ids=[7, 8]))


def test_roles_that_are_certain_elsewhere_too_accuse_nobody():
    columns = batch(other=0.0)
    sure = {role: values.copy() for role, values in columns.log_probs.items()}
    for values in sure.values():
        values[5::12] = 0.0
    assert not found(replace(columns, log_probs=sure))


def copies(columns, share: float = 1.0):
    """The same, as of two copies of the policy, opened in a share of the sequences."""
    p, q = columns.log_probs.values()
    begins = np.repeat(np.arange(40) < 40 * share, 12)
    return replace(columns, log_probs={"rollout": np.where(begins, p, q), "old": q})


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("ids", [None, [7, 8]])
def test_what_a_copy_of_the_weights_doubts_was_not_scored(ids, share):
    """In a part of the sequences, of the same ids, or without ids."""
    columns = copies(batch(ids=ids), share)
    for one in (columns, replace(columns, tokens=None)):
        (finding,) = found(one)
        assert finding.numbers["sequences"] == 40 * share
    assert "or padding, ids would tell" in finding.claim
    assert not found(copies(batch(other=-0.01, ids=ids), share))


def test_two_roles_that_did_not_score_the_same_openings_are_one_finding():
    columns = batch()
    p, q = columns.log_probs.values()
    (finding,) = found(replace(columns, log_probs={"rollout": p, "old": p, "reference": q}))
    assert finding.claim.endswith("Nor did old.")


def test_blank_openings_of_several_tokens_are_told_in_a_part_of_the_sequences():
    def some(width: int, ids=None):
        columns = batch(width=width, other=0.0, ids=ids)
        fresh = -np.random.default_rng(1).gamma(1.0, 1.0, len(columns)) - 0.2
        first = columns.sequence_of_token < 15
        logs = {role: np.where(first, fresh, one) for role, one in columns.log_probs.items()}
        return found(replace(columns, log_probs=logs))

    assert some(3)
    assert not some(2)
    assert not some(3, ids=[7, 7, 7])  # padding, or a beginning that is certain


def test_few_sequences_or_a_part_of_them_prove_nothing():
    assert not found(batch(sequences=19))
    columns = batch()
    values = columns.log_probs["p"].copy()
    values[: 3 * 12 : 12] = -1.0
    assert not found(replace(columns, log_probs={**columns.log_probs, "p": values}))


def test_without_ids_it_cannot_be_told():
    summary = summarize([replace(batch(), tokens=None)])
    assert not opens_unscored(summary, "p")
    assert diagnose_openings(summary).checks[0].status == "not-possible"


@pytest.mark.parametrize("name", ["smooth", "holes_in_policy", "training_loop"])
def test_a_prompt_that_every_role_scored_is_told_by_what_it_would_cost(name):
    world = cast(Mixture, CLEAN_WORLDS[name](16))
    columns = FAULTS["prompt-scored"].inject(world, np.random.default_rng(0))
    (finding,) = [one for one in diagnose(summarize([columns])).findings if one.accuses]
    assert finding.code == "mask-covers-prompt"
    assert "So these tokens were given: a prompt, a template or a forced beginning" in finding.claim
    assert finding.where[0].startswith("row ")


def test_copies_are_no_prompt():
    """Every sequence stands there twice: of equals nothing is said here."""
    columns = WORLD.sample(np.random.default_rng(0))
    twice = columns.take(np.repeat(np.arange(0, len(columns.lengths), 8), 2))
    summary = summarize([twice])
    assert summary.shared["rollout"].alike == 0
    assert not diagnose(summary).accused
