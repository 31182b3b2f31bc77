"""How many tokens a logged mean is over: from the log itself, or as the caller says."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from kullback.logs.step_log import Series, StepLog

# The last parts of names under which trainers log these, after dashes and case.
_LENGTH = re.compile(
    r"(response|completions?|output|generation|gen|answer)s?[_/]?(mean[_/])?(len|length|lengths)"
    r"([_/](mean|avg))?$|mean_response_length$|response_length_mean$|completion_length$"
)
_PROMPT = re.compile(r"prompt[_/]?(len|length)([_/](mean|avg))?$")
_OURS = re.compile(
    r"(response|completion|output|generated|action|loss|valid|masked)_tokens?(_count)?$"
    r"|num_(response|completion|output|generated|action|loss|valid)_tokens$|^tokens$|/tokens$"
)
_ALL = re.compile(r"(total_)?num_tokens(_seen)?$|num_input_tokens_seen$|total_tokens$")
_SEQUENCES = re.compile(r"(num_(sequences|samples|responses|completions)|train_batch_size)$")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of each step that a mean is over.

    Args:
        steps: The steps at which it is known; empty where it is the same at all.
        counts: The tokens there, or one number.
        lengths: The mean length of a sequence there, NaN where it is not logged.
        how: Where they are from, as a sentence goes on.
        whole: Whether prompts are counted with them, so that they are too many.
        least: Whether they are those of one sequence a step, so that they may be too few.
    """

    steps: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    how: str
    whole: bool = False
    least: bool = False

    def at(self, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and mean lengths at these steps; NaN where they are not known."""
        if not len(self.steps):
            lengths = self.lengths if len(self.lengths) == 1 else np.array([np.nan])
            return np.full(len(steps), self.counts[0]), np.full(len(steps), lengths[0])
        place = np.searchsorted(self.steps, steps).clip(0, len(self.steps) - 1)
        there = self.steps[place] == steps
        return (
            np.where(there, self.counts[place], np.nan),
            np.where(there, self.lengths[place], np.nan),
        )


def lengths_of(log: StepLog) -> Series | None:
    """The mean length of the responses, if it is logged."""
    return _named(log, _LENGTH)


def tokens_of(log: StepLog, given: int | None) -> Tokens | None:
    """The tokens of a step: as given, else a series that counts them, else none.

    Prompts are taken off where their length is logged beside that of the responses. Where nothing
    but the mean length of the responses is known, a step has one of these at least, and the price
    of a negative sum is what it is at most as long as all steps have equally many.

    Raises:
        ValueError: What is given is no number of tokens.
    """
    length = lengths_of(log)
    if given is not None:
        if given < 1:
            raise ValueError(
                f"tokens {given}: give how many tokens a step's mean is over, 1 at least"
            )
        mean = float(np.nanmedian(length.values)) if length is not None else np.nan
        none = np.empty(0)
        return Tokens(
            none, np.array([float(given)]), np.array([mean]), f"{given} per step, as given"
        )
    ours = _named(log, _OURS)
    if ours is not None:
        return _counted(ours, length, f"logged as {ours.name}")
    sequences = _named(log, _SEQUENCES)
    if sequences is not None and length is not None:
        many, mean = sequences.at(length)
        at = np.intersect1d(sequences.steps, length.steps)
        how = f"{sequences.name} × {length.name}"
        return Tokens(at, many * mean, mean, how)
    every = _named(log, _ALL)
    if every is None:
        return None if length is None else _one_each(length)
    found = _counted(every, length, f"logged as {every.name}")
    return _without_prompts(found, length, _named(log, _PROMPT))


def _named(log: StepLog, pattern: re.Pattern[str]) -> Series | None:
    for name, series in log.series.items():
        if pattern.search(name.lower().replace("-", "_").replace(".", "/")):
            finite = series.values[np.isfinite(series.values)]
            if len(finite) and (finite >= 0).all() and (finite > 0).any():
                return series
    return None


def _counted(series: Series, length: Series | None, how: str) -> Tokens:
    """A count that only grows is one of all tokens so far: its steps are taken."""
    steps, counts = series.steps, series.values
    if (
        len(counts) > 2
        and (np.diff(counts) > 0).all()
        and counts[-1] > 0.6 * len(counts) * counts[0]
    ):
        steps, counts = steps[1:], np.diff(counts)
        how += ", which adds up"
    lengths = np.full(len(steps), np.nan)
    if length is not None:
        lengths = np.interp(steps, length.steps, length.values)
    return Tokens(steps, counts, lengths, how)


def _without_prompts(found: Tokens, length: Series | None, prompt: Series | None) -> Tokens:
    if length is None:
        return Tokens(found.steps, found.counts, found.lengths, found.how, whole=True)
    if prompt is None:
        return _one_each(length)
    prompts = np.interp(found.steps, prompt.steps, prompt.values)
    share = found.lengths / (found.lengths + prompts)
    how = f"{found.how}, less the prompts by {prompt.name}"
    return Tokens(found.steps, found.counts * share, found.lengths, how)


def _one_each(length: Series) -> Tokens:
    how = f"{length.name} of one sequence: a step has one at least"
    return Tokens(length.steps, length.values, length.values, how, least=True)
