from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kullback as kb
from kullback.audit import identify
from kullback.audit.candidates import METHODS, Valued, candidates, counted
from kullback.audit.identifying import _is_written_so, _scales

# A batch in which one formula logs a negative number while another is trained.
FIVE = {
    "policy": [[-1.2, -0.35, -2.75, -0.9, -4.1]],
    "reference": [[-1.05, -0.6, -2.4, -1.3, -3.2]],
}
RNG = np.random.default_rng(8)
LENGTHS = np.array([3, 7, 2, 5])
MASK = np.arange(8) < LENGTHS[:, None]


def batch(*roles: str, spread: float = 0.4) -> dict[str, np.ndarray]:
    base = -RNG.exponential(1.5, MASK.shape)
    logs = {role: np.minimum(base + spread * RNG.normal(size=MASK.shape), 0.0) for role in roles}
    return {role: np.where(MASK, values, np.nan) for role, values in logs.items()}


THREE = batch("rollout", "current", "reference")


def mean(terms) -> float:
    return float(np.asarray(terms)[MASK].mean())


@pytest.mark.parametrize(
    ("value", "method", "p", "inverted"),
    [
        (-0.14999999999999988, "k1", "policy", False),
        (0.40999999999999986, "|log r|", "policy", False),
        (0.11774999999999991, "k2", "policy", False),
        (0.14792514631710668, "k3", "policy", False),
        (0.09956316804267637, "k3", "reference", True),
    ],
)
@pytest.mark.parametrize("digits", [None, 4, 3])
def test_which_formula_was_logged(value, method, p, inverted, digits):
    told = value if digits is None else f"{value:.{digits}g}"
    found = identify(told, FIVE, sampler="policy").best
    assert found
    assert (found.candidate.method, found.candidate.p, found.scale) == (method, p, 1.0)
    assert found.is_inverted == inverted


@cache
def written_so(microbatches) -> list[Valued]:
    tokens = counted(kb.pack(THREE, mask=MASK), microbatches)
    return [one for one in candidates(tokens) if _is_written_so(one.candidate, "rollout")]


@settings(max_examples=60)
@given(data=st.data())
def test_every_candidate_is_found_by_its_value(data):
    """Of every formula, pair, weight, clamp, level and factor."""
    microbatches = data.draw(st.sampled_from([None, 2, (1, 3)]))
    one = data.draw(st.sampled_from(written_so(microbatches)))
    scale, _, _ = data.draw(st.sampled_from(_scales(2 if microbatches else 0, [0.04])))
    value = one.value * scale
    told = data.draw(st.sampled_from([value, f"{value:.12g}", f"{value:.4g}"]))
    found = identify(told, THREE, mask=MASK, microbatches=microbatches, coefficients=[0.04])
    assert (one.candidate, scale) in [(match.candidate, match.scale) for match in found.matches]


def test_what_is_written_the_other_way_round_is_the_same_number():
    tokens = counted(kb.pack(THREE, mask=MASK))
    for one in candidates(tokens):
        if not _is_written_so(one.candidate, "rollout"):
            assert identify(one.value, THREE, mask=MASK).verdict != "none"


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0, 0.5])
@pytest.mark.parametrize("method", ["k1", "k3"])
def test_factors_are_told(method, scale):
    x = THREE["reference"] - THREE["current"]
    found = identify(scale * mean(METHODS[method](np.nan_to_num(x))), THREE, mask=MASK).best
    assert found
    assert (found.candidate.method, found.scale) == (method, scale)
    assert str(found.question) == "KL(current||reference) ~ rollout"


def test_a_mean_of_micro_batch_means_is_not_the_mean():
    x = THREE["rollout"] - THREE["reference"]
    rows = [x[:1], x[1:]]
    value = sum(float(np.nanmean(row)) for row in rows) / 2
    found = identify(value, THREE, mask=MASK, microbatches=[1, 3]).best
    assert found
    assert found.candidate.level == "mean of micro-batches"
    assert identify(value, THREE, mask=MASK).verdict != "one" or value == pytest.approx(mean(x))


def test_the_update_is_written_from_old_to_current_whoever_sampled():
    logs = batch("rollout", "old", "current", "reference")
    found = identify(float(np.nanmean(logs["old"] - logs["current"])), logs, mask=MASK).best
    assert found
    assert str(found.question) == "KL(old||current) ~ rollout"
    assert found.scale == 1.0


