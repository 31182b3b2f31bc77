from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import pack
from kullback.diagnosis.limits import diagnose_limits
from kullback.dumps import demo_path, read
from kullback.estimation.summary import summarize
from kullback.experiments.occupancy.directions import FAR_END, of_size
from kullback.experiments.occupancy.measure import actions, old
from kullback.experiments.occupancy.rollouts import draw
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS


def codes(columns, *questions: str):
    asked = [Question.parse(text) for text in questions] or None
    return {f.code: f for f in diagnose_limits(summarize([columns], questions=asked)).findings}


def test_three_tokens_of_a_thousand_that_own_a_mean_are_counted():
    """Of 1000 tokens three have log p/q = −20: they own all of k3 but for 1.4e-10."""
    ratio = np.repeat([0.02, -0.02, -20.0], [500, 497, 3])
    log_p = np.full(1000, -21.0)
    found = codes(pack({"p": log_p, "q": log_p - ratio}, lengths=1))["mean-owned-by-few"]
    assert found.severity == "note"
    assert found.numbers["KL(p||q)"]["sum_of"] == "k3"
    assert found.numbers["KL(p||q)"]["share"] == pytest.approx(1.0, abs=1e-9)
    assert found.where[0] == "row 997, token 0"


@pytest.mark.parametrize(
    ("few", "said"), [(1, "1 of 300 tokens owns "), (2, "2 of 300 tokens own ")]
)
def test_the_verb_agrees_with_the_number_of_tokens(few, said):
    log_p = np.full(300, -21.0)
    log_q = log_p + np.where(np.arange(300) < few, 20.0, 0.0)
    found = codes(pack({"p": log_p, "q": log_q}, lengths=1))["mean-owned-by-few"]
    assert found.claim.startswith(said)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_the_few_tokens_cost_is_the_mean_without_them(sign):
    log_p = np.full(300, -30.0)
    log_q = log_p - 0.01
    log_q[7] += 20.0 * sign
    found = codes(pack({"p": log_p, "q": log_q}, lengths=1))["mean-owned-by-few"]
    name = found.numbers["KL(p||q)"]["sum_of"]
    terms = {"k1": log_p - log_q, "k3": np.expm1(log_q - log_p) - (log_q - log_p)}[name]
    left = (terms.sum() - terms[7]) / 300
    assert f"is {terms.mean():.3g} with them and {left:.3g} without" in found.cost


def test_an_even_sum_is_owned_by_nobody():
    log_p = np.full((300, 1), -1.0)
    assert "mean-owned-by-few" not in codes(pack({"p": log_p, "q": log_p - 0.1}))


def test_degenerate_weights_are_a_warning():
    sampler = np.full((400, 1), -1.0)
    policy = sampler - 5.0
    policy[0] = 3.0
    columns = pack({"old": sampler, "current": policy, "reference": sampler - 0.1})
    found = codes(columns, "KL(current||reference) ~ old")["weights-degenerate"]
    weights = np.exp(policy - sampler)
    share = weights.sum() ** 2 / (400 * (weights**2).sum())
    assert found.numbers["ess_fraction"] == pytest.approx(share, rel=1e-12)
    assert found.severity == "warning"


def test_prefixes_that_were_hardly_seen_are_a_warning():
    """The weights leave two thirds of the tokens; what they say of whole sequences is told."""
    cells, chosen = draw(0)
    rights = (of_size(FAR_END, 0.005).right, old())
    new, before = (np.log(actions(right))[cells, chosen] for right in rights)
    columns = pack({"old": before, "current": new})
    found = codes(columns, "KL(current||old) ~ old prefixes current")["weights-degenerate"]
    assert found.numbers["ess_fraction"] > 0.5
    assert found.numbers["path_weight"] == pytest.approx(
        np.exp((new - before).sum(axis=1)).mean(), rel=1e-9
    )
    assert "of 1000 clusters carry the sum" in found.claim
    assert found.advice == "Sample from current: no weight shows what it does there."
    assert "weights-degenerate" not in codes(columns, "KL(current||old) ~ old")


@pytest.mark.parametrize(("sequences", "told"), [(49, True), (51, False)])
def test_fewer_than_fifty_clusters_are_told(sequences, told):
    columns = pack({"p": np.full((sequences, 3), -1.0), "q": np.full((sequences, 3), -1.1)})
    assert ("too-few-clusters" in codes(columns)) == told


ASKED = "KL(current||reference)"


def test_a_question_that_forgets_who_sampled_is_told_what_the_weight_makes_of_it():
    """The tokens of the demo: weighed, k1 is 0.0365, near the exact one; else −0.0296."""
    (columns,) = read(demo_path())
    found = codes(columns, ASKED)["weight-missing"]
    (state,) = summarize([columns], questions=[f"{ASKED} ~ rollout"]).questions.values()
    assert found.numbers["with"] == pytest.approx(state.total("k1") / state.tokens, rel=1e-12)
    plain = columns.log_probs["current"] - columns.log_probs["reference"].astype(float)
    assert found.numbers["without"] == pytest.approx(plain.mean(), rel=1e-9)
    weight = np.exp(columns.log_probs["current"] - columns.log_probs["rollout"].astype(float))
    assert found.numbers["weight_max"] == pytest.approx(weight.max(), rel=1e-12)
    assert found.numbers["ess_fraction"] == pytest.approx(
        weight.sum() ** 2 / (len(weight) * (weight**2).sum()), rel=1e-9
    )
    assert found.numbers["clip_fraction"] == ((weight < 0.8) | (weight > 1.2)).mean()
    assert found.questions == (ASKED,)
    assert found.advice == f"Ask {ASKED} ~ rollout."
    assert not found.accuses


def test_no_weight_is_missing_where_it_changes_nothing_or_nobody_says_who_sampled():
    columns = CLEAN_WORLDS["training_loop"](32).sample(np.random.default_rng(0))
    assert "weight-missing" not in codes(columns, "KL(old||current)")
    assert "weight-missing" not in codes(columns, f"{ASKED} ~ rollout")
    anonymous = {r: v for r, v in columns.log_probs.items() if r != "rollout"}
    assert "weight-missing" not in codes(replace(columns, log_probs=anonymous), ASKED)
    unknown = {**columns.log_probs, "current": np.full(len(columns), np.nan)}
    assert "weight-missing" not in codes(replace(columns, log_probs=unknown), ASKED)


def test_a_dump_that_was_read_twice_is_told_with_the_rows():
    (columns,) = read(demo_path())
    found = codes(columns.take(np.repeat(np.arange(128), 2)))["rows-repeated"]
    assert found.severity == "note"
    assert found.numbers == {"copies": 121.0, "rows": 242, "share": 0.5}
    assert found.where[0].startswith("demo.parquet, row ")
    assert "rows-repeated" not in codes(columns)
