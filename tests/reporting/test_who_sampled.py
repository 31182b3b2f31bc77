from __future__ import annotations

import numpy as np

from kullback.cli.report import demo_report
from kullback.columns import pack
from kullback.estimation.summary import summarize
from kullback.reporting.document import document
from kullback.reporting.who_sampled import lines, section


def test_the_terminal_names_each_role_once_and_the_means_that_are_no_kl():
    first, *means = lines(demo_report())
    assert first.startswith("Who sampled? Cannot tell: rollout (taken as the sampler); it finds ")
    others = "rescored (taken as the sampler), old, current, reference, strong."
    assert first.endswith(f" Cannot have: {others}")
    assert len(means) == 3
    assert "KL(rollout||reference) − KL(rollout||current)" in means[0]


def test_the_page_has_both_tables():
    shown = section(demo_report())
    assert shown.count("<table>") == 2
    assert "it estimates KL(rollout||old)" in shown


def test_without_whole_columns_there_is_no_table_of_means():
    batch = pack({"old": [[-1.0, np.nan]], "current": [[-1.0, -0.5]]})
    report = document(summarize([batch]))
    assert section(report).count("<table>") == 1
    assert lines(report) == [
        "Who sampled? Cannot tell: old (taken as the sampler), current.",
    ]
