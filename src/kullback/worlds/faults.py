"""What goes wrong between a sampler and its log: one small function each, and its finding code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kullback.columns import SENTINEL, Columns, TopK
from kullback.formulas.categorical import log_softmax
from kullback.worlds.fault import Fault, Inject, in_log, other_role
from kullback.worlds.mixture import Mixture
from kullback.worlds.tables import Table, drifted, kept_top_k, kept_top_p, tempered

HEAD = 50  # log-probs of each prefix that are logged with faults of the sampling settings


def drawn_from(
    world: Mixture, rng: np.random.Generator, log_probs: Table, top_k: int = 0
) -> Columns:
    """Tokens of any distribution, logged as if the sampler had drawn them."""
    return world.logged(world.draw(rng, log_probs), top_k=top_k)


def older(world: Mixture, back: float = 0.7) -> Table:
    """The sampler's policy most of the way back to the last role, on the geometric path."""
    now, start = world.log_probs[world.sampler], world.log_probs[world.roles[-1]]
    return log_softmax((1 - back) * now + back * start)


def trained_on_sample(
    world: Mixture, rng: np.random.Generator, role: str, rate: float = 4.0
) -> Columns:
    """A policy took one gradient step, all advantages 1, on the very tokens it is judged by.

    The gradient of a context's mean log q(x) in its logits is: frequencies − q.
    """
    draw, log_q = world.draw(rng, world.log_probs[world.sampler]), world.log_probs[role]
    places = draw.contexts * log_q.shape[1] + draw.tokens
    counts = np.bincount(places, minlength=log_q.size).reshape(log_q.shape)
    visits = counts.sum(axis=1, keepdims=True)
    gradient = np.where(visits > 0, counts / np.maximum(visits, 1) - np.exp(log_q), 0.0)
    return with_policy(world, role, log_softmax(log_q + rate * gradient)).logged(draw)


def stale(
    world: Mixture, rng: np.random.Generator, versions: int = 4, size: float = 0.1
) -> Columns:
    """The sampler lags some versions behind the others, and the log is honest about it."""
    lagging = drifted(rng, world.log_probs[world.sampler], size * np.sqrt(versions))
    columns = with_policy(world, world.sampler, lagging).sample(rng)
    step = np.full(len(columns.lengths), versions)
    return replace(columns, versions=np.zeros(len(columns), dtype=np.int64), labels={"step": step})


def with_policy(world: Mixture, role: str, log_probs: Table) -> Mixture:
    """The same world with another policy for a role."""
    return replace(world, log_probs={**world.log_probs, role: log_probs})


def replaced(columns: Columns, role: str, log_probs: NDArray[Any]) -> Columns:
    """One role has other log-probs."""
    return replace(columns, log_probs={**columns.log_probs, role: log_probs})


def rewritten(
    columns: Columns, role: str, change: Callable[[NDArray[Any]], NDArray[Any]]
) -> Columns:
    """One role's log-probs, changed."""
    return replaced(columns, role, change(columns.log_probs[role]))


def noisy_copy(
    columns: Columns, rng: np.random.Generator, role: str, of: str, size: float = 0.05
) -> Columns:
    """A role holds another one's log-probs, evaluated again with log-normal noise of mean 1."""
    noise = size * rng.standard_normal(len(columns)) - size**2 / 2
    return replaced(columns, role, columns.log_probs[of] + noise)


def clamped(columns: Columns, role: str, to: str, limit: float = 0.05) -> Columns:
    """The log-ratio of one role to another was clamped before it was logged."""
    log_q_over_p = np.clip(columns.log_probs[role] - columns.log_probs[to], -limit, limit)
    return replaced(columns, role, columns.log_probs[to] + log_q_over_p)


def overwritten(columns: Columns, role: str, value: float, every: int = 50) -> Columns:
    """Every 50th log-prob of a role is this value."""
    hit = np.arange(len(columns)) % every == every // 2
    return rewritten(columns, role, lambda log_p: np.where(hit, value, log_p))


def shifted_by_one(columns: Columns, role: str) -> Columns:
    """Each log-prob of a role stands one token late; the last of a sequence comes first."""
    position, length = columns.position_of_token, np.repeat(columns.lengths, columns.lengths)
    before = np.arange(len(columns)) - position + (position - 1) % length
    return rewritten(columns, role, lambda log_p: log_p[before])


