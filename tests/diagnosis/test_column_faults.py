from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.diagnosis.column_faults import diagnose_columns
from kullback.diagnosis.diagnose import diagnose
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

WORLD = cast(Mixture, CLEAN_WORLDS["smooth"](16))


def found(columns: Columns):
    return diagnose_columns(summarize([columns])).findings


def tokens(p, q, mask=None) -> Columns:
    columns = pack({"p": p, "q": q}, mask=mask)
    return replace(columns, tokens=np.zeros(len(columns), dtype=np.int64))


@pytest.mark.parametrize(
    ("fault", "code"),
    [(name, fault.code) for name, fault in FAULTS.items()
     if name in ("sentinel", "nan", "padding", "probabilities", "truncated-reference")],
)  # fmt: skip
def test_each_injected_fault_is_found_by_its_code_and_nothing_else(fault, code):
    assert [f.code for f in found(FAULTS[fault].inject(WORLD, np.random.default_rng(0)))] == [code]


@pytest.mark.parametrize(
    ("p", "said"),
    [
        ([[0.5, 0.2]], "they are probabilities"),
        ([[1.5, 2.0]], "they look like −log p"),
        ([[-1.0, 0.5]], "1 values of p are above 0, the largest 0.5"),
    ],
)
def test_what_stands_there_instead_of_log_probs_is_named(p, said):
    (finding,) = found(tokens(p, [[-1.0, -1.0]]))
    assert finding.code == "not-log-probs"
    assert said in finding.claim


def test_a_density_may_have_a_logarithm_above_zero():
    columns = pack({"p": [[1.5, 0.7]], "q": [[1.4, 0.9]]})
    assert not found(columns)
    check = diagnose_columns(summarize([columns])).checks[0]
    assert (check.subject, check.status) == ("p", "not-possible")
    assert "right for a density, wrong for a token" in check.reason


def test_values_between_0_and_1_are_no_densities():
    (finding,) = found(pack({"p": [[0.5, 0.7]], "q": [[-1.4, -0.9]]}))
    assert (finding.code, finding.certainty) == ("not-log-probs", "likely")


def test_rounding_above_zero_is_no_fault():
    assert not found(tokens([[1e-3, -1.0]], [[-1.0, -1.0]]))


def test_the_first_place_is_named():
    (finding,) = found(tokens([[-1.0, -1.1], [-1.2, -9999.0]], [[-1.0, -1.3], [-1.1, -1.4]]))
    assert finding.where == ("row 1, token 1",)


def test_what_stands_outside_the_mask_is_nobodys_fault():
    assert not found(tokens([[-1.0, np.nan, -9999.0, 2.0]], [[-1.0] * 4], mask=[[1, 0, 0, 0]]))


def test_an_infinite_ratio_is_placed():
    (finding,) = found(tokens([[-1.0, -1.0]], [[-1.0, -np.inf]]))
    assert (finding.code, finding.where) == ("infinite-ratio", ("row 0, token 1",))


