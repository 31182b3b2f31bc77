from __future__ import annotations

import numpy as np
import pytest

from kullback.audit.aggregating import aggregation, breaks
from kullback.audit.calling import Caller
from kullback.audit.roles import parameters
from kullback.audit.scenes import APART, sequence, staged, together

TRIAL = together([sequence(staged(APART.name, ends=True), row) for row in (0, 1)])


def caller(fn, library="numpy"):
    return Caller(fn, parameters(fn, None), library, TRIAL)


def k2(current, reference):
    return (current - reference) ** 2 / 2


MASKED = {
    "token_mean": lambda current, reference, mask: (
        (k2(current, reference) * mask).sum() / mask.sum()
    ),
    "sequence_sum": lambda current, reference, mask: (k2(current, reference) * mask).sum(-1).mean(),
    "sequence_mean": lambda current, reference, mask: (
        (k2(current, reference) * mask).sum(-1) / mask.sum(-1)
    ).mean(),
    "sum": lambda current, reference, mask: (k2(current, reference) * mask).sum(),
    "padded_mean": lambda current, reference, mask: (k2(current, reference) * mask).mean(),
    "per_token": lambda current, reference, mask: k2(current, reference) * mask,
    "per_sequence": lambda current, reference, mask: (k2(current, reference) * mask).sum(-1),
    "other": lambda current, reference, mask: (k2(current, reference) * mask).max(),
}


@pytest.mark.parametrize("level", MASKED)
def test_a_level_is_found(level):
    found = aggregation(caller(MASKED[level]))
    assert found.level == level
    assert found.takes_mask
    assert not found.leaks


def test_a_sequence_that_is_computed_as_one_is_joint():
    found = aggregation(
        caller(lambda current, reference, mask: ((current - reference) * mask).sum(-1) ** 2)
    )
    assert (found.within, found.batch, found.level) == ("joint", "none", "per_sequence")


@pytest.mark.parametrize(
    ("fn", "level"),
    [
        (lambda current, reference: k2(current, reference).mean(), "token_mean"),
        (lambda current, reference: k2(current, reference).sum(-1).mean(), "sequence_sum"),
        (lambda current, reference: k2(current, reference).sum(), "sum"),
    ],
    ids=["mean", "sum and mean", "sum"],
)
def test_without_a_mask_every_position_counts(fn, level):
    found = aggregation(caller(fn))
    assert (found.level, found.takes_mask, found.leaks) == (level, False, True)


def test_a_mask_that_is_forgotten_leaks():
    assert aggregation(caller(lambda current, reference, mask: k2(current, reference).mean())).leaks
    counted = caller(lambda current, reference, mask: k2(current, reference).sum() / mask.sum())
    assert aggregation(counted).leaks
    # Values at masked positions that nobody counts are no leak.
    assert not aggregation(caller(lambda current, reference, mask: k2(current, reference))).leaks


def test_infinities_at_masked_positions():
    torch = pytest.importorskip("torch")
    product = MASKED["token_mean"]

    def after(current, reference, mask):
        return torch.where(mask, k2(current, reference), 0.0).sum()

    def before(current, reference, mask):
        return k2(torch.where(mask, current, 0.0), torch.where(mask, reference, 0.0)).sum()

    def picky(current, reference, mask):
        if not torch.isfinite(current).all():
            raise RuntimeError("infinite")
        return before(current, reference, mask)

    assert breaks(caller(product, "torch")) == "value"
    assert breaks(caller(after, "torch")) == "gradient"
    assert breaks(caller(before, "torch")) == ""
    assert "picky raised RuntimeError (infinite)" in breaks(caller(picky, "torch"))


def test_what_depends_on_the_others_of_its_batch_does_not_add():
    whitened = lambda current, reference: (current - current.mean()) * reference  # noqa: E731
    assert not aggregation(caller(whitened)).adds
    assert all(aggregation(caller(fn)).adds for name, fn in MASKED.items() if name != "other")
    torch = pytest.importorskip("torch")

    def gradient_alone(current, reference, mask):
        mean = current.mean().detach()
        return (current + (current - current.detach()) * mean).sum()

    def value_too(current, reference, mask):
        return torch.square(current).sum()

    found = aggregation(caller(gradient_alone, "torch"))
    assert (found.adds, aggregation(caller(value_too, "torch")).adds) == (False, True)


def test_one_rule_is_measured_in_float32_too():
    found = aggregation(
        caller(lambda current, reference, mask: MASKED["token_mean"](
            current.astype(np.float32), reference.astype(np.float32), mask))
    )  # fmt: skip
    assert found.level == "token_mean"


def test_a_term_in_float32_is_made_of_its_sequences_too():
    pytest.importorskip("torch")

    def k3(logits, reference, tokens, mask):
        log_probs = logits.float().log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        x = reference.float() - log_probs
        return ((x.exp() - 1 - x) * mask).sum() / mask.sum()

    found = aggregation(caller(k3, "torch"))
    assert (found.level, found.adds) == ("token_mean", True)
