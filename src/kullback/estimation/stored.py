"""States to bytes and back, exact to the bit; reading them back builds states and nothing else.

A pickle runs what it holds, and a state may lie in a folder to which others write. Here the type
annotations of the states decide what a byte is read as: whatever they do not name cannot be built.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from hashlib import blake2b
from math import prod
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kullback.estimation.summary import Summary

T = TypeVar("T")

MAGIC = b"kullback state 1\n"
DIGEST = 16  # bytes
DAMAGED = "this is no state that kullback stored, or it is damaged"
SCALARS = (bool, int, float, str, NoneType)


def store(state: Any) -> bytes:
    """A state, a ``Summary`` for example, as bytes.

    Args:
        state: Any dataclass whose annotations name numbers, texts, arrays, tuples, dictionaries
            and other such dataclasses.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> summary = summarize([pack({"old": [[-1.0, -0.5]], "current": [[-1.1, -0.25]]})])
        >>> again = load(store(summary))
        >>> [(str(question), one.tokens) for question, one in again.questions.items()]
        [('KL(old||current)', 2)]
    """
    arrays: list[bytes] = []
    tree = json.dumps(_plain(state, type(state), arrays), separators=(",", ":")).encode()
    body = zlib.compress(b"".join([len(tree).to_bytes(8, "little"), tree, *arrays]), 1)
    return MAGIC + blake2b(body, digest_size=DIGEST).digest() + body


def load(data: bytes, kind: type[T] = Summary) -> T:
    """The state that was stored.

    Args:
        data: What ``store`` made of it.
        kind: What it is to be.

    Raises:
        ValueError: It is none, or not whole, or a state of another kind.
    """
    start = len(MAGIC) + DIGEST
    body = data[start:]
    whole = MAGIC + blake2b(body, digest_size=DIGEST).digest()
    if data[:start] != whole:
        raise ValueError(DAMAGED)
    try:
        content = zlib.decompress(body)
        end = 8 + int.from_bytes(content[:8], "little")
        arrays = _Arrays(content, end)
        state = _built(json.loads(content[8:end]), kind, arrays)
    except (zlib.error, ValueError, RecursionError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(DAMAGED) from error
    if arrays.at != len(content):
        raise ValueError(DAMAGED)
    return state


class _Arrays:
    """The bytes of all arrays, end to end, in the order in which they are asked for."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content = content
        self.at = at

    def next(self, shape: list[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        count = prod(_each(shape, int))
        here, self.at = self.at, self.at + count * dtype.itemsize
        if min(shape, default=0) < 0 or self.at > len(self.content):
            raise ValueError
        stored = np.frombuffer(self.content, dtype.newbyteorder("<"), count, here)
        return stored.astype(dtype).reshape(shape)


@cache
def _fields(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _parts(hint: Any) -> tuple[bool, Any, tuple[Any, ...]]:
    """Whether an annotation names a dataclass; else what it is of, and of what."""
    return is_dataclass(hint), get_origin(hint), get_args(hint)


def _plain(value: Any, hint: Any, arrays: list[bytes]) -> Any:
    """A value as JSON has it; the bytes of arrays are put aside."""
    whole, outer, inner = _parts(hint)
    if whole:
        return {name: _plain(getattr(value, name), h, arrays) for name, h in _fields(hint).items()}
    if outer is UnionType:
        return _plain(value, next(one for one in inner if _could_be(value, one)), arrays)
    if outer is np.ndarray:
        return _plain_array(value, _dtype(inner), arrays)
    if outer in (dict, Counter):
        keys, values = (*inner, int)[:2]  # a Counter's annotation names its keys alone
        return [[_plain(k, keys, arrays), _plain(v, values, arrays)] for k, v in value.items()]
    if outer is tuple:
        return [_plain(v, h, arrays) for v, h in zip(value, _entries(inner, value), strict=True)]
    scalar = value.item() if isinstance(value, np.generic) else value
    if hint not in SCALARS or type(scalar) not in SCALARS:
        raise TypeError(f"{type(value)} cannot be stored as {hint}")
    return scalar


def _could_be(value: Any, hint: Any) -> bool:
    """Whether a value can be what one side of a union names."""
    outer = get_origin(hint) or hint
    return isinstance(value, (int, float) if outer is float else outer)


def _plain_array(value: NDArray[Any], dtype: np.dtype[Any], arrays: list[bytes]) -> Any:
    if dtype.kind == "O":
        return value.tolist()
    arrays.append(value.astype(dtype.newbyteorder("<"), casting="safe").tobytes())
    return list(value.shape)


def _dtype(inner: tuple[Any, ...]) -> np.dtype[Any]:
    """The dtype that ``NDArray[...]`` names."""
    return np.dtype(get_args(inner[1])[0])


def _entries(inner: tuple[Any, ...], values: Any) -> Iterator[Any]:
    """The annotation of each entry of a tuple."""
    return iter(inner[:1] * len(values) if inner[-1] is Ellipsis else inner)


def _built(tree: Any, hint: Any, arrays: _Arrays) -> Any:
    """What an annotation says of what JSON has.

    Raises:
        ValueError: It cannot be that.
    """
    whole, outer, inner = _parts(hint)
    if whole:
        hints = _fields(hint)
        if not isinstance(tree, dict) or tree.keys() != hints.keys():
            raise ValueError
        return hint(**{name: _built(tree[name], h, arrays) for name, h in hints.items()})
    if outer is UnionType:
        return _built_one_of(tree, inner, arrays)
    if hint in SCALARS:
        if type(tree) is not hint and not (hint is float and type(tree) is int):
            raise ValueError
        return tree
    if not isinstance(tree, list):
        raise ValueError
    if outer is np.ndarray:
        dtype = _dtype(inner)
        if dtype.kind == "O":
            return np.array(_each(tree, str), dtype=object)
        return arrays.next(tree, dtype)
    if outer in (dict, Counter):
        keys, values = (*inner, int)[:2]
        pairs = [(_built(k, keys, arrays), _built(v, values, arrays)) for k, v in tree]
        return outer(dict(pairs))
    return tuple(_built(v, h, arrays) for v, h in zip(tree, _entries(inner, tree), strict=True))


def _built_one_of(tree: Any, inner: tuple[Any, ...], arrays: _Arrays) -> Any:
    """At most one side of the unions in states is an object, so the first that fits is it."""
    for one in inner:
        if (one is NoneType) == (tree is None):
            try:
                return _built(tree, one, arrays)
            except (ValueError, TypeError):
                continue
    raise ValueError


def _each(values: list[Any], kind: type) -> list[Any]:
    if any(type(one) is not kind for one in values):
        raise ValueError
    return values
