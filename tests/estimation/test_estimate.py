from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kullback as kb
from kullback.columns import pack
from kullback.estimation.estimate import METHODS, estimate, from_state
from kullback.estimation.question_state import QuestionState
from kullback.question import LEVELS, Question

PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)
INF, NAN = float("inf"), float("nan")

# A sample that is the population. Row 0 of a policy holds its probabilities of the first token, row
# 1 + a those of the second behind a first token a. Those of the sampler s are 1/2 and 1/4, so that
# each sequence appears 16·s(sequence) times. Where lengths are random, a first token 0 is the last.
RNG = np.random.default_rng(11)
POLICY = {role: RNG.dirichlet(np.ones(3), size=4) for role in "pq"}
POLICY["s"] = np.array([[2, 1, 1], [1, 2, 1], [2, 1, 1], [1, 1, 2]]) / 4


def divergence(p: str, q: str, power: int = 1) -> np.ndarray:
    """Σ p (log p/q)^power at each of the four prefixes."""
    return (POLICY[p] * np.log(POLICY[p] / POLICY[q]) ** power).sum(axis=1)


class Population:
    """All sequences as often as s samples them, and what is exactly true of them."""

    def __init__(self, ends: bool) -> None:
        self.goes_on = np.array([not ends, True, True])
        s = (4 * POLICY["s"]).astype(int)
        sequences = [
            [a, b] for a in range(3) for b in range(3) for _ in range(s[0, a] * s[1 + a, b])
        ]
        sequences = [sequence[: 1 + self.goes_on[sequence[0]]] for sequence in sequences]
        self.lengths = [len(sequence) for sequence in sequences]
        self.prefix = np.array([1 + s[0] if t else 0 for s in sequences for t in range(len(s))])
        token = np.concatenate(sequences)
        self.log = {role: np.log(POLICY[role][self.prefix, token]) for role in "pqs"}

    def over(self, role: str, at: np.ndarray) -> float:
        """The expected sum over a role's prefixes of what is known at each of them."""
        return float(at[0] + (POLICY[role][0] * self.goes_on) @ at[1:])

    def truth(self, p: str, q: str, over: str, level: str, power: int = 1) -> float:
        length = self.over(over, np.ones(4)) if level == "token_mean" else 1.0
        return self.over(over, divergence(p, q, power)) / length

    def exact(self, p: str, q: str) -> np.ndarray:
        """The exact KL at the prefix of each token."""
        return divergence(p, q)[self.prefix]


RANDOM, FIXED = Population(ends=True), Population(ends=False)


