"""Eight pairs of a real language model: what one token's estimate varies by, exactly.

At each of 7,632 prefixes (64 prompts, two completions of at most 64 tokens each) the moments of
log q/p under p are exact, over the whole vocabulary.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

HERE = Path(__file__).parent
# p samples; p is the float32 model, but in the third pair.
PAIRS = {
    "bf16": "float32 ‖ the same weights in bfloat16",
    "engine": "float32 ‖ the engine on its 4-bit weights",
    "from engine": "the engine on its 4-bit weights ‖ float32",
    "light": "float32 ‖ 12 steps of a LoRA at 3e-4",
    "noise": "float32 ‖ noise of 5% added to the weights",
    "T 0.7": "float32 ‖ itself at temperature 0.7",
    "T 1.4": "float32 ‖ itself at temperature 1.4",
    "strong": "float32 ‖ 30 steps of a LoRA at 2e-3",
}
DRAWN = ("light", "noise", "strong")  # those with fresh draws
UNBIASED = ("k1", "k3", "best λ")


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair, prefix by prefix.

    Args:
        name: A key of ``PAIRS``.
        kl: KL(p‖q) at each prefix, nats.
        kl_other: KL(q‖p).
        mean_k2: The mean of k2 under p.
        variances: Of one draw's k1, k2 and k3.
        prompt: The number of the prompt of each prefix, from 0.
    """

    name: str
    kl: Values
    kl_other: Values
    mean_k2: Values
    variances: Mapping[str, Values]
    prompt: NDArray[np.int64]

    @property
    def jeffreys(self) -> Values:
        """J = KL(p‖q) + KL(q‖p) at each prefix."""
        return self.kl + self.kl_other

    @property
    def chi2(self) -> Values:
        """χ²(q‖p) at each prefix, by Var(k3) = Var(k1) − 2J + χ²."""
        return self.variances["k3"] - self.variances["k1"] + 2 * self.jeffreys

    @property
    def shape(self) -> Values:
        """S = χ²/(2J) at each prefix: above 1 k3 is noisier than k1."""
        return self.chi2 / (2 * self.jeffreys)

    @property
    def pooled(self) -> float:
        """S of a token of any prefix, which decides for the token mean."""
        return float(self.chi2.sum() / (2 * self.jeffreys.sum()))

    @property
    def holed(self) -> NDArray[np.bool_]:
        """At which prefixes S is above 1."""
        return self.shape > 1

    @property
    def mean(self) -> float:
        """The token mean of KL(p‖q)."""
        return float(self.kl.mean())

    def within(self, method: str) -> Values:
        """The variance of one draw at each prefix; "exact" is Rao-Blackwell's, which draws none."""
        if method == "exact":
            return np.zeros_like(self.kl)
        if method == "best λ":
            lam = 1 / (2 * self.pooled)
            return self.variances["k1"] - 2 * lam * self.jeffreys + lam**2 * self.chi2
        return self.variances[method]

    def bias(self, method: str) -> float:
        """What the token mean of k2 is off by; the others are not."""
        return float(self.mean_k2.mean()) - self.mean if method == "k2" else 0.0

    def error(self, method: str, prompts: int, *, anew: bool = True) -> float:
        """The root mean squared error of a token mean, to first order.

        Var(Z) / (C E[N]²), where Z sums x − E x over a prompt and N counts its tokens.

        Args:
            method: k1, k2, k3, best λ or exact.
            prompts: C, how many prompts a batch has.
            anew: Whether prompts are drawn anew with each batch, so that their KLs differ; else
                the draws alone vary, as they do if the KL at these prefixes is asked for.
        """
        expected = self.mean_k2 if method == "k2" else self.kl
        squares = np.bincount(self.prompt, self.within(method))
        if anew:
            squares = squares + np.bincount(self.prompt, expected - expected.mean()) ** 2
        tokens = len(self.kl) / len(squares)
        return math.hypot(math.sqrt(squares.mean() / prompts) / tokens, self.bias(method))


@cache
def arrays() -> Mapping[str, NDArray[Any]]:
    """All that is recorded."""
    with np.load(HERE / "smollm2.npz") as held:
        return {name: held[name] for name in held.files}


@cache
def pair(name: str) -> Pair:
    """One of ``PAIRS``."""
    held = {
        moment: arrays()[f"{name}/{moment}"].astype(np.float64)
        for moment in ("kl", "kl_other", "e_k2", "var_k1", "var_k2", "var_k3")
    }
    return Pair(
        name=name,
        kl=held["kl"],
        kl_other=held["kl_other"],
        mean_k2=held["e_k2"],
        variances={method: held[f"var_{method}"] for method in ("k1", "k2", "k3")},
        prompt=arrays()["prompt"].astype(np.int64),
    )


def other_direction(name: str) -> tuple[Values, float, float]:
    """S where q samples and KL(q‖p) is asked for, as for a policy q and its reference p.

    χ²(p‖q) = E_p[p/q] − 1 is exact over p's 20 likeliest tokens and by 64 draws beyond.

    Args:
        name: One of ``DRAWN``.

    Returns:
        S at each prefix, S of all together, and the standard error of the latter.
    """
    chi2, error = (
        arrays()[f"{name}/{part}"].astype(np.float64) for part in ("chi2_other", "error")
    )
    jeffreys = pair(name).jeffreys
    scale = 2 * float(jeffreys.mean())
    return chi2 / (2 * jeffreys), float(chi2.mean()) / scale, float(error) / scale


def holes() -> dict[str, list[dict[str, Any]]]:
    """The words where p or q has a hole: the worst of each pair."""
    return json.loads((HERE / "holes.json").read_text(encoding="utf-8"))
