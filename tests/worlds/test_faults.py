from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import SENTINEL, Columns
from kullback.question import Question
from kullback.worlds import FAULTS, Mixture
from kullback.worlds.faults import older, padding_counted, rounded_to_bf16, trained_on_sample
from kullback.worlds.tables import drifted, ending, kept_top_k, kept_top_p, tempered, zipf


def base() -> Mixture:
    rng = np.random.default_rng(0)
    rollout = zipf(rng, contexts=32, alphabet=400)
    tables = {
        "rollout": rollout,
        "old": drifted(rng, rollout, 0.02),
        "reference": drifted(rng, rollout, 0.4),
    }
    tables = {role: ending(table, 0.02) for role, table in tables.items()}
    return Mixture(tables, prompts=40, ends=True, max_length=80)


WORLD = base()
ROLLOUT, OLD, REFERENCE = (WORLD.log_probs[role] for role in WORLD.roles)
CLEAN = WORLD.sample(np.random.default_rng(7))


def injected(name: str) -> Columns:
    return FAULTS[name].inject(WORLD, np.random.default_rng(7))


def untouched(columns: Columns, *roles: str) -> bool:
    return all((columns.log_probs[role] == CLEAN.log_probs[role]).all() for role in roles)


def positions(columns: Columns) -> np.ndarray:
    return np.concatenate([np.arange(length) for length in columns.lengths])


def z(terms: np.ndarray, values: np.ndarray, sampler: np.ndarray) -> float:
    """Standard errors between the terms of a sample and the exact mean of values."""
    probability = np.exp(sampler) / len(sampler)
    inside = np.where(probability > 0, values, 0.0)
    mean = np.sum(probability * inside)
    variance = np.sum(probability * (inside - mean) ** 2)
    return float((terms - mean).sum() / np.sqrt(variance * len(terms)))


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_told_and_leaves_a_trace(name):
    columns = injected(name)
    assert FAULTS[name].caption
    assert FAULTS[name].code
    assert not (
        np.array_equal(columns.lengths, CLEAN.lengths)
        and untouched(columns, *WORLD.roles)
        and np.array_equal(columns.mask, CLEAN.mask)
        and np.array_equal(np.asarray(columns.tokens), np.asarray(CLEAN.tokens))
        and columns.labels == CLEAN.labels
    )


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("temperature", tempered(ROLLOUT, 0.8)),
        ("top-k", kept_top_k(ROLLOUT, 20)),
        ("top-p", kept_top_p(ROLLOUT, 0.9)),
        ("wrong-sampler", REFERENCE),
    ],
)
def test_tokens_from_elsewhere_with_the_samplers_raw_log_probs(name, drawn):
    columns = injected(name)
    log_p, log_q = columns.log_probs["rollout"], columns.log_probs["reference"]
    assert abs(z(log_p - log_q, ROLLOUT - REFERENCE, drawn)) < 5
    assert abs(z(np.expm1(log_q - log_p), np.expm1(REFERENCE - ROLLOUT), drawn)) < 5
    entropy = WORLD.entropy["rollout"][:, None]
    surprise = -log_p - columns.entropy["rollout"]
    assert abs(z(surprise, -ROLLOUT - entropy, drawn)) < 5


@pytest.mark.parametrize(
    ("name", "drawn"), [("top-k", kept_top_k(ROLLOUT, 20)), ("top-p", kept_top_p(ROLLOUT, 0.9))]
)
def test_truncation_moves_the_mean_ratio_to_the_ratio_of_the_kept_masses(name, drawn):
    kept = np.isfinite(drawn)
    mass_p, mass_q = (np.where(kept, np.exp(t), 0.0).sum(axis=1) for t in (ROLLOUT, REFERENCE))
    mean = (np.exp(drawn) * np.where(kept, np.expm1(REFERENCE - ROLLOUT), 0.0)).sum(axis=1)
    assert mean == pytest.approx(mass_q / mass_p - 1, rel=1e-10)
    tokens = np.asarray(injected(name).tokens)
    assert not np.isin(tokens, np.flatnonzero(~kept.any(axis=0))).any()


@pytest.mark.parametrize("name", ["temperature", "top-k", "top-p"])
def test_filtered_tokens_surprise_less_than_the_entropy(name):
    columns = injected(name)
    surprise = -columns.log_probs["rollout"] - columns.entropy["rollout"]
    assert z(surprise, -ROLLOUT - WORLD.entropy["rollout"][:, None], ROLLOUT) < -10


def test_wrong_sampler_turns_the_kl_around():
    columns = injected("wrong-sampler")
    k1 = columns.log_probs["rollout"] - columns.log_probs["reference"]
    mean = (np.exp(REFERENCE) * (ROLLOUT - REFERENCE)).sum() / 32
    assert mean == pytest.approx(-WORLD.exact(Question("reference", "rollout")))
    # An honest sampler's sum is this negative with probability e^(Σ k1) at most.
    assert k1.sum() < -100


