"""Evidence that a KL is above a limit: a bet against "at most the limit", one factor per prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log

import numpy as np

from kullback.control.prompt_sums import PromptSums

# The shares of the wealth that are put on "above", each for itself; what counts is their mean.
# The best stake is about (KL/limit − 1) over the variance of a prompt's KL/limit, so they go from
# small ones, for a KL just above or prompts that differ widely, to nearly everything.
STAKES = (0.02, 0.1, 0.3, 0.6, 0.95)


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much has been won by betting that a KL is above a limit; `update` gives the next state.

        e = mean over stakes g of Π over prompts (1 + g (S − limit T) / (limit T_max))

    S is the sum of k3 over the tokens of a prompt, T their number, T_max = ``most_tokens``. If
    E S ≤ limit E T, given all before, each factor has mean 1 at most, and is at least 1 − g since
    k3 ≥ 0; so e is a nonnegative supermartingale from 1, and the probability that it ever reaches
    1/α is α at most (Ville 1939), however often one looks. Prompts may differ as they like.

    It holds if p sampled, q was fixed before sampling (not trained on these tokens), nothing was
    selected on the outcome, prompts (or episodes) are independent draws and each comes once. Where
    q has mass outside p, the mean of k3 is below the KL: fewer alarms, no false ones. The policies
    may change between updates; then what is refuted is that the KL was at most the limit in every
    one of them, and what was lost while it was below must be won back first. So start anew now and
    then, and at every look where a batch is used again under a policy that moves (`decided` with
    ``states``). A small e is no evidence that the KL is below the limit. It is a number for a
    decision and has no gradient. Sources: Waudby-Smith and Ramdas 2024 (bets on a mean), Vovk and
    Wang 2021 (means of e-values).

    Args:
        limit: The KL(p‖q) in question, per token (token_mean), in nats, above 0.
        most_tokens: The most tokens that a prompt can have: its completions times the cap on their
            length, known before sampling. The smaller, the faster; a prompt with more is refused.
        in_sample: Whether q was trained on these very tokens; then nothing is guaranteed, and
            `marks` says so.
        log_wealth: Logarithm of what each stake has won so far, [stakes].
        highest: The largest log_e after an update so far, at least 0.
        prompts: Prompts seen.
        tokens: Tokens seen.
        k3: Sum of k3 over them, in nats.

    Raises:
        ValueError: The limit is not a positive number, or most_tokens no positive whole one.

    Example:
        >>> import numpy as np
        >>> from kullback.control.prompt_sums import prompt_sums
        >>> rng = np.random.default_rng(0)
        >>> evidence = Evidence(limit=0.01, most_tokens=50)
        >>> for batch in range(10):  # KL = 0.02, 8 prompts of 50 tokens each
        ...     x = rng.normal(0.2, 1.0, size=(8, 50))
        ...     sums = prompt_sums(log_p=-0.5 * (x - 0.2) ** 2, log_q=-0.5 * x**2)
        ...     evidence = evidence.update(sums)
        >>> evidence.decided(0.05)
        True
        >>> print(evidence)
        KL > 0.01 nats per token: e = 4.2e+21, p = 2.4e-22, 80 prompts, mean k3 0.0199
    """

    limit: float
    most_tokens: int
    in_sample: bool = False
    log_wealth: tuple[float, ...] = (0.0,) * len(STAKES)
    highest: float = 0.0
    prompts: int = 0
    tokens: int = 0
    k3: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.limit) and self.limit > 0):
            raise ValueError(f"limit {self.limit:g} is no KL above 0, in nats per token")
        if not _is_count(self.most_tokens):
            raise ValueError(
                f"most_tokens {self.most_tokens} is no number of tokens: give the completions of a "
                "prompt times the cap on their length"
            )

    def update(self, sums: PromptSums) -> Evidence:
        """The evidence after these prompts too; any split of prompts into batches gives the same.

        Args:
            sums: Prompts that have not been seen before, whole (`prompt_sums`).

        Returns:
            The next state; this one stays as it is.

        Raises:
            ValueError: A prompt has more tokens than ``most_tokens``.
        """
        longest = int(sums.tokens.max(initial=0))
        if longest > self.most_tokens:
            raise ValueError(
                f"a prompt has {longest} tokens, more than most_tokens={self.most_tokens}: the "
                "bound holds for what can come, not for what came; start anew with a true one"
            )
        with np.errstate(over="ignore"):
            gain = (sums.k3 / self.limit - sums.tokens) / self.most_tokens
        added = np.log1p(np.multiply.outer(STAKES, gain)).sum(axis=1)
        wealth = tuple(float(one) for one in np.array(self.log_wealth) + added)
        return replace(
            self,
            log_wealth=wealth,
            highest=max(self.highest, _log_mean(wealth)),
            prompts=self.prompts + len(sums),
            tokens=self.tokens + int(sums.tokens.sum()),
            k3=self.k3 + float(sums.k3.sum()),
        )

    @property
    def log_e(self) -> float:
        """The logarithm of the e-value now; +inf after a token that q gives no mass."""
        return _log_mean(self.log_wealth)

    @property
    def e_value(self) -> float:
        """The e-value now; +inf where it is too large for a float, and `log_e` is not."""
        return _exp(self.log_e)

    @property
    def p_value(self) -> float:
        """1 / the largest e-value so far: valid at every look at once; 1 at most."""
        return _exp(-self.highest)

    @property
    def mean(self) -> float:
        """Σ k3 / Σ tokens so far, nats per token: an estimate of the KL; NaN without tokens."""
        return self.k3 / self.tokens if self.tokens else float("nan")

    @property
    def marks(self) -> tuple[str, ...]:
        """What is known to be wrong with it."""
        return ("in-sample",) if self.in_sample else ()

    def decided(self, alpha: float = 0.05, *, states: int = 1) -> bool:
        """Whether the KL is above the limit, with a probability of false alarm of ``alpha``.

            largest e so far ≥ states / alpha

        Args:
            alpha: The probability that this is ever said of a KL at most the limit.
            states: 1 where one state goes through all batches; it may be asked after each of them.
                Where one starts anew (at each look at a batch that is used again, or every ten
                steps), how many states there will be: the alpha is for all of them together.

        Raises:
            ValueError: alpha is not between 0 and 1, or states no positive whole number.
        """
        if not 0 < alpha < 1:
            raise ValueError(f"alpha {alpha} is not between 0 and 1")
        if not _is_count(states):
            raise ValueError(f"states {states} is no number of states that share the alpha")
        return self.highest >= log(states / alpha)

    def __str__(self) -> str:
        marks = f"; {', '.join(self.marks)}" if self.marks else ""
        return (
            f"KL > {self.limit:g} nats per token: e = {self.e_value:.2g}, p = {self.p_value:.2g}, "
            f"{self.prompts} prompts, mean k3 {self.mean:.3g}{marks}"
        )


def _log_mean(log_wealth: tuple[float, ...]) -> float:
    return float(np.logaddexp.reduce(log_wealth)) - log(len(log_wealth))


def _is_count(x: float) -> bool:
    return x >= 1 and x % 1 == 0


def _exp(x: float) -> float:
    return exp(x) if x < 709 else inf