def misaligned(columns: Columns, role: str) -> Columns:
    """Each sequence has the log-probs of the next one, repeated if that is shorter."""
    following = np.roll(np.arange(len(columns.lengths)), -1)
    start = np.repeat(columns.starts[following], columns.lengths)
    length = np.repeat(columns.lengths[following], columns.lengths)
    place = start + columns.position_of_token % length
    return rewritten(columns, role, lambda log_p: log_p[place])


def prompt_counted(columns: Columns, sampler: str, tokens: int = 8) -> Columns:
    """The first 8 tokens are the prompt: the engine, which did not sample them, wrote zeros."""
    prompt = columns.position_of_token < tokens
    return rewritten(columns, sampler, lambda log_p: np.where(prompt, 0.0, log_p))


def prompt_scored(columns: Columns, tokens: int = 8) -> Columns:
    """The first 8 tokens are the prompt, scored by all; sequences with one key share it."""
    sequences = np.arange(len(columns.lengths))
    keys, first = np.unique(columns.clusters, return_index=True)
    source = first[np.searchsorted(keys, columns.clusters)]
    shared = np.minimum(np.minimum(columns.lengths, columns.lengths[source]), tokens)
    begins = columns.position_of_token < np.repeat(shared, columns.lengths)
    moved = np.repeat(columns.starts[source] - columns.starts[sequences], columns.lengths)
    place = np.arange(len(columns)) + np.where(begins, moved, 0)
    assert columns.tokens is not None
    return replace(
        columns,
        log_probs={role: values[place] for role, values in columns.log_probs.items()},
        entropy={role: values[place] for role, values in columns.entropy.items()},
        top_k={
            role: TopK(head.ids[place], head.log_probs[place])
            for role, head in columns.top_k.items()
        },
        tokens=columns.tokens[place],
        token_bytes=None,
        text=None,
    )


def environment_counted(
    columns: Columns, rng: np.random.Generator, sampler: str, tokens: int = 6
) -> Columns:
    """Six tokens of every second sequence are a tool's: the sampler has 0, the others scored them.

    Their ids differ each time, and the others give them three nats less than what stood there.
    """
    position, ids = columns.position_of_token, columns.tokens
    assert ids is not None
    length = np.repeat(columns.lengths, columns.lengths)
    turn = (position >= 4) & (position < 4 + tokens) & (length > 4 + tokens)
    turn &= columns.sequence_of_token % 2 == 0
    log_probs = {
        role: np.where(turn, 0.0 if role == sampler else values - 3.0, values)
        for role, values in columns.log_probs.items()
    }
    drawn = np.where(turn, rng.integers(1, ids.max(), size=len(ids)), ids)
    return replace(columns, log_probs=log_probs, tokens=drawn, token_bytes=None, text=None)


