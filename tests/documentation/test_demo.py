"""What the demo is said to show is true: each claim against the exact columns of its policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kullback as kb
from kullback.cli.report import demo_report
from kullback.worlds.faults import misaligned, prompt_scored

(COLUMNS,) = kb.read(kb.demo_path())
REPORT = demo_report()
QUESTIONS = {one["question"]["text"]: one for one in REPORT["questions"]}
FINDINGS = {one["code"]: one for one in REPORT["findings"]}


def clustered(values: np.ndarray) -> tuple[float, float]:
    """The mean over tokens and its error, clustered by prompt; written anew here."""
    prompts = np.repeat(COLUMNS.clusters, COLUMNS.lengths)
    _, group = np.unique(prompts, return_inverse=True)
    sums, sizes = np.bincount(group, values), np.bincount(group)
    residuals = sums - values.mean() * sizes
    scale = len(sums) / (len(sums) - 1)
    return values.mean(), np.sqrt(scale * (residuals**2).sum()) / sizes.sum()


def log_probs(role: str) -> np.ndarray:
    return COLUMNS.log_probs[role].astype(float)


def exact(question: str) -> np.ndarray:
    return COLUMNS.exact[question].astype(float)


def test_it_asks_what_a_dump_is_usually_asked_and_two_things_more():
    assert list(QUESTIONS) == [
        "KL(rollout||old)",
        "KL(rollout||current)",
        "KL(rollout||reference)",
        "KL(rollout||strong)",
        "KL(rollout||rescored)",
        "KL(current||reference) ~ rollout",
        "KL(strong||reference) ~ rollout",
        "KL(rescored||reference)",
    ]
    assert set(FINDINGS) == {
        "tokens-do-not-match-text",
        "negative-beyond-chance",
        "weight-missing",
        "weights-degenerate",
        "clamp-active",
        "mean-owned-by-few",
    }


def test_the_update_from_current_to_reference_is_estimated_within_its_error():
    """KL(current‖reference) from rollout's tokens: w·k1 less the exact KL at the same prefixes."""
    current, reference = log_probs("current"), log_probs("reference")
    weight = np.exp(current - log_probs("rollout"))
    truth = exact("KL(current||reference)")
    gap, error = clustered(weight * (current - reference) - truth)
    assert abs(gap) < 3 * error
    told = QUESTIONS["KL(current||reference) ~ rollout"]
    assert told["estimates"]["exact"]["mean"] == pytest.approx(truth.mean())
    best = told["estimates"]["auto"]
    assert best["low"] < truth.mean() < best["high"]
    assert told["trust"] == {"verdict": "with-care", "because": ["sampler-not-verifiable"]}


def test_a_log_that_forgets_the_weight_shows_a_negative_kl_there():
    told = QUESTIONS["KL(current||reference) ~ rollout"]
    assert told["unweighted_k1"] == pytest.approx(-0.0296, abs=5e-5)


def test_four_sequences_make_the_engine_mismatch_five_times_too_large():
    """Found by bytes. Without them k3 of rollout‖reference is 0.0031.

    No exact KL of rollout exists. Of the same weights scored once more, KL(rescored‖reference) is
    0.0031 at these prefixes too; the two are different policies and need not agree.
    """
    found = FINDINGS["tokens-do-not-match-text"]
    assert found["numbers"]["rows"] == [7, 49, 67, 80]
    odd = np.isin(COLUMNS.sequence_of_token, found["numbers"]["rows"])
    terms = kb.k3(log_probs("reference") - log_probs("rollout"))
    assert found["numbers"]["k3_with"] == pytest.approx(terms.mean(), rel=1e-9)
    assert found["numbers"]["k3_without"] == pytest.approx(terms[~odd].mean(), rel=1e-9)
    assert 5 < terms.mean() / terms[~odd].mean() < 5.5
    assert "KL(rollout||reference)" in found["questions"]
    assert "KL(current||reference) ~ rollout" not in found["questions"]


def test_recomputed_log_probs_are_not_the_samplers():
    """KL(rescored‖reference) is negative beyond chance, where the exact one is 0.0031."""
    found = FINDINGS["negative-beyond-chance"]
    total = (log_probs("rescored") - log_probs("reference")).sum()
    assert found["numbers"]["log_p"] == pytest.approx(total, rel=1e-9)
    assert np.exp(total) < 5e-5
    told = QUESTIONS["KL(rescored||reference)"]
    truth = exact("KL(rescored||reference)").mean()
    assert told["estimates"]["k1"]["mean"] < 0 < truth
    assert f"{truth:.4g}" in found["cost"]
    assert told["sampler_check"]["verdict"] == "accused"
    assert QUESTIONS["KL(rollout||reference)"]["sampler_check"]["verdict"] == "not-verifiable"


