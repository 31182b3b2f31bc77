from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from kullback.columns import Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.endings import diagnose_endings
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, Mixture

CODE = "end-not-counted"
WORLD = cast(Mixture, CLEAN_WORLDS["random_lengths"](16))
CLEAN = WORLD.sample(np.random.default_rng(0))
TOKENS = np.asarray(CLEAN.tokens)
ENDS = CLEAN.ends[TOKENS[CLEAN.ends - 1] == 0] - 1
PAD = 9999


def without(columns: Columns, places: np.ndarray) -> Columns:
    mask = np.array(columns.mask)
    mask[places] = False
    return replace(columns, mask=mask)


def stripped(columns: Columns, places: np.ndarray) -> Columns:
    kept = np.delete(np.arange(len(columns)), places)
    lengths = np.add.reduceat(np.isin(np.arange(len(columns)), kept).astype(int), columns.starts)
    return Columns(
        lengths=lengths,
        mask=columns.mask[kept],
        log_probs={role: values[kept] for role, values in columns.log_probs.items()},
        clusters=columns.clusters,
        tokens=np.asarray(columns.tokens)[kept],
    )


def padded(columns: Columns, token: int) -> Columns:
    """To one width, as a trainer holds them, with the mask that the lengths give."""
    width = int(columns.lengths.max()) + 5
    inside = np.arange(width) < columns.lengths[:, None]

    def pad(values: Any, fill: Any) -> Any:
        rows = np.full(inside.shape, fill, dtype=values.dtype)
        rows[inside] = values
        return rows.ravel()

    return Columns(
        lengths=np.full(len(columns.lengths), width),
        mask=pad(columns.mask, False),
        log_probs={role: pad(values, 0.0) for role, values in columns.log_probs.items()},
        clusters=columns.clusters,
        tokens=pad(np.asarray(columns.tokens), token),
    )


def codes(columns: Columns) -> list[str]:
    return [finding.code for finding in diagnose_endings(summarize([columns])).findings]


@pytest.mark.parametrize("token", [PAD, 0])
def test_ends_that_are_counted_pass_in_rows_of_any_layout(token):
    assert not codes(CLEAN)
    assert not codes(padded(CLEAN, token))


@pytest.mark.parametrize("token", [PAD, 0])
def test_an_end_that_is_counted_in_some_is_told_with_its_cost(token):
    columns = padded(without(CLEAN, ENDS[::2]), token)
    (finding,) = diagnose_endings(summarize([columns])).findings
    assert (finding.code, finding.severity) == (CODE, "warning")
    assert finding.numbers["uncounted"] == pytest.approx(len(ENDS) / 2, abs=1)
    p, q = CLEAN.log_probs["rollout"], CLEAN.log_probs["reference"]
    assert f"is {(p - q).mean():.4g} nats per token by k1" in finding.cost


@pytest.mark.parametrize("columns", [without(CLEAN, ENDS), padded(without(CLEAN, ENDS), PAD)])
def test_an_end_that_is_never_counted_is_told(columns):
    (finding,) = diagnose_endings(summarize([columns])).findings
    assert (finding.code, finding.severity) == (CODE, "note")
    assert finding.numbers["token"] == 0
    assert len(ENDS) - 4 <= finding.numbers["uncounted"] <= len(ENDS)


def test_an_end_that_some_rows_lost_is_told():
    (finding,) = diagnose_endings(summarize([stripped(CLEAN, ENDS[::2])])).findings
    assert finding.code == CODE
    assert "end sooner without it" in finding.claim


def test_rows_without_any_end_cannot_be_told():
    diagnosis = diagnose_endings(summarize([stripped(CLEAN, ENDS)]))
    assert not diagnosis.findings
    assert diagnosis.checks[0].status == "not-possible"


def test_rows_that_were_all_cut_have_no_end():
    columns = cast(Mixture, CLEAN_WORLDS["smooth"](16)).sample(np.random.default_rng(0))
    (check,) = diagnose_endings(summarize([columns])).checks
    assert (check.status, check.reason) == ("passed", "128 of 128 sequences were cut at one length")


def test_ids_are_needed():
    (check,) = diagnose_endings(summarize([replace(CLEAN, tokens=None)])).checks
    assert (check.status, "log the token ids" in check.reason) == ("not-possible", True)


@pytest.mark.parametrize("name", CLEAN_WORLDS)
def test_no_clean_world_is_told_of(name):
    columns = CLEAN_WORLDS[name](16).sample(np.random.default_rng(3))
    assert CODE not in {f.code for f in diagnose(summarize([columns])).findings}