@pytest.mark.parametrize("world", [RANDOM, FIXED], ids=["random length", "fixed length"])
@pytest.mark.parametrize("level", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize("method", ["auto", "k1", "k3", "exact"])
def test_unbiased_where_p_sampled(world: Population, level: str, method: str) -> None:
    """As a ratio of expectations: over the population both are exact."""
    found = estimate(
        log_p=world.log["s"],
        log_q=world.log["q"],
        lengths=world.lengths,
        exact=world.exact("s", "q"),
        level=level,
        method=method,
    )
    assert found.mean == pytest.approx(world.truth("s", "q", "s", level), rel=1e-12)
    assert not {"biased", "selected-on-outcome"} & set(found.marks)


@pytest.mark.parametrize("world", [RANDOM, FIXED], ids=["random length", "fixed length"])
@pytest.mark.parametrize("level", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize("method", ["k1", "k3"])
@pytest.mark.parametrize("prefixes", ["sampler", "p"])
def test_unbiased_under_a_third_sampler(world, level, method, prefixes: str) -> None:
    found = estimate(
        log_p=world.log["p"],
        log_q=world.log["q"],
        log_sampler=world.log["s"],
        lengths=world.lengths,
        level=level,
        method=method,
        prefixes=prefixes,
    )
    over = "p" if prefixes == "p" else "s"
    assert found.mean == pytest.approx(world.truth("p", "q", over, level), rel=1e-12)


@pytest.mark.parametrize("method", ["k1", "k3"])
def test_unbiased_where_q_sampled(method: str) -> None:
    found = estimate(
        log_p=FIXED.log["p"],
        log_q=FIXED.log["s"],
        lengths=FIXED.lengths,
        question="KL(current||rollout) ~ rollout",
        method=method,
    )
    assert found.mean == pytest.approx(FIXED.truth("p", "s", "s", "token_mean"), rel=1e-12)


def test_k2_is_half_the_mean_square_and_marked() -> None:
    found = estimate(
        log_p=RANDOM.log["s"], log_q=RANDOM.log["q"], lengths=RANDOM.lengths, method="k2"
    )
    truth = RANDOM.truth("s", "q", "s", "token_mean", power=2) / 2
    assert found.mean == pytest.approx(truth, rel=1e-12)
    assert abs(truth - RANDOM.truth("s", "q", "s", "token_mean")) > 0.01
    assert "biased" in found.marks


@pytest.mark.parametrize("method", ["k1", "k3"])
def test_the_mean_of_token_means_is_right_for_fixed_lengths_only(method: str) -> None:
    for world, right in ((FIXED, True), (RANDOM, False)):
        arrays: dict[str, Any] = {
            "log_p": world.log["s"],
            "log_q": world.log["q"],
            "lengths": world.lengths,
        }
        exact = estimate(
            **arrays, exact=world.exact("s", "q"), level="sequence_mean", method="exact"
        )
        sampled = estimate(**arrays, level="sequence_mean", method=method)
        starts = np.cumsum(world.lengths) - np.array(world.lengths)
        by_hand = np.add.reduceat(world.exact("s", "q"), starts) / world.lengths
        assert exact.mean == pytest.approx(by_hand.mean(), rel=1e-12)
        assert (abs(sampled.mean - exact.mean) < 1e-12) == right
        assert ("selected-on-outcome" in sampled.marks) == (not right)
        assert "selected-on-outcome" not in exact.marks


def test_the_error_is_clustered_by_prompt() -> None:
    """Tokens of a prompt that are copies of each other add nothing."""
    p = np.random.default_rng(0).normal(-1, 0.1, size=(60, 1))
    q = np.zeros((60, 1))
    once = estimate(log_p=p, log_q=q)
    thrice: dict[str, Any] = {"log_p": np.repeat(p, 3, axis=0), "log_q": np.repeat(q, 3, axis=0)}
    by_prompt = estimate(**thrice, clusters=np.repeat(np.arange(60), 3))
    assert (by_prompt.mean, by_prompt.low, by_prompt.high) == pytest.approx(
        (once.mean, once.low, once.high), rel=1e-12
    )
    assert (by_prompt.clusters, by_prompt.count) == (60, 180)
    by_sequence = estimate(**thrice)
    assert by_sequence.standard_error < 0.6 * by_prompt.standard_error
    assert (once.scope, by_prompt.scope) == ("new sequences", "new prompts")
    assert estimate(**thrice, confidence=0.5).low > by_sequence.low


def test_effective_clusters_are_counted_in_what_the_level_divides_by() -> None:
    x = np.arange(8) / 10
    arrays: dict[str, Any] = {"log_p": 0 * x, "log_q": x, "lengths": [1, 1, 6]}
    assert estimate(**arrays).effective_clusters == pytest.approx(64 / 38)
    for level in ("sequence_sum", "sequence_mean"):
        assert estimate(**arrays, level=level).effective_clusters == 3


@PROPERTY
@given(
    st.lists(st.lists(st.floats(-40, 40), max_size=4), max_size=6),
    st.sampled_from(list(METHODS)),
    st.sampled_from(list(LEVELS)),
)
def test_a_finite_interval_around_the_mean_or_a_reason(rows, method: str, level: str) -> None:
    log_q = np.array([x for row in rows for x in row])
    found = estimate(
        log_p=0 * log_q, log_q=log_q, lengths=[len(row) for row in rows], method=method, level=level
    )
    if found.reason is None:
        assert -INF < found.low <= found.mean <= found.high < INF
        assert 0 <= found.standard_error < INF
    else:
        assert np.isnan([found.low, found.high, found.standard_error]).all()
    assert method in ("auto", "k1") or not found.mean < 0
    assert found.count == len(log_q)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"log_p": [[NAN]], "log_q": [[-1.0]]}, "no token has both log-probs"),
        ({"log_p": [[-1.0]], "log_q": [[-1.0]], "mask": [[0]]}, "no token has both log-probs"),
        (
            {
                "log_p": [[-1.0, -1.0], [-1.0, -1.0]],
                "log_q": [[-1.0, -1.0], [-1.0, -1.0]],
                "exact": [[0.1, NAN], [NAN, 0.1]],
                "method": "exact",
            },
            "the exact KL is known at 2 of 4 prefixes",
        ),
        (
            {
                "log_p": [[-1.0]],
                "log_q": [[-1.0]],
                "log_sampler": [[-1.0]],
                "exact": [[0.1]],
                "method": "exact",
                "prefixes": "p",
            },
            "the exact columns stand at prefixes of sampler",
        ),
        (
            {
                "log_p": [[-1.0]],
                "log_q": [[-1.0]],
                "log_sampler": [[-1.0]],
                "prefixes": "p",
                "level": "sequence_mean",
            },
            "prefix weights answer per token and per sequence only",
        ),
    ],
)
def test_where_there_is_no_number_a_reason_says_why(arguments, reason: str) -> None:
    found = estimate(**arguments)
    assert found.reason == reason
    assert np.isnan([found.mean, found.low, found.high, found.standard_error]).all()
    assert str(found).endswith(f": no number ({reason})")


