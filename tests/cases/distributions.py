"""Cases about categorical distributions: direction, support, normalization, heads, claims."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kullback as kb
from kullback.formulas.categorical import log_softmax
from kullback.formulas.weights import weighted_k1, weighted_k3
from kullback.losses.distill_terms import CLAIMS as DISTILLED

from .entries import Input, Table, expected, log, no_question, refusal
from .logs import codes, dropout, step_0, temperature, two_temperatures
from .probed import (
    at_identity,
    direction,
    exp_of_ratio,
    inverted_k3,
    said,
    student_first,
    teacher_first,
)


def size(value: float) -> str:
    return "a number" if math.isfinite(value) else "infinite"


def kl_of_logits(p: ArrayLike, q: ArrayLike) -> Any:
    return kb.exact(logits_p=p, logits_q=q)


# 21


def kl_of_float32(x: Input) -> float:
    old, new = (np.exp(log_softmax(np.float32(x[f"{who}_logits"]))) for who in ("old", "new"))
    return kb.divergence(old, new)


# 23, 29


def sum_k1(p: ArrayLike, q: ArrayLike) -> float:
    """Σ p log(p/q), of any positive numbers."""
    return float(weighted_k1(log_p=log(p), log_q=log(q), log_sampler=0.0).sum())


def sum_k3(p: ArrayLike, q: ArrayLike) -> float:
    """Σ p log(p/q) − p + q, of any positive numbers."""
    return float(weighted_k3(log_p=log(p), log_q=log(q), log_sampler=0.0).sum())


# 28


def distilled(x: Input, divergence: str, weight: float) -> float:
    teacher, student = (log(x[who])[None] for who in ("teacher", "student"))
    return kb.distill(
        teacher_log_probs=teacher,
        student_log_probs=student,
        divergence=divergence,
        weight=weight,
    )


def ends_of(*names: str) -> str:
    return "; ".join(f"{DISTILLED[name].at_0} to {DISTILLED[name].at_1}" for name in names)


# 29, 30


def kl_of_head(logits: ArrayLike, k: int) -> float:
    """KL(the first k alone‖all), which is −log of their mass."""
    whole = np.asarray(logits, dtype=np.float64)
    return float(kl_of_logits(np.where(np.arange(len(whole)) < k, whole, -np.inf), whole))


def mass_of_head(logits: ArrayLike, k: int) -> float:
    return math.exp(-kl_of_head(logits, k))


def heads(x: Input) -> tuple[list[float], list[float]]:
    return x["teacher"][: x["k"]], x["student"][: x["k"]]


def kl_of_list(x: Input, **tail: Any) -> float:
    """KL(teacher||student) of which the teacher's first k are known."""
    top = np.arange(x["k"])[None], log(x["teacher"][: x["k"]])[None]
    return kb.distill(teacher_top=top, student_log_probs=log(x["student"])[None], **tail)


# 32, 33


# 44


def kl_of_masks(x: Input) -> Any:
    policies = x["policy_logits_under_two_equally_likely_dropout_masks"]
    return kl_of_logits(policies, x["reference_logits"])


# 68


def columns(x: Input, row: NDArray[np.float64]) -> NDArray[np.float64]:
    return row[x["identity_check"]["columns"]]


# 73


def better(shape: kb.Shape) -> str:
    return "k3" if shape.S < 1 else "k1"


