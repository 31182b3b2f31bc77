"""Cases about sampled tokens: estimates, their errors, the sampler, overflow, weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kullback as kb
from kullback.formulas.weights import control
from kullback.reporting.document import document

from .entries import Input, Table, expected, log, no_question
from .logs import codes, engine_noise
from .probed import naive_k3, said

Log = dict[str, ArrayLike]  # log-probs by role


def report(log_probs: Log, *questions: str) -> Any:
    """The report on independent tokens."""
    return document(kb.summarize([kb.pack(log_probs, lengths=1)], questions=questions))


def one(log_probs: Log, *questions: str) -> Any:
    """What the report says of its first question."""
    return report(log_probs, *questions)["questions"][0]


def findings(log_probs: Log, *questions: str) -> list[str]:
    return [finding["code"] for finding in report(log_probs, *questions)["findings"]]


def drawn(by: ArrayLike, times: int, **probabilities: ArrayLike) -> Log:
    """The log of so many draws, each outcome as often as its probability says."""
    counts = np.rint(times * np.asarray(by)).astype(np.int64)
    outcomes = np.repeat(np.arange(len(counts)), counts)
    return {role: log(values)[outcomes] for role, values in probabilities.items()}


def logged(x: Input) -> Log:
    return {"policy": x["policy_logprob"], "ref": x["ref_logprob"]}


def mean(x: Input, method: str) -> float:
    p, q = x["policy_logprob"], x["ref_logprob"]
    return kb.estimate(log_p=p, log_q=q, lengths=1, mask=x.get("mask"), method=method).mean


# 01


def exact_error(x: Input) -> float:
    """The exact standard error of the mean of k1."""
    variance = kb.shape(x["policy_probs"], x["ref_probs"]).variance_k1
    return math.sqrt(variance / len(x["sampled_token_ids"]))


def negative_share(x: Input) -> float:
    p, q = x["policy_probs"], x["ref_probs"]
    return expected(p, kb.k1(log(q) - log(p)) < 0)


def z_of_k1(x: Input) -> float:
    return (mean(x, "k1") - kb.divergence(x["policy_probs"], x["ref_probs"])) / exact_error(x)


def checks(x: Input) -> list[str]:
    return [f"{check['code']} {check['status']}" for check in report(logged(x))["checks"]]


# 02


def kept(x: Input) -> NDArray[np.float64]:
    """The sampler: the likeliest tokens, which come first, alone."""
    probabilities = np.array(x["policy_probs"])
    probabilities[x["generation"]["top_k"] :] = 0.0
    return probabilities / probabilities.sum()


def log_ref_over_policy(x: Input) -> NDArray[np.float64]:
    return log(x["ref_probs"]) - log(x["policy_probs"])


# 04


# What the case calls an estimate of a question.
NAMES: dict[tuple[str, str], str] = {("KL(ref||policy)", "k3"): "k3-with-inverted-ratio"}
METHODS = {"|log r|": "abs"}


def name_of(x: Input, letter: str) -> str:
    """The estimate of the report, of the question or of its inverse, that has the logged value."""
    value, asked = x["logged_values"][letter], ("KL(policy||ref)", "KL(ref||policy)")
    found: list[Any] = [
        NAMES.get((which, name), name)
        for which, part in zip(asked, report(logged(x), *asked)["questions"], strict=True)
        for name, estimate in part["estimates"].items()
        if math.isclose(estimate["mean"], value, rel_tol=1e-9)
    ]
    return ", ".join(dict.fromkeys(name for name in found if name != "auto"))


def identified(x: Input, letter: str) -> str:
    found = kb.audit.identify(
        x["logged_values"][letter], logged(x), lengths=1, sampler=x["sampler"]
    ).best
    assert found
    return METHODS.get(found.candidate.method, found.candidate.method)


# 05


def log_r(x: Input) -> NDArray[np.float64]:
    return np.subtract(x["ref_logprob"], x["policy_logprob"])


# 08


def counts(x: Input) -> dict[str, int]:
    columns = kb.pack(logged(x), mask=x["mask"], lengths=1)
    return document(kb.summarize([columns]))["questions"][0]["counts"]


# 42


def noise(x: Input) -> Log:
    difference = np.array(x["old_logprob_minus_new_logprob"])
    return {"old": difference - 1.0, "new": np.full(len(difference), -1.0)}


def largest(x: Input) -> float:
    ends = one(noise(x))["distribution"]["k1"]
    return max(-ends["min"], ends["max"])


def z_of_noise(x: Input) -> float:
    best = one(noise(x))["estimates"]["k1"]
    return best["mean"] / best["standard_error"]


# 57


def stale(x: Input, times: int) -> Log:
    return drawn(x["old"], times, **{role: x[role] for role in ("old", "policy", "reference")})


def off_policy(x: Input) -> Any:
    """Ten draws in proportion give the exact expectation under the old policy."""
    return one(stale(x, 10), "KL(policy||reference) ~ old")


# 60


def runs(x: Input) -> Log:
    values, lengths = zip(*x["log_policy_minus_log_ref_run_lengths"], strict=True)
    difference = np.repeat(values, lengths)
    return {"policy": difference - 1.0, "ref": np.full(len(difference), -1.0)}


def k3_quantile(x: Input, level: float) -> float:
    found = runs(x)
    return float(np.quantile(kb.k3(np.subtract(found["ref"], found["policy"])), level))


def top3(x: Input) -> list[Any]:
    return [token for token in one(runs(x))["top"] if token["by"] == "k3"][:3]


def k3_without_top3(x: Input) -> float:
    found = runs(x)
    mask = ~np.isin(np.arange(1000), [token["row"] for token in top3(x)])
    p, q = found["policy"], found["ref"]
    return kb.estimate(log_p=p, log_q=q, mask=mask, lengths=1, method="k3").mean


# 62


def raw_weights(x: Input) -> NDArray[np.float64]:
    log_weight = np.array(x["log_weights_trainer_minus_rollout"])
    return 1.0 + control(log_target=log_weight, log_sampler=0.0)


def weights(x: Input, cap: float = math.inf) -> Any:
    """What is said of a log with these importance weights."""
    log_weight = np.minimum(x["log_weights_trainer_minus_rollout"], np.log(cap))
    return one({"rollout": np.full(len(log_weight), -5.0), "trainer": log_weight - 5.0})


def mean_weight(x: Input) -> float:
    return 1.0 - weights(x)["sampler_check"]["missing_mass"]


SAMPLED: Table = {
    "01-negative-k1-batch": {
        "k1_mean": lambda x: mean(x, "k1"),
        "k2_mean": lambda x: mean(x, "k2"),
        "k3_mean": lambda x: mean(x, "k3"),
        "exact_kl_policy_ref": lambda x: kb.divergence(x["policy_probs"], x["ref_probs"]),
        "prob_single_k1_negative": negative_share,
        "k1_std_error_of_mean_exact": exact_error,
        "z_of_k1_mean": z_of_k1,
        "verdict": checks,
    },
    "02-topk-sampling-negative-kl": {
        "expected_k1_under_actual_sampler": lambda x: expected(
            kept(x), kb.k1(log_ref_over_policy(x))
        ),
        "expected_k3_under_actual_sampler": lambda x: expected(
            kept(x), kb.k3(log_ref_over_policy(x))
        ),
        "exact_kl_policy_ref": lambda x: kb.divergence(x["policy_probs"], x["ref_probs"]),
        "exact_kl_actual_sampler_ref": lambda x: kb.divergence(kept(x), x["ref_probs"]),
        "exact_kl_actual_sampler_policy": lambda x: kb.divergence(kept(x), x["policy_probs"]),
        "verdict": lambda x: findings(
            drawn(kept(x), 67, policy=x["policy_probs"], ref=x["ref_probs"])
        ),
    },
    "04-which-kl-was-logged": {
        "A": lambda x: name_of(x, "A"),
        "C": lambda x: name_of(x, "C"),
        "D": lambda x: name_of(x, "D"),
        "E": lambda x: name_of(x, "E"),
        "B": lambda x: identified(x, "B"),
    },
    "05-k3-overflow-float32": {
        "k3_per_token_float64": lambda x: kb.k3(log_r(x)),
        "log_of_k3_token0": lambda x: np.log(kb.k3(log_r(x))[0]),
        "overflows_float32": lambda x: bool(np.isinf(kb.k3(np.float32(log_r(x)))[0])),
        "k1_mean": lambda x: mean(x, "k1"),
        **no_question("a limit of the number format", "log_ratio_limit_float32"),
        **no_question(
            "float16 is widened to float32 first", "overflows_float16", "log_ratio_limit_float16"
        ),
        "verdict": lambda _: said(naive_k3),
    },
    "07-k3-cancellation-near-zero": {
        "k3_exact": lambda x: kb.k3(x["log_ref_minus_log_policy"]),
        "all_nonnegative": lambda x: bool(
            (kb.k3(np.float32(x["log_ref_minus_log_policy"])) >= 0).all()
        ),
        **no_question(
            "a property of the naive formula", "naive_float32_abs_error_of_first_exceeds_true_value"
        ),
    },
    "08-masked-nan-leak": {
        "k3_masked_mean": lambda x: mean(x, "k3"),
        "k1_masked_mean": lambda x: mean(x, "k1"),
        "n_valid": lambda x: counts(x)["tokens"],
        "n_nonfinite_inside_mask": lambda x: counts(x)["missing"] + counts(x)["infinite"],
        **no_question("what stands outside the mask is never read", "n_nonfinite_outside_mask"),
    },
    "25-probabilities-passed-as-logprobs": {
        "value_returned": lambda x: expected(
            x["target_probs"], kb.k1(x["input_given"] - log(x["target_probs"]))
        ),
        "value_correct": lambda x: kb.divergence(x["target_probs"], x["input_given"]),
        "value_returned_for_identical": lambda x: expected(
            x["identical_case_probs"],
            kb.k1(x["identical_case_probs"] - log(x["identical_case_probs"])),
        ),
        "verdict": lambda x: findings(
            drawn(x["target_probs"], 10, target=x["target_probs"], given=np.exp(x["input_given"]))
        ),
    },
    "42-step-zero-engine-noise": {
        "k1_mean": lambda x: one(noise(x))["estimates"]["k1"]["mean"],
        "k2_mean": lambda x: one(noise(x))["estimates"]["k2"]["mean"],
        "k3_mean": lambda x: one(noise(x))["estimates"]["k3"]["mean"],
        "std_population": lambda x: one(noise(x))["distribution"]["k1"]["std"],
        "max_abs": largest,
        "k1_mean_over_its_standard_error": z_of_noise,
        **no_question("the band of the report is 0.8 to 1.2", "share_ratio_outside_band"),
        "verdict": lambda x: codes(engine_noise(x)),
    },
    "57-offpolicy-kl-to-reference": {
        "exact_kl_policy_ref": lambda x: kb.divergence(x["policy"], x["reference"]),
        "expected_k1_unweighted": lambda x: off_policy(x)["unweighted_k1"],
        "expected_k3_unweighted": lambda x: off_policy(x)["distribution"]["k3"]["mean"],
        "expected_k1_weighted": lambda x: off_policy(x)["estimates"]["k1"]["mean"],
        "expected_k3_weighted": lambda x: off_policy(x)["estimates"]["k3"]["mean"],
        "ess_fraction_population": lambda x: off_policy(x)["weights"]["ess_fraction"],
        "verdict": lambda x: findings(stale(x, 200), "KL(policy||reference)"),
    },
    "60-few-tokens-own-the-mean": {
        "k1_mean": lambda x: one(runs(x))["estimates"]["k1"]["mean"],
        "k2_mean": lambda x: one(runs(x))["estimates"]["k2"]["mean"],
        "k3_mean": lambda x: one(runs(x))["estimates"]["k3"]["mean"],
        "k3_median": lambda x: k3_quantile(x, 0.5),
        "k3_p99": lambda x: k3_quantile(x, 0.99),
        "share_of_k3_sum_from_top3": lambda x: sum(token["share"] for token in top3(x)),
        "negative_share_k1": lambda x: one(runs(x))["distribution"]["k1"]["negative_share"],
        "k3_mean_without_top3": k3_without_top3,
        "verdict": lambda x: findings(runs(x)),
        **no_question("kullback clamps nothing", "k3_mean_clamped_each_to_10"),
    },
    "62-importance-weights-logged-after-truncation": {
        "raw_min": lambda x: math.exp(-weights(x)["distribution"]["k1"]["max"]),
        "raw_mean": mean_weight,
        "raw_max": lambda x: weights(x)["weights"]["max"],
        "truncated_mean": lambda x: weights(x)["weights"]["truncated_mean"],
        "removed_mass_share": lambda x: (
            1.0 - weights(x)["weights"]["truncated_mean"] / mean_weight(x)
        ),
        "ess_fraction_raw": lambda x: weights(x)["weights"]["ess_fraction"],
        "ess_fraction_truncated": lambda x: weights(x, cap=x["cap"])["weights"]["ess_fraction"],
        "share_truncated": lambda x: weights(x)["weights"]["truncated_share"],
        "raw_p95": lambda x: np.quantile(raw_weights(x), 0.95),
    },
}
