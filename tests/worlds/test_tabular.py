from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kullback.question import Question
from kullback.worlds.tabular import Tabular, three_tokens, tree

ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "d_tabular_autoregressive.json").read_text()
)
WORLDS = {"fixed": three_tokens(ends=False), "eos": three_tokens(ends=True)}
ROLES = {"pi": "current", "ref": "reference", "mu": "old"}
PAIRS = [("pi", "ref"), ("ref", "pi"), ("mu", "pi"), ("pi", "mu"), ("mu", "ref")]

both = pytest.mark.parametrize("name", WORLDS)


def exactly(expected):
    return pytest.approx(np.asarray(expected, dtype=np.float64), rel=1e-12, abs=1e-12)


def sums(world: Tabular) -> dict[str, np.ndarray]:
    """Values of each sequence: terms summed over tokens, terms of the whole sequence, weights."""
    by_role = {role: world.by_token(role) for role in world.roles}
    per_token = by_role["reference"] - by_role["current"]
    log_weight = by_role["current"] - by_role["old"]
    k3 = np.expm1(per_token) - per_token
    return {
        "k1": -per_token.sum(axis=1),
        "k2": (per_token**2 / 2).sum(axis=1),
        "k3": k3.sum(axis=1),
        "r - 1": np.expm1(per_token).sum(axis=1),
        "sequence k3": np.expm1(per_token.sum(axis=1)) - per_token.sum(axis=1),
        "rao-blackwell": world.by_context(world.kl("current", "reference")).sum(axis=1),
        "weight": np.exp(log_weight.sum(axis=1)),
        "k3 by prefix weight": (np.exp(np.cumsum(log_weight, axis=1)) * k3).sum(axis=1),
        "k3 by token weight": (np.exp(log_weight) * k3).sum(axis=1),
    }


@both
def test_sequences_contexts_and_log_probs_are_the_oracles(name):
    world, oracle = WORLDS[name], ORACLES[name]
    assert [list(c) for c in world.tree.contexts] == oracle["contexts"]
    rows = zip(world.tree.tokens.tolist(), world.lengths, strict=True)
    assert [row[:n] for row, n in rows] == oracle["sequences"]
    for theirs, ours in ROLES.items():
        logits = np.asarray(oracle["logits"][theirs], dtype=np.float64)
        assert world.log_probs[ours] - world.log_probs[ours][:, :1] == exactly(
            logits - logits[:, :1]
        )
        assert world.by_token(ours).sum(axis=1) == exactly(oracle["logprob"][theirs])


@both
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_kl_of_sequences_and_of_each_position(name, p, q):
    world, oracle = WORLDS[name], ORACLES[name]
    question = Question(ROLES[p], ROLES[q], level="sequence_sum")
    assert world.exact(question) == exactly(oracle[f"KL_{p}_{q}"])
    by_position = world.by_context(world.kl(ROLES[p], ROLES[q])).T
    means = [world.mean(values, by=ROLES[p]) for values in by_position]
    assert means == exactly(oracle[f"KL_{p}_{q}_by_position"])


@both
def test_levels_and_prefixes(name):
    world, oracle = WORLDS[name], ORACLES[name]
    asked = "KL(current||reference)"
    assert world.exact(asked) == exactly(oracle["KL_pi_ref_per_token_ratio_of_means"])
    stale = Question.parse(f"{asked} ~ old per sequence")
    off_policy = oracle["value_estimators_off_policy_mu"]
    assert world.exact(stale) == exactly(off_policy["token_IS_target_sum_prefix_mu"])
    own = Question.parse(f"{asked} ~ old prefixes current per sequence")
    assert world.exact(own) == exactly(off_policy["true"])
    assert world.mean(world.lengths, by="current") == exactly(oracle["expected_length_pi"])


@both
def test_sequence_mean_is_the_kl_and_not_the_mean_of_k1(name):
    world, oracle = WORLDS[name], ORACLES[name]
    k1, inside = sums(world)["k1"], sums(world)["rao-blackwell"]
    mean_k1 = world.mean(k1 / world.lengths, by="current")
    assert mean_k1 == exactly(oracle["KL_pi_ref_mean_of_per_sequence_token_means"])
    answer = world.exact(Question("current", "reference", level="sequence_mean"))
    assert answer == exactly(world.mean(inside / world.lengths, by="current"))
    assert (abs(answer - mean_k1) > 0.005) == (name == "eos")


