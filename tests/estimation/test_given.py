from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.estimation import given
from kullback.worlds.tables import drifted, head, zipf

RNG = np.random.default_rng(0)
CONTEXTS, ALPHABET, SHAPE, K = 40, 60, (20, 12), 6
P = zipf(RNG, contexts=CONTEXTS, alphabet=ALPHABET)
Q = drifted(RNG, P, 0.5)
CONTEXT = RNG.integers(CONTEXTS, size=SHAPE)
DRAWN = np.array([[RNG.choice(ALPHABET, p=np.exp(P[c])) for c in row] for row in CONTEXT])
LOGS: dict[str, Any] = {"log_p": P[CONTEXT, DRAWN], "log_q": Q[CONTEXT, DRAWN]}
EXACT = (np.exp(P) * (P - Q)).sum(axis=1)[CONTEXT]


def listed(table: np.ndarray, k: int = K) -> tuple[np.ndarray, np.ndarray]:
    ids, logs = head(table, k)
    return ids[CONTEXT], logs[CONTEXT]


def appended(table: np.ndarray, *, first: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """k + 1 entries as engines give them: the sampled token last (or first) if it is not listed."""
    ids, logs = listed(table)
    inside = (ids == DRAWN[..., None]).any(axis=-1)
    extra = (
        np.where(inside, -1, DRAWN)[..., None],
        np.where(inside, np.nan, table[CONTEXT, DRAWN])[..., None],
    )
    parts = [extra, (ids, logs)] if first else [(ids, logs), extra]
    ids, logs = (np.concatenate(pair, axis=-1) for pair in zip(*parts, strict=True))
    return ids, logs


HEADS: dict[str, Any] = {"top_p": listed(P), "top_q": listed(Q), "tokens": DRAWN}
CLEAN = kb.estimate(**LOGS, **HEADS)


def test_the_rung_follows_from_what_is_given():
    some = np.where(RNG.random(SHAPE) < 0.6, EXACT, np.nan)
    few = np.where(RNG.random(SHAPE) < 0.05, EXACT, np.nan)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "auto"),
        (HEADS, "partial"),
        (HEADS | {"exact": few}, "partial"),
        (HEADS | {"exact": some}, "subset"),
        ({"exact": some}, "subset"),
        ({"exact": EXACT}, "rao_blackwell"),
        ({"logits_p": P[CONTEXT] + 3, "logits_q": Q[CONTEXT]}, "rao_blackwell"),
    ]
    for more, method in cases:
        assert kb.estimate(**LOGS, **more).method == method
    assert CLEAN.low < EXACT.mean() < CLEAN.high
    assert CLEAN.standard_error < kb.estimate(**LOGS).standard_error


@pytest.mark.parametrize("first", [False, True])
def test_an_appended_token_is_told_by_its_rank(first):
    found = kb.estimate(
        **LOGS,
        top_p=appended(P, first=first),
        top_q=appended(Q, first=first),
        tokens=DRAWN,
    )
    assert found.mean == pytest.approx(CLEAN.mean, rel=1e-12)
    assert found.standard_error == pytest.approx(CLEAN.standard_error, rel=1e-12)


def test_taken_as_head_the_appended_token_would_bias_it():
    """The wrong twin: lists of k + 1 that are not cut by rank."""
    off = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = np.array([[rng.choice(ALPHABET, p=np.exp(P[c])) for c in row] for row in CONTEXT])
        ids, logs = listed(P)
        inside = (ids == drawn[..., None]).any(axis=-1)
        with_it = np.where(inside[..., None], np.nan, P[CONTEXT, drawn][..., None])
        p = np.exp(np.concatenate([logs, with_it], axis=-1))
        q = np.concatenate(
            [np.take_along_axis(Q[CONTEXT], ids, -1), Q[CONTEXT, drawn][..., None]], axis=-1
        )
        wrong = np.nansum(p * (np.log(p) - q), axis=-1) / np.nansum(p, axis=-1)
        off.append(wrong.mean() - EXACT.mean())
    assert abs(np.mean(off)) > 5 * np.std(off) / np.sqrt(len(off))


