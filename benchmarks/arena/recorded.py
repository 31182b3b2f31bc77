"""Real pairs: SmolLM2-135M and three relatives of it, resampled from draws of the real model.

At each of 7,632 prefixes (64 prompts, two completions each) 64 tokens were drawn from the float32
model and scored by all four; the KL and the variances of k1 and k3 are exact, over the vocabulary.
A sample takes prompts with replacement, and one draw at each of their prefixes. What none of the
488,448 draws hit is in no sample: of ``strong`` that is nearly all of k3's exact variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import kullback as kb

DATA = Path(__file__).with_name("smollm2.npz")
ROLLOUT = kb.Question("rollout", "reference")


@dataclass(frozen=True)
class Recorded:
    """One of the pairs, and how many prompts are drawn of it.

    Args:
        pair: ``light``, ``strong`` or ``noise``: which relative is the other policy.
        prompts: Prompts of a sample.
    """

    pair: str
    prompts: int

    @cached_property
    def data(self) -> dict[str, NDArray[np.float64]]:
        """Log r, [prefixes, draws], and the exact moments, [prefixes]."""
        with np.load(DATA) as held:
            names = ("log_r", "kl", "var_k1", "var_k3")
            return {name: held[f"{self.pair}/{name}"].astype(np.float64) for name in names}

    @cached_property
    def places(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of each prompt its prefixes and the lengths of its completions."""
        with np.load(DATA) as held:
            prompt, sequence = held["prompt"], held["sequence"]
        found = []
        for one in np.unique(prompt):
            prefixes = np.flatnonzero(prompt == one)
            _, lengths = np.unique(sequence[prefixes], return_counts=True)
            found.append((prefixes, lengths))
        return found

    def exact(self, question: kb.Question = ROLLOUT) -> float:
        """The token mean of the exact KL over all prefixes."""
        if question != ROLLOUT:
            raise ValueError(f"{question} is not recorded")
        return float(self.data["kl"].mean())

    def error(self, method: str) -> float:
        """The error of the token mean over prompts drawn anew, to first order.

        Var(Z) / (C E[N]²), where Z sums x − KL over a prompt: its draws vary at each prefix, and
        the exact KLs of its prefixes differ from the mean.
        """
        off = self.data["kl"] - self.exact()
        within = self.data[f"var_{method}"]
        squares = [within[at].sum() + off[at].sum() ** 2 for at, _ in self.places]
        tokens = np.mean([len(at) for at, _ in self.places])
        return math.sqrt(np.mean(squares) / self.prompts) / float(tokens)

    def sample(self, rng: np.random.Generator, clusters: NDArray[np.uint64]) -> kb.Columns:
        """Prompts with replacement, each a cluster of its own."""
        chosen = [self.places[i] for i in rng.integers(len(self.places), size=self.prompts)]
        prefixes = np.concatenate([at for at, _ in chosen])
        lengths = np.concatenate([cuts for _, cuts in chosen])
        log_r = self.data["log_r"]
        drawn = log_r[prefixes, rng.integers(log_r.shape[1], size=len(prefixes))]
        return kb.Columns(
            lengths=lengths,
            mask=np.ones(len(prefixes), dtype=np.bool_),
            log_probs={"rollout": np.zeros(len(prefixes)), "reference": drawn},
            clusters=np.repeat(clusters, [len(cuts) for _, cuts in chosen]),
            cluster_kind="prompt",
        )
