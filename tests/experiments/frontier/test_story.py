from __future__ import annotations

import json

import numpy as np
import pytest

from kullback.experiments.frontier import looks, story, training
from kullback.experiments.frontier.measure import at_kl, mix, place, table, tilted
from kullback.experiments.frontier.training import EXACT, TERMS


def test_the_answer_says_what_was_found(made):
    said = made("frontier").answer
    assert all(
        number in said for number in ("0.38", "0.87", "3.01", "4.24", "0.19", "0.57", "0.06")
    )
    assert "step 85 by the exact KL" in said


def test_a_policy_on_the_way_has_the_kl_that_is_asked_for():
    for term in story.PATHS.values():
        p = story.on_the_way(4.0, term)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert place(p).kl == pytest.approx(4, abs=0.05)
        assert place(p).proxy < at_kl(place(p).kl, "tilt")[1].proxy


def test_what_is_said_of_the_ways_holds():
    tilt, chosen, trained = (place(p) for p in story._policies(story.CHOSEN).values())
    assert tilt.proxy > chosen.proxy > trained.proxy
    assert tilt.gold < chosen.gold < trained.gold
    words = {name: mix(p) for name, p in story._policies(story.CHOSEN).items()}
    assert max(words, key=lambda name: words[name][3]) == "most proxy"


def test_what_is_said_of_the_terms_holds():
    at = {name: place(story.on_the_way(story.CHOSEN, term)) for name, term in story.PATHS.items()}
    free = at[story.NONE]
    for name, term in story.PATHS.items():
        if term is not None:
            assert at[name].proxy > free.proxy
            assert at[name].gold < free.gold
    plain = [mix(training.answers(training.climbed(term)[40]))[0]
             for term in ("k3 in the loss", TERMS[0], "auto in the reward", None)]  # fmt: skip
    assert plain == sorted(plain, reverse=True)


def test_what_is_said_of_the_noise_holds():
    for log_p in (*training.climbed(TERMS[0])[[30, 60, 100]], table(tilted(training.BETA))):
        k1, exact = (training.noise(log_p, term, 0.0, 1.0) for term in (TERMS[0], EXACT))
        assert k1 > 7 * exact
        k1, exact = (training.noise(log_p, term) for term in (TERMS[0], EXACT))
        assert k1 < exact < training.noise(log_p, None)


def test_the_sliders_stand_where_there_is_a_setting(made):
    figures = [one for part in made("frontier").parts for one in part.shows]
    front = figures[0]
    assert story.CHOSEN in {row["at"] for row in front.rows}
    beside, _ = front.spec["concat"]
    for name in story.COLORS:
        shares = [row["value"] for row in beside["data"]["values"] if row["series"] == name]
        assert np.reshape(shares, (-1, 4)).sum(axis=1) == pytest.approx(1)
    for one in figures:
        if hasattr(one, "spec"):
            json.dumps(one.vega(), allow_nan=False)


def test_what_is_exact_does_not_depend_on_the_seed(made):
    first, second = made("frontier"), made("frontier", 1)
    assert first.parts[:2] == second.parts[:2]
    assert first.parts[2].shows[1] == second.parts[2].shows[1]
    assert first.parts[3].shows[0].rows != second.parts[3].shows[0].rows
    assert looks.top().step == 50