def test_one_cluster_has_a_mean_and_no_interval() -> None:
    found = estimate(log_p=[[-1.0, -2.0]], log_q=[[-1.5, -2.0]])
    assert found.mean == 0.25
    assert np.isnan([found.low, found.high, found.standard_error]).all()
    assert found.reason == "one effective cluster: no error can be told from fewer than two"
    assert str(found).startswith("KL(p||q) by auto (λ = 0.00): 0.25 nats per token, one effective")


def test_an_infinite_kl_says_at_how_many_tokens() -> None:
    outside_q = estimate(log_p=[[-1.0] * 4], log_q=[[-1.0, -INF, -INF, -INF]])
    outside_p = estimate(log_p=[[-1.0, -INF, -INF, -INF]], log_q=[[-1.0] * 4])
    for found in (outside_q, outside_p):
        assert np.isnan([found.mean, found.low, found.high, found.standard_error]).all()
        assert found.reason == "infinite: 3 tokens outside a support"


def test_without_any_weight_the_reason_is_not_an_overflow() -> None:
    nothing = np.full((2, 2), -INF)
    found = estimate(
        log_p=nothing, log_q=nothing + 0, log_sampler=np.full((2, 2), -1.0), prefixes="p"
    )
    assert np.isnan(found.mean)
    assert found.reason is not None
    assert "overflow" not in found.reason


def test_missing_log_probs_are_counted_apart_from_infinite_ones() -> None:
    log_q = [[-1.5, NAN, -9999.0], [-2.5, -1.0, -1.0]]
    found = estimate(log_p=np.full((2, 3), -1.0), log_q=log_q)
    assert (found.mean, found.count, found.reason) == (0.5, 4, None)
    columns = pack({"p": np.full((2, 3), -1.0), "q": [[-INF, NAN, -9999.0], [-1.0, -INF, -1.0]]})
    state = QuestionState.of(columns, Question("p", "q"))
    assert (state.missing, state.infinite, state.tokens) == (2, 2, 2)


def test_the_exact_mean_is_known() -> None:
    exact = np.array([[0.1, 0.3, NAN], [0.2, 0.4, 0.5]])
    found = estimate(
        log_p=np.full((2, 3), -1.0),
        log_q=np.full((2, 3), -2.0),
        mask=[[1, 1, 0], [1, 1, 1]],
        exact=exact,
        method="exact",
    )
    assert found.mean == pytest.approx(0.3, rel=1e-15)
    assert found.low == found.mean == found.high
    assert (found.standard_error, found.scope, found.reason) == (0, "these prefixes", None)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("gaps", [[[NAN, -1.0], [-1.0, -1.0]], [[NAN, NAN], [-1.0, -1.0]]])
def test_a_missing_log_prob_does_not_make_the_exact_mean_a_wrong_one(level: str, gaps) -> None:
    exact, log_q = np.array([[0.1, 0.3], [0.2, 0.6]]), np.full((2, 2), -1.0)
    truth = estimate(log_p=log_q, log_q=log_q, exact=exact, method="exact", level=level)
    found = estimate(log_p=gaps, log_q=log_q, exact=exact, method="exact", level=level)
    if found.reason is None:
        assert found.mean == pytest.approx(truth.mean, rel=1e-15)
    else:
        assert np.isnan(found.mean)


@pytest.mark.parametrize("method", ["k1", "k2", "k3"])
@pytest.mark.parametrize("jump", [300.0, 500.0, 800.0, 1e300])
def test_an_overflow_is_a_reason(method: str, jump: float) -> None:
    """And no traceback and no warning (warnings are errors here)."""
    log_q = np.array([[-1.0, -2.0], [-2.0, -1.0], [-1.0, -1.0]])
    plain, shifted = np.full((3, 2), -1.0), np.full((3, 2), -1.0)
    shifted[0] = -1 - jump
    for p, sampler in ((shifted, None), (plain, shifted)):
        found = estimate(log_p=p, log_q=log_q, log_sampler=sampler, method=method)
        if found.reason is None:
            assert -INF < found.low <= found.mean <= found.high < INF
        else:
            assert "overflow" in found.reason
            assert np.isnan([found.low, found.high, found.standard_error]).all()