def test_trainer_temperature_is_an_honest_sampler_whose_log_probs_go_with_1_over_t():
    columns = injected("trainer-temperature")
    hot = tempered(ROLLOUT, 0.8)
    surprise = -columns.log_probs["rollout"] - columns.entropy["rollout"]
    entropy = -(np.exp(hot) * hot).sum(axis=1, keepdims=True)
    assert abs(z(surprise, -hot - entropy, hot)) < 5
    slope = np.polyfit(columns.log_probs["old"], columns.log_probs["rollout"], 1)[0]
    assert slope > 1.1


def test_stale_sampler_is_nearer_to_the_reference_than_the_policy_logged():
    columns = injected("stale-sampler")
    k1 = columns.log_probs["rollout"] - columns.log_probs["reference"]
    drawn = older(WORLD)
    assert older(WORLD, 0.0) == pytest.approx(ROLLOUT, abs=1e-12)
    assert older(WORLD, 1.0) == pytest.approx(REFERENCE, abs=1e-12)
    assert abs(z(k1, ROLLOUT - REFERENCE, drawn)) < 5
    mixed = {**WORLD.log_probs, "older": drawn}
    world = replace(WORLD, log_probs=mixed)
    to_reference, to_rollout = (
        world.exact(Question("older", role)) for role in ("reference", "rollout")
    )
    mean = (np.exp(drawn) * (ROLLOUT - REFERENCE)).sum() / 32
    assert mean == pytest.approx(to_reference - to_rollout)
    assert mean < 0


def test_stale_is_honest_and_says_its_version():
    columns = injected("stale")
    assert columns.versions is not None
    assert set(columns.labels["step"] - columns.versions[columns.ends - 1]) == {4}
    lagging = drifted(np.random.default_rng(7), ROLLOUT, 0.2)
    k1 = columns.log_probs["rollout"] - columns.log_probs["old"]
    assert abs(z(k1, lagging - OLD, lagging)) < 5
    assert k1.mean() > 10 * WORLD.exact(Question("rollout", "old"))


def test_training_on_the_sample_raises_it_by_the_squared_gradient():
    rate = 1e-4
    columns = trained_on_sample(WORLD, np.random.default_rng(7), "old", rate)
    draw = WORLD.draw(np.random.default_rng(7), ROLLOUT)
    counts = np.zeros_like(OLD)
    np.add.at(counts, (draw.contexts, draw.tokens), 1)
    visits = counts.sum(axis=1, keepdims=True)
    raised = (columns.log_probs["old"] - CLEAN.log_probs["old"]).sum()
    squares = visits * (counts / visits - np.exp(OLD)) ** 2
    assert raised == pytest.approx(rate * squares.sum(), rel=1e-3)


def test_in_sample_kl_is_negative_though_the_true_one_is_not():
    columns = injected("in-sample")
    assert untouched(columns, "rollout", "reference")
    k1 = columns.log_probs["rollout"] - columns.log_probs["old"]
    assert k1.sum() < -20
    assert np.expm1(-k1).mean() > 0


def test_dropout_is_noise_whose_ratio_has_mean_one():
    columns = injected("dropout")
    log_q_over_p = columns.log_probs["old"] - columns.log_probs["rollout"]
    count = np.sqrt(len(columns))
    assert abs(np.expm1(log_q_over_p).mean()) < 5 * np.sqrt(np.expm1(0.05**2)) / count
    assert abs(-log_q_over_p.mean() - 0.05**2 / 2) < 5 * 0.05 / count
    assert untouched(columns, "rollout", "reference")


def test_shift_puts_each_log_prob_one_token_late_and_stays_in_its_sequence():
    columns = injected("shifted-by-one")
    assert untouched(columns, "rollout", "reference")
    late, clean = columns.log_probs["old"], CLEAN.log_probs["old"]
    inner = positions(columns)[1:] > 0
    assert (late[1:][inner] == clean[:-1][inner]).all()
    starts = columns.ends - columns.lengths
    assert (late[starts] == clean[columns.ends - 1]).all()


def test_misaligned_rows_hold_the_next_sequence():
    columns = injected("misaligned")
    assert untouched(columns, "rollout", "reference")
    first, second = CLEAN.lengths[:2]
    shared = min(first, second)
    wrong = columns.log_probs["old"][:shared]
    assert (wrong == CLEAN.log_probs["old"][first : first + shared]).all()


def test_retokenized_sequences_do_not_spell_their_text():
    columns = injected("retokenized")
    pieces, texts = list(columns.token_bytes or ()), list(columns.text or ())
    spans = zip(columns.ends - columns.lengths, columns.ends, texts, strict=True)
    wrong = [
        b"".join(piece or b"" for piece in pieces[start:end]).decode() != text
        for start, end, text in spans
    ]
    assert np.flatnonzero(wrong).tolist() == list(range(0, 320, 20))
    assert [WORLD.vocabulary[token] for token in np.asarray(columns.tokens)] == pieces
    assert untouched(columns, *WORLD.roles)