PADDED = [[-1.0, -2.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [-1.0, -1.0, -1.0, -2.0]]


def test_padding_to_one_width_is_told_with_its_share():
    (finding,) = found(tokens(PADDED, PADDED))
    assert finding.code == "mask-covers-padding"
    assert finding.numbers == {
        "sequences": 2,
        "tokens": 5,
        "share": pytest.approx(5 / 12),
        "side": "end",
        "token": 0,
    }


def test_certain_tokens_are_no_padding():
    """Tails of unequal ends, and a single certain end."""
    ragged = pack({"p": np.array([-1.0, 0, 0, -1, -1, 0, 0, 0, 0])} | {
        "q": np.array([-1.0, 0, 0, -1, -1, 0, 0, 0, 0])}, lengths=[3, 6])  # fmt: skip
    assert not found(ragged)
    assert not found(tokens([[-1.0, 0.0], [-2.0, 0.0]], [[-1.0, 0.0], [-2.0, 0.0]]))


def test_a_loop_of_certain_tokens_is_no_padding():
    """Three rows of forty repeat three ids, with certainty, up to the common width."""
    rng = np.random.default_rng(0)
    values = rng.normal(-2.0, 0.5, size=(40, 12))
    values[:3, 4:] = 0.0
    columns = pack({"p": values, "q": values})
    ids = np.tile([5, 17, 9], 160)
    assert not found(replace(columns, tokens=ids))
    assert not found(columns)
    checks = {c.code: c for c in diagnose_columns(summarize([columns])).checks}
    assert "too few for padding" in checks["mask-covers-padding"].reason


@pytest.mark.parametrize("value", [0.0, -1.0, -1e10])
def test_padding_on_the_left_is_padding(value):
    rng = np.random.default_rng(0)
    values = rng.normal(-2.0, 0.5, size=(40, 12))
    values[:20, :5] = value
    (finding,) = found(pack({"p": values, "q": values}))
    assert finding.code == "mask-covers-padding"
    assert "20 of 40 sequences begin in a run of one constant" in finding.claim


def test_a_fault_of_several_roles_is_one_finding():
    (finding,) = found(tokens([[-1.0, -9999.0]], [[-9999.0, -1.0]]))
    assert finding.claim.endswith("The same fault is in q.")
    assert finding.numbers == {
        "p": {"sentinels": 1, "tokens": 2},
        "q": {"sentinels": 1, "tokens": 2},
    }
    assert finding.where == ("row 0, token 1", "row 0, token 0")


def test_padding_that_the_trainer_scored_is_told_by_the_engine():
    other = np.random.default_rng(0).normal(-2.0, 0.1, size=(3, 4))
    (finding,) = found(tokens(PADDED, other))
    assert finding.code == "mask-covers-padding"
    assert "(0 for p)" in finding.claim


def test_padding_to_a_width_of_each_batch_is_padding():
    """Four batches of ten rows, each filled to its own longest."""
    rng = np.random.default_rng(0)
    rows = []
    for width in (12, 15, 9, 20):
        rows += [
            [*rng.normal(-2, 0.5, n), *[0.0] * (width - n)] for n in rng.integers(3, width, 10)
        ]
        rows[-1] = list(rng.normal(-2, 0.5, width))
    values = np.concatenate(rows)
    columns = pack({"p": values, "q": values}, lengths=[len(row) for row in rows])
    (finding,) = found(columns)
    assert "they are of 4 widths only" in finding.claim


def test_loops_to_the_limit_beside_rows_of_any_length_are_no_padding():
    rng = np.random.default_rng(0)
    rows = [list(rng.normal(-2, 0.5, n)) for n in rng.integers(5, 60, 35)]
    rows += [[*rng.normal(-2, 0.5, 20), *[0.0] * 40] for _ in range(5)]
    values = np.concatenate(rows)
    columns = pack({"p": values, "q": values}, lengths=[len(row) for row in rows])
    assert not found(columns)
    checks = {c.code: c for c in diagnose_columns(summarize([columns])).checks}
    assert checks["mask-covers-padding"].status == "not-possible"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([-1.0, np.nan, np.nan], "missing, all at the end of their sequence: what was scored"),
        ([np.nan, -1.0, np.nan], "2 of 6 log-probs of q in the mask are missing."),
    ],
)
def test_rows_that_are_too_short_are_told_from_gaps(row, said):
    full = [-1.0, -2.0, -3.0]
    (finding,) = found(tokens([full, full], [full, row]))
    assert finding.code == "missing-values"
    assert said in finding.claim
    assert finding.where[0].startswith("row 1, token ")


@pytest.mark.parametrize("value", [-65504.0, -1e9, np.float32(-1e10), np.finfo(np.float32).min])
def test_a_number_that_stands_for_minus_infinity_is_an_infinite_ratio(value):
    rng = np.random.default_rng(0)
    p = -rng.gamma(1.0, 1.0, size=(40, 12))
    q = np.where(p < -3, value, p - 0.1)
    summary = summarize([pack({"p": p, "q": q})])
    (finding,) = (f for f in diagnose(summary).findings if f.accuses)
    assert finding.code == "infinite-ratio"
    assert finding.numbers["impossible"] == (p < -3).sum()
    assert finding.questions == ("KL(p||q)",)


def test_a_log_prob_that_is_only_small_stands_for_itself():
    summary = summarize([pack({"p": [[-1.0, -2.0]], "q": [[-1.0, -1234.5]]})])
    assert not diagnose(summary).accused


def test_a_loss_without_its_sign_is_told_from_a_ratio_and_from_a_term_of_a_kl():
    columns = cast(Mixture, CLEAN_WORLDS["training_loop"](16)).sample(np.random.default_rng(0))
    log_r = columns.log_probs["reference"] - columns.log_probs["rollout"]
    holds = {
        "they look like −log p": -columns.log_probs["reference"],
        "a ratio, a KL or another term": np.minimum(np.exp(log_r), 2.0),
        "do not go with the others'": np.expm1(log_r) - log_r,
    }
    for said, values in holds.items():
        log_probs = {**columns.log_probs, "reference": np.maximum(values, 0.0)}
        (finding,) = found(replace(columns, log_probs=log_probs))
        assert said in finding.claim
