from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

import kullback as kb
from kullback.columns import Columns, pack
from kullback.estimation.compare import Comparison, compare, kish
from kullback.estimation.estimate import METHODS
from kullback.estimation.question_state import QuestionState
from kullback.estimation.summary import Summary, summarize
from kullback.question import LEVELS, Question
from kullback.worlds import Mixture, Tabular, three_tokens
from kullback.worlds.tables import drifted, ending, zipf

PROPERTY = settings(derandomize=True, deadline=None, max_examples=50)
ASKED = Question("old", "current")


def drawn(seed: int, ids: Any, *, shift: float = 0.0, longest: int = 5) -> Columns:
    """A sequence for each id, of random length, with an exact column."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=len(ids))
    p = rng.normal(-2, 1, size=lengths.sum())
    q = p - shift + rng.normal(0, 0.3, size=len(p))
    exact = {"KL(old||current)": rng.exponential(0.1, size=len(p))}
    return pack({"old": p, "current": q, "s": p - 0.1}, lengths=lengths, clusters=ids, exact=exact)


EMPTY = summarize([drawn(0, [1])], questions=[ASKED])


def summary(columns: Columns, *questions: Question) -> Summary:
    """A summary of what is compared, and of nothing else: so that thousands can be made."""
    states = {question: QuestionState.of(columns, question) for question in questions}
    return replace(EMPTY, questions=states, cluster_kind=columns.cluster_kind)


def one(a: Columns | Summary, b: Columns | Summary, question: Any = ASKED, **how: Any):
    asked = Question.parse(question) if isinstance(question, str) else question
    sides = [side if isinstance(side, Summary) else summary(side, asked) for side in (a, b)]
    (found,) = compare(*sides, **how)
    return found


# --- Exact: the mean -------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", ["auto", "k3", "exact"])
def test_the_difference_is_the_true_one_where_the_sample_is_the_population(level, method) -> None:
    """A uniform sampler samples each of the 27 sequences equally often."""
    tables = three_tokens(ends=False).log_probs
    uniform = np.full_like(tables["current"], -np.log(3))
    world = Tabular({"s": uniform, **tables}, sampler="s", max_length=3)

    def side(role: str) -> Columns:
        logs = {"s": world.by_token("s").ravel(), "q": world.by_token(role).ravel()}
        exact = {"KL(s||q)": world.by_context(world.kl("s", role)).ravel()}
        return pack(logs, lengths=3, exact=exact)

    found = one(side("current"), side("reference"), Question("s", "q", level=level), method=method)
    truth = [world.exact(Question("s", role, level=level)) for role in ("current", "reference")]
    assert abs(truth[1] - truth[0]) > 1e-3
    assert found.difference == pytest.approx(truth[1] - truth[0], rel=1e-12)
    assert (found.a.mean, found.b.mean) == pytest.approx(truth, rel=1e-12)


# --- Exact: the error ------------------------------------------------------------------------


def by_hand(a: Columns, b: Columns, question: Question, method: str) -> tuple[float, float]:
    """Difference and standard error, written out prompt by prompt from single tokens."""
    linear = []
    for side in (a, b):
        logs = {role: values.astype(float) for role, values in side.log_probs.items()}
        log_r = logs[question.q] - logs[question.p]
        weight = np.exp(logs[question.p] - logs[question.sampler])
        values = {"k1": -log_r, "k3": np.exp(log_r) - 1 - log_r}.get(method)
        values = side.exact["KL(old||current)"] if values is None else weight * values
        parts = np.split(values, side.ends[:-1])
        tops = [v.mean() if question.level == "sequence_mean" else v.sum() for v in parts]
        sizes = [len(v) if question.level == "token_mean" else 1 for v in parts]
        mean, clusters = sum(tops) / sum(sizes), set(side.clusters.tolist())
        scale = np.sqrt(len(clusters) / (len(clusters) - 1)) / sum(sizes)
        errors = dict.fromkeys(clusters, 0.0)
        for key, top, size in zip(side.clusters.tolist(), tops, sizes, strict=True):
            errors[key] += scale * (top - mean * size)
        linear.append((mean, errors))
    (mean_a, error_a), (mean_b, error_b) = linear
    both = error_a.keys() | error_b.keys()
    squares = [(error_b.get(key, 0.0) - error_a.get(key, 0.0)) ** 2 for key in both]
    return mean_b - mean_a, float(np.sqrt(sum(squares)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", ["k1", "k3", "exact"])
@pytest.mark.parametrize("sampler", ["old", "s"])
@pytest.mark.parametrize("first", [0, 6, 20], ids=["shared", "partly", "apart"])
def test_difference_and_error_are_those_written_out_by_hand(level, method, sampler, first) -> None:
    question = Question("old", "current", sampler, level=level)
    a, b = drawn(1, np.arange(40) % 20), drawn(2, first + np.arange(60) % 20)
    found = one(a, b, question, method=method)
    assert (found.difference, found.standard_error) == pytest.approx(
        by_hand(a, b, question, method), rel=1e-12
    )
    assert (found.shared, found.only_a, found.only_b) == (20 - first, first, first)
    reach = found.standard_error * stdtrit(found.degrees_of_freedom, 0.975)
    assert found.high - found.difference == pytest.approx(reach, rel=1e-12)
    assert found.difference - found.low == pytest.approx(reach, rel=1e-12)


@pytest.mark.parametrize("shift", [0, 1, 3], ids=["shared", "partly", "apart"])
def test_the_squared_error_has_the_variance_as_its_mean(shift: int) -> None:
    """Enumerated: prompts of three equally likely kinds, A has the first three, B as many.

    Where all or none are shared it is exact. Else the factors n/(n − 1) of the sides, whose product
    stands for that of their covariance γ, leave 2 γ s/n² (1 − s/n)/(n − 1) too much.
    """
    kinds, n = np.array([[0.1, 0.4], [0.2, 0.3], [0.9, 0.8]]), 3
    differences, squares = [], []
    for choice in product(range(3), repeat=n + shift):
        a, b = kinds[list(choice[:n]), 0], kinds[list(choice[shift:]), 1]
        found = one(
            pack({"old": np.zeros((n, 1)), "current": -a[:, None]}, clusters=np.arange(n)),
            pack({"old": np.zeros((n, 1)), "current": -b[:, None]}, clusters=shift + np.arange(n)),
        )
        differences.append(found.difference)
        squares.append(found.standard_error**2)
    shared, covariance = n - shift, np.cov(kinds.T, bias=True)[0, 1]
    surplus = 2 * covariance * shared / n**2 * (1 - shared / n) / (n - 1)
    assert np.mean(differences) == pytest.approx(np.subtract(*kinds.mean(axis=0)[::-1]), rel=1e-12)
    assert np.mean(squares) == pytest.approx(np.var(differences) + surplus, rel=1e-12)


# --- Simulated: prompts that differ, shared in part ---------------------------------------------

PROMPTS, EACH, SAMPLES = 32, 4, 400


def prompt_effects() -> Mixture:
    """Two policies that moved from the rollout's, on the same kinds of prompts farther than on
    others, and random lengths. Each prompt has the sequences of both sides."""
    rng = np.random.default_rng(31)
    sizes = np.exp(rng.normal(0, 0.5, size=16)).repeat(4)[:, None]
    rollout = zipf(rng, contexts=64, alphabet=100)
    tables = {
        "rollout": rollout,
        "before": drifted(rng, rollout, 0.5 * sizes),
        "after": drifted(rng, rollout, 0.6 * sizes),
    }
    ends = {role: ending(table, 0.05) for role, table in tables.items()}
    return Mixture(
        ends, prompts=2 * PROMPTS, sequences_per_prompt=2 * EACH, max_length=40, ends=True, kinds=16
    )


def halves(sample: Columns, shared: int) -> tuple[Columns, Columns]:
    """Of each prompt half of the sequences to either side, which share so many of the prompts."""
    prompt, half = np.divmod(np.arange(2 * PROMPTS * 2 * EACH), 2 * EACH)
    first = PROMPTS - shared
    mine = (prompt < PROMPTS) & (half < EACH)
    theirs = (prompt >= first) & (prompt < first + PROMPTS) & (half >= EACH)
    bare = replace(sample, entropy={}, tokens=None, token_bytes=None, text=None)

    def side(chosen: np.ndarray, role: str) -> Columns:
        part = bare.take(np.flatnonzero(chosen))
        logs = {"rollout": part.log_probs["rollout"], "current": part.log_probs[role]}
        return replace(part, log_probs=logs)

    return side(mine, "before"), side(theirs, "after")


def calibration(errors: np.ndarray, differences: np.ndarray) -> float:
    """How many standard errors the mean square error is off the variance of the differences."""
    centered = (differences - differences.mean()) ** 2
    variance = centered.mean() * len(centered) / (len(centered) - 1)
    spread = np.hypot(centered.std(), (errors**2).std()) / np.sqrt(len(errors))
    return float(((errors**2).mean() - variance) / spread)


SHARED = (PROMPTS, PROMPTS // 2, 0)


@pytest.fixture(scope="module")
def compared() -> dict[int, dict[Question, list[Comparison]]]:
    """By how many prompts the sides share, the comparisons of the same samples."""
    world = prompt_effects()
    levels = ("token_mean", "sequence_sum")
    asked = [Question("rollout", "current", level=level) for level in levels]
    found = {shared: {question: [] for question in asked} for shared in SHARED}
    for seed in range(SAMPLES):
        sample = world.sample(np.random.default_rng([7, seed]))
        for shared, rows in found.items():
            a, b = (summary(side, *asked) for side in halves(sample, shared))
            for one in compare(a, b):
                rows[one.question].append(one)
    return found


@pytest.mark.parametrize("shared", SHARED, ids=["shared", "partly", "apart"])
def test_intervals_hold_and_errors_are_calibrated_where_prompts_differ(shared, compared) -> None:
    """The pairing is right; its wrong twin, which adds the errors of the sides, is not."""
    world = prompt_effects()
    for question, rows in compared[shared].items():
        before, after = (world.exact(replace(question, q=role)) for role in ("before", "after"))
        differences = np.array([one.difference for one in rows])
        errors = np.array([one.standard_error for one in rows])
        twin = np.array([np.hypot(one.a.standard_error, one.b.standard_error) for one in rows])
        bias = differences.mean() - (after - before)
        assert abs(bias) < 5 * differences.std() / np.sqrt(SAMPLES), question
        held = np.mean([one.low <= after - before <= one.high for one in rows])
        assert abs(held - 0.95) < 5 * np.sqrt(0.95 * 0.05 / SAMPLES), question
        assert abs(calibration(errors, differences)) < 5, question
        if shared == PROMPTS:
            assert calibration(twin, differences) > 5, question
        elif not shared:
            assert errors == pytest.approx(twin, rel=1e-12)


@pytest.mark.parametrize(("size_a", "size_b"), [(1.0, 0.1), (0.1, 1.0)])
def test_students_t_holds_where_one_side_has_few_prompts(size_a: float, size_b: float) -> None:
    """64 prompts against six. Wrong twins: the normal, and the freedom of the smaller side."""
    rng, held = np.random.default_rng(9), np.zeros(3)
    for _ in range(1000):
        sides = [
            pack({"old": size * rng.normal(size=(n, 1)), "current": np.zeros((n, 1))}, clusters=ids)
            for n, size, ids in ((64, size_a, np.arange(64)), (6, size_b, np.arange(100, 106)))
        ]
        found = one(sides[0], sides[1])
        reaches = [stdtrit(degrees, 0.975) * found.standard_error for degrees in (1e9, 5)]
        held += [found.low <= 0 <= found.high, *(abs(found.difference) <= r for r in reaches)]
    off = (held / 1000 - 0.95) / np.sqrt(0.95 * 0.05 / 1000)
    assert abs(off[0]) < 5
    if size_b > size_a:
        assert off[1] < -5
    else:
        assert off[2] > 5


def test_what_sequences_of_one_prompt_share_is_not_forgotten() -> None:
    """The wrong twin: each sequence as a cluster of its own."""
    world, asked = prompt_effects(), Question("rollout", "current")
    rows = []
    for seed in range(100):
        sides = halves(world.sample(np.random.default_rng([8, seed])), 0)
        apart = [replace(s, clusters=np.arange(len(s.lengths), dtype=np.uint64)) for s in sides]
        apart[1] = replace(apart[1], clusters=apart[1].clusters + np.uint64(10**6))
        rows.append((one(sides[0], sides[1], asked), one(apart[0], apart[1], asked)))
    ratio = np.mean([right.standard_error / wrong.standard_error for right, wrong in rows])
    assert ratio > 1.2


# --- Properties -----------------------------------------------------------------------------

ids = st.lists(st.integers(0, 12), min_size=1, max_size=25)


@PROPERTY
@given(ids, ids, st.sampled_from(list(LEVELS)), st.sampled_from(["k1", "k3", "exact"]))
def test_exchanging_the_sides_changes_the_sign_alone(left, right, level, method) -> None:
    a, b, question = drawn(1, left), drawn(2, right), replace(ASKED, level=level)
    there, back = one(a, b, question, method=method), one(b, a, question, method=method)
    assert np.array_equal(there.difference, -back.difference, equal_nan=True)
    for ours, theirs in (
        ((there.low, there.high), (-back.high, -back.low)),
        (there.standard_error, back.standard_error),
        (there.degrees_of_freedom, back.degrees_of_freedom),
    ):
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-15, nan_ok=True)
    assert (there.shared, there.only_a, there.only_b) == (back.shared, back.only_b, back.only_a)


@PROPERTY
@given(ids, st.sampled_from(list(LEVELS)), st.sampled_from(list(METHODS)))
def test_a_side_does_not_differ_from_itself(some, level, method) -> None:
    side = drawn(3, some)
    found = one(side, side, replace(ASKED, level=level), method=method)
    assert found.difference == 0
    if found.reason is None:
        assert (found.low, found.high, found.standard_error) == (0, 0, 0)
        assert found.verdict == "within-noise"


@PROPERTY
@given(ids, ids)
def test_the_error_lies_between_those_of_its_sides(left, right) -> None:
    found = one(drawn(1, left), drawn(2, right))
    assume(found.reason is None)
    errors = found.a.standard_error, found.b.standard_error
    slack = 1e-12 * sum(errors)
    assert abs(errors[0] - errors[1]) - slack <= found.standard_error <= sum(errors) + slack
    if not found.shared:
        assert found.standard_error == pytest.approx(np.hypot(*errors), rel=1e-12)
    effective = found.a.effective_clusters, found.b.effective_clusters
    low = 0 if found.shared else min(effective) - 1
    assert low - 1e-9 <= found.degrees_of_freedom <= sum(effective)


@PROPERTY
@given(ids, ids, st.floats(-3, 3))
def test_a_constant_in_every_term_shifts_the_difference_and_no_error(left, right, shift) -> None:
    before = one(drawn(1, left), drawn(2, right))
    after = one(drawn(1, left), drawn(2, right, shift=shift))
    assert after.difference - before.difference == pytest.approx(shift, abs=1e-12)
    if before.reason is None:
        assert after.standard_error == pytest.approx(before.standard_error, rel=1e-9, abs=1e-12)


@PROPERTY
@given(ids, ids, ids)
def test_summaries_that_were_added_compare_as_those_of_one_pass(left, right, more) -> None:
    parts = [drawn(1, left), drawn(4, more)]
    added = summarize(parts, questions=[ASKED])
    whole = pack(
        {role: np.concatenate([p.log_probs[role] for p in parts]) for role in ("old", "current")},
        lengths=np.concatenate([p.lengths for p in parts]),
        clusters=[*left, *more],
    )
    one_pass, two = one(whole, drawn(2, right)), one(added, drawn(2, right))
    for name in ("difference", "low", "high", "standard_error"):
        expected = getattr(one_pass, name)
        assert getattr(two, name) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@PROPERTY
@given(st.lists(st.floats(0.1, 9), min_size=1, max_size=20))
def test_kishs_number_is_between_one_and_the_number(sizes: list[float]) -> None:
    assert 1 - 1e-9 <= kish(np.array(sizes)) <= len(sizes) + 1e-9


# --- Who is paired, and with what ---------------------------------------------------------------


def test_partly_shared_prompts_are_compared_alone_too() -> None:
    a, b = drawn(1, np.arange(30)), drawn(2, np.arange(10, 50))
    found = one(a, b)
    alone = one(a.take(slice(10, 30)), b.take(slice(0, 20)))
    assert found.on_shared is not None
    assert found.on_shared.mean == pytest.approx(alone.difference, rel=1e-12)
    assert found.on_shared.standard_error == pytest.approx(alone.standard_error, rel=1e-12)
    assert found.on_shared.low == pytest.approx(alone.low, rel=1e-12)
    assert found.on_shared.mean != pytest.approx(found.difference, rel=0.01)
    assert alone.on_shared is None
    assert one(a, drawn(2, np.arange(60, 90))).on_shared is None


def test_one_shared_prompt_has_a_difference_without_an_error() -> None:
    found = one(drawn(1, np.arange(30)), drawn(2, np.arange(29, 50)))
    assert found.on_shared is not None
    assert np.isfinite(found.on_shared.mean)
    assert np.isnan(found.on_shared.low)
    assert found.reason is None
    assert found.degrees_of_freedom > 20


def test_degrees_of_freedom_are_those_of_an_estimate_if_paired_and_welchs_if_apart() -> None:
    a, b = drawn(1, np.arange(8), longest=1), drawn(2, np.arange(8), longest=1)
    assert one(a, b).degrees_of_freedom == pytest.approx(7)
    apart = one(a, drawn(2, np.arange(100, 120), longest=1))
    squares = [apart.a.standard_error**2, apart.b.standard_error**2]
    welch = sum(squares) ** 2 / (squares[0] ** 2 / 7 + squares[1] ** 2 / 19)
    assert apart.degrees_of_freedom == pytest.approx(welch, rel=1e-12)


def test_thousands_of_clusters_are_paired_in_their_groups() -> None:
    """Folded, the error is that of 256 groups: within 20 per cent of the one of the clusters."""
    rng, n = np.random.default_rng(0), 3000
    effect = rng.normal(0, 1.0, size=n)
    sides = [
        pack({"old": np.zeros((n, 1)), "current": (effect + noise)[:, None]}, clusters=np.arange(n))
        for noise in (rng.normal(0, 0.1, size=n), rng.normal(0, 0.1, size=n))
    ]
    found = one(*sides)
    differences = sides[0].log_probs["current"] - sides[1].log_probs["current"]
    assert found.difference == pytest.approx(differences.mean(), rel=1e-9)
    truth = differences.std(ddof=1) / np.sqrt(n)
    assert found.standard_error == pytest.approx(truth, rel=0.2)
    assert found.a.standard_error > 5 * truth
    assert (found.only_a, found.only_b, found.on_shared) == (0, 0, None)
    assert found.shared == pytest.approx(n, rel=0.1)
    same = one(sides[0], sides[0])
    assert (same.difference, same.standard_error) == (0, 0)
    apart = one(sides[0], replace(sides[1], clusters=sides[1].clusters + np.uint64(1)))
    assert apart.shared == 0
    errors = apart.a.standard_error, apart.b.standard_error
    assert apart.standard_error == pytest.approx(np.hypot(*errors), rel=1e-12)


def test_a_few_clusters_of_thousands_are_found_and_paired() -> None:
    many, few = drawn(1, np.arange(4000)), drawn(2, np.arange(1000))
    found = one(many, few)
    assert found.shared == pytest.approx(1000, rel=0.2)
    assert found.only_a == pytest.approx(3000, rel=0.2)
    assert found.on_shared is None
    assert found.standard_error == pytest.approx(
        np.hypot(found.a.standard_error, found.b.standard_error), rel=0.3
    )


def test_sequences_without_prompts_are_independent_unless_they_are_the_same() -> None:
    rng = np.random.default_rng(0)
    sides = [pack({"old": rng.normal(size=(20, 3)), "current": np.zeros((20, 3))}) for _ in "ab"]
    found = one(*sides)
    assert (found.shared, found.only_a, found.only_b) == (0, 20, 20)
    errors = found.a.standard_error, found.b.standard_error
    assert found.standard_error == pytest.approx(np.hypot(*errors), rel=1e-12)
    assert (found.scope, found.on_shared) == ("new sequences", None)
    assert one(sides[0], sides[0]).standard_error == 0
    assert "no shared sequences" in str(found)


# --- What is no comparison, and what is no number ------------------------------------------------


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    a = drawn(1, np.arange(5))
    ours = summarize([a], questions=["KL(old||current)"])
    for theirs, said in (
        ("KL(old||current) per sequence", "per token by A and per sequence by B: ask both at one"),
        ("KL(current||old)", "no question is common; ask both the same"),
    ):
        with pytest.raises(ValueError, match=said):
            compare(ours, summarize([a], questions=[theirs]))
    bare = summarize([replace(a, cluster_kind="sequence")], questions=["KL(old||current)"])
    with pytest.raises(ValueError, match="A is clustered by prompt and B by sequence"):
        compare(ours, bare)
    with pytest.raises(ValueError, match="is none of"):
        compare(ours, ours, method="k4")
    with pytest.raises(ValueError, match="not between 0 and 1"):
        compare(ours, ours, confidence=1.0)


def test_only_common_questions_are_compared_in_the_order_of_the_first() -> None:
    a, b = (drawn(seed, np.arange(9)) for seed in (1, 2))
    ours = summarize([a], questions=["KL(old||s)", "KL(old||current)", "KL(s||old)"])
    theirs = summarize([b], questions=["KL(old||current)", "KL(old||s)"])
    assert [str(c.question) for c in compare(ours, theirs)] == ["KL(old||s)", "KL(old||current)"]


def test_a_side_without_a_number_is_named_with_its_reason() -> None:
    fine = drawn(1, np.arange(9))
    hole = fine.log_probs["current"].copy()
    hole[3] = -np.inf
    found = one(fine, replace(fine, log_probs={**fine.log_probs, "current": hole}))
    assert np.isnan(found.difference)
    assert found.reason == "B: infinite: 1 tokens outside a support"
    assert (found.verdict, found.on_shared) == ("unknown", None)
    assert np.isfinite(found.a.mean)
    assert "has no number (B: infinite" in str(found)
    bare = one(fine, replace(fine, exact={}), method="exact")
    assert bare.reason is not None
    assert bare.reason.startswith("B: the exact KL is known at 0 of")


def test_one_prompt_tells_no_error() -> None:
    found = one(drawn(1, [4, 4, 4]), drawn(2, np.arange(30)))
    assert found.reason == "A: one effective cluster: no error can be told from fewer than two"
    assert np.isfinite(found.difference)
    assert found.verdict == "unknown"


@pytest.mark.parametrize("size", [1e308, -1e308, 1.7e308])
def test_what_overflows_has_a_reason_and_no_warning(size: float) -> None:
    a = pack({"old": [[size], [-1.0], [-1.0]], "current": [[-1.0]] * 3})
    b = pack({"old": [[-size], [-1.0], [-1.0]], "current": [[-1.0]] * 3})
    assert one(a, b).reason is not None


def test_an_exact_difference_has_the_interval_of_new_prompts() -> None:
    """Each side's mean over its own prefixes is known, but the other side has other prefixes."""
    found = one(drawn(1, np.arange(40)), drawn(2, np.arange(40)), method="exact")
    assert found.a.standard_error == found.b.standard_error == 0
    assert found.standard_error > 0
    assert found.scope == "new prompts"


