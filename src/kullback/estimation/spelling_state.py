"""Do the token ids spell the logged text? In bytes, sequence by sequence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from kullback.columns import Columns, Place

NAMED = 20  # places kept by name; the rest are counted
CUT = "\N{REPLACEMENT CHARACTER}".encode()  # what decoders write for a character cut short
UNSEEN = 64  # bytes that a stop string or a special id may have, at most


@dataclass(frozen=True, slots=True)
class SpellingState:
    """Counts of whole sequences. ``a + b`` counts both.

    Args:
        checked: Sequences with both text and the bytes of their ids.
        misspelled: Of these, the ones whose ids do not spell their text.
        places: Where the first of them part from their text.
    """

    checked: int
    misspelled: int
    places: tuple[Place, ...]

    @classmethod
    def of(cls, columns: Columns, parted: Mapping[int, int | None]) -> SpellingState:
        """The counts of one batch, from its ``partings``."""
        odd = [(i, position) for i, position in parted.items() if position is not None]
        return cls(
            checked=len(parted),
            misspelled=len(odd),
            places=tuple(columns.place_in(i, position) for i, position in odd[:NAMED]),
        )

    def __add__(self, other: SpellingState) -> SpellingState:
        return SpellingState(
            self.checked + other.checked,
            self.misspelled + other.misspelled,
            (self.places + other.places)[:NAMED],
        )


def partings(columns: Columns) -> dict[int, int | None]:
    """By sequence, where it can be checked: the position where its ids part from its text, or None.

    Compared are whole sequences, in bytes, since a legal token may be part of a character. What
    honest logs do is allowed: the text may be of all tokens, of those inside the mask, or of the
    span of the mask; it may be the last part only (an answer behind its reasoning), lack its end (a
    stop string, a character cut short), show a special id or not, replace invalid bytes, and
    differ in white space or Unicode normalization.
    """
    if columns.text is None or columns.token_bytes is None:
        return {}
    found: dict[int, int | None] = {}
    spans = zip(columns.starts.tolist(), columns.ends.tolist(), columns.text, strict=True)
    for i, (start, end, text) in enumerate(spans):
        if not text:
            continue
        pieces = columns.token_bytes[start:end]
        written = _bare(text.encode(errors="surrogatepass"))
        if any(_spells(one, written) for one in _parts(pieces, columns.mask[start:end])):
            found[i] = None
        else:
            found[i] = _parting([piece or b"" for piece in pieces], written)
    return found


def _parts(
    pieces: Sequence[bytes | None], mask: NDArray[np.bool_]
) -> Iterator[Sequence[bytes | None]]:
    """What a text may be of: all tokens, those inside the mask, or the span that it covers."""
    yield pieces
    if not mask.all():
        inside = np.flatnonzero(mask).tolist()
        yield [pieces[i] for i in inside]
        if inside:
            yield pieces[inside[0] : inside[-1] + 1]


def _bare(text: bytes) -> bytes:
    """Without the white space, of any script, at its ends."""
    return text.decode(errors="surrogateescape").strip().encode(errors="surrogateescape")


def _spells(pieces: Sequence[bytes | None], written: bytes) -> bool:
    spelled = _bare(b"".join(filter(None, pieces)))
    if spelled.endswith(written) or _plain(spelled) == _plain(written):
        return True
    # As it is, or without a character cut short, of which the ids must then have some bytes.
    for whole in (written, _bare(written.removesuffix(CUT))):
        rest = spelled[len(whole) :]
        if spelled.startswith(whole) and len(rest) <= UNSEEN and (rest or whole == written):
            return True
    return _shows_special(pieces, written)


def _plain(text: bytes) -> str:
    """Without white space, in one normalization, invalid bytes as one replacement character."""
    squeezed = "".join(text.decode(errors="replace").split())
    return re.sub(
        "\N{REPLACEMENT CHARACTER}+", "\N{REPLACEMENT CHARACTER}", normalize("NFC", squeezed)
    )


def _shows_special(pieces: Sequence[bytes | None], written: bytes) -> bool:
    """Whether the text is that of the ids, with something short in the place of a special one."""
    runs: list[list[bytes]] = [[]]  # what stands between the special ids
    for piece in pieces:
        if piece is None:
            runs.append([])
        else:
            runs[-1].append(piece)
    if len(runs) == 1:
        return False
    first, *middle, last = map(b"".join, runs)
    # Only the outer ends may be stripped; a dot holds the white space of the inner ones.
    first, last = _bare(first + b".")[:-1], _bare(b"." + last)[1:]
    if not written.startswith(first):
        return False
    at = len(first)
    for word in middle:
        found = written.find(word, at, at + len(word) + UNSEEN)
        if found < 0:
            return False
        at = found + len(word)
    return written.endswith(last) and 0 <= len(written) - len(last) - at <= UNSEEN


def _parting(pieces: list[bytes], written: bytes) -> int:
    """The first position whose token is not the text at its place."""
    spelled = b"".join(pieces)
    bare = _bare(spelled)
    differs = (i for i, (a, b) in enumerate(zip(bare, written, strict=False)) if a != b)
    same = spelled.find(bare) + next(differs, min(len(bare), len(written)))
    ends = accumulate(len(piece) for piece in pieces)
    return next((i for i, end in enumerate(ends) if end > same), max(len(pieces) - 1, 0))