def packed_wrongly(
    world: Mixture, rng: np.random.Generator, role: str, per_row: int = 8
) -> Columns:
    """Eight sequences to a row; a role scored the first of each behind the last of the one before.

    The log-prob of the next token that the last position of a sequence gives belongs to nobody.
    """
    draw = world.draw(rng, world.log_probs[world.sampler])
    columns = world.logged(draw)
    numbers = np.arange(len(columns.lengths))
    first = columns.starts[numbers % per_row > 0]
    values = np.array(columns.log_probs[role])
    values[first] = world.log_probs[role][draw.contexts[first - 1], draw.tokens[first]]
    packed = replace(columns, rows=numbers // per_row, within=numbers % per_row)
    return replaced(packed, role, values)


def rejected(columns: Columns, role: str, to: str, share: float = 0.02) -> Columns:
    """The mask was cut where the log-ratio of one role to another is largest, on either side."""
    size = np.abs(columns.log_probs[role] - columns.log_probs[to])
    return replace(columns, mask=columns.mask & (size <= np.quantile(size, 1 - share)))


def unnormalized(columns: Columns, role: str, log_normalizer: float = 1.0) -> Columns:
    """A role logged logits, of the sampled token and of its head."""
    ids, logs = columns.top_k[role]
    head = TopK(ids, logs + log_normalizer)
    logits = rewritten(columns, role, lambda log_p: log_p + log_normalizer)
    return replace(logits, top_k={**columns.top_k, role: head})


def padding_counted(columns: Columns, extra: int = 16) -> Columns:
    """Rows are padded with zeros to the longest and 16 more, and the mask covers it all."""
    width = int(columns.lengths.max()) + extra
    inside = np.arange(width) < columns.lengths[:, None]

    def pad(values: NDArray[Any], fill: Any = 0) -> NDArray[Any]:
        padded = np.full(inside.shape, fill, dtype=values.dtype)
        padded[inside] = values
        return padded.ravel()

    pieces = None if columns.token_bytes is None else np.array(columns.token_bytes, dtype=object)
    return replace(
        columns,
        lengths=np.full(len(columns.lengths), width),
        mask=np.ones(inside.size, dtype=np.bool_),
        log_probs={role: pad(values) for role, values in columns.log_probs.items()},
        entropy={role: pad(values) for role, values in columns.entropy.items()},
        exact={name: pad(values) for name, values in columns.exact.items()},
        top_k={},
        versions=None if columns.versions is None else pad(columns.versions),
        tokens=None if columns.tokens is None else pad(columns.tokens),
        token_bytes=None if pieces is None else pad(pieces, None).tolist(),
    )


def retokenized(world: Mixture, rng: np.random.Generator, every: int = 20) -> Columns:
    """Every 20th sequence was encoded anew: its first id is another one, its text is not."""
    columns = world.sample(rng)
    tokens = np.array(columns.tokens)
    first = columns.starts[::every]
    tokens[first] = 1 + tokens[first] % (world.shape[1] - 1)
    return replace(columns, tokens=tokens, token_bytes=world.vocabulary[tokens].tolist())


def rounded_to_bf16(log_p: NDArray[Any]) -> NDArray[np.float64]:
    """To the 8 significant bits of bfloat16: to nearest, ties to even."""
    bits = log_p.astype(np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    kept = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(np.float64)


def _sampled(alter: Callable[[Table], Table]) -> Inject:
    """The sampler drew from an altered table, and logged heads of its own one."""

    def inject(world: Mixture, rng: np.random.Generator) -> Columns:
        own = world.log_probs[world.sampler]
        return drawn_from(world, rng, alter(own), top_k=min(HEAD, own.shape[1] - 1))

    return inject


def _policy(
    role_of: Callable[[Mixture], str], alter: Callable[[Table], Table], top_k: int = 0
) -> Inject:
    def inject(world: Mixture, rng: np.random.Generator) -> Columns:
        role, k = role_of(world), min(top_k, world.shape[1] - 1)
        return with_policy(world, role, alter(world.log_probs[role])).sample(rng, top_k=k)

    return inject


FAULTS: dict[str, Fault] = {
    "temperature": Fault(
        "the sampler drew at temperature 0.8 and logged its raw log-probs",
        "temperature-mismatch",
        _sampled(lambda log_p: tempered(log_p, 0.8)),
    ),
    "trainer-temperature": Fault(
        "the sampler drew and logged at temperature 0.8, the trainer scored at 1",
        "temperature-mismatch",
        _policy(lambda world: world.sampler, lambda log_p: tempered(log_p, 0.8), top_k=HEAD),
        everywhere=False,  # only beside another copy of the policy
    ),
    "top-k": Fault(
        "the sampler drew from its 20 likeliest tokens and logged its raw log-probs",
        "sampler-truncated",
        _sampled(lambda log_p: kept_top_k(log_p, 20)),
    ),
    "top-p": Fault(
        "the sampler drew from its likeliest 90 % and logged its raw log-probs",
        "sampler-truncated",
        _sampled(lambda log_p: kept_top_p(log_p, 0.9)),
    ),
    "wrong-sampler": Fault(
        "the last role sampled, and the sampler is said to have",
        "sampler-mismatch",
        lambda world, rng: drawn_from(world, rng, world.log_probs[world.roles[-1]]),
        also=("negative-beyond-chance",),
    ),
    "stale-sampler": Fault(
        "an older policy, nearer to the last role, sampled; newer weights wrote the log-probs",
        "sampler-mismatch",
        lambda world, rng: drawn_from(world, rng, older(world)),
        also=("negative-beyond-chance",),
    ),
    "stale": Fault("the sampler lags four versions behind, and says so", "stale", stale),
    "in-sample": Fault(
        "another policy was trained on the very tokens that it is compared on",
        "in-sample",
        lambda world, rng: trained_on_sample(world, rng, other_role(world)),
        also=("negative-beyond-chance", "sampler-mismatch"),
        everywhere=False,  # not where the step was small
    ),
    "reference-not-start": Fault(
        "at step 0 the reference is not the policy",
        "reference-not-start",
        in_log(lambda columns, _, __: replace(columns, labels={"step": 0 * columns.lengths})),
    ),
    "dropout": Fault(
        "the sampler's weights were evaluated a second time with dropout on",
        "stochastic-forward",
        lambda world, rng: noisy_copy(world.sample(rng), rng, other_role(world), world.sampler),
        everywhere=False,  # only where tokens are scored twice behind one prefix
    ),
    "shifted-by-one": Fault(
        "one role's log-probs stand one token late in each sequence",
        "shifted-by-one",
        in_log(lambda columns, _, other: shifted_by_one(columns, other)),
    ),
    "misaligned": Fault(
        "one role's log-probs belong to the next sequence",
        "misaligned",
        in_log(lambda columns, _, other: misaligned(columns, other)),
    ),
    "retokenized": Fault(
        "the ids of some sequences do not spell their text",
        "tokens-do-not-match-text",
        retokenized,
    ),
    "padding": Fault(
        "the mask covers trailing padding, where every log-prob is 0",
        "mask-covers-padding",
        in_log(lambda columns, _, __: padding_counted(columns)),
    ),
    "prompt": Fault(
        "the mask covers 8 prompt tokens, where the sampler's log-prob is 0",
        "mask-covers-prompt",
        in_log(lambda columns, sampler, _: prompt_counted(columns, sampler)),
    ),
    "prompt-scored": Fault(
        "the mask covers 8 prompt tokens, and every role scored them",
        "mask-covers-prompt",
        in_log(lambda columns, _, __: prompt_scored(columns)),
    ),
    "environment": Fault(
        "the mask covers a tool's tokens in the middle, where the sampler's log-prob is 0",
        "mask-covers-environment",
        lambda world, rng: environment_counted(world.sample(rng), rng, world.sampler),
    ),
    "packed": Fault(
        "one role scored the first tokens of packed sequences behind the sequence before",
        "packed-boundary",
        lambda world, rng: packed_wrongly(world, rng, other_role(world)),
    ),
    "rejected": Fault(
        "the mask leaves out the 2 % of the tokens with the largest log-ratios",
        "selected-on-outcome",
        in_log(lambda columns, sampler, other: rejected(columns, other, sampler)),
    ),
    "sentinel": Fault(
        "every 50th log-prob of the sampler is −9999, inside the mask",
        "sentinel-inside-mask",
        in_log(lambda columns, sampler, _: overwritten(columns, sampler, SENTINEL)),
    ),
    "nan": Fault(
        "every 50th log-prob of one role is NaN, inside the mask",
        "missing-values",
        in_log(lambda columns, _, other: overwritten(columns, other, np.nan)),
    ),
    "probabilities": Fault(
        "one role logged probabilities instead of log-probs",
        "not-log-probs",
        in_log(lambda columns, _, other: rewritten(columns, other, np.exp)),
    ),
    "bits": Fault(
        "one role logged log2 instead of natural logarithms",
        "unit-or-scale",
        in_log(lambda columns, _, other: rewritten(columns, other, lambda one: one / np.log(2))),
        everywhere=False,  # a drift as large hides it
    ),
    "unnormalized": Fault(
        "one role logged logits: the log normalizer, 1, is missing",
        "not-normalized",
        lambda world, rng: unnormalized(world.sample(rng, top_k=20), other_role(world)),
        also=("not-log-probs",),
    ),
    "truncated-reference": Fault(
        "one role logged log-probs after its own top-k of 50: −inf for every other token",
        "infinite-ratio",
        _policy(other_role, lambda log_p: kept_top_k(log_p, 50)),
    ),
    "clamped": Fault(
        "one role's log-ratio to the sampler was clamped at ±0.05",
        "clamp-active",
        in_log(lambda columns, sampler, other: clamped(columns, other, sampler)),
        everywhere=False,  # not where hardly a log-ratio is that large
    ),
    "bf16": Fault(
        "one role's log-probs were rounded to bfloat16",
        "precision-floor",
        in_log(lambda columns, _, other: rewritten(columns, other, rounded_to_bf16)),
    ),
}