def test_what_was_divided_by_the_micro_batches_twice_is_told():
    rows = {"old": np.zeros((4, 1)), "reference": -np.array([[0.4], [0.2], [0.6], [0.8]])}
    found = identify(0.125, rows, microbatches=4).best
    assert found
    assert (found.scale, found.scaled_by) == (0.25, "1/micro-batches")
    assert str(found) == "k1 of KL(old||reference), mean over tokens × 1/micro-batches"


def test_levels_are_told_apart():
    rows = [[0.5, 0.1], [0.2] * 7 + [0.6], [1.0]]
    p = np.array([row + [0.0] * (8 - len(row)) for row in rows])
    mask = [[True] * len(row) + [False] * (8 - len(row)) for row in rows]
    logs = {"old": p - 2, "reference": np.full((3, 8), -2.0)}
    for value, level in (
        (3.6 / 11, "token_mean"),
        (1.55 / 3, "sequence_mean"),
        (1.2, "sequence_sum"),
        (0.45, "sum over the width"),
        (0.15, "padded_mean"),
    ):
        found = identify(value, logs, mask=mask).best
        assert found
        assert found.candidate.level == level


def test_a_ratio_where_a_log_ratio_should_be_is_told():
    old, ratio = np.full((1, 4), -2.0), np.array([[1.0, 1.0, 1.02, 0.97]])
    value = float(np.mean(np.exp(ratio) - 1 - ratio))
    found = identify(value, {"old": old, "current": old + np.log(ratio)}).best
    assert found
    assert (found.candidate.method, found.candidate.q) == ("k3 of the ratio", "current")


def test_the_weight_of_a_trainer_is_found_and_who_logs_it():
    logs = batch("old", "current", "reference")
    w = np.exp(logs["current"] - logs["old"])
    value = mean(np.nan_to_num(w * (np.expm1(x := logs["reference"] - logs["current"]) - x)))
    found = identify(value, logs, mask=MASK).best
    assert found
    assert found.candidate.weight == "current/old"
    assert "trl kl" in found.logged_as


def test_a_turned_sign_is_what_somebody_logs():
    found = identify(mean(np.nan_to_num(THREE["reference"] - THREE["current"])), THREE, mask=MASK)
    assert found.best
    assert "prime-rl ref_kl" in found.best.logged_as
    assert found.matches[0].scale == -1.0


def test_bits_are_told():
    value = mean(np.nan_to_num(THREE["rollout"] - THREE["reference"])) / np.log(2)
    found = identify(value, THREE, mask=MASK)
    assert found.verdict == "one"
    assert str(found.best) == "k1 of KL(rollout||reference), mean over tokens × 1/ln 2, in bits"


def test_a_forgotten_mask_is_told_where_log_probs_stand_behind_it():
    behind = -RNG.exponential(1.5, MASK.shape)
    logs = {role: np.where(MASK, values, behind * RNG.random(MASK.shape)) for role, values in
            THREE.items()}  # fmt: skip
    x = logs["reference"] - logs["rollout"]
    found = identify(float(np.mean(np.expm1(x) - x)), logs, mask=MASK)
    assert found.verdict == "one"
    said = "k3 of KL(rollout||reference), mean over every position, masked ones too"
    assert str(found.best) == said
    rows = identify(float(-x.sum(axis=1).mean()), logs, mask=MASK).best
    assert str(rows).endswith("sum of a row, masked positions too, mean over rows")
    zeros = {role: np.where(MASK, values, 0.0) for role, values in THREE.items()}
    padded = identify(float(np.mean(zeros["rollout"] - zeros["reference"])), zeros, mask=MASK)
    assert padded.verdict == "one"  # zeros on both sides: it is the mean over the width
    assert padded.best
    assert padded.best.candidate.level == "padded_mean"


def test_the_weight_of_a_trainer_comes_first_by_sequence_too():
    logs = batch("old", "current")
    logs["reference"] = logs["old"]  # the first step
    log_w = np.nanmean(logs["current"] - logs["old"], axis=1, keepdims=True)
    x = logs["reference"] - logs["current"]
    found = identify(mean(np.nan_to_num(np.exp(log_w) * (np.expm1(x) - x))), logs, mask=MASK).best
    assert found
    assert found.candidate.weight == "current/old by sequence"


