from __future__ import annotations

import pytest

from kullback.experiments.sequences import story
from kullback.experiments.sequences.measure import batch, normal, prompts


def test_the_answer_says_what_was_found(made):
    near = normal(0.1, 1000)
    assert (round(near.k1, 2), round(near.tokens, 3), round(near.sums, 1)) == (0.63, 0.045, 29.7)
    said = made("sequences").answer
    assert all(number in said for number in ("0.63", "0.045", "29.7", "12 and 4 times"))


def test_what_is_said_in_words_holds():
    """The numbers and orders that stand in sentences of the story."""
    for length in story.FEW:
        for kinds in (1, 32):
            it = prompts(kinds, length)
            assert it.exact < it.subset < it.k1
            assert it.subset < it.corrected
    k1, k3 = (story.EOS.sequence_mean(one) for one in story.FORMULAS.values())
    assert k1 - k3 == pytest.approx(0.0305, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_reads_about_k1_less_a_nat(seed):
    found = batch(0.2, story.LONG, story.SEQUENCES, seed)
    assert found["k3 of the sum"].mean == pytest.approx(found["k1"].mean - 1, abs=0.3)
    shown = found["k3 of the sum"]
    assert shown.seen < 0.01 * shown.error


def test_the_slider_stands_where_there_is_a_setting(made):
    figures = [one for part in made("sequences").parts for one in part.shows]
    (turned,) = [one for one in figures if "concat" in getattr(one, "spec", {})]
    settings = {row["at"] for row in turned.rows}
    assert story.EOS.q in settings
    assert story.EOS.p in settings


def test_what_is_exact_does_not_depend_on_the_seed(made):
    first, second = made("sequences"), made("sequences", 1)
    assert first.answer == second.answer
    assert first.parts[0] == second.parts[0]
    assert first.parts[1].shows[0].rows != second.parts[1].shows[0].rows
