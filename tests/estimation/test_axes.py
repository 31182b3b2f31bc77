from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation.axes import Parts, require_axes, settled


def batch(lengths: list[int], mask: list[int] | None = None, **more: Any) -> Columns:
    tokens = sum(lengths)
    columns = pack(
        {"p": np.full(tokens, -1.0), "q": np.full(tokens, -1.5)},
        lengths=lengths,
        mask=np.ones(tokens, bool) if mask is None else np.array(mask),
    )
    labels = {name: np.array(v) for name, v in more.pop("labels", {}).items()}
    return replace(columns, labels=labels, **more)


def filed(columns: Columns, axis: str, usable: list[int] | None = None) -> list[Any]:
    """The key of each token; '-' where it is in no cell."""
    flags = columns.mask if usable is None else np.array(usable, dtype=bool)
    parts = Parts.of(columns, axis, flags)
    assert (np.diff(parts.cell) >= 0).all()
    keys = [parts.keys[cell] for cell in parts.cell] + ["-"]
    inside = parts.of_token < len(parts.cell)
    assert np.array_equal(parts.sequence[parts.of_token[inside]], columns.sequence_of_token[inside])
    return [keys[part] for part in parts.of_token]


def test_a_position_counts_the_tokens_in_the_mask_of_its_sequence():
    columns = batch([4, 0, 6], [0, 1, 0, 1, 1, 1, 1, 0, 1, 1])
    assert filed(columns, "position") == ["-", 0, "-", 1, 0, 1, 2, "-", 2, 4]


def test_a_length_counts_the_usable_tokens():
    columns = batch([2, 3, 1], [1, 1, 1, 1, 1, 1])
    assert filed(columns, "length", [1, 1, 1, 1, 1, 0]) == [2, 2, 2, 2, 2, 0]


def test_a_label_files_whole_sequences_and_only_those_with_a_token():
    columns = batch([2, 1, 1], [1, 0, 0, 1], labels={"step": [7, 99, 3]})
    assert filed(columns, "step") == [7, "-", "-", 3]
    assert Parts.of(columns, "step", columns.mask).keys == [3, 7]


def test_staleness_is_the_step_less_the_version_of_each_token():
    versions = np.array([5, 3, 4, -1, 9])
    columns = batch([2, 3], [1, 1, 1, 1, 0], versions=versions, labels={"step": [5, 5]})
    assert filed(columns, "staleness") == [0, 2, 1, None, "-"]


def test_a_logged_staleness_stands_in_where_it_cannot_be_derived():
    columns = batch([1, 2], labels={"staleness": [2.0, np.nan]})
    assert filed(columns, "staleness") == [2, None, None]
    labels = dict(columns.labels) | {"step": np.array([1, 1])}
    both = replace(columns, versions=np.array([1, 1, 1]), labels=labels)
    assert filed(both, "staleness") == [0, 0, 0]


def test_a_version_from_the_future_is_refused_with_its_place():
    columns = batch([1, 2], versions=np.array([1, 1, 4]), labels={"step": [1, 3]})
    with pytest.raises(ValueError, match=r"step 3 comes before version 4 .*row 1, token 1"):
        Parts.of(columns, "staleness", columns.mask)


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (np.array(["b", "a", "b"]), ["b", "a", "b"]),
        (np.array(["b", None, float("nan")], dtype=object), ["b", None, None]),
        (np.array([True, False, True]), ["true", "false", "true"]),
        (np.array([True, None, False], dtype=object), ["true", None, "false"]),
        (np.array([1, None, 2.5], dtype=object), [1.0, None, 2.5]),
        (np.array([None, None, None], dtype=object), [None, None, None]),
        (np.array([-0.0, 0.0, -1.5]), [0.0, 0.0, -1.5]),
    ],
)
def test_texts_flags_and_numbers_are_filed_as_what_they_are(values, keys):
    assert filed(batch([1, 1, 1], labels={"task": values}), "task") == keys


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array(["a", 1], dtype=object), "numbers in some rows and texts in others"),
        (np.array([2**53, 2**53 + 1]), "9007199254740993; whole numbers beyond"),
        (np.array([-(2**63), 1]), "are names"),
        (np.array([2**70, None], dtype=object), "are names"),
        (np.array([{"a": 1}, None], dtype=object), "holds {'a': 1}"),
    ],
)
def test_what_is_no_axis_is_refused(values, said):
    columns = batch([1, 1], labels={"task": values})
    with pytest.raises(ValueError, match=said) as caught:
        Parts.of(columns, "task", columns.mask)
    assert str(caught.value).startswith("by task: ")


def test_more_than_64_texts_are_refused_and_64_are_not():
    names = [f"task {i}" for i in range(65)]
    columns = batch([1] * 65, labels={"task": names})
    with pytest.raises(ValueError, match="more than 64 different texts"):
        Parts.of(columns, "task", columns.mask)
    assert len(Parts.of(columns.take(slice(0, 64)), "task", columns.mask[:64]).keys) == 64


def test_an_axis_that_is_not_there_is_refused_with_what_to_log():
    columns = batch([1], labels={"epoch": [0]})
    require_axes(columns, ["position", "length", "epoch"])
    for axis, said in (
        ("step", "log a column step"),
        ("staleness", "there is no step and no versions; log step"),
        ("task", r"\(epoch\); read the column with kb.read\(files, labels=\['task'\]\)"),
    ):
        with pytest.raises(ValueError, match=said):
            require_axes(columns, [axis])
    with pytest.raises(ValueError, match="there is no step; log"):
        require_axes(replace(columns, versions=np.array([1])), ["staleness"])


def test_only_what_is_settled_before_the_draw_is_free_of_selection():
    for axis in ("position", "step", "staleness", "prompt_id", "task", "sampling.top_p"):
        assert settled(axis)
    for axis in ("length", "reward", "finish_reason", "advantage", "anything_else"):
        assert not settled(axis)
