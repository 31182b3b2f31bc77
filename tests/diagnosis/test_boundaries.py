from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.boundaries import FEWEST_ROWS, diagnose_boundaries
from kullback.diagnosis.diagnose import diagnose
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture
from kullback.worlds.faults import packed_wrongly

CODE = "packed-boundary"
WORLD = cast(Mixture, CLEAN_WORLDS["training_loop"](16))


def packed(per_row: int, *roles: str, seed: int = 0) -> Columns:
    """Packed rows in which these roles scored the first tokens behind the sequence before."""
    columns = packed_wrongly(WORLD, np.random.default_rng(seed), "old", per_row)
    clean = WORLD.sample(np.random.default_rng(seed))
    log_probs = dict(clean.log_probs)
    for role in roles:
        wrong = packed_wrongly(WORLD, np.random.default_rng(seed), role, per_row)
        log_probs[role] = wrong.log_probs[role]
    return replace(columns, log_probs=log_probs)


def as_one(columns: Columns) -> Columns:
    """The rows as a file holds them that does not tell sequences apart; each ends in id 0."""
    tokens = np.array(columns.tokens)
    tokens[columns.ends - 1] = 0
    first = np.flatnonzero(columns.within == 0)
    lengths = np.add.reduceat(columns.lengths, first)
    return Columns(
        lengths=lengths,
        mask=columns.mask,
        log_probs=columns.log_probs,
        clusters=columns.clusters[first],
        tokens=tokens,
    )


@pytest.mark.parametrize("roles", [("old",), ("reference",), ("old", "current"), ("rollout",)])
@pytest.mark.parametrize("per_row", [2, 8, 16])
def test_whoever_scored_the_first_tokens_wrongly_is_named(per_row, roles):
    (finding,) = [f for f in diagnose(summarize([packed(per_row, *roles)])).findings if f.accuses]
    assert finding.code == CODE
    assert any(f"{role} scored them" in finding.claim for role in roles)
    assert finding.where[0].endswith("sequence 1, token 0")


@pytest.mark.parametrize("per_row", [2, 8])
def test_it_is_found_where_the_file_does_not_tell_sequences_apart(per_row):
    (finding,) = diagnose_boundaries(summarize([as_one(packed(per_row, "old"))])).findings
    assert (finding.code, finding.certainty) == (CODE, "likely")
    assert "behind id 0" in finding.claim


def test_the_cost_is_the_estimate_without_them():
    columns = packed(8, "old")
    (finding,) = diagnose_boundaries(summarize([columns])).findings
    log_r = columns.log_probs["old"] - columns.log_probs["rollout"]
    assert columns.within is not None
    rest = np.delete(np.expm1(log_r) - log_r, columns.starts[columns.within > 0]).mean()
    assert f"and {rest:.4g}." in finding.cost


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("per_row", [2, 8, 16])
def test_rows_that_are_packed_rightly_pass(per_row, seed):
    columns = packed(per_row, seed=seed)
    assert not diagnose_boundaries(summarize([columns])).findings
    assert not diagnose_boundaries(summarize([as_one(columns)])).findings


def test_first_tokens_that_differ_more_than_others_are_no_fault():
    """As in a policy that learned how to begin."""
    columns = packed(8)
    log_probs = dict(columns.log_probs)
    log_probs["current"] = np.array(log_probs["current"])
    log_probs["current"][columns.starts] -= 2.0
    columns = replace(columns, log_probs=log_probs)
    assert not diagnose_boundaries(summarize([columns])).findings


def test_a_few_rows_are_nothing_to_compare_with():
    columns = packed(32, "old")
    assert (columns.within == 0).sum() < FEWEST_ROWS
    diagnosis = diagnose_boundaries(summarize([columns]))
    assert not diagnosis.findings
    assert "only 4 first tokens of rows" in diagnosis.checks[0].reason


def test_an_id_of_a_small_world_is_no_border():
    """Of three actions one is often the last; what follows on it is another state, not a start."""
    rng = np.random.default_rng(0)
    actions = rng.choice(3, p=[0.85, 0.1, 0.05], size=(200, 20))
    behind = np.pad(actions, ((0, 0), (1, 0)))[:, :-1] == 0
    behind[:, 0] = False
    p = np.log(np.array([0.85, 0.1, 0.05]))[actions] + 0.01 * rng.normal(size=actions.shape)
    q = p + np.where(behind, 2.0, 0.1) * rng.normal(size=p.shape)
    columns = pack({"rollout": p, "reference": q})
    columns = replace(columns, tokens=actions.ravel())
    assert not diagnose_boundaries(summarize([columns])).findings
