"""What a row is, by what the columns hold: never by one name alone."""

from __future__ import annotations

import pytest

from kullback.dumps.grain import cut_part, grain_of
from kullback.dumps.layout import Held

LIST, NUMBER, TEXT, LISTS = Held(1, "number"), Held(0, "number"), Held(0, "text"), Held(2, "number")


@pytest.mark.parametrize(
    ("held", "grain"),
    [
        ({"log_probs.a": LIST, "prompt_id": TEXT}, "sequence"),
        ({"log_probs.a": LIST, "lengths": NUMBER}, "sequence"),
        ({"log_probs.a": LIST, "lengths": LIST}, "batch"),
        ({"rollout_log_probs": LIST, "cu_seq_lens": LIST}, "batch"),
        ({"generation_logprobs": LISTS, "lengths": LIST}, "sequence"),
        ({"log_probs.a": NUMBER, "sequence": TEXT}, "token"),
        ({"old_per_token_logps": NUMBER, "sample_id": NUMBER}, "token"),
        ({"log_probs.a": LIST, "sample_id": NUMBER}, "sequence"),
        ({"log_probs.a": NUMBER, "log_probs.b": LIST, "sequence": TEXT}, "sequence"),
        ({"log_probs.a": NUMBER, "position": NUMBER}, "sequence"),
        ({"reward": NUMBER, "sequence": TEXT}, "sequence"),
    ],
)
def test_what_a_row_is(held: dict[str, Held], grain: str):
    assert grain_of(held, {}) == grain


def test_the_caller_may_say_what_cuts_or_joins():
    held = {"x": NUMBER, "y": NUMBER, "episode": TEXT, "z": LIST, "n": LIST}
    assert grain_of(held, {"rollout": "x", "old": "y", "sequence": "episode"}) == "token"
    assert grain_of(held, {"rollout": "z", "lengths": "n"}) == "batch"
    assert grain_of(held, {"prompt_id": "episode", "sequence": "episode"}) == "sequence"


def test_cutting_names_belong_to_their_grain():
    assert cut_part("seq_id", "token") == "sequence"
    assert cut_part("lengths", "batch") == "lengths"
    assert cut_part("lengths", "token") is None
    assert cut_part("seq_id", "sequence") is None
