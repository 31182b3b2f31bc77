"""The formulas against numbers computed with 50 and more digits, files a, b, c and e to h."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from kullback.formulas import gaussian, gaussian_shape, multivariate_gaussian, partial
from kullback.formulas.categorical import entropy, exact, log_softmax
from kullback.formulas.divergences import divergence
from kullback.formulas.k_family import f_form, k1, k2, k3, k_lambda, other_direction
from kullback.formulas.shape import Shape, shape
from kullback.formulas.weights import control, weighted_k1, weighted_k3


def oracle(name: str) -> Any:
    path = Path(__file__).with_name(f"{name}.json")
    return json.loads(path.read_text(encoding="utf-8"))


GAUSSIAN_SHIFT = oracle("a_schulman_gaussian")
HOLES = oracle("b_holes")
FOUR_FACES = oracle("c_four_faces")
TRUNCATED = oracle("e_truncated_sampling")
DIVERGENCES = oracle("f_divergences")
GAUSSIANS = oracle("g_gaussians")
HEADS = oracle("h_topk_partial_rb")


def floats(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def check(
    found: dict[str, Any], expected: dict[str, Any], rtol: float = 1e-12, atol: float = 1e-14
) -> None:
    """Every expected number was found: none may be left unread, except what is no number."""
    assert found.keys() == expected.keys()
    off = {
        key: (found[key], expected[key])
        for key in expected
        if not np.allclose(found[key], float(expected[key]), rtol=rtol, atol=atol)
    }
    assert off == {}


def moments(p: np.ndarray, values: Any) -> tuple[Any, Any]:
    mean = np.sum(p * values)
    return mean, np.sum(p * (values - mean) ** 2)


def pair_statistics(p: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    pair = shape(p, q)
    log_r = np.log(q / p)
    mean_k2, _ = moments(p, k2(log_r))
    plain = f_form(log_r, lambda r: r * np.log(r), slope_at_one=0.0)
    found = {
        "KL_pq": exact(log_probs_p=np.log(p), log_probs_q=np.log(q)),
        "KL_qp": pair.kl_qp,
        "jeffreys": pair.jeffreys,
        "chi2_q_given_p": pair.chi2_qp,
        "E_r_minus_1": np.sum(p * control(log_target=np.log(q), log_sampler=np.log(p))),
        "mean_k1": moments(p, k1(log_r))[0],
        "var_k1": pair.variance_k1,
        "mean_k2": pair.mean_k2,
        "bias_k2": mean_k2 - pair.kl_pq,
        "var_k2": pair.variance_k2,
        "mean_k3": moments(p, k3(log_r))[0],
        "var_k3": pair.variance_k3,
        "prob_k1_negative": np.sum(p[k1(log_r) < 0]),
        "ess_fraction": 1 / (1 + pair.chi2_qp),
        "k3_minus_k1_var": pair.variance_k3 - pair.variance_k1,
        "chi2_minus_2J": pair.chi2_qp - 2 * pair.jeffreys,
        "k3_beats_k1": pair.variance_k3 < pair.variance_k1,
        "chi2_over_2J": pair.S,
        "lambda_star": pair.lambda_star,
        "mean_klam_star": moments(p, k_lambda(log_r, pair.lambda_star))[0],
        "var_klam_star": pair.variance_k_lambda,
        "var_klam_star_formula": pair.variance_k1 - pair.lambda_star * pair.jeffreys,
    }
    found["mean_rlogr"], found["var_rlogr"] = moments(p, plain)
    mean, variance = moments(p, other_direction(log_r))
    return found | {"mean_rlogr_minus_rm1": mean, "var_rlogr_minus_rm1": variance}


HOLE_PAIRS = [
    (floats(case[p]), floats(case.get("q", ["0.2", "0.4", "0.4"])), case[f"{p}_stats"])
    for case in (
        HOLES["recovered_q_0.1_0.45_0.45_a_0.001"],
        HOLES["q_0.2_0.4_0.4_same_KL"],
        *HOLES["grid_q_0.2_0.4_0.4"],
    )
    for p in ("p1", "p2")
]


@pytest.mark.parametrize(("p", "q", "expected"), HOLE_PAIRS)
def test_b_holes(p: np.ndarray, q: np.ndarray, expected: dict[str, Any]) -> None:
    found = pair_statistics(p, q)
    if np.array_equal(p, q):  # no best control between equals, and the file has none
        assert np.isnan(found["lambda_star"])
        found = {key: found[key] for key in expected}
    check(found, expected)


def test_b_the_published_kl_and_the_crossover_of_k1_and_k3() -> None:
    published = float(HOLES["published_KL"])
    q = np.array([0.2, 0.4, 0.4])

    def hole(h: str) -> Shape:
        mass = 0.2 * 10 ** -float(HOLES[h])
        return shape([mass, (1 - mass) / 2, (1 - mass) / 2], q)

    assert all(abs(shape(p, q).kl_pq - published) < 5e-11 for p, q, _ in HOLE_PAIRS[:4])
    assert np.isclose(hole("h_giving_0.0996504851_with_q_0.2_0.4_0.4").kl_pq, published, rtol=1e-12)
    crossover = hole("crossover_h_var_k3_equals_var_k1_under_p1")
    assert np.isclose(crossover.S, 1.0, rtol=1e-12)
    assert np.isclose(crossover.variance_k1, crossover.variance_k3, rtol=1e-12)


def test_c_four_faces() -> None:
    p, q1, q2 = (floats(FOUR_FACES[name]) for name in ("p", "q1", "q2"))
    check(pair_statistics(p, q1), FOUR_FACES["p_vs_q1"])
    check(pair_statistics(p, q2), FOUR_FACES["p_vs_q2"])
    log_r = np.log(q2 / p)
    for i, outcome in enumerate(FOUR_FACES["per_outcome"]):
        found = {"p": p[i], "r": np.exp(log_r[i]), "k1": k1(log_r[i])}
        check(found | {"k2": k2(log_r[i]), "k3": k3(log_r[i])}, outcome, rtol=1e-14)
    pair = shape(p, q2)
    found = {
        "dominant_term": p[0] * k1(log_r[0]),
        "dominant_rev_q1": 2 * q1[1] * np.log(q1[1] / p[1]),
        "var_ratio_k3_over_k1": pair.variance_k3 / pair.variance_k1,
        "kl_sq": pair.kl_pq**2,
    }
    check(found, {key: FOUR_FACES[key] for key in found})


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)


@pytest.mark.parametrize("case", GAUSSIAN_SHIFT["cases"], ids=lambda case: case["mu"][:5])
def test_a_gaussian_shift(case: dict[str, Any]) -> None:
    """In closed form, and by quadrature of the formulas themselves."""
    mu, kl = float(case["mu"]), float(case["KL"])
    pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=mu, std_q=1.0)
    closed = {
        "k1": (pair.kl_pq, pair.variance_k1),
        "k2": (pair.mean_k2, pair.variance_k2),
        "k3": (pair.kl_pq, pair.variance_k3),
        "k_lambda_star": (pair.kl_pq, pair.variance_k_lambda),
    }
    log_r = mu * NODES - mu**2 / 2
    weight = WEIGHTS / np.sum(WEIGHTS)
    values = {
        "k1": k1(log_r),
        "k2": k2(log_r),
        "k3": k3(log_r),
        "k_lambda_star": k_lambda(log_r, pair.lambda_star),
    }
    for name, (mean, variance) in closed.items():
        expected = {key: case[name][key] for key in ("mean", "var", "sd_over_true")}
        found = {"mean": mean, "var": variance, "sd_over_true": np.sqrt(variance) / kl}
        check(found, expected, atol=0)
        by_quadrature = moments(weight, values[name])
        assert np.allclose(by_quadrature, (mean, variance), rtol=1e-10, atol=0)
    bias = pair.mean_k2 - pair.kl_pq
    assert np.isclose(bias, float(case["k2"]["bias"]), rtol=1e-11, atol=0)
    assert np.isclose(bias / kl, float(case["k2"]["bias_over_true"]), rtol=1e-11, atol=0)
    found = {"chi2": pair.chi2_qp, "jeffreys": pair.jeffreys, "lambda_star": pair.lambda_star}
    check(found, {key: case[key] for key in found}, atol=0)

    reverse = case["reverse"]
    plain = f_form(log_r, lambda r: r * np.log(r), slope_at_one=0.0)
    found = {"target": pair.kl_qp, "mean": moments(weight, other_direction(log_r))[0]}
    found["var_rlogr"] = moments(weight, plain)[1]
    found["var_rlogr_minus_rm1"] = moments(weight, other_direction(log_r))[1]
    check(found, reverse, rtol=1e-9, atol=0)


def test_a_what_was_published_and_the_crossover() -> None:
    for name, estimators in (("case1", ("k1", "k2", "k3")), ("case2", ("k1", "k2", "k3"))):
        published = GAUSSIAN_SHIFT["published"][name]
        pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=float(published["mu"]), std_q=1.0)
        assert np.isclose(pair.kl_pq, published["true"], rtol=1e-12)
        for estimator in estimators:
            bias = (pair.mean_k2 - pair.kl_pq) / pair.kl_pq if estimator == "k2" else 0.0
            deviation = np.sqrt(getattr(pair, f"variance_{estimator}")) / pair.kl_pq
            assert abs(bias - published[estimator][0]) < 0.00051
            assert abs(deviation - published[estimator][1]) < 0.0051
    crossover = GAUSSIAN_SHIFT["k1_k3_variance_crossover"]
    pair = gaussian_shape.shape(mean_p=0.0, std_p=1.0, mean_q=float(crossover["mu"]), std_q=1.0)
    assert np.isclose(pair.S, 1.0, rtol=1e-12)
    assert np.isclose(pair.kl_pq, float(crossover["KL"]), rtol=1e-12)
    assert np.isclose(pair.variance_k1, float(crossover["mu2"]), rtol=1e-12)


@pytest.mark.parametrize("case", TRUNCATED["cases"], ids=lambda case: case["name"])
def test_e_truncated_sampling(case: dict[str, Any]) -> None:
    """The sampler keeps some tokens and renormalizes: which log-probs give which number."""
    p, q, kept = floats(TRUNCATED["p_raw"]), floats(TRUNCATED["q_ref"]), case["kept"]
    scaled = np.full(p.shape, -np.inf)
    scaled[kept] = np.log(p[kept]) / float(case["temperature"])
    log_b = log_softmax(scaled)
    assert np.allclose(np.exp(log_b), floats(case["behaviour"]), rtol=1e-13)

    b, log_p, log_q = np.exp(log_b)[kept], np.log(p[kept]), np.log(q[kept])
    naive, processed = log_q - log_p, log_q - log_b[kept]
    mass_p, mass_q = np.sum(p[kept]), np.sum(q[kept])
    logs = {"log_p": log_p, "log_q": log_q, "log_sampler": log_b[kept]}
    log_kept_q = np.where(np.isinf(log_b), -np.inf, np.log(q))
    raw = divergence(p, q)
    behaved = exact(log_probs_p=log_b, log_probs_q=np.log(q))
    bound = divergence([*p[kept], max(1 - mass_p, 0.0)], [*q[kept], max(1 - mass_q, 0.0)])
    naive_k1, naive_k3 = np.sum(b * k1(naive)), np.sum(b * k3(naive))
    processed_k3 = np.sum(b * k3(processed))
    found = {
        "kept_mass_policy": mass_p,
        "kept_mass_reference": mass_q,
        "log_normaliser": scaled[0] - log_b[0],
        "KL_raw_policy_vs_ref": raw,
        "KL_behaviour_vs_ref": behaved,
        "KL_behaviour_vs_truncated_ref": exact(log_probs_p=log_b, logits_q=log_kept_q),
        "naive_k1_mean": naive_k1,
        "naive_k1_bias_vs_raw_KL": naive_k1 - raw,
        "naive_k1_bias_vs_behaviour_KL": naive_k1 - behaved,
        "naive_k3_mean": naive_k3,
        "naive_k3_bias_vs_raw_KL": naive_k3 - raw,
        "naive_k3_bias_vs_behaviour_KL": naive_k3 - behaved,
        "naive_mean_r_minus_1": np.sum(b * control(log_target=log_q, log_sampler=log_p)),
        "corrected_k1_mean_processed_logprobs": np.sum(b * k1(processed)),
        "k3_mean_processed_logprobs": processed_k3,
        "k3_bias_processed_logprobs_equals_qS_minus_1": processed_k3 - behaved,
        "generalised_k3_r_minus_qS_mean": processed_k3 + 1 - mass_q,
        "mean_r_minus_1_processed": np.sum(
            b * control(log_target=log_q, log_sampler=logs["log_sampler"])
        ),
        "is_weight_mean_p_over_b": 1
        + np.sum(b * control(log_target=log_p, log_sampler=logs["log_sampler"])),
        "is_k1_mean": np.sum(b * weighted_k1(**logs)),
        "is_k3_mean": np.sum(b * weighted_k3(**logs)),
        "data_processing_lower_bound_on_raw_KL": bound,
        "raw_KL_minus_bound": raw - bound,
    }
    inputs = {"name", "temperature", "kept", "behaviour"}
    check(found, {key: case[key] for key in case.keys() - inputs})


@pytest.mark.parametrize("name", DIVERGENCES["pairs"])
def test_f_divergences(name: str) -> None:
    expected = DIVERGENCES["pairs"][name]
    p, q = floats(expected["p"]), floats(expected["q"])
    pair = shape(p, q)
    hellinger = divergence(p, q, "hellinger")
    found = {
        "KL_pq": divergence(p, q),
        "KL_qp": divergence(q, p),
        "JSD": divergence(p, q, "js"),
        "jeffreys": pair.jeffreys,
        "TV": divergence(p, q, "tv"),
        "hellinger_sq": hellinger**2,
        "hellinger": hellinger,
        "chi2_pearson_p_given_q": divergence(p, q, "chi2"),
        "chi2_q_given_p": divergence(q, p, "chi2"),
        "ess_fraction_sampler_p_target_q": 1 / (1 + pair.chi2_qp),
        "entropy_p": entropy(log_probs=np.log(p)),
        "entropy_q": entropy(log_probs=np.log(q)),
        "var_k1": pair.variance_k1,
        "var_k3": pair.variance_k3,
        "renyi_inf": divergence(p, q, "renyi", np.inf),
    }
    # Between near policies the rounding of p itself, 5e-17 of a difference of 1e-4, is 1e-12, and
    # the variance of k3, 3e-23, is that of two values which differ in their fourth digit only.
    rtol = 5e-12 if name == "near_identical" else 1e-12
    orders = {"renyi": "renyi", "alpha_power_int": "alpha"}
    scalars = {key: expected[key] for key in expected.keys() - {"p", "q", *orders}}
    check(found, scalars, rtol=rtol, atol=1e-30)
    for key, kind in orders.items():
        by_order = {a: divergence(p, q, kind, float(a)) for a in expected[key]}
        check(by_order, expected[key], rtol=rtol, atol=0)


def gaussians(case: dict[str, Any]) -> dict[str, Any]:
    """All that is known of a pair of Gaussians, from SciPy's objects and their principal axes."""
    normal: Any = scipy.stats.multivariate_normal
    p, q = (normal(floats(case[f"mean_{side}"]), floats(case[f"cov_{side}"])) for side in "pq")
    mean, std = multivariate_gaussian.principal(
        mean_p=p.mean, cov_p=p.cov, mean_q=q.mean, cov_q=q.cov
    )
    axes = gaussian_shape.shape(mean_p=mean, std_p=std, mean_q=0 * mean, std_q=1 + 0 * std)
    kl, jeffreys = divergence(p, q), np.sum(axes.jeffreys)
    variance_k1, chi2 = np.sum(axes.variance_k1), divergence(q, p, "chi2")
    return {
        "KL_pq": kl,
        "KL_qp": divergence(q, p),
        "jeffreys": jeffreys,
        "bhattacharyya": divergence(p, q, "renyi", 0.5) / 2,
        "hellinger_sq": divergence(p, q, "hellinger") ** 2,
        "var_k1": variance_k1,
        "mean_k2": (variance_k1 + kl**2) / 2,
        "bias_k2": (variance_k1 + kl**2) / 2 - kl,
        "chi2_q_given_p": chi2,
        "var_k3": variance_k1 - 2 * jeffreys + chi2,
        "lambda_star": jeffreys / chi2,
        "var_klam_star": variance_k1 - jeffreys**2 / chi2,
        "renyi_half": divergence(p, q, "renyi", 0.5),
        "renyi2_pq": divergence(p, q, "renyi", 2.0),
    }


