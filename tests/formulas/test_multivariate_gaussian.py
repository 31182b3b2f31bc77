"""Full covariances: the textbook's numbers where it has digits, and better where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kullback.formulas import gaussian
from kullback.formulas.multivariate_gaussian import kl, principal

RNG = np.random.default_rng(0)


def covariance(*shape: int) -> np.ndarray:
    half = RNG.normal(size=(*shape, shape[-1]))
    return half @ np.swapaxes(half, -1, -2) + np.eye(shape[-1])


def pair(*shape: int) -> dict[str, Any]:
    mean_p, mean_q = RNG.normal(size=(2, *shape))
    covariances = {"cov_p": covariance(*shape), "cov_q": covariance(*shape)}
    return {"mean_p": mean_p, "mean_q": mean_q, **covariances}


def textbook(mean_p: Any, cov_p: Any, mean_q: Any, cov_q: Any) -> Any:
    inverse, shift = np.linalg.inv(cov_q), mean_q - mean_p
    trace = np.trace(inverse @ cov_p, axis1=-2, axis2=-1)
    square = np.einsum("...i,...ij,...j", shift, inverse, shift)
    determinants = np.linalg.slogdet(cov_q)[1] - np.linalg.slogdet(cov_p)[1]
    return (trace + square - mean_p.shape[-1] + determinants) / 2


@pytest.mark.parametrize("shape", [(1,), (3,), (4, 2), (2, 3, 5)])
def test_kl_is_the_textbooks(shape: tuple[int, ...]) -> None:
    given = pair(*shape)
    assert kl(**given).shape == shape[:-1]
    assert np.allclose(kl(**given), textbook(**given), rtol=1e-11)


def test_kl_keeps_its_digits_between_near_gaussians_and_is_never_negative() -> None:
    cov = covariance(6)
    for step in (0.0, 2.0**-40, 2.0**-20):
        given = {"mean_p": np.zeros(6), "cov_p": (1 + step) * cov, "mean_q": np.zeros(6)}
        found = kl(**given, cov_q=cov)
        assert found >= 0
        assert np.isclose(found, 6 * step**2 / 4, rtol=1e-3 if step < 1e-9 else 1e-5, atol=1e-29)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 4)])
def test_along_the_principal_axes_the_pair_falls_apart(shape: tuple[int, ...]) -> None:
    given = pair(*shape)
    mean, std = principal(**given)
    zero, one = np.zeros(shape), np.ones(shape)
    ways = [
        {"mean_p": mean, "std_p": std, "mean_q": zero, "std_q": one},
        {"mean_p": zero, "std_p": one, "mean_q": mean, "std_q": std},
    ]
    turned = {name.translate(str.maketrans("pq", "qp")): x for name, x in given.items()}
    for axes, whole in zip(ways, (given, turned), strict=True):
        assert np.allclose(gaussian.kl(**axes).sum(axis=-1), kl(**whole), rtol=1e-11)


def test_covariances_without_a_root_and_shapes_that_do_not_fit_are_refused() -> None:
    cov = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="cov_q is not positive definite"):
        kl(mean_p=[0, 0], cov_p=np.eye(2), mean_q=[0, 0], cov_q=cov)
    for mean, wrong in (([0, 0, 0], np.eye(2)), ([0, 0], np.ones((2, 3))), ([0, 0], np.ones(2))):
        with pytest.raises(ValueError, match=r"expected \[\.\.\., n\] and \[\.\.\., n, n\]"):
            kl(mean_p=mean, cov_p=wrong, mean_q=[0, 0], cov_q=np.eye(2))


def test_the_gradient_between_equal_gaussians_is_zero_and_not_nan(traceable) -> None:
    arrays = [traceable.array(x) for x in ([0.3, 1.0], [[1.0, 0.3], [0.3, 2.0]])]
    slopes = traceable.gradient(
        lambda mean, cov: kl(mean_p=mean, cov_p=cov, mean_q=arrays[0], cov_q=arrays[1]), (0, 1)
    )(*arrays)
    for slope in slopes:
        assert np.allclose(np.asarray(slope), 0, atol=1e-15)
