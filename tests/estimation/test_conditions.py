from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.columns import pack
from kullback.estimation.conditions import carrying, ess_fraction, path_weight, prefixes_unseen
from kullback.estimation.question_state import QuestionState
from kullback.experiments.occupancy.directions import EVERYWHERE, FAR_END, of_size
from kullback.experiments.occupancy.measure import actions, old
from kullback.experiments.occupancy.rollouts import VISITED, asked, draw
from kullback.formulas.claim import BOTH_FIXED, P_INSIDE_SAMPLER, Q_FIXED, UNSELECTED
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, three_tokens


def marks(lengths: list[int] | int = 4, **changes) -> set[str]:
    x = np.random.default_rng(1).normal(0.1, 0.2, size=480)
    return set(kb.estimate(log_p=0 * x, log_q=x, lengths=lengths, **changes).marks)


def test_marks_say_what_is_wrong() -> None:
    uneven = [3, 5] * 60
    assert marks() == marks(level="sequence_mean") == marks(uneven) == set()
    assert marks(uneven, level="sequence_mean") == {"selected-on-outcome"}
    assert marks(uneven, level="sequence_mean", exact=np.ones(480), method="exact") == set()
    assert marks(in_sample=True) == {"in-sample"}
    assert marks(in_sample=True, exact=np.ones(480), method="exact") == set()
    assert marks(method="k2") == {"biased"}
    assert marks(10) == {"few-clusters"}  # 48 sequences
    assert marks(clusters=np.arange(120) % 60) == set()
    assert marks(clusters=np.arange(120) % 40) == {"few-clusters"}
    assert marks(log_sampler=np.zeros(480)) == set()
    spread = np.random.default_rng(2).normal(-4, 4, size=480)
    assert marks(log_sampler=spread) == {"weights-degenerate"}


@pytest.mark.parametrize(("method", "biased"), [("auto", False), ("k2", True), ("k3", False)])
def test_it_assumes_what_its_formula_claims(method: str, biased: bool) -> None:
    x = np.tile([0.0, -0.2], (40, 4))
    on = kb.estimate(log_p=0 * x, log_q=x, method=method)
    off = kb.estimate(log_p=0 * x, log_q=x, log_sampler=0 * x, method=method)
    assert Q_FIXED in on.assumptions
    assert {BOTH_FIXED, P_INSIDE_SAMPLER} <= {*off.assumptions}
    for found in (on, off):
        assert UNSELECTED in found.assumptions
        assert any("p and q are close" in one for one in found.assumptions) == biased
        assert ("biased" in found.marks) == biased


def test_one_overflowing_weight_is_all_there_is() -> None:
    log_s = np.full((60, 1), -1.0)
    log_s[0] = -400.0
    columns = pack({"p": np.full((60, 1), -1.0), "q": np.full((60, 1), -1.0), "s": log_s})
    assert ess_fraction(QuestionState.of(columns, Question("p", "q", "s"))) == 0.0


def over_the_prefixes_of_p(direction: str, kl: float, seed: int, **changes) -> kb.Estimate:
    """A corridor: KL(new‖old) at the new policy's states, from episodes of the old one."""
    cells, chosen = draw(seed)
    p, s = (
        np.log(actions(right))[cells, chosen] for right in (of_size(direction, kl).right, old())
    )
    return kb.estimate(log_p=p, log_q=s, log_sampler=s, prefixes="p", **changes)


@pytest.mark.parametrize("seed", range(4))
def test_where_the_sampler_hardly_went_the_estimate_is_marked(seed: int) -> None:
    """An estimate of a fifth to a third of the KL, with an interval that does not know."""
    far = asked(of_size(FAR_END, 0.005).right, seed)[VISITED]
    assert far.drawn.high < far.exact
    assert "prefixes-unseen" in far.drawn.marks
    assert any("carry the sum" in one for one in far.drawn.assumptions)


