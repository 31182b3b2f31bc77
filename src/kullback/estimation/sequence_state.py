"""What whole sequences show: do ids spell the text, does padding stand in the mask?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place

NAMED = 20  # places kept by name; the rest are counted
CUT = "\N{REPLACEMENT CHARACTER}".encode()  # what decoders write for a character cut short


@dataclass(frozen=True, slots=True)
class SequenceState:
    """Counts of whole sequences. ``a + b`` counts both.

    Args:
        sequences: All sequences.
        checked: Sequences with both text and the bytes of their ids.
        misspelled: Of these, the ones whose ids do not spell their text.
        misspelled_at: Where the first of them part from their text.
        tailed: Sequences that end in two or more tokens of log-prob 0 under every role.
        tail_tokens: The tokens of these tails.
        tail_shortest: The length of the shortest sequence with a tail.
        longest: The length of the longest sequence.
        tailed_at: Where the first tails begin.
    """

    sequences: int
    checked: int
    misspelled: int
    misspelled_at: tuple[Place, ...]
    tailed: int
    tail_tokens: int
    tail_shortest: int
    longest: int
    tailed_at: tuple[Place, ...]

    @classmethod
    def of(cls, columns: Columns) -> SequenceState:
        """The counts of one batch."""
        parted, tails = partings(columns), _tails(columns)
        odd = [(i, position) for i, position in parted.items() if position is not None]
        tailed = tails >= 2  # a single certain token at the end is an honest end of text
        begins = (columns.ends - tails)[tailed]
        return cls(
            sequences=len(columns.lengths),
            checked=len(parted),
            misspelled=len(odd),
            misspelled_at=tuple(columns.place_in(i, position) for i, position in odd[:NAMED]),
            tailed=int(tailed.sum()),
            tail_tokens=int(tails[tailed].sum()),
            tail_shortest=int(columns.lengths.min(initial=2**62, where=tailed)),
            longest=int(columns.lengths.max(initial=0)),
            tailed_at=tuple(columns.place(int(token)) for token in begins[:NAMED]),
        )

    def __add__(self, other: SequenceState) -> SequenceState:
        return SequenceState(
            self.sequences + other.sequences,
            self.checked + other.checked,
            self.misspelled + other.misspelled,
            (self.misspelled_at + other.misspelled_at)[:NAMED],
            self.tailed + other.tailed,
            self.tail_tokens + other.tail_tokens,
            min(self.tail_shortest, other.tail_shortest),
            max(self.longest, other.longest),
            (self.tailed_at + other.tailed_at)[:NAMED],
        )


def partings(columns: Columns) -> dict[int, int | None]:
    """By sequence, where it can be checked: the position where its ids part from its text, or None.

    Compared are whole sequences, in bytes: a legal token may be part of a character, and a special
    token has no text. Where a sequence was cut, its last character may be incomplete; white space
    at the ends is often stripped from a text and says nothing.
    """
    if columns.text is None or columns.token_bytes is None:
        return {}
    found: dict[int, int | None] = {}
    spans = zip(columns.starts.tolist(), columns.ends.tolist(), columns.text, strict=True)
    for i, (start, end, text) in enumerate(spans):
        if text is not None:
            pieces = [piece or b"" for piece in columns.token_bytes[start:end]]
            written = _bare(text.encode(errors="surrogatepass"))
            same = _spells(_bare(b"".join(pieces)), written)
            found[i] = None if same else _parting(pieces, written)
    return found


def _bare(text: bytes) -> bytes:
    """Without the white space, of any script, at its ends."""
    return text.decode(errors="surrogateescape").strip().encode(errors="surrogateescape")


def _spells(spelled: bytes, written: bytes) -> bool:
    whole = _bare(written.removesuffix(CUT))
    tail = _bare(spelled[len(whole) :])
    return spelled == written or (spelled.startswith(whole) and _begins_character(tail))


def _begins_character(tail: bytes) -> bool:
    """Whether these bytes begin one character and do not end it."""
    try:
        tail.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and error.start == 0
    return False


def _parting(pieces: list[bytes], written: bytes) -> int:
    """The first position whose token is not the text at its place."""
    spelled = b"".join(pieces)
    bare = _bare(spelled)
    differs = (i for i, (a, b) in enumerate(zip(bare, written, strict=False)) if a != b)
    same = spelled.find(bare) + next(differs, min(len(bare), len(written)))
    ends = accumulate(len(piece) for piece in pieces)
    return next((i for i, end in enumerate(ends) if end > same), max(len(pieces) - 1, 0))


def _tails(columns: Columns) -> NDArray[np.int64]:
    """How many tokens at the end of each sequence have log-prob 0 under every role, [sequences]."""
    other = ~columns.mask
    for values in columns.log_probs.values():
        other = other | (values != 0)
    _, trailing = columns.outside(other)
    counts = np.bincount(columns.sequence_of_token[trailing], minlength=len(columns.lengths))
    return counts.astype(np.int64)
