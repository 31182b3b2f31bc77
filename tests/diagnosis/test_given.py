from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kullback.columns import Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.given import given_findings
from kullback.diagnosis.sampler import diagnose_sampler
from kullback.dumps import demo_path, read
from kullback.estimation.summary import Summary, summarize

COPIES = ("rollout", "old", "current")


def real() -> Columns:
    """The real rollouts, with two roles that score everything and nothing of their heads."""
    (columns,) = read(demo_path())
    log_probs = {role: columns.log_probs[role] for role in COPIES}
    whole = replace(columns, log_probs=log_probs, entropy={}, exact={}, top_k={})
    return replace(whole, text=None, token_bytes=None)


def with_words(columns: Columns, at: int, words: int = 8, every: int = 1) -> Columns:
    """The same words of nobody's in sequences, scored by every role alike."""
    rng = np.random.default_rng(0)
    told = np.flatnonzero((columns.lengths > at) & (np.arange(len(columns.lengths)) % every == 0))
    places = np.repeat(columns.starts[told] + at, words)
    said = np.tile(np.arange(90_000, 90_000 + words), len(told))
    surprise = np.tile(-rng.gamma(2.0, 2.0, words), len(told))
    lengths = columns.lengths.copy()
    lengths[told] += words
    assert columns.tokens is not None
    return replace(
        columns,
        lengths=lengths,
        mask=np.insert(columns.mask, places, True),
        tokens=np.insert(columns.tokens, places, said),
        log_probs={
            role: np.insert(values, places, surprise - 0.01 * number)
            for number, (role, values) in enumerate(columns.log_probs.items())
        },
    )


@pytest.mark.parametrize(
    ("at", "every", "code"),
    [
        (0, 1, "mask-covers-prompt"),
        (0, 3, "mask-covers-prompt"),
        (10, 1, "mask-covers-environment"),
        (10, 5, "mask-covers-environment"),
    ],
)
def test_words_that_every_role_scored_are_told_by_their_being_said_again(at, every, code):
    found = diagnose(summarize([with_words(real(), at, every=every)]))
    (finding,) = [one for one in found.findings if one.accuses]
    assert (finding.code, finding.severity) == (code, "error")
    assert finding.certainty == "beyond-chance"
    assert set(finding.questions) == {"KL(rollout||old)", "KL(rollout||current)"}


def test_words_that_are_not_counted_are_none_of_it():
    columns = with_words(real(), 10)
    assert columns.tokens is not None
    masked = replace(columns, mask=columns.mask & (columns.tokens < 90_000))
    assert not diagnose(summarize([masked])).accused


def test_the_real_rollouts_pass_and_are_looked_at():
    checks = diagnose_sampler(summarize([real()])).checks
    (check,) = [one for one in checks if one.code == "mask-covers-environment"]
    assert check.status == "passed"
    assert "tokens follow the 3 before them" in check.reason


def status(summary: Summary) -> tuple[str, str]:
    checks = diagnose_sampler(summary).checks
    (check,) = [one for one in checks if one.code == "mask-covers-environment"]
    return check.status, check.reason


def test_where_nothing_is_said_again_or_no_id_is_logged_it_says_so():
    columns = real()
    bare = summarize([replace(columns, tokens=None)])
    assert status(bare)[0] == "not-possible"
    assert "no ids are logged" in status(bare)[1]
    few = summarize([columns.take(slice(3))])
    assert "tokens stand behind words that were there before" in status(few)[1]


def test_without_a_test_that_fails_there_is_nothing():
    assert given_findings(summarize([real()]), {}) == []


def test_padding_in_front_is_no_prompt():
    columns = with_words(real(), 0)
    assert columns.tokens is not None
    tokens = np.where(columns.tokens >= 90_000, 2, columns.tokens)
    accused = [one.code for one in diagnose(summarize([replace(columns, tokens=tokens)])).findings
               if one.accuses]  # fmt: skip
    assert "mask-covers-environment" not in accused
