from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kullback as kb
from kullback.estimation import rungs
from kullback.estimation.estimate import from_state
from kullback.estimation.groups import KEPT
from kullback.estimation.interval import ratio_error
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rungs_state import ROW
from kullback.question import Question
from kullback.worlds import Mixture
from kullback.worlds.tables import drifted, holed, zipf

ASKED = Question("p", "q")
COLUMN = "KL(p||q)"


def world(prompts: int = 64, *, holes: bool = False, seed: int = 5, length: int = 16) -> Mixture:
    rng = np.random.default_rng(seed)
    q = zipf(rng, contexts=32, alphabet=100)
    p = drifted(rng, holed(rng, q, share=0.05) if holes else q, 0.4)
    tables = {"p": p, "q": q}
    return Mixture(tables, sampler="p", prompts=prompts, sequences_per_prompt=1, max_length=length)


def state(
    seed: int, *, share: float = 1.0, top_k: int = 8, of: Mixture | None = None,
    level: str = "token_mean",
) -> QuestionState:  # fmt: skip
    rng = np.random.default_rng(seed)
    columns = (of or world()).sample(rng, exact=True, top_k=top_k)
    known = np.where(rng.random(len(columns)) < share, columns.exact[COLUMN], np.nan)
    columns = replace(columns, exact={COLUMN: known} if share else {})
    return QuestionState.of(columns, replace(ASKED, level=level))


