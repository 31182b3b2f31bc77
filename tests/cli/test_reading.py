from __future__ import annotations

import pytest

import kullback as kb
from kullback.cli.reading import axes_of, columns_by_role, opened, progress


def test_axes_stand_apart_by_commas_or_by_options():
    assert axes_of(("step, position", "step", "length")) == ("step", "position", "length")
    with pytest.raises(ValueError, match="write the names of axes"):
        axes_of(("step,",))


def test_a_role_has_one_column():
    assert columns_by_role(("old=a", "old=a", "mask=b")) == {"old": "a", "mask": "b"}
    with pytest.raises(ValueError, match="write role=column"):
        columns_by_role(("old",))
    with pytest.raises(ValueError, match="gives old two columns: a and b"):
        columns_by_role(("old=a", "old=b"))


def test_a_column_to_split_by_is_read_as_a_label():
    assert opened(kb.demo_path(), ["position"]).labels == kb.read(kb.demo_path()).labels


def test_where_nobody_looks_there_is_no_bar():
    with progress(kb.read(kb.demo_path())) as on_batch:
        assert on_batch is None
