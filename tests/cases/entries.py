"""An entry of the table: how an ask is answered, or why it is not; and what all entries need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kullback as kb

Input = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NoQuestion:
    """Nobody would ask kullback for it."""

    why: str


Entry = Callable[[Input], Any] | NoQuestion
Table = dict[str, dict[str, Entry]]  # by case and ask


def no_question(why: str, *asks: str) -> dict[str, Entry]:
    return dict.fromkeys(asks, NoQuestion(why))


def log(probabilities: ArrayLike) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probabilities, dtype=np.float64))


def expected(by: ArrayLike, values: ArrayLike) -> float:
    """The sum over all outcomes, each with its exact probability."""
    world = kb.worlds.Tabular({"by": np.atleast_2d(log(by))}, sampler="by", max_length=1)
    return world.mean(values, by="by")


def refusal(function: Callable[..., Any], *args: Any) -> str:
    """What was said when the input was refused; nothing if it was not."""
    try:
        function(*args)
    except ValueError as error:
        return str(error)
    return ""