@pytest.mark.parametrize("level", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize("holes", [False, True])
def test_every_rung_answers_the_kl_and_each_is_tighter_than_k1(level, holes):
    of, seeds = world(holes=holes), 120
    truth = of.exact(replace(ASKED, level=level))
    found = {name: [] for name in ("k1", "partial", "subset", "rao_blackwell")}
    for seed in range(seeds):
        some, whole = (state(seed, share=share, of=of, level=level) for share in (0.3, 1.0))
        for name in found:
            one = from_state(whole if name == "rao_blackwell" else some, name)
            assert one.low <= one.mean <= one.high
            found[name].append((one.mean - truth, one.standard_error, one.low <= truth <= one.high))
    errors = {}
    for name, rows in found.items():
        off, error, held = np.array(rows, dtype=float).T
        assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(seeds), name
        assert error.mean() == pytest.approx(off.std(ddof=1), rel=0.25), name
        assert held.mean() > 0.88, name
        errors[name] = off.std()
    assert errors["rao_blackwell"] < errors["subset"] < errors["k1"]
    assert errors["partial"] < 0.8 * errors["k1"]


def test_by_hand_the_partial_form_takes_off_what_the_other_half_fitted():
    one = state(0)
    sums = one.rungs.groups.over(one.groups)
    half = one.groups.keys % 2
    above = one.by_group("k1") + sums[ROW["conditional"]]
    total = 0.0
    for side in (0, 1):
        other = sums[:, half != side].sum(axis=1)
        names = ("spread", "spread_both", "spread_both", "spread_centred")
        gram = other[[ROW[name] for name in names]].reshape(2, 2)
        multiple = np.linalg.solve(gram, other[[ROW["cross"], ROW["cross_centred"]]])
        assert 0 < multiple[1] < 1  # else the guess would be taken not at all, or once
        mine = sums[:, half == side]
        total += above[half == side].sum()
        total -= (multiple @ mine[[ROW["control"], ROW["centred"]]]).sum()
    found = rungs._partial(one)
    assert found.above.sum() == pytest.approx(total, rel=1e-12)
    assert found.control is not None
    assert found.control.sum() == pytest.approx(one.rungs.total("tail"), rel=1e-12)


def test_the_partial_form_is_tapered_with_the_control_of_its_tail():
    """In a smooth world it takes most of the noise that is left outside the heads."""
    one = state(0)
    found, plain = from_state(one, "partial"), rungs._partial(one)
    assert found.lam > 0.5
    assert found.standard_error < 0.8 * ratio_error(plain.above, plain.below)
    assert found.standard_error < from_state(one, "auto").standard_error


def test_with_few_tokens_outside_the_lists_nothing_is_taken_off():
    one = state(0, of=world(prompts=2, length=8))
    assert one.rungs.total("spread") < 2 * rungs.FEWEST_OUTSIDE
    expected = (one.total("k1") + one.rungs.total("conditional")) / one.tokens
    assert from_state(one, "partial").mean == pytest.approx(expected, rel=1e-12)


def test_by_hand_the_subset_has_both_phases_in_its_error():
    """Of clusters of one token: se² = var(exact)/n + var(exact − b h)(1/m − 1/n)."""
    one = state(1, share=0.2, of=world(prompts=1000, length=1))
    sums = one.rungs.groups.over(one.groups)
    known = sums[ROW["known"]] > 0
    exact, h = sums[ROW["known_exact"]][known], sums[ROW["bound"]]
    b = np.cov(exact, h[known])[0, 1] / h[known].var(ddof=1)
    n, m = len(h), known.sum()
    variance = exact.var(ddof=1) / n + (exact - b * h[known]).var(ddof=1) * (1 / m - 1 / n)
    found = from_state(one, "subset")
    assert found.mean == pytest.approx(exact.mean() - b * (h[known].mean() - h.mean()), rel=0.01)
    assert found.standard_error == pytest.approx(np.sqrt(variance), rel=0.05)
    assert found.effective_clusters == pytest.approx(m)


def test_the_subset_stands_alone_where_it_is_small_or_has_no_heads():
    for one in (state(2, share=0.05), state(2, share=0.5, top_k=0)):
        found = from_state(one, "subset")
        alone = one.rungs.total("known_exact") / one.rungs.total("known")
        assert found.mean == pytest.approx(alone, rel=1e-12)
        assert "used the subset alone" in found.assumptions
    helped = from_state(state(2, share=0.5), "subset")
    assert "used with the lower bound from the heads at all of them" in helped.assumptions
    assert "positions with an exact KL were chosen at random" in helped.assumptions[0]


def test_rao_blackwell_is_the_exact_mean_with_an_error_for_new_prompts():
    one = state(3)
    exact, found = from_state(one, "exact"), from_state(one, "rao_blackwell")
    assert found.mean == exact.mean
    assert (exact.scope, found.scope) == ("these prefixes", "new prompts")
    assert found.low < exact.low == exact.high < found.high


def test_the_bound_is_below_and_says_so():
    one, truth = state(4), world().exact(ASKED)
    found = from_state(one, "bound")
    assert 0 < found.high < truth
    assert found.marks == ("lower-bound",)
    assert found.mean <= from_state(one, "exact").mean


@pytest.mark.parametrize("method", ["biased_head", "biased_head_renormalized"])
def test_what_is_biased_is_called_so_twice(method):
    found = from_state(state(5), method)
    assert found.method == method
    assert "biased" in found.marks
    assert abs(found.mean - world().exact(ASKED)) > 3 * found.standard_error


def test_a_state_of_many_clusters_that_share_groups_gives_the_same_number():
    of = world(prompts=KEPT + 200, length=2)
    columns = of.sample(np.random.default_rng(0), exact=True, top_k=8)
    some = np.where(np.arange(len(columns)) % 5 == 0, columns.exact[COLUMN], np.nan)
    columns = replace(columns, exact={COLUMN: some})
    whole = QuestionState.of(columns, ASKED)
    assert whole.groups.folded
    cut = (columns.take(slice(None, 300)), columns.take(slice(300, None)))
    parts = [QuestionState.of(one, ASKED) for one in cut]
    assert not parts[0].groups.folded
    for method in ("partial", "subset", "bound"):
        both = from_state(parts[0] + parts[1], method)
        assert both.mean == pytest.approx(from_state(whole, method).mean, rel=1e-10)
        assert both.standard_error == pytest.approx(from_state(whole, method).standard_error)


def test_batches_without_heads_are_k1_there():
    columns = world().sample(np.random.default_rng(0), top_k=8)
    first, rest = columns.take(slice(None, 32)), columns.take(slice(32, None))
    rest = replace(rest, top_k={})
    states = [QuestionState.of(one, ASKED) for one in (first, rest)]
    found = from_state(states[0] + states[1], "partial")
    assert f"heads at {len(first)} of {len(columns)} prefixes, elsewhere none" in found.assumptions
    assert found.mean == from_state(states[1] + states[0], "partial").mean
    assert np.isfinite(found.standard_error)


def test_what_cannot_be_had_has_a_reason():
    bare = state(0, share=0.0, top_k=0)
    assert "needs the heads of p and q" in str(from_state(bare, "partial").reason)
    assert from_state(bare, "subset").reason == "the exact KL is known nowhere"
    assert "known at 0 of" in str(from_state(bare, "rao_blackwell").reason)
    means = state(0, share=0.5, level="sequence_mean")
    for method in ("partial", "subset", "bound"):
        found = from_state(means, method)
        assert np.isnan(found.mean)
        assert found.reason == f"{method} answers per token and per sequence only"
    logs = {"p": [[-1.0]] * 4, "q": [[-1.5]] * 4, "s": [[-1.0]] * 4}
    third = QuestionState.of(kb.pack(logs, exact={COLUMN: [[0.5]] * 4}), Question("p", "q", "s"))
    assert from_state(third, "partial").reason == "partial is for tokens that p sampled; here s did"
    assert from_state(third, "rao_blackwell").mean == 0.5  # at the prefixes of s


def test_an_infinite_kl_is_infinite():
    columns = world().sample(np.random.default_rng(0), exact=True, top_k=8)
    exact = columns.exact[COLUMN].copy()
    exact[::2], exact[1] = np.nan, np.inf
    heads = dict(columns.top_k)
    ids, logs = heads["q"].ids, heads["q"].log_probs.copy()
    logs[0] = -np.inf
    heads["q"] = heads["q"]._replace(ids=ids, log_probs=logs)
    broken = QuestionState.of(replace(columns, exact={COLUMN: exact}, top_k=heads), ASKED)
    for method in ("partial", "bound", "subset"):
        found = from_state(broken, method)
        assert np.isnan(found.mean)
        assert str(found.reason).startswith("infinite: ")


def test_one_cluster_has_a_mean_and_no_interval():
    one = state(0, share=0.5, of=world(prompts=1))
    for method in ("partial", "subset", "bound"):
        found = from_state(one, method)
        assert np.isfinite(found.mean)
        assert np.isnan(found.low)
        assert "fewer than two" in str(found.reason)


def test_the_best_rung_is_the_highest_that_the_data_reach():
    assert rungs.best_rung(state(0)) == "rao_blackwell"
    assert rungs.best_rung(state(0, share=0.5)) == "subset"
    assert rungs.best_rung(state(0, share=0.01)) == "partial"  # ten positions say less
    assert rungs.best_rung(state(0, share=0.01, top_k=0)) == "subset"
    assert rungs.best_rung(state(0, share=0.0)) == "partial"
    assert rungs.best_rung(state(0, share=0.0, top_k=0)) == "auto"
    assert rungs.rungs_of(state(0)) == ("partial", "bound", "rao_blackwell")


def test_tokens_on_which_a_policy_was_trained_mark_every_rung():
    for method in rungs.RUNGS:
        share = 0.5 if method == "subset" else 1.0
        assert "in-sample" in from_state(state(0, share=share), method, in_sample=True).marks
