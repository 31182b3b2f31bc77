from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from kullback.columns import Columns, Place, pack
from kullback.estimation.sequence_state import NAMED, SequenceState, partings

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
        ([b"  "], ""),
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
        ([b"Hello", b" world", b" again"], "Hello world", 2),  # more ids than text
        ([b"Hello", b" wo"], "Hello world", 1),  # more text than ids
        ([b"so", b"\xff"], "so", 1),  # the beginning of no character
        ([b"so", b"\xe4\xbd", b"a"], "so", 1),  # incomplete, but not at the end
        ([b"so", b"a", b"\xe4\xbd"], "so", 1),  # more than a character
        ([b"so"], "so" + CUT, 0),  # nothing was cut
        ([b" Hello", b" there", b"!"], "Hello world!", 1),  # behind stripped white space
    ],
)
def test_ids_that_do_not_spell_their_text_part_from_it_somewhere(pieces, text, at: int) -> None:
    columns = spelled(([b"a", b"b"], "ab"), (pieces, text))
    assert partings(columns) == {0: None, 1: at}
    state = SequenceState.of(columns)
    assert (state.sequences, state.checked, state.misspelled) == (2, 2, 1)
    assert state.misspelled_at == (Place("", 1, at),)


def test_one_changed_id_is_found_where_it_stands() -> None:
    pieces = [b"The", b" cat", b" sat", b" on", b" the", b" mat", b".", None]
    for at in range(7):
        changed = [*pieces[:at], b"#", *pieces[at + 1 :]]
        assert partings(spelled((changed, "The cat sat on the mat."))) == {0: at}


def test_text_without_any_id_accuses_no_other_sequence() -> None:
    for columns in (spelled(([], "lost")), spelled(([], "lost"), ([b"a"], "a"))):
        state = SequenceState.of(columns)
        assert state.misspelled_at in ((), (Place("", 0, 0),))


def test_half_of_a_surrogate_pair_is_no_traceback() -> None:
    state = SequenceState.of(spelled(([b"Hello"], "Hello\ud83d")))
    assert state.checked == 1


def test_what_has_no_text_or_no_bytes_is_not_checked() -> None:
    columns = spelled(([b"a"], None), ([b"b"], "b"))
    assert partings(columns) == {1: None}
    for unknown in (replace(columns, text=None), replace(columns, token_bytes=None)):
        assert partings(unknown) == {}
        assert SequenceState.of(unknown).checked == 0


def padded(*rows: list[float], mask=None, **other: list[list[float]]) -> SequenceState:
    roles = {"old": list(rows), **other}
    width = max(len(row) for row in rows)
    full = {role: [row + [0.0] * (width - len(row)) for row in r] for role, r in roles.items()}
    return SequenceState.of(pack(full, mask=mask))


def test_a_tail_is_two_or_more_zeros_under_every_role() -> None:
    state = padded([-1.0, -1, 0, 0, 0], [-1.0, -1, -1, -1, 0], [-1.0, 0, 0, 0, 0], [0.0] * 5)
    assert (state.tailed, state.tail_tokens) == (3, 3 + 4 + 5)
    assert (state.tail_shortest, state.longest) == (5, 5)
    assert state.tailed_at == (Place("", 0, 2), Place("", 2, 1), Place("", 3, 0))
    one_role = padded([-1.0, 0, 0, 0], new=[[-1.0, 0, -0.1, 0]])
    assert one_role.tailed == 0
    assert padded([-1.0, 0, -0.1, 0], new=[[-1.0, 0, 0, 0]]).tailed == 0
    both = padded([-1.0, 0, 0, 0], new=[[-1.0, -0.1, 0, 0]])
    assert (both.tailed, both.tail_tokens) == (1, 2)


def test_zeros_outside_the_mask_are_no_tail() -> None:
    rows = [-1.0, 0, 0, 0], [-1.0, -1, 0, 0]
    assert padded(*rows, mask=[[1, 1, 0, 0], [1, 1, 0, 0]]).tailed == 0


def test_the_tail_of_a_short_sequence_tells_its_length() -> None:
    columns = pack({"old": [-1.0, 0, 0, -1, -1, -1, -1, 0]}, lengths=[3, 0, 5])
    state = SequenceState.of(columns)
    assert (state.tailed, state.tail_shortest, state.longest) == (1, 3, 5)


def test_states_add_and_name_the_first_places() -> None:
    columns = spelled(*(([b"a", b"b"], "ab" if i % 3 else "ax") for i in range(90)), ([b"c"], None))
    zeros = replace(columns, log_probs={"old": np.where(np.arange(181) % 7 < 5, 0.0, -1.0)})
    whole = SequenceState.of(zeros)
    rows = np.arange(91)
    parts = [
        SequenceState.of(replace(zeros, rows=rows).take(slice(a, b)))
        for a, b in ((0, 10), (10, 10), (10, 55), (55, 91))
    ]
    assert reduce(add, parts) == parts[0] + (parts[1] + (parts[2] + parts[3])) == whole
    assert whole.misspelled == 30
    assert len(whole.misspelled_at) == len(whole.tailed_at) == NAMED
    assert whole.misspelled_at[:2] == (Place("", 0, 1), Place("", 3, 1))


def test_no_sequence_is_the_neutral_element() -> None:
    some = SequenceState.of(spelled(([b"a"], "b")))
    empty = SequenceState.of(spelled())
    assert empty + some == some + empty == some
