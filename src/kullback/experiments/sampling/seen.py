"""What tells that a sampler was filtered: statistics of mean 0 if p had drawn the tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kullback as kb
from kullback.experiments.sampling.measure import Values

CLEAR = 5.0  # standard errors that nobody takes for noise
STAKE = 0.1  # of the bet on q, at every token
WON = 1000.0  # times the stake: a chance below 1/1000 if p drew
SEQUENCES, LENGTH = 512, 20


@dataclass(frozen=True, slots=True)
class Check:
    """A statistic of one token, of mean 0 if the policy drew it.

    Args:
        mean: Its mean under the sampler.
        sd: Its standard deviation if the policy drew it.
    """

    mean: float
    sd: float

    @property
    def tokens(self) -> int | None:
        """Independent tokens until the mean is five standard errors off; None if it never is."""
        if abs(self.mean) < 1e-12:
            return None
        return int(np.ceil((CLEAR * self.sd / self.mean) ** 2))


def checks(p: Values, s: Values, q: Values, head: int) -> dict[str, Check]:
    """The mass that is missing, the entropy and the head, of raw log-probs.

    Args:
        p: The policy whose log-probs were logged.
        s: What drew.
        q: The reference.
        head: How many of the likeliest tokens the engine logs.
    """
    entropy = float(kb.entropy(log_probs=np.log(p)))
    likeliest = np.zeros(len(p))
    likeliest[np.argsort(-p, kind="stable")[:head]] = 1.0
    statistics = {
        "missing": 1 - q / p,
        "entropy": -np.log(p) - entropy,
        "head": likeliest - p @ likeliest,
    }
    return {
        name: Check(float(s @ value), float(np.sqrt(p @ value**2)))
        for name, value in statistics.items()
    }


def bet(p: Values, s: Values, q: Values) -> int | None:
    """Independent tokens until the product of 1 + (q/p − 1)/10 has won; None if it does not grow.

    Its mean is 1 if p drew the tokens, whatever q is.
    """
    growth = float(s @ np.log1p(STAKE * (q / p - 1)))
    return int(np.ceil(np.log(WON) / growth)) if growth > 0 else None


def accused(p: Values, s: Values, q: Values, seed: int, *, entropy: bool) -> bool:
    """Whether kb.diagnose says of draws that their log-probs are not those of what drew.

    Args:
        p: The policy whose log-probs were logged.
        s: What drew.
        q: The reference.
        seed: Of the draws.
        entropy: Whether the entropy of p was logged too.
    """
    count = SEQUENCES * LENGTH
    drawn = np.random.default_rng(seed).choice(len(p), size=count, p=s)
    logged = {"rollout": np.full(count, float(kb.entropy(log_probs=np.log(p))))}
    columns = kb.Columns(
        lengths=np.full(SEQUENCES, LENGTH),
        mask=np.ones(count, dtype=bool),
        log_probs={"rollout": np.log(p)[drawn], "reference": np.log(q)[drawn]},
        clusters=np.arange(SEQUENCES, dtype=np.uint64),
        entropy=logged if entropy else {},
    )
    found = kb.diagnose(kb.summarize([columns])).findings
    return any(finding.code == "sampler-mismatch" for finding in found)