DISTRIBUTIONS: Table = {
    "21-zero-coefficient-times-inf": {
        "exact_kl_old_new_log_space": lambda x: kl_of_logits(x["old_logits"], x["new_logits"]),
        "kl_via_float32_probabilities": kl_of_float32,
        "verdict": lambda x: size(kl_of_logits(x["old_logits"], x["new_logits"])),
        **no_question("a limit of the number format", "new_prob_of_action_1_in_float32"),
        **no_question("nobody multiplies by an infinite KL to learn of it", "zero_coef_times_that"),
    },
    "22-support-violation-and-epsilon": {
        "kl_p_q": lambda x: kb.divergence(x["p"], x["q"]),
        "kl_q_p": lambda x: kb.divergence(x["q"], x["p"]),
        "mass_of_p_outside_support_of_q": lambda x: (
            1.0 - np.exp(-kb.divergence(x["q"], x["p"], "renyi", order=0))
        ),
        "verdict": lambda x: size(kb.divergence(x["p"], x["q"])),
        **no_question("it measures the epsilon", "smoothed_kl_p_q", "slope_per_decade"),
    },
    "23-unnormalised-kl-functions": {
        "sum_x_log_x_over_y": lambda x: sum_k1(x["x"], x["y"]),
        "sum_x_log_x_over_y_minus_x_plus_y": lambda x: sum_k3(x["x"], x["y"]),
        "kl_after_normalising": lambda x: kl_of_logits(log(x["x"]), log(x["y"])),
        "verdict": lambda x: refusal(kb.divergence, x["x"], x["y"]),
    },
    "24-kl-div-argument-order": {
        "A_value": lambda x: kl_of_logits(x["teacher_logits"], x["student_logits"]),
        "B_value": lambda x: kl_of_logits(x["student_logits"], x["teacher_logits"]),
        "A_direction": lambda _: direction(student_first),
        "B_direction": lambda _: direction(teacher_first),
    },
    "28-jsd-beta-endpoints-vanish": {
        "forward_kl_T_S": lambda x: kb.divergence(x["teacher"], x["student"]),
        "reverse_kl_S_T": lambda x: kb.divergence(x["student"], x["teacher"]),
        "D": lambda x: [distilled(x, "jsd-matched", weight=w) for w in x["betas"]],
        "D_swapped": lambda x: [distilled(x, "jsd", weight=w) for w in x["betas"]],
        "limit_D_over_1_minus_beta_at_1": lambda x: (
            distilled(x, "jsd-matched", weight=1 - 2**-40) * 2**40
        ),
        "limit_D_over_beta_at_0": lambda x: distilled(x, "jsd-matched", weight=2**-40) * 2**40,
        "verdict": lambda _: ends_of("jsd-matched", "jsd"),
    },
    "29-topk-teacher-kl-negative": {
        "truncated_sum": lambda x: kl_of_list(x, tail="dropped", biased=True),
        "with_tail_bucket": kl_of_list,
        "renormalised_on_topk": lambda x: kl_of_list(x, tail="renormalized", biased=True),
        "exact_forward_kl": lambda x: kb.divergence(x["teacher"], x["student"]),
        "teacher_topk_mass": lambda x: mass_of_head(log(x["teacher"]), x["k"]),
        "student_topk_mass": lambda x: mass_of_head(log(x["student"]), x["k"]),
        "ordering_tail_le_exact": lambda x: bool(
            kl_of_list(x) <= kb.divergence(x["teacher"], x["student"])
        ),
        "verdict": lambda x: refusal(kb.divergence, *heads(x)),
    },
    "30-topk-cache-retained-mass": {
        "retained_mass": lambda x: [
            mass_of_head(np.array(x["teacher_logits_sorted"]) / t, x["k"])
            for t in x["temperatures"]
        ],
        "kl_renormalised_topk_to_full": lambda x: [
            kl_of_head(np.array(x["teacher_logits_sorted"]) / t, x["k"]) for t in x["temperatures"]
        ],
    },
    "37-k3-ratio-inverted": {
        "kl_p_q": lambda x: kb.divergence(x["p"], x["q"]),
        "kl_q_p": lambda x: kb.divergence(x["q"], x["p"]),
        "expected_k3_correct_ratio": lambda x: expected(x["p"], kb.k3(log(x["q"]) - log(x["p"]))),
        "expected_k3_inverted_ratio": lambda x: expected(x["p"], kb.k3(log(x["p"]) - log(x["q"]))),
        "inverted_equals_chi2_minus_kl": lambda x: (
            kb.divergence(x["p"], x["q"], "chi2") - kb.divergence(x["p"], x["q"])
        ),
        "verdict": lambda _: said(inverted_k3),
    },
    "38-nonzero-at-identity": {
        "correct_values": lambda x: kb.k3(log(x["ratio_new_over_old"])),
        "found_value_at_identity": at_identity,
        "verdict": lambda _: said(exp_of_ratio),
        **no_question("the formula is given, and is no estimate", "found_values"),
    },
    "39-temperature-missing-in-trainer": {
        "kl_rollout_trainer": lambda x: kb.exact(
            log_probs_p=x["rollout_logprobs"], log_probs_q=x["trainer_logprobs"]
        ),
        "kl_after_scaling_trainer": lambda x: kb.exact(
            log_probs_p=x["rollout_logprobs"],
            logits_q=np.array(x["trainer_logprobs"]) / x["sampling_temperature"],
        ),
        "temperature_recovered": temperature,
        "verdict": lambda x: codes(two_temperatures(x)),
    },
    "44-dropout-left-on": {
        "expected_kl_policy_ref": lambda x: np.mean(kl_of_masks(x)),
        "expected_kl_without_dropout": lambda x: kl_of_logits(
            x["reference_logits"], x["reference_logits"]
        ),
        "share_of_masks_with_zero_kl": lambda x: np.mean(kl_of_masks(x) == 0),
        "verdict": lambda x: codes(dropout(x)),
    },
    "45-reference-is-not-the-start-policy": {
        "kl_step0_to_used_reference": lambda x: kb.divergence(x["start_policy"], x["base_model"]),
        "kl_step0_to_start_policy": lambda x: kb.divergence(x["start_policy"], x["start_policy"]),
        "verdict": lambda x: codes(step_0(x)),
    },
    "66-invalid-actions-both-sides": {
        "kl_old_new": lambda x: kl_of_logits(x["old_logits"], x["new_logits"]),
        "kl_new_old": lambda x: kl_of_logits(x["new_logits"], x["old_logits"]),
        **no_question("a count of the input", "n_actions_impossible_in_both"),
    },
    "68-full-vocabulary-memory": {
        "log_softmax_columns": lambda x: columns(x, log_softmax(x["identity_check"]["logits"])),
        "renormalised_on_columns": lambda x: log_softmax(
            columns(x, np.array(x["identity_check"]["logits"]))
        ),
        **no_question(
            "sizes of arrays, which kb.whole_vocabulary does not make",
            *("bytes_bf16_full", "bytes_float32_full", "gib_float32_full"),
            *("bytes_float32_chunk", "bytes_float32_gathered_k"),
        ),
    },
    "73-hole-or-smooth-estimator-choice": {
        "kl_hole": lambda x: kb.shape(x["p_hole"], x["q"]).kl_pq,
        "kl_smooth": lambda x: kb.shape(x["p_smooth"], x["q"]).kl_pq,
        "var_k1_hole": lambda x: kb.shape(x["p_hole"], x["q"]).variance_k1,
        "var_k3_hole": lambda x: kb.shape(x["p_hole"], x["q"]).variance_k3,
        "best_lambda_hole": lambda x: kb.shape(x["p_hole"], x["q"]).lambda_star,
        "var_best_hole": lambda x: kb.shape(x["p_hole"], x["q"]).variance_k_lambda,
        "var_k1_smooth": lambda x: kb.shape(x["p_smooth"], x["q"]).variance_k1,
        "var_k3_smooth": lambda x: kb.shape(x["p_smooth"], x["q"]).variance_k3,
        "best_lambda_smooth": lambda x: kb.shape(x["p_smooth"], x["q"]).lambda_star,
        "var_best_smooth": lambda x: kb.shape(x["p_smooth"], x["q"]).variance_k_lambda,
        "choice_hole": lambda x: better(kb.shape(x["p_hole"], x["q"])),
        "choice_smooth": lambda x: better(kb.shape(x["p_smooth"], x["q"])),
    },
}
