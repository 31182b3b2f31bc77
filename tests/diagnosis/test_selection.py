from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.columns import Columns, pack
from kullback.diagnosis.finding import Check
from kullback.diagnosis.selection import diagnose_selection
from kullback.estimation.summary import summarize
from kullback.worlds import CLEAN_WORLDS

CODE = "selected-on-outcome"


def rows(prompts: int = 32, each: int = 8, **labels) -> Columns:
    shape = (prompts * each, 3)
    columns = pack(
        {"rollout": np.full(shape, -1.0), "old": np.full(shape, -1.1)},
        clusters=np.repeat(np.arange(prompts), each),
    )
    return replace(columns, labels={name: np.array(values) for name, values in labels.items()})


def looked(columns: Columns, subject: str) -> tuple[Any, Check]:
    diagnosis = diagnose_selection(summarize([columns]))
    (check,) = [check for check in diagnosis.checks if check.subject == subject]
    return diagnosis.findings, check


GROUPS, REWARDS, CUT = "rows of a prompt", "rewards of a prompt", "unfinished rows"


def test_prompts_with_fewer_rows_than_the_others_are_told() -> None:
    columns = rows()
    left = np.setdiff1d(np.arange(256), (0, 1, 17, 40, 255))
    (finding,), check = looked(columns.take(left), GROUPS)
    assert (finding.code, finding.severity, check.status) == (CODE, "note", "failed")
    assert finding.numbers == {"usual": 8, "prompts": 32, "uneven": 4, "missing": 5}
    assert not finding.accuses


def test_whole_groups_pass_and_a_file_that_was_cut_is_no_selection() -> None:
    assert looked(rows(), GROUPS)[1].status == "passed"
    assert looked(rows().take(slice(3, 250)), GROUPS)[1].status == "passed"
    # Every other prompt was asked at two steps.
    twice = rows().take(np.r_[0:256, 0:128])
    assert looked(twice, GROUPS)[1].status == "passed"


def test_prompts_without_a_usual_number_of_rows_say_nothing() -> None:
    ids = np.repeat(np.arange(20), np.arange(1, 21))
    shape = (len(ids), 2)
    columns = pack({"rollout": np.full(shape, -1.0), "old": np.full(shape, -1.1)}, clusters=ids)
    assert looked(columns, GROUPS)[1].status == "not-possible"
    lone = replace(columns, cluster_kind="sequence")
    assert looked(lone, GROUPS)[1].status == "not-possible"


def test_groups_without_a_difference_in_reward_are_missed() -> None:
    rng = np.random.default_rng(0)
    reward = (rng.random((256, 4)) < rng.random((256, 1))).astype(float)
    findings, check = looked(rows(256, 4, reward=reward.ravel()), REWARDS)
    assert (findings, check.status) == ((), "passed")
    mixed = np.flatnonzero(np.repeat(np.ptp(reward, axis=1) > 0, 4))
    (finding,), check = looked(rows(256, 4, reward=reward.ravel()).take(mixed), REWARDS)
    assert (finding.code, check.status) == (CODE, "failed")
    assert finding.numbers["log_p"] < np.log(0.01)


def test_few_groups_may_all_differ_by_chance() -> None:
    reward = np.tile([0.0, 1.0, 1.0, 0.0], 20)
    assert looked(rows(20, 4, reward=reward), REWARDS)[1].status == "passed"  # 0.875^20 = 0.07
    reward = np.random.default_rng(0).random(400)
    assert looked(rows(100, 4, reward=reward), REWARDS)[1].status == "not-possible"
    assert looked(rows(), "the dump")[1].status == "not-possible"


def test_that_all_rows_finished_proves_nothing() -> None:
    reasons = np.array(["stop"] * 256, dtype=object)
    findings, check = looked(rows(finish_reason=reasons), CUT)
    assert (findings, check.status) == ((), "not-possible")
    reasons[3] = "length"
    assert looked(rows(finish_reason=reasons), CUT)[1].status == "passed"
    rewarded = rows(reward=np.arange(256) % 2)
    assert "finish_reason" in looked(rewarded, CUT)[1].reason


@pytest.mark.parametrize("name", CLEAN_WORLDS)
def test_clean_worlds_are_whole(name: str) -> None:
    columns = CLEAN_WORLDS[name](16).sample(np.random.default_rng(0))
    assert diagnose_selection(summarize([columns])).findings == ()


def test_real_rollouts_are_whole() -> None:
    (columns,) = kb.read(kb.demo_path())
    findings, check = looked(columns, GROUPS)
    assert (findings, check.status) == ((), "passed")


def test_rewards_that_are_all_one_value_may_be_what_was_kept() -> None:
    check = looked(rows(reward=np.ones(256)), REWARDS)[1]
    assert check.status == "not-possible"
    assert "all 256 rewards are 1" in check.reason
