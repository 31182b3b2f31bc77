from __future__ import annotations

import numpy as np

from kullback.cli.report import demo_report
from kullback.columns import pack
from kullback.estimation.summary import summarize
from kullback.reporting.document import document
from kullback.reporting.question_section import section
from kullback.worlds import CLEAN_WORLDS

DEMO = demo_report()
QUESTIONS = {one["question"]["text"]: one for one in DEMO["questions"]}


def test_it_is_folded_unless_it_is_the_headlines():
    one = DEMO["questions"][0]
    assert section(one).startswith("<details><summary>")
    assert section(one, shown=True).startswith("<details open><summary>")


def test_what_stands_in_it_stands_in_one_order():
    text = section(QUESTIONS["KL(current||reference) ~ rollout"])
    parts = [
        "KL(current||reference) ~ rollout",
        "Trust: with care; no column shows whether the sampler&#x27;s log-probs leave out a "
        "temperature or top-p.",
        "k1 says",
        "auto (λ = ",
        "A log that forgets the importance weight shows -0.0296 here.",
        "It holds if: ",
        "Whether rollout sampled these tokens cannot be told from this dump.",
        "By position",
        "nine in ten lie between",
        "of the sum of k3",
        ">per token<",
        "weights current/rollout",
        "k3 at most 10",
        "<mark>",
        "0 masked, 0 missing, 0 infinite.",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_an_accused_sampler_is_told_with_its_bound():
    text = section(QUESTIONS["KL(rescored||reference)"])
    assert "rescored did not sample these tokens." in text
    assert "A sum this low has a probability of at most e^-9.93." in text


def test_weights_of_the_other_policy_where_p_sampled():
    columns = CLEAN_WORLDS["smooth"](16).sample(np.random.default_rng(0))
    one = document(summarize([columns]))["questions"][0]
    assert f"weights {one['question']['q']}/{one['question']['p']}" in section(one)


def test_clamps_are_shown_where_one_does_something():
    shown = QUESTIONS["KL(rollout||strong)"]
    assert shown["clamps"][0]["clamp"] == "k3_within_20_10"
    assert "verl, SkyRL, NeMo RL, ms-swift" in section(shown)
    assert "no gradient" not in section(QUESTIONS["KL(rollout||strong)"] | {"clamps": []})


def test_counts_are_told_in_full():
    columns = pack(
        {"old": [[-1.0, np.nan, -0.5, -1.0]] * 4, "current": [[-1.5, -1.0, -np.inf, -1.0]] * 4},
        mask=[[1, 1, 1, 0]] * 4,
    )
    text = section(document(summarize([columns]))["questions"][0])
    assert "4 masked, 4 missing, 4 infinite." in text
    assert "no number" not in text or "infinite" in text


def test_tokens_without_text_have_no_column_for_it():
    one = document(summarize([pack({"old": [[-1.0, -2.0]] * 4, "current": [[-1.5, -1.0]] * 4})]))
    text = section(one["questions"][0])
    assert "<th>largest</th><th>nats</th><th>share</th><th>log p</th>" in text
    assert '<th class="text">text</th>' in section(QUESTIONS["KL(rollout||old)"])