@both
def test_moments_of_estimators_on_policy(name):
    world, oracle = WORLDS[name], ORACLES[name]["value_estimators_on_policy"]
    values = sums(world)
    lam = float(oracle["lambda_star_token"])
    values["k_lambda"] = values["k1"] + lam * values["r - 1"]
    names = {
        "k1": "k1",
        "k2": "k2_token_sum",
        "k3": "k3_token_sum",
        "sequence k3": "k3_sequence",
        "rao-blackwell": "rao_blackwell",
        "k_lambda": "klam_star_token_sum",
    }
    for ours, theirs in names.items():
        assert world.mean(values[ours], by="current") == exactly(oracle[theirs]["mean"])
        assert world.variance(values[ours], by="current") == exactly(oracle[theirs]["var"])
    ratio = world.probability("reference") / world.probability("current")
    assert world.variance(ratio, by="current") == exactly(oracle["chi2_sequence"])


@both
def test_moments_of_estimators_off_policy(name):
    world, oracle = WORLDS[name], ORACLES[name]["value_estimators_off_policy_mu"]
    values = sums(world)
    weighted = {
        "k1_no_weight": values["k1"],
        "k1_seq_IS": values["weight"] * values["k1"],
        "k3_seq_IS": values["weight"] * values["sequence k3"],
        "k3_token_sum_prefix_IS": values["k3 by prefix weight"],
        "k3_token_sum_token_IS_deepseek_v32": values["k3 by token weight"],
    }
    for theirs, value in weighted.items():
        assert world.mean(value, by="old") == exactly(oracle[theirs]["mean"])
        assert world.variance(value, by="old") == exactly(oracle[theirs]["var"])
    ess = 1 / world.mean(values["weight"] ** 2, by="old")
    assert ess == exactly(oracle["ess_fraction"])


@both
def test_every_ratio_has_mean_one(name):
    world = WORLDS[name]
    for sampler in world.roles:
        for other in world.roles:
            ratio = world.probability(other) / world.probability(sampler)
            assert world.mean(ratio, by=sampler) == exactly(1.0)


def test_impossible_sequences_weigh_nothing_and_violations_are_infinite():
    with np.errstate(divide="ignore"):
        tables = {"p": np.log([[0.5, 0.5, 0.0]]), "q": np.log([[0.2, 0.3, 0.5]])}
    world = Tabular(tables, sampler="p", max_length=1)
    assert world.exact(Question("p", "q")) == exactly(0.5 * np.log(0.5 / 0.2 * 0.5 / 0.3))
    assert world.exact(Question("q", "p")) == np.inf
    assert world.mean([1.0, 3.0, np.inf], by="p") == 2.0


def test_tree_grows_depth_first_to_the_end_or_the_maximum():
    grown = tree(2, 3, eos=0)
    assert grown.contexts == [(), (1,), (1, 1)]
    assert grown.tokens.tolist() == [[0, -1, -1], [1, 0, -1], [1, 1, 0], [1, 1, 1]]
    assert grown.context.tolist() == [[0, -1, -1], [0, 1, -1], [0, 1, 2], [0, 1, 2]]


@both
@pytest.mark.parametrize("sampler", ["current", "old"])
def test_sample_agrees_with_the_exact_moments(name, sampler):
    world = replace(WORLDS[name], sampler=sampler, sequences=20_000)
    columns = world.sample(np.random.default_rng(5))
    sequence = columns.sequence_of_token
    for role in world.roles:
        drawn = np.bincount(sequence, weights=columns.log_probs[role])
        exact = world.by_token(role).sum(axis=1)
        error = np.sqrt(world.variance(exact, by=sampler) / world.sequences)
        assert abs(drawn.mean() - world.mean(exact, by=sampler)) < 5 * error
    # The surprise −log p − H has mean zero at every prefix of the sampler.
    surprise = -columns.log_probs[sampler] - columns.entropy[sampler]
    by_tree = -world.by_token(sampler) - world.by_context(world.entropy[sampler])
    error = np.sqrt(world.variance(by_tree.sum(axis=1), by=sampler) * world.sequences)
    assert abs(surprise.sum()) < 5 * error


@both
def test_sample_looks_up_the_tables(name):
    world = WORLDS[name]
    columns = world.sample(np.random.default_rng(6), exact=True)
    assert set(columns.exact) == {
        f"KL({p}||{q})" for p in ROLES.values() for q in ROLES.values() if p != q
    }
    tokens = np.asarray(columns.tokens)
    for end, length in zip(columns.ends[:50], columns.lengths[:50], strict=True):
        start = end - length
        for place in range(start, end):
            context = world.tree.contexts.index(tuple(tokens[start:place].tolist()))
            for role in world.roles:
                row = world.log_probs[role][context]
                assert columns.log_probs[role][place] == row[tokens[place]]
                assert columns.entropy[role][place] == exactly(-(np.exp(row) * row).sum())
            p, q = world.log_probs["current"][context], world.log_probs["reference"][context]
            kl = (np.exp(p) * (p - q)).sum()
            assert columns.exact["KL(current||reference)"][place] == exactly(kl)
    assert len(np.unique(columns.clusters)) == world.sequences