@pytest.mark.parametrize("level", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize("method", ["auto", "k1", "k3"])
def test_it_is_marked_whatever_is_asked_of_it(level: str, method: str) -> None:
    how = {"level": level, "method": method}
    assert "prefixes-unseen" in over_the_prefixes_of_p(FAR_END, 0.005, 0, **how).marks
    assert over_the_prefixes_of_p(EVERYWHERE, 0.0005, 0, **how).marks == ()


def test_at_the_samplers_prefixes_there_is_nothing_to_mark() -> None:
    for one in asked(of_size(FAR_END, 0.005).right, 0).values():
        weighed = one.drawn.question.weight == "cumulative"
        assert ("prefixes-unseen" in one.drawn.marks) == weighed


@pytest.mark.parametrize("sequences", [32, 64, 1000])
@pytest.mark.parametrize(("tokens", "shift"), [(20, 0.1), (100, 0.04)])
def test_light_weights_are_seldom_marked(sequences: int, tokens: int, shift: float) -> None:
    """Normals moved a little: batches of which the weights leave 0.9 of the tokens."""
    found = 0
    for seed in range(60):
        x = np.random.default_rng(seed).normal(size=(sequences, tokens))
        p, q, s = (-0.5 * (x - mean) ** 2 for mean in (shift, -0.3, 0.0))
        columns = pack({"p": p, "q": q, "s": s})
        found += prefixes_unseen(QuestionState.of(columns, Question("p", "q", "s", "p")), "auto")
    assert found <= 1


@pytest.mark.parametrize("name", ["training_loop", "three_token_language"])
def test_the_clean_worlds_are_not_marked_where_the_weights_leave_the_tokens(name: str) -> None:
    world = CLEAN_WORLDS[name](64)
    p = "old" if name == "training_loop" else "current"
    question = Question(p, "reference", "rollout", p)
    for seed in range(20):
        state = QuestionState.of(world.sample(np.random.default_rng(seed)), question)
        assert ess_fraction(state) > 0.9
        assert "prefixes-unseen" not in kb.estimation.estimate.from_state(state).marks


def test_float_noise_over_long_sequences_is_no_lack_of_prefixes() -> None:
    """A kernel that scores 1.5e-5 too low at each of 1000 tokens: 1.5 % of the weight, for sure."""
    x = np.random.default_rng(0).uniform(-3, -0.1, size=(64, 1000))
    q = x + 0.1 * np.random.default_rng(1).normal(size=x.shape)
    found = kb.estimate(log_p=x - 1.5e-5, log_q=q, log_sampler=x, prefixes="p")
    assert "prefixes-unseen" not in found.marks


def test_the_mean_weight_of_a_sequence_is_one_over_all_of_them() -> None:
    """Of two lengths; each sequence of a small language as often as it is drawn, by its key."""
    world = three_tokens(ends=True)
    question = Question("current", "reference", "old", "current")
    chance = world.probability("old")
    weight = np.exp((world.by_token("current") - world.by_token("old")).sum(axis=1))
    assert chance @ weight == pytest.approx(1.0, abs=1e-12)
    times = np.rint(1000 * chance).astype(int)
    drawn = np.repeat(np.arange(len(chance)), times)
    roles = {role: world.by_token(role)[drawn] for role in ("current", "reference", "old")}
    mask = np.arange(roles["old"].shape[1]) < world.lengths[drawn, None]
    found = path_weight(QuestionState.of(pack(roles, mask=mask), question))
    assert found.mean == pytest.approx(weight[drawn].mean(), rel=1e-12)
    error = weight[drawn].std(ddof=1) / np.sqrt(len(drawn))
    assert found.standard_error == pytest.approx(error, rel=1e-9)


def test_carrying_counts_clusters() -> None:
    log_p = np.full((8, 1), -1.0)
    log_q = log_p - np.array([4.0, 4.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0])[:, None]
    columns = pack({"p": log_p, "q": log_q, "s": log_p})
    state = QuestionState.of(columns, Question("p", "q", "s", "p"))
    assert carrying(state, "k1") == carrying(state, "auto") == 4.0
    for other, count in ((log_p, 8.0), (log_p - 1e308, 1.0)):  # nothing to carry, and an overflow
        columns = pack({"p": log_p, "q": other, "s": log_p})
        assert carrying(QuestionState.of(columns, state.question), "k2") == count