NOT_COMPUTED = {"params", "dim", "mean_p", "cov_p", "mean_q", "cov_q"}


@pytest.mark.parametrize("case", [*GAUSSIANS["univariate"], *GAUSSIANS["multivariate"]])
def test_g_gaussians_of_any_covariance(case: dict[str, Any]) -> None:
    # Differences of numbers near 1, and a variance given as the square of a decimal, cost digits.
    check(gaussians(case), {key: case[key] for key in case.keys() - NOT_COMPUTED}, atol=1e-12)


@pytest.mark.parametrize(
    "case", GAUSSIANS["univariate"], ids=lambda c: "-".join(c["params"].values())
)
def test_g_gaussians(case: dict[str, Any]) -> None:
    mean_p, std_p, mean_q, std_q = (float(x) for x in case["params"].values())
    pair = gaussian_shape.shape(mean_p=mean_p, std_p=std_p, mean_q=mean_q, std_q=std_q)
    found = {
        "KL_pq": gaussian.kl(mean_p=mean_p, std_p=std_p, mean_q=mean_q, std_q=std_q),
        "KL_qp": pair.kl_qp,
        "jeffreys": pair.jeffreys,
        "chi2_q_given_p": gaussian.chi2(mean_p=mean_q, std_p=std_q, mean_q=mean_p, std_q=std_p),
        "var_k1": pair.variance_k1,
        "mean_k2": pair.mean_k2,
        "var_k3": pair.variance_k3,
        "lambda_star": pair.lambda_star,
        "var_klam_star": pair.variance_k_lambda,
    }
    check(found, {key: case[key] for key in found}, atol=0)


