"""Distribution objects: the same numbers as from their parameters, or a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

from kullback.formulas import gaussian
from kullback.formulas.distributions import is_distribution
from kullback.formulas.divergences import divergence

stats: Any = scipy.stats  # whose annotations know too few of its arguments
KINDS = [("kl", None), ("chi2", None), ("hellinger", None)]
ORDERS = [(kind, order) for kind in ("alpha", "renyi") for order in (0.0, 0.3, 1.0, 1.5)]
WIDE = [*KINDS, ("js", None), ("tv", None), *ORDERS, ("renyi", np.inf)]
MEAN, COV = np.array([0.3, -0.2]), np.array([[1.0, 0.3], [0.3, 0.8]])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def on_a_grid(p, q, kind: str, order: float | None) -> float:
    """On one fine grid two densities are two categorical distributions."""
    grid = np.linspace(-12, 12, 200_001)
    rows = [np.exp(one.logpdf(grid)) for one in (p, q)]
    return float(divergence(rows[0] / rows[0].sum(), rows[1] / rows[1].sum(), kind, order))


@pytest.mark.parametrize(("kind", "order"), [*KINDS, *ORDERS])
def test_normals_of_scipy(kind: str, order: float | None) -> None:
    p, q = stats.norm(0.3, 0.8), stats.norm(-0.1, 1.0)
    found = divergence(p, q, kind, order)
    assert found == pytest.approx(on_a_grid(p, q, kind, order), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(("kind", "order"), [*KINDS, *ORDERS])
def test_a_diagonal_covariance_is_a_product(kind: str, order: float | None, torch) -> None:
    ones = torch.distributions
    mean_p, std_p, mean_q, std_q = torch.tensor(
        [[0.3, -0.2], [0.8, 0.9], [0.1, 0.4], [1.0, 1.1]], dtype=torch.float64
    )
    split = [ones.Independent(ones.Normal(*one), 1) for one in ((mean_p, std_p), (mean_q, std_q))]
    full = [
        ones.MultivariateNormal(mean, torch.diag(std**2))
        for mean, std in ((mean_p, std_p), (mean_q, std_q))
    ]
    scipy = [
        stats.multivariate_normal(mean.numpy(), np.diag(std.numpy() ** 2))
        for mean, std in ((mean_p, std_p), (mean_q, std_q))
    ]
    found = [float(divergence(p, q, kind, order)) for p, q in (split, full, scipy)]
    assert found == pytest.approx([found[0]] * 3, rel=1e-12, abs=1e-15)


def test_torchs_own_kl_agrees_where_it_has_digits(torch) -> None:
    ones, torch_kl = torch.distributions, torch.distributions.kl_divergence
    mean, cov = torch.tensor(MEAN), torch.tensor(COV)
    pairs = [
        (ones.Normal(mean, cov.diag()), ones.Normal(-mean, 2 * cov.diag())),
        (ones.MultivariateNormal(mean, cov), ones.MultivariateNormal(-mean, 2 * cov)),
        (ones.Categorical(torch.tensor([0.1, 0.9])), ones.Categorical(torch.tensor([0.3, 0.7]))),
        (ones.Bernoulli(torch.tensor([0.1, 0.9])), ones.Bernoulli(torch.tensor([0.3, 0.7]))),
    ]
    for p, q in pairs:
        found, expected = divergence(p, q), torch_kl(p, q)
        assert found.shape == expected.shape
        assert torch.allclose(found, expected.double(), rtol=1e-6)


def test_near_gaussians_in_single_precision_keep_their_digits(torch) -> None:
    p = torch.distributions.Normal(0.0, 1.0)
    q = torch.distributions.Normal(1e-4, 1.0)
    assert float(divergence(p, q)) == pytest.approx(5e-9, rel=1e-6)


def test_what_torch_has_a_closed_form_for(torch) -> None:
    ones = torch.distributions
    p, q = ones.Beta(2.0, 3.0), ones.Beta(2.0, 2.0)
    assert divergence(p, q) == ones.kl_divergence(p, q)
    # A map of both, a tanh say, changes no divergence.
    tanh = [ones.transforms.TanhTransform()]
    bases = [ones.Normal(torch.tensor(mean), torch.tensor(1.0)) for mean in (0.0, 0.5)]
    p, q = (ones.TransformedDistribution(base, tanh) for base in bases)
    assert float(divergence(p, q)) == pytest.approx(0.125)


def test_the_gradient_goes_through_the_objects(torch) -> None:
    mean = torch.tensor(0.4, requires_grad=True)
    p, q = (torch.distributions.Normal(one, 2.0) for one in (mean, torch.tensor(0.0)))
    divergence(p, q).backward()
    assert float(mean.grad) == pytest.approx(0.1)


@pytest.mark.parametrize(("kind", "order"), WIDE)
def test_finitely_many_outcomes(kind: str, order: float | None) -> None:
    p, q = stats.binom(4, 0.3), stats.randint(0, 6)
    rows = [*stats.binom(4, 0.3).pmf(range(5)), 0.0], [1 / 6] * 6
    assert divergence(p, q, kind, order) == pytest.approx(divergence(rows[0], rows[1], kind, order))


def test_a_support_inside_the_other_is_no_error_and_outside_is_infinite() -> None:
    narrow, wide = stats.randint(2, 4), stats.randint(0, 8)
    assert divergence(narrow, wide) == pytest.approx(np.log(4))
    assert divergence(wide, narrow) == np.inf


def test_logits_far_below_the_rest_are_no_zeros_and_zeros_no_logits(torch) -> None:
    ones = torch.distributions
    far = torch.tensor([0.0, -120.0])
    exact = 0.5 * 120 - np.log(2)  # e^-120 is no float32
    for make in (ones.Categorical, ones.OneHotCategorical):
        half, faint = make(probs=torch.tensor([0.5, 0.5])), make(logits=far)
        assert float(divergence(half, faint)) == pytest.approx(exact, rel=1e-9)
        assert faint.probs[1] == 0  # asked for, it is there; and still not used
        assert float(divergence(half, faint)) == pytest.approx(exact, rel=1e-9)
        never = make(probs=torch.tensor([1.0, 0.0]))
        assert never.logits[1] > -20
        assert divergence(half, never) == np.inf
    pair = ones.Bernoulli(0.5), ones.Bernoulli(logits=torch.tensor(-120.0))
    assert float(divergence(*pair)) == pytest.approx(exact, rel=1e-9)
    assert divergence(pair[0], ones.Bernoulli(0.0)) == np.inf


def test_outcomes_between_whole_numbers_are_not_taken_for_these() -> None:
    with pytest.raises(ValueError, match="no closed form of kl is known for binom"):
        divergence(stats.binom(4, 0.3, loc=0.5), stats.binom(4, 0.3))


def test_what_has_no_closed_form_is_told(torch) -> None:
    ones = torch.distributions
    two = [ones.Normal(0.0, 1.0), ones.Normal(1.0, 1.0)]
    for p, q, kind in [
        (stats.beta(1, 2), stats.beta(2, 2), "kl"),
        (stats.poisson(1), stats.poisson(2), "kl"),
        (ones.Beta(1.0, 2.0), ones.Beta(2.0, 2.0), "chi2"),
        (*two, "js"),
        (*two, "tv"),
    ]:
        with pytest.raises(ValueError, match=rf"no closed form of {kind} .* lengths=1"):
            divergence(p, q, kind)
    with pytest.raises(ValueError, match="no closed form of renyi"):
        divergence(two[0], two[1], "renyi", np.inf)


def test_two_kinds_of_things_are_refused(torch) -> None:
    normal = torch.distributions.Normal(0.0, 1.0)
    for other in (stats.norm(0, 1), [0.5, 0.5]):
        for pair in ((normal, other), (other, normal)):
            with pytest.raises(ValueError, match="give two distributions of one library"):
                divergence(*pair)
    many = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    with pytest.raises(ValueError, match="give both in the same form"):
        divergence(many, torch.distributions.Independent(many, 1))


def test_an_unknown_kind_is_refused_before_anything_else() -> None:
    with pytest.raises(ValueError, match="kind='kld'"):
        divergence(stats.norm(0, 1), stats.norm(0, 1), "kld")


def test_only_objects_are_distributions() -> None:
    assert is_distribution(stats.norm(0, 1))
    assert not is_distribution(stats.norm)
    assert not is_distribution(np.ones(2))
    assert divergence(stats.norm(0, 1), stats.norm(1, 1)) == gaussian.kl(
        mean_p=0, std_p=1, mean_q=1, std_q=1
    )