def test_flat_arrays_and_padding():
    mask = np.arange(SHAPE[1]) < RNG.integers(3, SHAPE[1] + 1, size=(SHAPE[0], 1))
    heads: dict[str, Any] = {"top_p": listed(P), "top_q": listed(Q)}
    clusters = np.arange(SHAPE[0])
    tokens = np.where(mask, DRAWN, 0)
    padded = kb.estimate(**LOGS, **heads, tokens=tokens, mask=mask, clusters=clusters)
    cut: dict[str, Any] = {name: tuple(one[mask] for one in pair) for name, pair in heads.items()}
    flat = kb.estimate(
        clusters=clusters,
        log_p=LOGS["log_p"][mask],
        log_q=LOGS["log_q"][mask],
        lengths=mask.sum(axis=1),
        tokens=DRAWN[mask],
        **cut,
    )
    assert flat.mean == pytest.approx(padded.mean, rel=1e-12)
    assert flat.count == padded.count == mask.sum()


def test_logits_are_summed_in_blocks_and_padding_is_not_read(monkeypatch):
    monkeypatch.setattr(given, "LOGITS", 7 * ALPHABET)
    mask = np.ones(SHAPE, bool)
    mask[:, -2:] = False
    logits_p, logits_q = P[CONTEXT] + 5.0, Q[CONTEXT].astype(np.float32)
    logits_p[:, -2:] = np.nan
    found = kb.estimate(**LOGS, mask=mask, logits_p=logits_p, logits_q=logits_q)
    assert found.mean == pytest.approx(EXACT[:, :-2].mean(), rel=1e-5)
    flat = kb.estimate(
        log_p=LOGS["log_p"].ravel(),
        log_q=LOGS["log_q"].ravel(),
        lengths=SHAPE[1],
        logits_p=(P[CONTEXT]).reshape(-1, ALPHABET),
        logits_q=(Q[CONTEXT]).reshape(-1, ALPHABET),
    )
    assert flat.mean == pytest.approx(EXACT.mean(), rel=1e-9)


def test_arrays_of_torch_and_jax(traceable):
    logs = {name: traceable.array(one) for name, one in LOGS.items()}
    found = kb.estimate(**logs, **HEADS)
    assert found.mean == pytest.approx(CLEAN.mean, rel=1e-6)
    exact = kb.estimate(
        **logs, logits_p=traceable.array(P[CONTEXT]), logits_q=traceable.array(Q[CONTEXT])
    )
    assert exact.mean == pytest.approx(EXACT.mean(), rel=1e-6)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"logits_p": P[CONTEXT]}, "logits_p and logits_q go together"),
        ({"top_p": listed(P), "tokens": DRAWN}, "top_p and top_q go together"),
        ({"top_p": listed(P), "top_q": listed(Q)}, "need tokens=, the sampled ids"),
        (HEADS | {"tokens": DRAWN[:, :-1]}, "tokens holds 220 ids for 240 tokens"),
        (HEADS | {"tokens": DRAWN / 1.0}, "tokens holds float64, not whole numbers"),
        (HEADS | {"top_q": listed(Q)[:1]}, "top_q is a pair"),
        (HEADS | {"top_q": listed(Q)[::-1]}, "ids of top_q holds float64"),
        (HEADS | {"top_q": (listed(Q)[0], listed(Q, 5)[1])}, "ids of shape .*, log-probs"),
        (HEADS | {"top_q": tuple(x[:, 1:] for x in listed(Q))}, "expected k entries for each"),
        (
            HEADS | {"top_q": (listed(Q)[0], np.exp(listed(Q)[1]))},
            "top_q weighs more than 1 at row 0, token 0: give log-probabilities",
        ),
        (
            HEADS | {"top_p": (DRAWN[..., None], LOGS["log_p"][..., None])},
            "top_p lists nothing but the sampled token",
        ),
        ({"exact": EXACT, "logits_p": P[CONTEXT], "logits_q": Q[CONTEXT]}, "give either exact="),
        ({"logits_p": P[CONTEXT[:5]], "logits_q": Q[CONTEXT]}, "a row for each of 240 tokens"),
        (
            {"logits_p": P[CONTEXT] * np.nan, "logits_q": Q[CONTEXT]},
            "no KL at row 0, token 0, one of 240",
        ),
        ({"logits_p": P[CONTEXT], "logits_q": Q[CONTEXT][..., 1:]}, "over the same categories"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(more, sentence):
    with pytest.raises(ValueError, match=sentence):
        kb.estimate(**LOGS, **more)
