"""What a role did not score, others doubt: the measure that unscored tokens are told by."""

from __future__ import annotations

from kullback.estimation.opening_state import OpeningState
from kullback.estimation.role_sums import Logged
from kullback.estimation.slope_state import ONE_POLICY
from kullback.estimation.stretch_state import StretchState

SCORED = 0.5  # share of the tokens of which another role has a log-prob, if it scored them
DOUBTED = -0.1  # nats: whoever scored such tokens gives them less than this, on average


def means_of(others: dict[str, Logged], tokens: int) -> dict[str, float]:
    """What the roles that scored most of some tokens give them, on average."""
    return {
        other: one.total / one.count for other, one in others.items() if one.count > SCORED * tokens
    }


def doubting(state: OpeningState | StretchState) -> dict[str, float]:
    """The roles that scored them and their means, if all of them are in doubt; else nothing."""
    means = means_of(state.others, state.tokens)
    return means if means and max(means.values()) < DOUBTED else {}


def doubted_by_a_copy(role: str, means: dict[str, float]) -> bool:
    """Whether one of those in doubt has the weights of the role, or nearly."""
    return role in ONE_POLICY and not ONE_POLICY.isdisjoint(means)
