from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from kullback.columns import Columns, Place, pack
from kullback.estimation.spelling_state import NAMED, SpellingState, partings

CUT = "\N{REPLACEMENT CHARACTER}"


def spelled(*sequences: tuple[Sequence[bytes | None], str | None]) -> Columns:
    """Sequences of the bytes of their ids, and their text as logged."""
    lengths = [len(pieces) for pieces, _ in sequences]
    columns = pack({"old": np.full(sum(lengths), -1.0)}, lengths=lengths)
    return replace(
        columns,
        token_bytes=[piece for pieces, _ in sequences for piece in pieces],
        text=[text for _, text in sequences],
    )


def state_of(columns: Columns) -> SpellingState:
    return SpellingState.of(columns, partings(columns))


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"Hello", b" world"], "Hello world"),
        ([b"Hello", None], "Hello"),  # a special token has no text
        ([None, b"Hello", b"", None], "Hello"),
        ([b"\xe4", b"\xbd\xa0", b"!"], "你!"),  # a character of two tokens
        ([b"a", b"\xf0\x9f", b"\x98\x80"], "a😀"),
        ([b"so ", b"\xf0\x9f\x98"], "so " + CUT),  # cut inside a character
        ([b"so", b"\xf0\x9f\x98"], "so"),  # the same, left out of the text
        ([b"so", b"\xe4"], "so"),
        ([b"so ", b"\xf0\x9f\x98"], "so "),
        ([b"so ", b"\xf0\x9f\x98"], "so"),
        ([b"so\xef\xbf\xbd"], "so" + CUT),  # U+FFFD itself was said
        ([b" Hello", b" world\n"], "Hello world"),  # stripped white space
        ([b"\n\n", b"Hello", b"  "], "Hello"),
        (["\u3000你好".encode(), "\u00a0".encode()], "你好"),  # of any script
        ([b"so", b" END", b"OFTEXT"], "so"),  # a stop string, cut off
        ([b"<think>", b"hm" * 60, b"</think>", b"so"], "so"),  # reasoning, left out
        ([b"so", b"\xff", b"\xfe", b"on"], "so" + CUT + "on"),  # bytes of no character
        ([b"so", b" ."], "so."),  # white space cleaned up
        (["e\u0301t\u00e9".encode()], "\u00e9t\u00e9"),  # composed
        ([b"a\r\n", b"b"], "a\nb"),
        ([b"so", None], "so<|im_end|>"),  # a special id, shown
        ([b" so ", None], "so <|im_end|>"),
        ([None, b" so \n"], "<|im_start|> so"),
        ([None, b"so", None, b"me"], "<|im_start|>so<tool>me"),
        ([b"so", None, b"\n"], "so<|im_end|>\n"),  # shown, and white space behind it
        ([b"so", None, b"\n"], "so<|im_end|>"),
        ([b"so", None, b"k"], "so</think>k"),  # what follows stands in its name too
    ],
)
def test_ids_that_spell_their_text(pieces, text: str) -> None:
    assert partings(spelled((pieces, text))) == {0: None}


@pytest.mark.parametrize(
    ("pieces", "text", "at"),
    [
        ([b"Hello", b" there", b"!"], "Hello world!", 1),
        ([b"Hi", b" world", b"!"], "Hello world!", 0),
        ([b"Hello", b" world", b"?"], "Hello world!", 2),
        ([None, b"Hello", b" there", None], "Hello world", 2),
        ([b"\xe4", b"\xbd\xa1", b"!"], "你!", 1),
        ([b"Hello", b" world", b" again" * 12], "Hello world", 2),  # far more ids than text
        ([b"so", None, b"me"], "so<|tool|>mine", 2),
        ([b"so", None], "so" + 65 * "x", 1),  # too long for a special id
        ([b"Hello", b" wo"], "Hello world", 1),  # more text than ids
        ([b"so"], "so" + CUT, 0),  # nothing was cut
        ([b" Hello", b" there", b"!"], "Hello world!", 1),  # behind stripped white space
    ],
)
def test_ids_that_do_not_spell_their_text_part_from_it_somewhere(pieces, text, at: int) -> None:
    columns = spelled(([b"a", b"b"], "ab"), (pieces, text))
    assert partings(columns) == {0: None, 1: at}
    state = state_of(columns)
    assert (state.checked, state.misspelled) == (2, 1)
    assert state.places == (Place("", 1, at),)


def test_one_changed_id_is_found_where_it_stands() -> None:
    pieces = [b"The", b" cat", b" sat", b" on", b" the", b" mat", b".", None]
    for at in range(7):
        changed = [*pieces[:at], b"#", *pieces[at + 1 :]]
        assert partings(spelled((changed, "The cat sat on the mat."))) == {0: at}


def test_text_without_any_id_accuses_no_other_sequence() -> None:
    for columns in (spelled(([], "lost")), spelled(([], "lost"), ([b"a"], "a"))):
        state = state_of(columns)
        assert state.places in ((), (Place("", 0, 0),))


def test_half_of_a_surrogate_pair_is_no_traceback() -> None:
    state = state_of(spelled(([b"Hello"], "Hello\ud83d")))
    assert state.checked == 1


def test_what_has_no_text_or_no_bytes_is_not_checked() -> None:
    columns = spelled(([b"a"], None), ([b"b"], "b"), ([b"c"], ""))
    assert partings(columns) == {1: None}
    for unknown in (replace(columns, text=None), replace(columns, token_bytes=None)):
        assert partings(unknown) == {}
        assert state_of(unknown).checked == 0


def test_states_add_and_name_the_first_places() -> None:
    columns = spelled(*(([b"a", b"b"], "ab" if i % 3 else "ax") for i in range(90)), ([b"c"], None))
    whole = state_of(columns)
    rows = np.arange(91)
    parts = [
        state_of(replace(columns, rows=rows).take(slice(a, b)))
        for a, b in ((0, 10), (10, 10), (10, 55), (55, 91))
    ]
    assert reduce(add, parts) == parts[0] + (parts[1] + (parts[2] + parts[3])) == whole
    assert (whole.checked, whole.misspelled, len(whole.places)) == (90, 30, NAMED)
    assert whole.places[:2] == (Place("", 0, 1), Place("", 3, 1))


def test_no_sequence_is_the_neutral_element() -> None:
    some = state_of(spelled(([b"a"], "b")))
    empty = state_of(spelled())
    assert empty + some == some + empty == some


def test_the_text_may_span_what_a_tool_said() -> None:
    columns = spelled(([b"Q?", b"call", b"(result)", b"done"], "call(result)done"))
    assert partings(replace(columns, mask=np.array([False, True, False, True]))) == {0: None}


def test_the_text_may_be_of_the_tokens_inside_the_mask() -> None:
    """Prompt and response in one row, the mask on the response, the text its completion."""
    columns = spelled(([b"Q", b"?", b"yes", b"!"], "yes!"))
    masked = replace(columns, mask=np.array([False, False, True, True]))
    assert partings(masked) == {0: None}
    assert partings(replace(masked, text=["no!"])) != {0: None}
