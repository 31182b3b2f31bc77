"""Every formula against its oracle: exact sums over few outcomes, and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial as bound
from typing import Any, NamedTuple

import numpy as np

from kullback.formulas import (
    categorical,
    divergences,
    gaussian,
    gaussian_shape,
    k_family,
    multivariate_gaussian,
    partial,
    shape,
    weights,
)
from kullback.selftest.line import Line, Pairs, attempted, compared
from kullback.selftest.oracles import floats, oracle


class Pair(NamedTuple):
    """Two distributions and what is known of them."""

    p: Any
    q: Any
    right: dict[str, str]


def formulas() -> tuple[Line, ...]:
    """A line for each formula, or family of formulas."""
    return tuple(attempted(name, bound(_line, name)) for name in CHECKS)


def _line(name: str) -> Line:
    return compared(name, CHECKS[name]())


def _pairs() -> Iterator[Pair]:
    faces, holes = oracle("c_four_faces"), oracle("b_holes")
    for q in ("q1", "q2"):
        yield Pair(floats(faces["p"]), floats(faces[q]), faces[f"p_vs_{q}"])
    for hole in holes.values():
        yield Pair(floats(hole["p1"]), floats(hole["q"]), hole["p1_stats"])


def _moments(p: Any, values: Any) -> tuple[float, float]:
    mean = float(np.sum(p * values))
    return mean, float(np.sum(p * (values - mean) ** 2))


def _of_ratio(formula: Callable[[Any, Pair], Any], name: str) -> Pairs:
    """Mean and variance under p of a formula of log q/p."""
    for pair in _pairs():
        mean, variance = _moments(pair.p, formula(np.log(pair.q / pair.p), pair))
        yield mean, pair.right[f"mean_{name}"]
        yield variance, pair.right[f"var_{name}"]


def _k1() -> Pairs:
    return _of_ratio(lambda log_r, _: k_family.k1(log_r), "k1")


def _k2() -> Pairs:
    return _of_ratio(lambda log_r, _: k_family.k2(log_r), "k2")


def _k3() -> Pairs:
    return _of_ratio(lambda log_r, _: k_family.k3(log_r), "k3")


def _k_lambda() -> Pairs:
    def best(log_r: Any, pair: Pair) -> Any:
        return k_family.k_lambda(log_r, float(pair.right["lambda_star"]))

    return _of_ratio(best, "klam_star")


def _other_direction() -> Pairs:
    return _of_ratio(lambda log_r, _: k_family.other_direction(log_r), "rlogr_minus_rm1")


def _f_form() -> Pairs:
    """f(r) = r log r, taken as it stands."""

    def plain(log_r: Any, _: Pair) -> Any:
        return k_family.f_form(log_r, lambda r: r * np.log(r), slope_at_one=0.0)

    return _of_ratio(plain, "rlogr")


def _exact() -> Pairs:
    for p, q, right in _pairs():
        logs = np.log(p), np.log(q)
        yield categorical.exact(log_probs_p=logs[0], log_probs_q=logs[1]), right["KL_pq"]
        yield categorical.exact(logits_p=logs[1] + 3, logits_q=logs[0] - 2), right["KL_qp"]


def _entropy() -> Pairs:
    for pair in oracle("f_divergences")["pairs"].values():
        for side in "pq":
            found = categorical.entropy(log_probs=np.log(floats(pair[side])))
            yield found, pair[f"entropy_{side}"]


KINDS = {
    "kl": "KL_pq",
    "js": "JSD",
    "tv": "TV",
    "hellinger": "hellinger",
    "chi2": "chi2_pearson_p_given_q",
}


def _divergences() -> Pairs:
    for pair in oracle("f_divergences")["pairs"].values():
        p, q = floats(pair["p"]), floats(pair["q"])
        for kind, name in KINDS.items():
            yield divergences.divergence(p, q, kind), pair[name]
        for kind, name in (("renyi", "renyi"), ("alpha", "alpha_power_int")):
            for order, right in pair[name].items():
                yield divergences.divergence(p, q, kind, float(order)), right
        yield divergences.divergence(p, q, "renyi", np.inf), pair["renyi_inf"]


def _shape() -> Pairs:
    for p, q, right in _pairs():
        found = shape.shape(p, q)
        yield found.jeffreys, right["jeffreys"]
        yield found.chi2_qp, right["chi2_q_given_p"]
        yield found.lambda_star, right["lambda_star"]
        yield found.variance_k1, right["var_k1"]
        yield found.variance_k2, right["var_k2"]
        yield found.variance_k3, right["var_k3"]
        yield found.variance_k_lambda, right["var_klam_star"]
        yield found.S * 2 * found.jeffreys, right["chi2_q_given_p"]


def _gaussians() -> Pairs:
    for case in oracle("g_gaussians")["univariate"]:
        mean_p, std_p, mean_q, std_q = map(float, case["params"].values())
        p_first: dict[str, Any] = {"mean_p": mean_p, "std_p": std_p}
        p_first |= {"mean_q": mean_q, "std_q": std_q}
        swapped = {"mean_p": mean_q, "std_p": std_q, "mean_q": mean_p, "std_q": std_p}
        found = gaussian_shape.shape(**p_first)
        yield gaussian.kl(**p_first), case["KL_pq"]
        yield gaussian.kl(**swapped), case["KL_qp"]
        yield gaussian.chi2(**swapped), case["chi2_q_given_p"]
        yield found.jeffreys, case["jeffreys"]
        yield found.variance_k1, case["var_k1"]
        yield found.mean_k2, case["mean_k2"]
        yield found.variance_k3, case["var_k3"]
        yield found.lambda_star, case["lambda_star"]
    for case in oracle("g_gaussians")["multivariate"]:
        (mean_p, cov_p), (mean_q, cov_q) = (
            (floats(case[f"mean_{side}"]), floats(case[f"cov_{side}"])) for side in "pq"
        )
        kl = multivariate_gaussian.kl
        yield kl(mean_p=mean_p, cov_p=cov_p, mean_q=mean_q, cov_q=cov_q), case["KL_pq"]
        yield kl(mean_p=mean_q, cov_p=cov_q, mean_q=mean_p, cov_q=cov_p), case["KL_qp"]


def _truncated() -> Pairs:
    """A sampler that keeps some tokens: with its raw log-probs, its own ones, and weights."""
    pair = oracle("e_truncated_sampling")
    p, q = floats(pair["p_raw"]), floats(pair["q_ref"])
    for case in pair["cases"]:
        kept = case["kept"]
        scaled = np.full(p.shape, -np.inf)
        scaled[kept] = np.log(p[kept]) / float(case["temperature"])
        log_s = categorical.log_softmax(scaled)
        s, logs = np.exp(log_s)[kept], {"log_p": np.log(p[kept]), "log_q": np.log(q[kept])}
        naive, own = logs["log_q"] - logs["log_p"], logs["log_q"] - log_s[kept]
        logs["log_sampler"] = log_s[kept]
        left = weights.control(log_target=logs["log_p"], log_sampler=logs["log_sampler"])
        head = partial.head(log_p=logs["log_p"], log_q=logs["log_q"])
        yield (
            categorical.exact(log_probs_p=log_s, log_probs_q=np.log(q)),
            case["KL_behaviour_vs_ref"],
        )
        yield np.sum(s * k_family.k1(naive)), case["naive_k1_mean"]
        yield np.sum(s * k_family.k3(naive)), case["naive_k3_mean"]
        yield np.sum(s * k_family.k1(own)), case["corrected_k1_mean_processed_logprobs"]
        yield np.sum(s * k_family.k3(own)), case["k3_mean_processed_logprobs"]
        yield 1 + np.sum(s * left), case["is_weight_mean_p_over_b"]
        yield np.sum(s * weights.weighted_k1(**logs)), case["is_k1_mean"]
        yield np.sum(s * weights.weighted_k3(**logs)), case["is_k3_mean"]
        yield partial.lower_bound(head), case["data_processing_lower_bound_on_raw_KL"]


def _heads() -> Pairs:
    """The k largest log-probs known on both sides, the rest sampled."""
    pair = oracle("h_topk_partial_rb")["zipf20"]
    p, q = floats(pair["p"]), floats(pair["q"])
    log_p, log_q = np.log(p), np.log(q)
    for row in pair["rows"]:
        inside = np.isin(np.arange(len(p)), pair["order"][: int(row["k"])])
        head = partial.head(log_p=log_p[inside], log_q=log_q[inside])
        draw: dict[str, Any] = {"log_q_over_p": log_q - log_p, "inside": inside, "head": head}
        yield head.p, row["head_mass_p"]
        yield head.q, row["head_mass_q"]
        yield partial.lower_bound(head), row["lower_bound"]
        yield partial.biased_head(head), row["head_sum"]
        yield partial.biased_head_renormalized(head), row["head_renormalised_KL"]
        known = [row["plain_mean"], row["plain_var"]]
        yield _moments(p, partial.plain(**draw)), known
        known = [row["conditional_rb_mean"], row["conditional_rb_var"]]
        yield _moments(p, partial.conditional(**draw)), known


CHECKS: dict[str, Callable[[], Pairs]] = {
    "k1": _k1,
    "k2": _k2,
    "k3": _k3,
    "k_lambda": _k_lambda,
    "other_direction": _other_direction,
    "f_form": _f_form,
    "exact": _exact,
    "entropy": _entropy,
    "divergence (every kind)": _divergences,
    "Gaussians": _gaussians,
    "shape": _shape,
    "truncated sampler": _truncated,
    "known heads": _heads,
}
