from __future__ import annotations

import numpy as np
import pytest

from kullback.vocabulary.scaling import Scaling, scaling

torch = pytest.importorskip("torch")

Z = torch.linspace(-90, 90, 31, dtype=torch.float64)


@pytest.mark.parametrize("how", [Scaling(), Scaling(0.7), Scaling(1.0, 30.0), Scaling(1.3, 50.0)])
def test_cap_first_temperature_last(how):
    cap = how.soft_cap
    capped = Z if cap is None else cap * torch.tanh(Z / cap)
    expected = capped / how.temperature
    torch.testing.assert_close(how.in_place(Z.clone()), expected)
    torch.testing.assert_close(how.of(Z), expected)
    np.testing.assert_allclose(how.of(Z.numpy()), expected, rtol=1e-15)
    assert how.is_nothing == torch.equal(expected, Z)


@pytest.mark.parametrize("how", [Scaling(0.7), Scaling(1.3, 50.0)])
def test_slope_is_the_derivative(how):
    z = Z.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(how.of(z).sum(), z)
    slope = how.slope(how.of(Z))
    torch.testing.assert_close(
        torch.as_tensor(slope, dtype=Z.dtype).expand_as(Z), derivative, rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_numbers_that_make_no_sense(bad):
    with pytest.raises(ValueError, match=r"temperature is .*, expected a number above 0"):
        scaling(bad, None)
    with pytest.raises(ValueError, match=r"soft_cap is .*, expected a number above 0; pass None"):
        scaling(1.0, bad)
    assert scaling(1, 30) == Scaling(1.0, 30.0)
