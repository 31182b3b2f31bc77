"""States by a key, which add entry by entry; and the commonest of many keys."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

K = TypeVar("K")


def added(a: dict[K, Any], b: dict[K, Any]) -> dict[K, Any]:
    """The entries of either side, and sums where both have one.

    Example:
        >>> added({"old": 1, "current": 2}, {"current": 3})
        {'old': 1, 'current': 5}
    """
    return a | b | {key: a[key] + b[key] for key in a if key in b}


def commonest(counts: Counter[K], most: int) -> Counter[K]:
    """The keys that were counted most often; of equals, those that came first.

    Example:
        >>> commonest(Counter("abbcc"), 2)
        Counter({'b': 2, 'c': 2})
    """
    return Counter(dict(counts.most_common(most)))
