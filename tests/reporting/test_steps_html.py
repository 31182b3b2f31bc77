from __future__ import annotations

import numpy as np

import kullback as kb
from kullback.reporting.steps import steps_document
from kullback.reporting.steps_html import steps_page
from kullback.worlds.step_logs import LOG_FAULTS, NAMES, honest_log


def page(log, **how) -> str:
    return steps_page(steps_document(kb.judge_log(kb.StepLog.of(log), **how)))


def test_every_series_has_its_picture_and_what_its_name_means():
    log = LOG_FAULTS["spike"].inject(honest_log(np.random.default_rng(0)), NAMES["verl"])
    text = page(log, framework="verl")
    assert text.count("<figure>") == 5
    assert text.count("What its name means") == 5
    assert "mean-owned-by-few" in text
    assert "logged as response_tokens" in text


def test_a_name_is_no_markup():
    text = page({"kl<script>alert(1)</script>": np.full(20, 0.1)})
    assert "<script>alert" not in text


def test_a_log_without_a_kl_says_so():
    text = page({"loss": [1.0]})
    assert "No series is known as a KL" in text
    assert "<p>Nothing.</p>" in text


def test_what_is_no_number_has_no_picture():
    assert "<figure>" not in page({"kl": [np.nan, np.nan]})