def test_clamps_that_bind_are_found():
    logs = {"old": np.array([[-30.0, -1.0, -0.2]]), "reference": np.array([[-1.0, -1.5, -0.4]])}
    x = np.clip(logs["reference"] - logs["old"], -20, 20)
    value = float(np.clip(np.expm1(x) - x, -10, 10).mean())
    found = identify(value, logs)
    assert found.best
    assert found.best.candidate.clamp == "term at 10"
    assert found.verdict == "same"  # ±20 inside changes nothing that the clamp at 10 leaves


def test_few_digits_fit_much_and_it_says_so():
    few = identify("0.3", THREE, mask=MASK)
    many = identify(few.matches[0].value, THREE, mask=MASK)
    assert few.verdict == "several"
    assert few.by_chance > 5
    assert len(few.matches) > len(many.matches)
    assert "As near, to the digits that there are:" in str(few)
    assert " more\n" in str(few)


def test_nothing_fits():
    found = identify(123.456, THREE, mask=MASK)
    assert (found.verdict, found.matches, found.best) == ("none", (), None)
    assert "none of" in str(found)
    assert found.nearest.value != pytest.approx(123.456)


def test_zero_is_given_by_all_that_vanishes():
    same = {"old": [[-1.0, -2.0]], "current": [[-1.0, -2.0]]}
    assert identify(0.0, same).verdict == "same"


def test_one_number_alone_can_be_told():
    found = identify(float(np.nanmean(THREE["rollout"] - THREE["reference"])), THREE, mask=MASK)
    assert found.verdict == "one"
    assert str(found).splitlines()[0].endswith("k1 of KL(rollout||reference), mean over tokens")


def test_float32_and_bfloat16_rounding():
    logs = {role: values.astype(np.float32) for role, values in THREE.items()}
    x = (logs["reference"] - logs["rollout"])[MASK]
    narrow = float(np.mean(np.exp(x) - 1 - x, dtype=np.float32))
    found = identify(narrow, logs, mask=MASK).best
    assert found
    assert (found.candidate.method, found.candidate.p) == ("k3", "rollout")
    rough = narrow * (1 + 2.0**-9)
    assert identify(rough, logs, mask=MASK).best != found
    assert identify(rough, logs, mask=MASK, precision="bfloat16").best == found


def test_columns_are_taken_as_they_are():
    columns = kb.pack(THREE, mask=MASK)
    value = float(np.nanmean(THREE["rollout"] - THREE["reference"]))
    assert identify(value, columns).best == identify(value, THREE, mask=MASK).best


def test_an_exact_column_is_found():
    exact = np.where(MASK, 0.25 + np.arange(8) / 97, np.nan)
    columns = kb.pack(THREE, mask=MASK, exact={"KL(current||reference)": exact})
    found = identify(mean(exact), columns).best
    assert found
    assert found.candidate.method == "exact"


@pytest.mark.parametrize(
    ("value", "given", "told"),
    [
        ("abc", {}, "value 'abc' is no number"),
        ("nan", {}, "not finite"),
        (float("inf"), {}, "not finite"),
        (0.1, {"precision": "float8"}, "precision 'float8' is none of float32, bfloat16"),
        (0.1, {"sampler": "teacher"}, "there are no log-probs of teacher"),
    ],
)
def test_what_cannot_be_asked_is_refused(value, given, told):
    with pytest.raises(ValueError, match=told):
        identify(value, FIVE, **given)


def test_two_policies_are_needed():
    with pytest.raises(ValueError, match="give the log-probs of two roles"):
        identify(0.1, {"old": [[-1.0]]})


def test_one_coefficient_needs_no_list():
    logs = {"old": [[-1.2, -0.35, -2.75]], "current": [[-1.05, -0.6, -2.4]]}
    for one in (0.05, [0.05]):
        assert str(identify(-0.05 * 0.25 / 3, logs, coefficients=one).best).endswith("× 0.05")


def test_what_was_divided_by_the_tokens_twice_or_is_in_bits_is_told():
    rows = {"old": np.zeros((4, 5)), "reference": -np.linspace(0.1, 0.7, 20).reshape(4, 5)}
    for scale, said in ((1 / 20, "1/tokens"), (1 / np.log(2), "1/ln 2, in bits")):
        found = identify(0.4 * scale, rows).best
        assert found
        assert str(found) == f"k1 of KL(old||reference), mean over tokens × {said}"
