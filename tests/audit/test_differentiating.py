from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.differentiating import (
    InJax,
    UnreadableError,
    in_numpy,
    in_torch,
    is_differentiated,
    term,
)

MASK = np.array([[True, True, False], [True, False, False]])
ARRAYS = {
    "current": np.array([[-1.0, -2.0, -3.0], [-0.5, -1.5, -2.5]]),
    "reference": np.array([[-2.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]),
    "mask": MASK,
}


def k2(given):
    return (given["current"] - given["reference"]) ** 2 / 2


@pytest.fixture
def run(traceable):
    """Runs a function in torch or in JAX."""
    if traceable.name == "torch":
        return lambda call: in_torch(call, ARRAYS, MASK)
    return lambda call: InJax(call)(ARRAYS, MASK)


def test_values_and_the_gradient_of_their_sum_over_what_counts(run):
    outcome = run(k2)
    x = ARRAYS["current"] - ARRAYS["reference"]
    assert np.array_equal(outcome.values, x**2 / 2)
    assert np.array_equal(outcome.gradient["current"], np.where(MASK, x, 0))
    assert np.array_equal(outcome.gradient["reference"], np.where(MASK, -x, 0))
    assert outcome.values.dtype == outcome.gradient["current"].dtype == np.float64


def test_a_scalar_and_one_per_sequence(run):
    x = ARRAYS["current"] - ARRAYS["reference"]
    scalar, sequences = run(lambda given: k2(given).sum()), run(lambda given: k2(given).sum(-1))
    assert (scalar.values.shape, sequences.values.shape) == ((), (2,))
    assert np.array_equal(scalar.gradient["current"], x)
    assert np.array_equal(sequences.gradient["current"], x)


def test_flat_ones_are_reshaped_and_others_refused(run):
    assert run(lambda given: k2(given).sum().reshape(1)).values.shape == ()
    assert run(lambda given: k2(given).sum(-1).reshape(2, 1)).values.shape == (2,)
    with pytest.raises(ValueError, match=r"shape \[6\].*\[2\] or \[2, 3\]"):
        run(lambda given: k2(given).reshape(6))


def test_what_is_not_in_it_has_no_gradient(run):
    assert set(run(lambda given: given["current"] * 2.0).gradient) == {"current"}


def test_torch_sees_what_is_detached_and_lets_a_function_write_into_its_arguments():
    torch = pytest.importorskip("torch")
    assert in_torch(lambda given: k2(given).detach(), ARRAYS, MASK).gradient == {}
    assert in_torch(lambda given: 0.5, ARRAYS, MASK).values == 0.5

    def written(given):
        given["current"] -= given["reference"]
        return given["current"]

    with torch.inference_mode():  # the caller's, and not the function's
        outcome = in_torch(written, ARRAYS, MASK)
    assert np.array_equal(outcome.gradient["current"], MASK)
    assert ARRAYS["current"][0, 0] == -1.0


def test_jax_falls_back_where_a_function_cannot_be_traced():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    branch = InJax(lambda given: k2(given) if float(given["current"][0, 0]) < 0 else None)
    numbers = InJax(lambda given: np.asarray(given["current"]) * 2)
    assert branch(ARRAYS, MASK).gradient == {}
    assert numbers(ARRAYS, MASK).gradient == {}
    assert numbers.untraced
    assert jax.config.jax_enable_x64 == before
    with pytest.raises(ZeroDivisionError):
        InJax(lambda given: 1 / 0)(ARRAYS, MASK)


def test_jax_compiles_once_for_a_shape():
    pytest.importorskip("jax")
    traced = []

    def counted(given):
        traced.append(1)
        return k2(given)

    run = InJax(counted)
    for _ in range(5):
        run(ARRAYS, MASK)
    assert len(traced) == 1


def test_numpy_has_values_alone():
    outcome = in_numpy(k2, ARRAYS, MASK)
    assert outcome.gradient == {}
    assert np.array_equal(outcome.values, k2(ARRAYS))


def test_the_term_among_what_is_returned():
    assert term([0.5, "more"]) == 0.5
    with pytest.raises(UnreadableError, match="without 'loss': kl, n"):
        term({"kl": 0.5, "n": 3})
    with pytest.raises(UnreadableError, match="returned None"):
        term((None, 3))


def test_masks_and_tokens_have_no_gradient():
    assert [is_differentiated(key) for key in ("mask", "tokens", "old", "current_logits")] == [
        False,
        False,
        True,
        True,
    ]
