from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import kullback as kb
from kullback.reporting.steps import steps_document
from kullback.reporting.steps_text import CHECKS, print_steps
from kullback.worlds.step_logs import honest_log


def printed(log, width: int = 100, **how) -> str:
    stream = io.StringIO()
    report = steps_document(kb.judge_log(kb.StepLog.of(log), **how))
    print_steps(report, Console(file=stream, width=width))
    return stream.getvalue()


def test_findings_series_and_checks_are_printed():
    text = printed({"rollout_corr/kl": np.full(20, -0.03)}, framework="verl", tokens=8192)
    assert "error  negative-beyond-chance" in text
    assert "What a code means: kullback explain negative-beyond-chance" in text
    assert "rollout_corr/kl is k1 of KL(rollout||old) (verl)." in text
    assert "Tokens of a step: about 8192, 8192 per step, as given" in text


def test_a_name_of_several_trainers_may_be_each_of_theirs():
    text = printed({"kl": np.full(20, 0.1)}, 900)
    assert "\nkl may be " in text
    assert "--framework NAME" in text
    assert "--framework NAME" not in printed({"kl": np.full(20, 0.1)}, 300, framework="trl")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_width_is_kept(width):
    text = printed(honest_log(np.random.default_rng(0)), width)
    assert max(map(len, text.splitlines())) <= width


def test_what_cannot_be_told_is_cut_where_it_is_much():
    text = printed({f"my_kl_{i}": np.full(20, -0.03) for i in range(CHECKS + 4)}, 300)
    assert "more that cannot be told (--json)" in text
    assert "not logged under a name that is known (--tokens N)" in text


def test_a_name_moves_no_cursor():
    assert "\x1b" not in printed({"kl\x1b[2J": np.full(20, 0.1)})


def test_a_log_without_a_kl_prints_its_headline():
    assert "No KL is known" in printed({"loss": [1.0]})
