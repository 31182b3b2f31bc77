"""Every draw that there can be, each with its probability: the mean, and the mean gradient."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.losses.sampled_teacher import CLAIMS, from_samples

from .plain import in_logits, kl

T = np.array([0.5, 0.3, 0.15, 0.05])
S = np.array([0.1, 0.2, 0.3, 0.4])
PROPOSAL = np.array([0.2, 0.2, 0.2, 0.4])
ENTROPY = -np.sum(T * np.log(T))
N = 3
DRAWS = np.array(list(product(range(4), repeat=N)))  # all 64, [draws, n]


def given(claim: str, proposal: Any, library: Any) -> dict[str, Any]:
    """What a claim says is given, for every draw at once: [1, draws, n]."""
    parts: dict[str, Any] = {"ids": library.array(DRAWS[None], "int32")}
    log_t, log_s = (
        library.array(np.log(T)[DRAWS][None]),
        library.array(np.log(proposal)[DRAWS][None]),
    )
    samples = (parts["ids"], log_t) if "log-probs" in claim else parts["ids"]
    found: dict[str, Any] = {"teacher_samples": samples}
    if "proposal" in claim:
        found["log_proposal"] = log_s
    if "entropy" in claim:
        found["teacher_entropy"] = library.array(np.full((1, len(DRAWS)), ENTROPY))
    return found


VALUES = {
    "on average -sum T log S = KL(T||S) + H(T)": kl(T, S) + ENTROPY,
    "on average KL(T||S)": kl(T, S),
}


@pytest.mark.parametrize("claim", [*CLAIMS, "ids, log-probs, proposal and entropy"])
def test_the_mean_over_all_draws_is_the_claimed_one_and_so_is_the_mean_gradient(claim, traceable):
    by = PROPOSAL if "proposal" in claim else T
    chance = traceable.array(np.prod(by[DRAWS], axis=1)[None])
    parts = given(claim, by, traceable)

    def mean(z: Any) -> Any:
        every = z + traceable.array(np.zeros((1, len(DRAWS), 4)))
        return (chance * kb.distill(student_logits=every, aggregate="none", **parts)).sum()

    logits = traceable.array(np.log(S) + 0.7)
    said = CLAIMS.get(claim, CLAIMS["ids and entropy"])
    assert float(traceable.in_one_piece(mean)(logits)) == pytest.approx(
        VALUES[said.value], rel=1e-12
    )
    (found,) = traceable.in_one_piece(traceable.gradient(mean))(logits)
    assert "that of KL(T||S), -T/S" in said.slope
    exact = in_logits(-T / S, S)
    np.testing.assert_allclose(to_numpy(found, "found"), exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_draw_is_negative_where_the_claim_says_so(claim, library):
    parts = given(claim, PROPOSAL if "proposal" in claim else T, library)
    every = library.array(np.log(np.broadcast_to(S, (1, len(DRAWS), 4))))
    values = to_numpy(kb.distill(student_log_probs=every, aggregate="none", **parts), "values")
    assert (values.min() < 0) == CLAIMS[claim].can_be_negative


def test_a_top_k_of_as_many_tokens_is_biased_and_samples_are_not():
    """The mean gradient of the tail: with the two likeliest ids, and with two draws."""
    top = np.array([[[0, 1]]]), np.log(T[[0, 1]])[None, None]
    student = np.log(S)[None, None]
    cut = kb.distill(student_log_probs=student, teacher_top=top)
    assert cut < kl(T, S) - 0.04
    pairs = np.array(list(product(range(4), repeat=2)))
    values = kb.distill(
        student_log_probs=np.broadcast_to(np.log(S), (1, 16, 4)),
        teacher_samples=(pairs[None], np.log(T)[pairs][None]),
        aggregate="none",
    )
    assert np.sum(np.prod(T[pairs], axis=1) * values) == pytest.approx(kl(T, S), rel=1e-13)


def test_what_the_proposal_draws_and_the_teacher_never_would_weighs_nothing(traceable):
    t = np.array([0.6, 0.4, 0.0])
    with np.errstate(divide="ignore"):
        log_t = traceable.array(np.log(t)[None, None])
    ids, log_proposal = traceable.array([[[0, 1, 2]]], "int32"), traceable.array([[[-1.1] * 3]])

    def value(z: Any) -> Any:
        return kb.distill(student_logits=z, teacher_samples=(ids, log_t), log_proposal=log_proposal)

    logits = traceable.array([[[0.3, 0.1, -np.inf]]])
    s = np.exp([0.3, 0.1]) / np.exp([0.3, 0.1]).sum()
    expected = np.sum(t[:2] * np.exp(1.1) * np.log(t[:2] / s)) / 3
    assert float(traceable.in_one_piece(value)(logits)) == pytest.approx(expected, rel=1e-12)
    (slope,) = traceable.in_one_piece(traceable.gradient(value))(logits)
    assert np.isfinite(to_numpy(slope, "slope")).all()


def test_ids_that_do_not_exist_and_numbers_that_do_not_fit_are_refused(library):
    student = library.array(np.log([[S, S]]))
    bad = library.array([[[0, 1], [4, 0]]], "int32")
    if library.name == "numpy":
        with pytest.raises(ValueError, match=r"draw 2 has an id outside 0 … 3"):
            kb.distill(student_log_probs=student, teacher_samples=bad)
    else:
        found = kb.distill(student_log_probs=student, teacher_samples=bad, aggregate="none")
        assert np.isnan(to_numpy(found, "found")).tolist() == [[False, True]]
    with pytest.raises(ValueError, match=r"ids of shape \(1, 1, 2\).*\(1, 2, 4\)"):
        kb.distill(student_log_probs=student, teacher_samples=bad[:, :1])
    with pytest.raises(ValueError, match="teacher_samples are no integers"):
        kb.distill(student_log_probs=student, teacher_samples=library.array([[[0.0], [1.0]]]))
    ids = library.array([[[0, 1], [3, 0]]], "int32")
    with pytest.raises(ValueError, match=r"log_t of the samples has shape \(1, 2, 1\)"):
        kb.distill(
            student_log_probs=student, teacher_samples=(ids, library.array([[[0.0], [0.0]]]))
        )
    with pytest.raises(ValueError, match=r"teacher_entropy of the samples has shape \(1,\)"):
        kb.distill(
            student_log_probs=student, teacher_samples=ids, teacher_entropy=library.array([0.0])
        )
    with pytest.raises(ValueError, match="log_proposal needs the teacher's log-probs"):
        kb.distill(student_log_probs=student, teacher_samples=ids, log_proposal=ids)


def test_a_position_that_does_not_count_may_hold_any_ids():
    found = from_samples(
        ids=np.array([[99, -7], [0, 1]]),
        log_t=np.array([[np.nan, np.inf], [0.0, 0.0]]),
        log_proposal=None,
        entropy=None,
        student=np.log([[0.5, 0.5], [0.25, 0.75]]),
        keep=np.array([False, True]),
    )
    np.testing.assert_allclose(found[1], -np.log([0.25, 0.75]).mean())
    assert np.isfinite(found).all()
