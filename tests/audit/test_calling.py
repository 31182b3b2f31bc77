from __future__ import annotations

import functools

import numpy as np
import pytest

from kullback.audit.calling import Caller, likely
from kullback.audit.roles import parameters
from kullback.audit.scenes import APART, sequence, staged, together

WORLD = staged(APART.name, ends=True)
TRIAL = together([sequence(WORLD, 0), sequence(WORLD, 14)])


def caller(fn, library: str | None = "numpy"):
    return Caller(fn, parameters(fn, None), library, TRIAL)


def test_parameters_are_given_by_name():
    made = caller(lambda ref_log_prob, log_prob, scale=2.0: scale * (log_prob - ref_log_prob))
    one = sequence(WORLD, 3)
    expected = 2 * (one.given("current") - one.given("reference"))
    assert np.array_equal(made(one).values, expected)
    assert made.roles == ("reference", "current")
    assert made.given == {"reference", "current"}


def test_the_kind_of_mask_that_it_takes_is_found():
    for fn in (
        lambda current, mask: current[mask].sum(),  # bool
        lambda current, mask: (current * (1 - mask)).sum(),  # a number
        lambda current, mask: (current * ~(mask == 0)).sum(),
    ):
        assert np.isfinite(caller(fn)(TRIAL).values)


def test_a_mask_of_numbers_in_torch():
    torch = pytest.importorskip("torch")
    made = caller(lambda current, mask: torch.where(mask.bool(), current, 0).sum(), None)
    assert made.library == "torch"
    assert np.isfinite(
        caller(lambda current, mask: (1 - mask) * current, "torch")(TRIAL).values
    ).all()


def test_the_library_is_found_from_what_the_function_names():
    assert likely(lambda x: np.abs(x))[0] == "torch"  # torch takes np.log(2) too
    assert likely(functools.partial(lambda x, y: jnp.abs(x), y=1)) == ("jax",)  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    assert set(likely(lambda x: x)) == {"torch", "jax", "numpy"}


def test_numpy_functions_are_called_with_numpys_arrays():
    made = caller(lambda current, reference: np.exp(current - reference), None)
    assert made.library == "numpy"


@pytest.mark.parametrize("library", ["torch", "jax", "numpy"])
def test_what_it_raises_is_said_with_the_shapes(library):
    pytest.importorskip(library)
    with pytest.raises(ValueError, match="could not be called") as caught:
        caller(lambda log_prob, ref_log_prob: log_prob["x"], library)
    told = str(caught.value)
    assert f"with {library} it raised " in told
    assert "log_prob = current [2, 3], ref_log_prob = reference [2, 3]" in told
    assert "\n" not in told


def test_what_it_raises_later_is_said_too():
    def picky(current, reference):
        if current.shape[0] == 1:
            raise RuntimeError("two sequences at least")
        return current - reference

    made = caller(picky)
    with pytest.raises(ValueError, match=r"picky raised RuntimeError \(two sequences at least\)"):
        made(sequence(WORLD, 3))


def test_no_such_library():
    with pytest.raises(ValueError, match="'tensorflow' is none of torch, jax, numpy"):
        caller(lambda current, reference: current, "tensorflow")


@pytest.mark.parametrize("library", ["torch", "jax", "numpy"])
def test_what_it_returns_is_told_once_whatever_the_library(library):
    pytest.importorskip(library)
    for fn, told in (
        (lambda current, reference: None, "it returned None"),
        (lambda current, reference: current.reshape(-1), r"it returned the shape \[6\]"),
        (lambda current, reference: {"kl": current}, "it returned a dictionary without 'loss': kl"),
    ):
        with pytest.raises(ValueError, match=f"^the function: {told}"):
            caller(fn, library)
