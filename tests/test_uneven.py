from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.uneven import end_to_end


def flat(rows: list[list[Any]]) -> list[Any]:
    return [one for row in rows for one in row]


P = [[-1.0, -2.0], [-1.0, -0.5, -3.0], [-0.25]]
Q = [[-1.1, -2.2], [-0.9, -0.6, -2.0], [-0.5]]
MASK = [[1, 0], [1, 1, 1], [1]]
FLAT = {"log_p": flat(P), "log_q": flat(Q), "mask": flat(MASK), "lengths": [2, 3, 1]}


def test_what_is_dense_stays_as_it_is() -> None:
    for values in (
        [[1.0, 2.0], [3.0, 4.0]],
        [1.0, 2.0],
        [],
        3.0,
        np.ones((2, 2)),
        [np.ones((2, 2))] * 2,
    ):
        found, lengths = end_to_end({"p": values})
        assert found["p"] is values
        assert lengths is None


def test_rows_of_any_library_are_one_array_of_it(library) -> None:
    rows = [library.array(row) for row in P]
    found, lengths = end_to_end({"p": rows, "mask": MASK})
    assert lengths == [2, 3, 1]
    assert isinstance(found["p"], type(rows[0]))
    assert np.asarray(found["p"]).tolist() == FLAT["log_p"]
    assert np.asarray(found["mask"]).tolist() == FLAT["mask"]


def test_an_estimate_of_rows_is_that_of_their_tokens(library) -> None:
    expected = kb.estimate(**FLAT, method="k1")
    lists = kb.estimate(log_p=P, log_q=Q, mask=MASK, method="k1")
    arrays = [[library.array(row) for row in rows] for rows in (P, Q)]
    given = kb.estimate(log_p=arrays[0], log_q=arrays[1], mask=MASK, method="k1")
    assert lists == expected
    assert given.mean == pytest.approx(expected.mean, rel=1e-6)
    assert kb.totals(P).sequences == 3
    assert kb.totals(P, mask=MASK) == kb.totals(FLAT["log_p"], mask=FLAT["mask"], lengths=[2, 3, 1])


def test_ids_may_come_in_rows_too() -> None:
    top = (np.tile([1, 2], (6, 1)), np.log(np.tile([0.5, 0.25], (6, 1))))
    how = {"log_p": P, "log_q": Q, "top_p": top, "top_q": top, "method": "bound"}
    ids = [[1, 2], [1, 2, 3], [1]]
    assert kb.estimate(**how, tokens=ids) == kb.estimate(**how, tokens=flat(ids))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"log_q": [[-1.0, -2.0], [-1.0, -0.5], [-0.25]]}, "p has 3 tokens in row 1, q 2"),
        ({"log_q": Q[:2]}, "p has 3 rows, q 2"),
        ({"log_q": np.zeros((3, 3))}, "the rows of p differ in length, and q is no such list"),
        ({"mask": np.ones((3, 3))}, "and the mask is no such list"),
        ({"lengths": [2, 3, 1]}, "the rows of p have their own"),
    ],
)
def test_rows_that_do_not_go_together_are_refused(changes, said) -> None:
    with pytest.raises(ValueError, match=said):
        kb.estimate(**{"log_p": P, "log_q": Q} | changes)


def test_gradients_flow_into_the_rows() -> None:
    torch = pytest.importorskip("torch")
    rows = [torch.tensor(row, requires_grad=True) for row in P]
    kb.totals(rows).at("sequence_mean").backward()
    assert [row.grad.tolist() for row in rows] == [
        pytest.approx([1 / 6] * 2),
        pytest.approx([1 / 9] * 3),
        pytest.approx([1 / 3]),
    ]
