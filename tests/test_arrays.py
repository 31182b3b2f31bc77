"""Whose array is it, and what becomes of one that has no value: never a wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import (
    are_integers,
    at_least_float32,
    marked,
    namespace,
    only_where,
    sum_segments,
    taken,
    to_numpy,
)

ROWS = [[-1.0, -0.5, -2.0], [-0.25, -3.0, -1.5]]


def test_the_namespace_is_the_library_of_the_arrays(library) -> None:
    array = library.array(ROWS)
    assert namespace(array) is library.xp
    assert namespace(array, 0.5, 2) is library.xp
    assert namespace(0.5, array) is library.xp


def test_numbers_and_lists_are_numpys() -> None:
    assert namespace(0.5) is namespace([0.5], [1]) is namespace() is np


def test_arrays_of_two_libraries_are_refused(traceable) -> None:
    own = traceable.array(ROWS)
    for other in (np.array(ROWS), ROWS):
        for pair in ((own, other), (other, own)):
            with pytest.raises(TypeError, match="give all as arrays of one library"):
                namespace(*pair)
    with pytest.raises(TypeError, match="one library"):
        kb.log_q_over_p(log_p=own, log_q=np.array(ROWS))


def test_arrays_of_torch_and_jax_are_refused_together() -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    with pytest.raises(TypeError, match="one library"):
        namespace(torch.ones(2), jnp.ones(2))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.float16(1), np.float32),
        (np.float32(1), np.float32),
        (np.float64(1), np.float64),
        (np.ones(2, dtype=np.int64), np.float64),
        (1, np.float64),
        ([0.5, 1.5], np.float64),
    ],
)
def test_numpy_is_at_least_float32(given: Any, expected: Any) -> None:
    assert at_least_float32(given).dtype == expected
    assert np.array_equal(at_least_float32(given), np.asarray(given))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"),
     ("float64", "float64"), ("int32", "float")],
)  # fmt: skip
def test_tensors_are_at_least_float32(dtype: str, expected: str, traceable) -> None:
    found = at_least_float32(traceable.array([1, 2], dtype))
    assert str(found.dtype).removeprefix("torch.").startswith(expected)


def test_nothing_is_copied_that_need_not_be(library) -> None:
    values = library.array(ROWS, "float32")
    assert at_least_float32(values) is values


def test_only_where_raises_or_gives_nan(traceable) -> None:
    def complaint(ok: Any) -> ValueError:
        return ValueError(f"{(~ok).sum()} wrong")

    with pytest.raises(ValueError, match="1 wrong"):
        only_where(np.array([True, False]), np.ones(2), np, complaint)
    ok = traceable.array([1.0, 0.0]) > 0
    found = to_numpy(only_where(ok, traceable.array([5.0, 6.0]), traceable.xp, complaint), "x")
    assert found[0] == 5
    assert np.isnan(found[1])


def test_segments_are_summed(traceable) -> None:
    values = traceable.array([1.0, 2.0, 4.0, 8.0])
    for lengths in ([2, 0, 1, 1], np.array([0, 4, 0, 0]), traceable.array([4, 0], "int32")):
        found = to_numpy(sum_segments(values, lengths, traceable.xp), "sums")
        cuts = np.cumsum(to_numpy(lengths, "lengths"))[:-1]
        assert found.tolist() == [part.sum() for part in np.split([1.0, 2.0, 4.0, 8.0], cuts)]
    for lengths in ([2, 1], [4, 4]):
        assert np.isnan(to_numpy(sum_segments(values, lengths, traceable.xp), "sums")).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int32"])
def test_an_estimate_takes_arrays_of_any_library_and_precision(dtype: str, traceable) -> None:
    rng = np.random.default_rng(0)
    p, q, s = (traceable.array(-rng.integers(1, 9, size=(20, 8)), dtype) for _ in range(3))
    mask = traceable.array(rng.integers(0, 2, size=(20, 8)), "int32")
    clusters = traceable.array(np.arange(20) // 2, "int32")
    given: dict[str, Any] = {
        "log_p": p,
        "log_q": q,
        "log_sampler": s,
        "mask": mask,
        "clusters": clusters,
    }
    as_numpy: dict[str, Any] = {name: to_numpy(one, name) for name, one in given.items()}
    assert kb.estimate(**given) == kb.estimate(**as_numpy)
    flat: dict[str, Any] = {name: given[name].reshape(-1) for name in ("log_p", "log_q")}
    lengths = traceable.array([80, 80], "int32")
    assert kb.estimate(**flat, lengths=lengths).count == 160
    assert kb.estimate(**given | {"mask": mask > 0}) == kb.estimate(**as_numpy)


def test_an_estimate_takes_arrays_of_two_libraries(traceable) -> None:
    rows = np.array(ROWS)
    found = kb.estimate(log_p=traceable.array(ROWS), log_q=0.5 * rows, mask=[[1, 1, 0]] * 2)
    assert found == kb.estimate(log_p=rows, log_q=0.5 * rows, mask=[[1, 1, 0]] * 2)


def test_an_estimate_detaches() -> None:
    torch = pytest.importorskip("torch")
    p = torch.tensor(ROWS, requires_grad=True)
    found = kb.estimate(log_p=p, log_q=0.5 * p)
    assert found == kb.estimate(log_p=np.array(ROWS, dtype=np.float32), log_q=0.5 * np.array(ROWS))
    assert type(found.mean) is float


def test_an_estimate_refuses_what_is_traced(traceable) -> None:
    def mean(log_p: Any) -> Any:
        return kb.estimate(log_p=log_p, log_q=0.5 * log_p).mean

    array = traceable.array(ROWS)
    for transformed in (traceable.batched(mean), traceable.gradient(mean)):
        with pytest.raises(TypeError, match=r"log-probs of p: .* being traced .* return it"):
            transformed(array)


def test_jit_is_refused_with_the_sentence() -> None:
    jax = pytest.importorskip("jax")
    rows = jax.numpy.array(ROWS)
    with pytest.raises(TypeError, match=r"log-probs of p: .* traced \(jit, vmap or grad\)"):
        jax.jit(lambda x: kb.estimate(log_p=x, log_q=x).mean)(rows)
    with pytest.raises(TypeError, match="log-probs of p: this is being traced"):
        jax.eval_shape(lambda x: kb.estimate(log_p=x, log_q=x).mean, rows)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_compiled_step_is_refused_with_the_sentence(fullgraph: bool) -> None:
    torch = pytest.importorskip("torch")
    torch.compiler.reset()

    def mean(log_p: Any) -> float:
        return kb.estimate(log_p=log_p, log_q=0.5 * log_p).mean

    expected = (TypeError, torch._dynamo.exc.Unsupported)
    with pytest.raises(expected, match=r"this is being traced \(torch.compile, vmap or grad\)"):
        torch.compile(mean, backend="eager", fullgraph=fullgraph)(torch.tensor(ROWS))


def test_a_functional_tensor_is_refused_and_not_read_from_anywhere() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="log-probs of p: this is being traced"):
        torch.func.functionalize(lambda x: kb.estimate(log_p=x, log_q=x).mean)(torch.tensor(ROWS))


def test_tensors_without_dense_values_are_refused() -> None:
    torch = pytest.importorskip("torch")
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    for odd in (torch.ones(2, 2, device="meta"), torch.eye(2).to_sparse(), jagged):
        with pytest.raises(ValueError, match=r"log-probs of p: this is no dense array .* lengths"):
            kb.estimate(log_p=odd, log_q=odd)


def test_ragged_lists_and_masked_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match=r"top_p: this is no dense array .* lengths"):
        to_numpy([[-1.0], [-1.0, -2.0]], "top_p")
    with pytest.raises(ValueError, match=r"log-probs of p is a masked array: give its \.data"):
        kb.estimate(log_p=np.ma.masked_less(ROWS, -2.5), log_q=ROWS)


def test_numpys_own_bfloat16_is_read() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    rows = np.array(ROWS, dtype=bfloat16)
    assert to_numpy(rows, "log_p").dtype == np.float32
    assert kb.estimate(log_p=rows, log_q=2 * rows) == kb.estimate(
        log_p=rows.astype(np.float32), log_q=2 * rows.astype(np.float32)
    )


def test_places_are_taken_and_marked_row_by_row(library) -> None:
    rows = library.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    places = library.array([[2, 0], [1, 1]], "int32")
    assert to_numpy(taken(rows, places, library.xp), "x").tolist() == [[3.0, 1.0], [5.0, 5.0]]
    found = to_numpy(marked(places, 3, library.xp), "x").tolist()
    assert found == [[True, False, True], [False, True, False]]


def test_integers_are_known_by_their_type(library) -> None:
    found = [are_integers(library.array([1], kind), library.xp) for kind in ("int32", "float32")]
    assert found == [True, False]


def test_rows_that_are_no_array_are_refused_where_they_are_computed_with() -> None:
    torch = pytest.importorskip("torch")
    one = torch.zeros(2, requires_grad=True)
    for rows in ([[1.0, 2.0], [3.0]], [one, one], [one, torch.zeros(3)]):
        with pytest.raises(ValueError, match="is no array here: join the rows end to end"):
            at_least_float32(rows)
        with pytest.raises(ValueError, match="is no array here: join the rows end to end"):
            kb.loss(log_p=rows, log_q=rows)