HEAD_ROWS = [
    pytest.param(HEADS[pair], row, id=f"{pair} k {row['k']}")
    for pair in ("zipf20", "zipf20_order_by_q", "near_constant_ratio")
    for row in HEADS[pair]["rows"]
]


@pytest.mark.parametrize(("pair", "row"), HEAD_ROWS)
def test_h_partly_exact(pair: dict[str, Any], row: dict[str, Any]) -> None:
    p, q = floats(pair["p"]), floats(pair["q"])
    inside = np.isin(np.arange(len(p)), pair["order"][: int(row["k"])])
    log_p, log_q = np.log(p), np.log(q)
    known = partial.head(log_p=log_p[inside], log_q=log_q[inside])
    draw: dict[str, Any] = {"log_q_over_p": log_q - log_p, "inside": inside, "head": known}
    conditional, tail = partial.conditional(**draw), partial.tail_control(**draw)
    outside = partial.head_control(inside=inside, head=known)
    nothing_left = int(row["k"]) == len(p)
    # The forms that the file adds are the conditional one with these two controls.
    guess = 0.0 if nothing_left else np.log(known.p_tail / known.q_tail)
    centred = conditional - (guess - known.mean) * outside
    scale = 0.0 if nothing_left else known.p_tail / known.q_tail
    ratio = scale * tail + (scale - 1) * outside
    lam = float(row["tail_lambda_star"])
    found = {
        "k": np.sum(inside),
        "head_mass_p": known.p,
        "head_mass_q": known.q,
        "head_sum": partial.biased_head(known),
        "lower_bound": partial.lower_bound(known),
        "gap_to_KL": float(pair["stats"]["KL_pq"]) - partial.lower_bound(known),
        "head_renormalised_KL": partial.biased_head_renormalized(known),
        "two_cv_optimal_var": residual_variance(p, conditional, [outside, tail]),
        "two_cv_optimal_centre": float(row["two_cv_optimal_centre"]),
        "tail_lambda_star": lam,
    }
    forms = {
        "plain": partial.plain(**draw),
        "conditional_rb": conditional,
        "centred": centred,
        "centred_k3": centred + ratio,
        "centred_lam": centred + lam * ratio,
    }
    for name, values in forms.items():
        found[f"{name}_mean"], found[f"{name}_var"] = moments(p, values)
    check(found, row, atol=1e-13)


def residual_variance(p: np.ndarray, values: Any, controls: list[Any]) -> float:
    """The variance that the best multiples of some controls of mean 0 leave."""
    centred = np.sqrt(p) * (values - np.sum(p * values))
    basis = np.sqrt(p) * np.array(controls)
    best, *_ = np.linalg.lstsq(basis.T, centred, rcond=1e-10)
    return float(np.sum((centred - best @ basis) ** 2))