def test_a_mean_that_overflows_is_no_number() -> None:
    found = estimate(log_p=[[-801.0], [-1.0]], log_q=[[-1.0], [-1.0]], method="k3")
    assert found.reason == "the mean overflows"
    assert np.isnan([found.mean, found.low, found.high, found.standard_error]).all()


@pytest.mark.parametrize("text", ["KL(current||reference)", "KL(old||current) per sequence"])
def test_the_question_names_the_roles_and_the_level(text: str) -> None:
    found = estimate(log_p=[[-1.0]], log_q=[[-2.0]], question=text, level="sequence_mean")
    assert str(found.question) == text
    assert found.unit == found.question.unit
    assert (
        found.question
        == estimate(log_p=[[-1.0]], log_q=[[-2.0]], question=Question.parse(text)).question
    )


def test_without_a_question_the_roles_are_p_q_and_sampler() -> None:
    arrays: dict[str, Any] = {"log_p": [[-1.0]], "log_q": [[-2.0]]}
    assert str(estimate(**arrays, level="sequence_sum").question) == "KL(p||q) per sequence"
    assert estimate(**arrays, prefixes="p").question == estimate(**arrays).question
    third: dict[str, Any] = {**arrays, "log_sampler": [[-1.0]]}
    assert str(estimate(**third).question) == "KL(p||q) ~ sampler"
    assert str(estimate(**third, prefixes="p").question) == "KL(p||q) ~ sampler prefixes p"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": "k4"}, "method 'k4' is none of auto, k1, k2, k3, exact"),
        ({"confidence": 1.0}, "confidence 1.0 is not between 0 and 1"),
        ({"confidence": 95}, "confidence 95 is not between 0 and 1"),
        ({"level": "mean"}, "level 'mean' is none of"),
        ({"prefixes": "q"}, "prefixes 'q' are neither 'sampler' nor 'p'"),
        ({"question": "KL(a||b) ~ s"}, r"KL\(a\|\|b\) ~ s needs log_sampler=: .* under s"),
        (
            {"question": "KL(a||b)", "log_sampler": [[-1.0]]},
            r"log_sampler is given, but in KL\(a\|\|b\) the sampler is a",
        ),
        ({"log_sampler": [[-1.0, -1.0]]}, r"p has shape \(1, 1\), sampler \(1, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused(changes, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        estimate(**{"log_p": [[-1.0]], "log_q": [[-2.0]]} | changes)


def test_a_state_answers_for_all_its_batches() -> None:
    rng = np.random.default_rng(4)
    p, q = rng.normal(size=(2, 80, 3))
    clusters = np.arange(80) // 2
    whole = estimate(log_p=p, log_q=q, clusters=clusters)
    parts = [
        QuestionState.of(pack({"p": p[s], "q": q[s]}, clusters=clusters[s]), Question("p", "q"))
        for s in (slice(0, 31), slice(31, 80))
    ]
    both = from_state(parts[0] + parts[1])
    for name in ("mean", "low", "high", "standard_error", "effective_clusters"):
        assert getattr(both, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    assert (both.clusters, both.count, both.marks) == (40, 240, ("few-clusters",))


def test_an_estimate_reads_as_a_sentence() -> None:
    x = np.tile([0.0, -0.2], (40, 4))
    found = kb.estimate(log_p=0 * x, log_q=x, in_sample=True)
    assert str(found) == (
        "KL(p||q) by auto (λ = 0.00): 0.1 nats per token, [0, 0.1] at 95%; in-sample, few-clusters"
    )


def test_a_missing_log_prob_leaves_no_sequence_sum_and_is_marked() -> None:
    log_p, log_q = [[-1.0, NAN], [-1.0, -2.0]], [[-1.5, -1.0], [-1.0, -2.5]]
    found = estimate(log_p=log_p, log_q=log_q, level="sequence_sum")
    assert np.isnan(found.mean)
    assert found.reason == "1 missing log-probs leave the sums of their sequences short"
    assert "missing-values" in estimate(log_p=log_p, log_q=log_q).marks


def test_a_masked_array_is_refused() -> None:
    masked = np.ma.array([[-1.0, 5.0]], mask=[[False, True]])
    with pytest.raises(ValueError, match=r"masked array: give its \.data, and ~\.mask as mask="):
        estimate(log_p=masked, log_q=[[-1.0, -1.0]])


def test_a_cluster_without_an_id_is_refused() -> None:
    with pytest.raises(ValueError, match="clusters: entry 1 is missing"):
        estimate(log_p=[[-1.0], [-1.0]], log_q=[[-1.0], [-1.0]], clusters=["a", None])