def test_the_verdict_says_rose_fell_or_noise_and_rounding_is_no_change() -> None:
    a, b = drawn(1, np.arange(40)), drawn(2, np.arange(40), shift=1.0)
    assert [one(x, y).verdict for x, y in ((a, b), (b, a), (a, a))] == [
        "rose", "fell", "within-noise",
    ]  # fmt: skip
    values, ids = np.tile([0.1, 0.2, 0.3], 9)[:, None], np.repeat(np.arange(9), 3)
    there, back = (
        pack({"old": p, "current": np.zeros((27, 1))}, clusters=ids) for p in (values, values[::-1])
    )
    found = one(there, back)  # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are two numbers
    assert 0 < abs(found.difference) < 1e-15
    assert not found.low <= 0 <= found.high
    assert found.verdict == "within-noise"


def test_marks_of_either_side_are_kept() -> None:
    found = one(drawn(1, np.arange(60), longest=1), drawn(2, np.arange(9), longest=1))
    assert found.marks == ("few-clusters",)
    assert found.confidence == 0.95
    narrow, wide = (one(drawn(1, [1, 2, 3]), drawn(2, [1, 2, 3]), confidence=c) for c in (0.5, 0.9))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_all_of_it_is_public_and_of_python_floats() -> None:
    found = one(drawn(1, np.arange(9)), drawn(2, np.arange(9)))
    assert kb.compare is compare
    assert isinstance(found, kb.Comparison)
    for name in ("difference", "low", "high", "standard_error", "degrees_of_freedom"):
        assert type(getattr(found, name)) is float, name
