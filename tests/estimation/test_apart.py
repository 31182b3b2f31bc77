from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kullback.columns import Columns, pack
from kullback.estimation.apart import summarize_steps
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.reporting.document import document
from kullback.reporting.write import as_json

ASKED = [Question("old", "current")]


def batch(seed: int, steps: Any, dtype: Any = None) -> Columns:
    rng, values = np.random.default_rng(seed), np.array(steps, dtype=dtype)
    p = rng.normal(-2, 1, size=(len(values), 4))
    columns = pack({"old": p, "current": p - 0.1}, clusters=rng.integers(9, size=len(values)))
    return replace(columns, labels={"step": values})


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_step_is_summarized_as_if_it_were_a_dump_of_its_own(jobs: int) -> None:
    batches = [batch(seed, [3, 7, 5, 3, 7][seed % 3 :]) for seed in range(8)]
    seen: list[Columns] = []
    found = summarize_steps(batches, ["7", "3"], questions=ASKED, jobs=jobs, on_batch=seen.append)
    for step, summary in zip((7, 3), found, strict=True):
        chosen = [one.take(np.flatnonzero(one.labels["step"] == step)) for one in batches]
        alone = summarize((one for one in chosen if len(one)), questions=ASKED)
        assert as_json(document(summary)) == as_json(document(alone))
    assert seen == batches


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([3, 7, 7], np.int64),
        ([3.0, 7.0, np.nan, 7.0], np.float64),
        (["3", "7", "7", None], object),
        ([3, "7", 7.0], object),
    ],
)
def test_a_step_is_found_however_it_is_logged(values, dtype) -> None:
    three, seven = summarize_steps([batch(0, values, dtype)], ["3", "7"], questions=ASKED)
    assert (three.questions[ASKED[0]].sequences, seven.questions[ASKED[0]].sequences) == (1, 2)


def refusal(batches: list[Columns], *steps: str) -> str:
    with pytest.raises(ValueError, match=r".") as refused:
        summarize_steps(batches, steps, questions=ASKED)
    return str(refused.value)


def test_a_step_that_is_not_there_is_refused_with_those_that_are() -> None:
    both = [batch(0, [3, 12]), batch(1, [7, 3])]
    assert refusal(both, "3", "4") == "no sequence is of step 4; the steps there are: 3, 7, 12"
    assert "of step 4, five; the steps there are: 3, 7, 12" in refusal(both, "4", "five")
    assert refusal([batch(0, [1.5, np.nan, 2.0])], "3", "2") == (
        "no sequence is of step 3; the steps there are: 1.5, 2"
    )
    assert "there are: none, since null" in refusal([batch(0, [np.nan])], "3", "4")
    assert "10, 3, b" in refusal([batch(0, ["3", "b", "10", None], object)], "x", "3")
    many = refusal([batch(0, np.arange(100))], "0", "100")
    assert many.endswith("18, 19 … 99 (100 in all)")


def test_without_a_step_or_a_role_it_says_what_to_do() -> None:
    bare = replace(batch(0, [1]), labels={})
    assert "log a column step" in refusal([bare], "1", "2")
    with pytest.raises(ValueError, match="needs log-probs of reference"):
        summarize_steps([batch(0, [1])], ["1"], questions=[Question("old", "reference")])
