from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.columns import Place, pack
from kullback.estimation.contributors import KEPT, Contributor, candidates, largest, merged
from kullback.estimation.terms import Usable, blocks
from kullback.question import Question

PROPERTY = settings(derandomize=True, deadline=None)
# Few values, so that there are ties.
sizes = st.lists(st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), max_size=40)


def one(size: float, row: int = 0, position: int = 0, source: str = "") -> Contributor:
    return Contributor(size, Place(source, row, position), -1.0, -1.0 - size, None, None)


@PROPERTY
@given(sizes)
@pytest.mark.parametrize("term", ["k1", "k3"])
def test_the_largest_are_kept_and_of_equals_the_earlier(term: str, log_r: list[float]) -> None:
    columns, question = pack({"p": [0.0] * len(log_r), "q": log_r}, lengths=1), Question("p", "q")
    usable = Usable.of(columns, question)
    by_block = [candidates(block, term) for block in blocks(columns, question, usable)]
    found = largest(columns, question, by_block)
    size = {"k1": np.abs(log_r), "k3": np.expm1(log_r) - np.array(log_r)}[term]
    order = sorted((i for i in range(len(log_r)) if size[i] > 0), key=lambda i: (-size[i], i))
    assert [c.place.row for c in found] == order[:KEPT]
    assert [c.size for c in found] == pytest.approx(
        [size[i] for i in order[:KEPT]], rel=1e-12, abs=0
    )
    assert [c.log_q for c in found] == [log_r[i] for i in order[:KEPT]]
    assert all(c.log_p == 0 and c.token is None and c.text is None for c in found)


def test_lists_merge_by_size_and_of_equals_by_place() -> None:
    a = [one(5.0, row=2), one(2.0, row=1, position=1, source="b"), one(1.0)]
    b = [one(2.0, row=9, source="a"), one(2.0, row=1, position=0, source="b"), one(3.0)]
    expected = (a[0], b[2], b[0], b[1], a[1], a[2])
    assert merged([*a, *b]) == merged([*b, *a]) == expected


@PROPERTY
@given(st.lists(st.integers(1, 6), max_size=40), st.integers(0, 40))
def test_merging_in_parts_is_merging_at_once(values: list[int], cut: int) -> None:
    all_of_them = [one(float(value), row=i) for i, value in enumerate(values)]
    parts = merged(all_of_them[:cut]), merged(all_of_them[cut:])
    assert merged([*parts[1], *parts[0]]) == merged(all_of_them)
    assert len(merged(all_of_them)) == min(KEPT, len(values))
