"""Cases about continuous actions: normals, their parameters and dimensions, mixtures."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kullback as kb

from .entries import Entry, Input, Table, no_question


def normal(spoken: str | dict[str, float]) -> tuple[float, float]:
    """Mean and deviation of ``Normal(0.3,1)`` or of a dictionary."""
    if isinstance(spoken, dict):
        return spoken["mean"], spoken["std"]
    center, deviation = spoken.removeprefix("Normal(").removesuffix(")").split(",")
    return float(center), float(deviation)


def pair(*normals: tuple[Any, Any]) -> list[Any]:
    """Two of them as objects, which is how people hold them."""
    stats = pytest.importorskip("scipy.stats")
    return [stats.norm(*one) for one in normals]


def kl_of_normals(p: tuple[Any, Any], q: tuple[Any, Any]) -> Any:
    return kb.divergence(*pair(p, q))


def kl_old_new(x: Input) -> Any:
    return kl_of_normals(normal(x["old"]), normal(x["new"]))


def shape_old_new(x: Input) -> kb.Shape:
    return kb.shape(*pair(normal(x["old"]), normal(x["new"])))


def threshold(x: Input) -> float:
    return x["target_kl"] * x["factor"]


def mean_k1(x: Input) -> NormalDist:
    """How the mean of k1 over a batch is spread: k1 is linear in the action, and so normal."""
    return NormalDist(kl_old_new(x), math.sqrt(shape_old_new(x).variance_k1 / x["batch"]))


def after_tanh_as_before(x: Input) -> bool:
    """A map of both sides, log-densities corrected on both, changes no divergence."""
    ones = pytest.importorskip("torch").distributions
    pair = [ones.Normal(*normal(x[side])) for side in ("old", "new")]
    tanh = [ones.transforms.TanhTransform()]
    mapped = [ones.TransformedDistribution(one, tanh) for one in pair]
    return float(kb.divergence(*mapped)) == pytest.approx(kl_old_new(x), rel=1e-6)


def kl_to_standard(x: Input, std: float) -> Any:
    return kl_of_normals((x["mean"], std), (0.0, 1.0))


def by_dimension(x: Input) -> Any:
    return kl_of_normals((x["mean_old"], x["std_both"]), (x["mean_new"], x["std_both"]))


def over_dimensions(x: Input, level: str) -> float:
    return kb.totals([by_dimension(x)]).at(level)


def log_density(mixture: Input, at: NDArray[np.float64]) -> NDArray[np.float64]:
    w, m, s = (np.array(mixture[name]) for name in "wms")
    parts = np.log(w / s) - 0.5 * ((at[:, None] - m) / s) ** 2 - 0.5 * math.log(2 * math.pi)
    return np.logaddexp.reduce(parts, axis=1)


def kl_of_mixtures(p: Input, q: Input) -> float:
    """On one fine grid two densities are two categorical distributions."""
    grid = np.linspace(-12.0, 14.0, 4001)
    return float(kb.exact(logits_p=log_density(p, grid), logits_q=log_density(q, grid)))


def interval_holds(x: Input) -> bool:
    p, rng = x["p"], np.random.default_rng(0)
    part = rng.choice(len(p["w"]), size=4096, p=p["w"])
    at = rng.normal(np.array(p["m"])[part], np.array(p["s"])[part])
    found = kb.estimate(log_p=log_density(p, at), log_q=log_density(x["q"], at), lengths=1)
    return found.low <= kl_of_mixtures(p, x["q"]) <= found.high


EARLY_STOP: dict[str, Entry] = {
    "exact_kl_old_new": kl_old_new,
    "sd_of_k1_mean": lambda x: math.sqrt(shape_old_new(x).variance_k1 / x["batch"]),
    "sd_of_k3_mean": lambda x: math.sqrt(shape_old_new(x).variance_k3 / x["batch"]),
    "threshold": threshold,
    "should_stop": lambda x: bool(kl_old_new(x) > threshold(x)),
    "prob_k1_mean_below_threshold": lambda x: mean_k1(x).cdf(threshold(x)),
    "prob_k1_mean_negative": lambda x: mean_k1(x).cdf(0.0),
}

DENSITIES: Table = {
    "47-early-stop-missed-by-k1": EARLY_STOP,
    "79-early-stop-of-a-wide-normal": EARLY_STOP,
    "51-std-variance-logvar-confusion": {
        "if_std": lambda x: kl_to_standard(x, x["output_value"]),
        "if_variance": lambda x: kl_to_standard(x, math.sqrt(x["output_value"])),
        "if_log_variance": lambda x: kl_to_standard(x, math.exp(x["output_value"] / 2)),
        "if_log_std": lambda x: kl_to_standard(x, math.exp(x["output_value"])),
    },
    "52-joint-kl-is-the-sum-over-dims": {
        "per_dim": by_dimension,
        "joint_kl": lambda x: over_dimensions(x, "sequence_sum"),
        "mean_over_dims": lambda x: over_dimensions(x, "token_mean"),
        "joint_exceeds_target": lambda x: over_dimensions(x, "sequence_sum") > x["target_kl"],
        "mean_exceeds_target": lambda x: over_dimensions(x, "token_mean") > x["target_kl"],
    },
    "53-tanh-correction-on-one-side": {
        "exact_kl_old_new": kl_old_new,
        **no_question("log densities are input", "log_ratio_correct", "log_ratio_one_sided"),
        **no_question("a factor of two log densities", "spurious_factor"),
        "kl_after_tanh_equals_before": after_tanh_as_before,
    },
    "54-mixture-has-no-closed-form": {
        "kl_p_q": lambda x: kl_of_mixtures(x["p"], x["q"]),
        "kl_q_p": lambda x: kl_of_mixtures(x["q"], x["p"]),
        "mc_must_cover_exact_in_95pct_interval": interval_holds,
        **no_question("four times the KL is no answer", "hershey_olsen_variational_p_q"),
    },
    "56-collapsed-standard-deviation": {
        "kl_old_new": kl_old_new,
        "kl_new_old": lambda x: kl_of_normals(normal(x["new"]), normal(x["old"])),
        **no_question("deviations are never squared in float32", "float32_variance_underflows"),
        **no_question("two numbers, one for each direction, and no fault of a log", "verdict"),
    },
}