def test_the_strong_update_cannot_be_seen_from_rollout_and_the_report_says_so():
    """KL(strong‖reference) by k1 misses the exact one, auto reaches it; 4 % of tokens are left."""
    told = QUESTIONS["KL(strong||reference) ~ rollout"]
    truth = exact("KL(strong||reference)").mean()
    k1, auto = (told["estimates"][name] for name in ("k1", "auto"))
    assert k1["high"] < truth < auto["high"]
    assert told["weights"]["ess_fraction"] < 0.05
    assert told["trust"]["verdict"] == "no"
    assert "KL(strong||reference) ~ rollout" in FINDINGS["weights-degenerate"]["questions"]


def test_a_few_tokens_own_the_mismatch_and_they_stand_where_ids_were_lost():
    found = FINDINGS["mean-owned-by-few"]
    rows = FINDINGS["tokens-do-not-match-text"]["numbers"]["rows"]
    top = [one for one in QUESTIONS["KL(rollout||reference)"]["top"] if one["by"] == "k3"]
    assert {one["row"] for one in top[:3]} <= set(rows)
    assert "KL(rollout||reference)" in found["questions"]


def test_the_readme_shows_what_the_demo_prints():
    import io
    from pathlib import Path

    from rich.console import Console

    from kullback.reporting.text import print_report

    out = io.StringIO()
    print_report(REPORT, Console(file=out, width=100))
    printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert printed.strip() in readme


@pytest.mark.parametrize("role", COLUMNS.log_probs)
@pytest.mark.parametrize("lag", [-1, 1])
def test_a_shift_of_any_role_of_the_real_rollouts_is_found(role, lag):
    values = COLUMNS.log_probs[role].copy()
    for start, end in zip(COLUMNS.starts, COLUMNS.ends, strict=True):
        values[start:end] = np.roll(values[start:end], lag)
    shifted = replace(COLUMNS, log_probs={**COLUMNS.log_probs, role: values})
    good = shifted.take(np.setdiff1d(np.arange(128), [7, 49, 67, 80]))
    found = {one.code for one in kb.diagnose(kb.summarize([good])).findings if one.accuses}
    assert found == {"shifted-by-one"}  # though those of rollout contradict its own head, too


@pytest.mark.parametrize("role", COLUMNS.log_probs)
def test_columns_of_other_rows_are_found_in_any_role_of_the_real_rollouts(role):
    good = COLUMNS.take(np.setdiff1d(np.arange(128), [7, 49, 67, 80]))
    moved = misaligned(good, role)
    found = {f.code: f for f in kb.diagnose(kb.summarize([moved])).findings if f.accuses}
    assert f"So those of {role} belong to other rows" in found["misaligned"].claim
    assert found.keys() - {"misaligned"} <= {"not-normalized"}


def test_a_prompt_that_is_counted_is_found_in_the_real_rollouts():
    moved = prompt_scored(
        COLUMNS.take(np.setdiff1d(np.arange(128), [6, 7, 48, 49, 66, 67, 80, 81]))
    )
    found = {one.code for one in kb.diagnose(kb.summarize([moved])).findings if one.accuses}
    assert found == {"mask-covers-prompt"}


def test_with_the_weight_the_recomputed_log_probs_answer_too():
    """KL(rescored‖reference) is 0.0031 over the vocabulary; weighed 0.0024, else negative."""
    numbers = FINDINGS["weight-missing"]["numbers"]
    weight = np.exp(log_probs("rescored") - log_probs("rollout"))
    terms = weight * (log_probs("rescored") - log_probs("reference"))
    assert numbers["with"] == pytest.approx(terms.mean(), rel=1e-9)
    assert (
        abs(numbers["with"] - exact("KL(rescored||reference)").mean()) < (numbers["standard_error"])
    )
    assert numbers["without"] < 0


def test_without_the_four_sequences_the_real_rollouts_accuse_nobody():
    good = COLUMNS.take(np.setdiff1d(np.arange(128), [7, 49, 67, 80]))
    assert not kb.diagnose(kb.summarize([good])).accused


@pytest.mark.parametrize("role", ["old", "rescored"])
def test_a_recomputed_copy_that_is_said_to_have_sampled_is_accused(role):
    log_probs = {"rollout": COLUMNS.log_probs[role], "reference": COLUMNS.log_probs["reference"]}
    claimed = replace(COLUMNS, log_probs=log_probs, top_k={}, text=None)
    found = {one.code for one in kb.diagnose(kb.summarize([claimed])).findings if one.accuses}
    assert found == {"negative-beyond-chance"}


@pytest.mark.parametrize(
    ("role", "variance", "cut"), [("current", 0.01, 0.04), ("strong", 0.35, 0.67)]
)
def test_how_much_better_the_true_lag_fits(role, variance, cut):
    """What the docstring of ``is_shifted`` says of a shift undone, on the real rollouts."""
    good = COLUMNS.take(np.setdiff1d(np.arange(128), [7, 49, 67, 80]))
    question = kb.Question("rollout", role)
    (state,) = kb.summarize([good], questions=[question]).questions.values()
    count, total, squares, cuts = state.lags[0].T
    variances = squares / count - (total / count) ** 2
    assert variances[1] / variances[2] == pytest.approx(variance, abs=0.005)
    assert cuts[1] / cuts[2] == pytest.approx(cut, abs=0.005)
