"""The canonical names, and what a column must hold to be a part."""

from __future__ import annotations

import pytest

from kullback.dumps.layout import Held, canonical, depth_in, expected, family, spoken


@pytest.mark.parametrize(
    ("column", "part"),
    [
        ("log_probs.rollout", "log_probs.rollout"),
        ("log_probs.my.role-2", "log_probs.my.role-2"),
        ("entropy.old", "entropy.old"),
        ("sampling.top_p", "sampling.top_p"),
        ("KL( old ‖ current )", "KL(old||current)"),
        ("KL(old||current) ~ rollout", None),
        ("KL(old||current) per sequence", None),
        ("KL(old||old)", None),
        ("log_probs.", None),
        ("log_probs.2nd", None),
        ("log_probs", None),
        ("prompt", None),
        ("sequence_mask", None),
        ("sampling.seed", None),
    ],
)
def test_a_column_name_is_canonical_or_not(column: str, part: str | None):
    assert canonical(column) == part


@pytest.mark.parametrize(
    ("part", "held", "depth"),
    [
        ("log_probs.old", Held(1, "number"), 1),
        ("log_probs.old", Held(2, "number", ones=True), 1),
        ("log_probs.old", Held(2, "number"), None),
        ("log_probs.old", Held(0, "number"), None),
        ("log_probs.old", Held(1, "text"), None),
        ("log_probs.old", Held(1, "flag"), None),
        ("log_probs.old", Held(0, "nothing"), 1),
        ("log_probs.old", Held(2, "nothing"), None),
        ("mask", Held(1, "flag"), 1),
        ("mask", Held(1, "number"), 1),
        ("token_bytes", Held(1, "bytes"), 1),
        ("token_bytes", Held(2, "number"), 2),
        ("top_ids.old", Held(2, "number"), 2),
        ("top_ids.old", Held(3, "number", ones=True), 2),
        ("versions", Held(1, "number"), 1),
        ("versions", Held(0, "number"), 0),
        ("step", Held(1, "number", ones=True), 0),
        ("prompt", Held(0, "other"), 0),
        ("prompt", Held(1, "number"), 1),
    ],
)
def test_what_a_column_holds_decides_what_it_can_be(part: str, held: Held, depth: int | None):
    assert depth_in(part, held) == depth


def test_parts_have_families_and_spoken_names():
    assert family("KL(a||b)") == "exact"
    assert family("sampling.log_probs") == "sampling.log_probs"
    assert spoken("top_log_probs.old") == "top_k of old"
    assert spoken("entropy.old") == "entropy of old"
    assert expected("top_ids.old") == "a list of lists of numbers"
    assert str(Held(0, "nothing")) == "nothing"
