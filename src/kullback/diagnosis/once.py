"""What several detectors ask of one summary, found once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kullback.estimation.summary import Summary

P = ParamSpec("P")
T = TypeVar("T")


def once(find: Callable[Concatenate[Summary, P], T]) -> Callable[Concatenate[Summary, P], T]:
    """The function, whose answer is kept with the summary that it was asked of.

    A summary never changes, so neither does the answer: whoever asks must leave it as it is.

    Args:
        find: What to find of a summary; what else it takes can be a key of a dictionary.
    """
    name = f"{find.__module__}.{find.__qualname__}"

    @wraps(find)
    def found(summary: Summary, /, *args: P.args, **how: P.kwargs) -> T:
        kept, key = vars(summary).setdefault("_found", {}), (name, args, *how.items())
        if key not in kept:
            kept[key] = find(summary, *args, **how)
        return kept[key]

    return found