def test_padding_is_trailing_zeros_that_count():
    columns = injected("padding")
    assert columns.mask.all()
    assert set(columns.lengths) == {CLEAN.lengths.max() + 16}
    real = positions(columns) < np.repeat(CLEAN.lengths, columns.lengths)
    for role, log_probs in columns.log_probs.items():
        assert (log_probs[real] == CLEAN.log_probs[role]).all()
        assert (log_probs[~real] == 0).all()
    k1 = columns.log_probs["rollout"] - columns.log_probs["reference"]
    clean_k1 = CLEAN.log_probs["rollout"] - CLEAN.log_probs["reference"]
    assert k1.mean() == pytest.approx(clean_k1.mean() * len(CLEAN) / len(columns))
    assert columns.text == CLEAN.text


def test_padding_works_on_any_columns():
    full = WORLD.sample(np.random.default_rng(7), exact=True, top_k=3)
    padded = padding_counted(replace(full, versions=np.ones(len(full), dtype=np.int64)))
    assert padded.top_k == {}
    assert np.asarray(padded.versions).sum() == len(full)
    assert {len(values) for values in padded.exact.values()} == {len(padded)}
    assert padding_counted(replace(full, tokens=None, token_bytes=None)).tokens is None


def test_prompt_is_leading_zeros_of_the_sampler():
    columns = injected("prompt")
    assert untouched(columns, "old", "reference")
    zeros = columns.log_probs["rollout"] == 0
    assert (zeros == (positions(columns) < 8)).all()
    assert (columns.log_probs["rollout"][~zeros] == CLEAN.log_probs["rollout"][~zeros]).all()


@pytest.mark.parametrize(
    ("name", "role", "value"), [("sentinel", "rollout", SENTINEL), ("nan", "old", np.nan)]
)
def test_every_50th_value_is_overwritten(name, role, value):
    columns = injected(name)
    hit = np.arange(len(columns)) % 50 == 25
    assert np.array_equal(columns.log_probs[role][hit], np.full(hit.sum(), value), equal_nan=True)
    assert (columns.log_probs[role][~hit] == CLEAN.log_probs[role][~hit]).all()
    assert columns.mask[hit].all()


def test_probabilities_and_logits():
    probabilities = injected("probabilities").log_probs["old"]
    assert np.log(probabilities) == pytest.approx(CLEAN.log_probs["old"])
    assert (probabilities > 0).all()
    logits = injected("unnormalized").log_probs["old"]
    assert logits - CLEAN.log_probs["old"] == pytest.approx(np.ones(len(CLEAN)))
    mean_ratio = np.exp(logits - CLEAN.log_probs["rollout"]).mean()
    assert mean_ratio == pytest.approx(np.e, rel=0.01)


def test_truncated_reference_gives_infinite_ratios_where_it_keeps_nothing():
    columns = injected("truncated-reference")
    impossible = ~np.isfinite(columns.log_probs["old"])
    lost = ~np.isfinite(kept_top_k(OLD, 50))
    assert abs(z(impossible.astype(float), lost.astype(float), ROLLOUT)) < 5
    assert impossible.any()


def test_clamp_leaves_no_larger_log_ratio():
    columns = injected("clamped")
    log_q_over_p = columns.log_probs["old"] - columns.log_probs["rollout"]
    before = CLEAN.log_probs["old"] - CLEAN.log_probs["rollout"]
    assert np.abs(log_q_over_p).max() == pytest.approx(0.05)
    assert log_q_over_p == pytest.approx(np.clip(before, -0.05, 0.05), abs=1e-12)
    assert (np.abs(before) > 0.05).any()


def test_bf16_keeps_eight_bits():
    columns = injected("bf16")
    rounded, clean = columns.log_probs["old"], CLEAN.log_probs["old"]
    assert (rounded.astype(np.float32).view(np.uint32) & 0xFFFF == 0).all()
    assert (np.abs(rounded - clean) <= np.abs(clean) * 2.0**-8 * (1 + 1e-6)).all()
    assert untouched(columns, "rollout", "reference")
    # To nearest, ties to even: 1 + 1/256 lies between 1 and 1 + 1/128.
    ties = rounded_to_bf16(np.array([1 + 1 / 256, 1 + 3 / 256, -0.3, 0.0]))
    assert ties.tolist() == [1.0, 1 + 4 / 256, -0.30078125, 0.0]


def test_reference_at_step_zero_is_far_from_the_policy():
    columns = injected("reference-not-start")
    assert set(columns.labels["step"]) == {0}
    assert WORLD.exact(Question("rollout", "reference")) > 0.03
    assert untouched(columns, *WORLD.roles)
