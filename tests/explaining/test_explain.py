from __future__ import annotations

import pytest

import kullback as kb
from kullback.cli.report import demo_report
from kullback.diagnosis.finding import CODES
from kullback.explaining import explain as explaining
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.explain import _ALSO
from kullback.explaining.explanation import Section
from kullback.explaining.marks import MARKS
from kullback.explaining.trust import TRUST


@pytest.fixture
def _no_examples(monkeypatch):
    """A code leads to its explanation; ``test_codes`` computes and reads that of every code."""
    told = (Section("Means", "what it means"),)
    monkeypatch.setattr(
        explaining, "explain_code", lambda code: kb.Explanation(code, "finding", code, told)
    )


@pytest.mark.usefixtures("_no_examples")
def test_the_list_names_everything_that_can_be_explained():
    listed = kb.explain()
    assert listed.kind == "list"
    rows = [
        row.split("\t")[0] for section in listed.sections[:-1] for row in section.text.splitlines()
    ]
    assert rows == [*CODES, *MARKS, *ESTIMATORS, *TRUST]
    for name in rows:
        assert kb.explain(name).name == name


@pytest.mark.parametrize("other", _ALSO)
def test_what_a_report_calls_a_number_leads_to_it(other):
    assert kb.explain(other).name == _ALSO[other]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("missing_mass", "missing-mass"),
        ("clip_fraction", "clip-fraction"),
        ("truncated_share", "truncated-share"),
        ("log_bound", "log-bound"),
        ("lambda", "lambda"),
        ("S", "S"),
        ("unweighted_k1", "unweighted-k1"),
        ("effective_clusters", "effective-clusters"),
        (" K3 ", "k3"),
        ("as-if-sampled-by-current", "as-if-sampled-by"),
        ("WEIGHTS-DEGENERATE", "weights-degenerate"),
    ],
)
def test_case_and_dashes_do_not_matter(key, name):
    assert kb.explain(key).name == name


@pytest.mark.usefixtures("_no_examples")
def test_everything_that_the_demo_is_read_with_care_for_can_be_asked():
    report = demo_report()
    words = {word for one in report["questions"] for word in one["trust"]["because"]}
    words |= {mark for one in report["questions"] for mark in one["estimates"]["auto"]["marks"]}
    words |= {one["code"] for one in (*report["findings"], *report["checks"])}
    assert len(words) > 10
    for word in words:
        assert kb.explain(word).sections


def test_the_numbers_of_a_report_can_be_asked_by_their_keys():
    one = demo_report()["questions"][0]
    keys = {*one["sampler_check"], *one["weights"], *one["estimates"], *one["shape"]}
    without = {"verdict", "z", "of", "max", "source", "log_p"}  # words and plain numbers
    for key in keys - without:
        assert kb.explain(key).sections, key


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("weight-degenerate", "did you mean weights-degenerate?"),
        ("mising mass", "did you mean missing-mass or missing-values?"),
        ("xyzzy", "kullback explain lists what can be explained"),
        ("", "kullback explain lists what can be explained"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name, told):
    with pytest.raises(ValueError, match="nothing is called") as raised:
        kb.explain(name)
    assert told in str(raised.value)


@pytest.mark.parametrize("given", [{"value": 0.1}, {"tokens": 3}])
@pytest.mark.parametrize("name", [None, "kl"])
def test_a_value_needs_its_tokens_and_its_name(name, given):
    with pytest.raises(ValueError, match="by its name, its value and its tokens"):
        kb.explain(name, **given)


def test_a_value_is_judged():
    said = kb.explain("KL", value=-0.031, tokens=8192)
    assert said.kind == "value"
    assert str(said) == said.text
    assert isinstance(said, kb.Explanation)


def test_what_a_trainer_logs_is_explained():
    assert kb.explain("actor/kl_loss").kind == "logged"
    assert kb.explain("actor/kl_loss", framework="verl").name == "actor/kl_loss (verl)"
    assert kb.explain(framework="verl").kind == "list"
    assert kb.explain("ref_kl", -0.031, 8192, framework="prime-rl").numbers["sign"] == -1


def test_a_name_of_ours_says_who_else_has_it():
    section = kb.explain("kl").sections[-1]
    assert section.label == "In logs"
    assert "trl" in section.text
    assert kb.explain("ess").sections[-1].text.startswith("torchrl logs a number by this name")
    assert kb.explain("k3").sections[-1].label != "In logs"


def test_settings_are_read_from_a_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"actor": {"kl_loss_type": "k1"}}', encoding="utf-8")
    assert (
        kb.explain("actor/kl_loss", framework="verl", config=path)
        .sections[1]
        .text.startswith("log current − log reference")
    )
    said = kb.explain("actor/kl_loss", -0.031, 8192, framework="verl", config=path)
    assert said.numbers["verdict"] == "not-noise"


@pytest.mark.parametrize("given", [{"version": "1"}, {"config": "run.json"}])
def test_settings_are_somebodys(given):
    with pytest.raises(ValueError, match="whose version or settings"):
        kb.explain("kl", **given)


def test_an_unknown_name_gets_the_nearest_of_a_log():
    with pytest.raises(ValueError, match="did you mean actor/kl_loss"):
        kb.explain("actor/klloss")


def test_a_value_of_a_log_needs_its_framework():
    with pytest.raises(ValueError, match=r"--framework areal \(or stable-baselines3, cleanrl\)"):
        kb.explain("approx_kl", -0.031, 8192)
    with pytest.raises(ValueError, match=r"whose actor/kl_loss is it.*--framework verl"):
        kb.explain("actor/kl_loss", -0.01, 4000)
    with pytest.raises(ValueError, match=r"--framework areal \(or stable-baselines3, cleanrl\)"):
        kb.explain("approx_kl", -0.01, 4000)


def test_a_value_is_read_as_one_of_ours_and_where_to_ask_for_theirs_is_said():
    for name, method in (("kl", "k1"), ("k3", "k3")):
        read = dict(kb.explain(name, 0.031, 4096).sections)["Read as"]
        assert read.startswith(f"{method} of KL(p‖q)")
        assert "--framework" in read


def test_without_a_count_it_is_said_from_how_many_tokens_on_it_is_no_noise():
    """e^(−0.031 · 149) is just below 1 %."""
    with pytest.raises(ValueError, match=r"from 149 tokens on, -0\.031 is hardly noise"):
        kb.explain("kl", -0.031)
    for name, value, framework in (("k3", -0.031, None), ("kl", 0.031, None), ("kl", -1.0, "trl")):
        with pytest.raises(ValueError, match=r"--tokens 8192$"):
            kb.explain(name, value, framework=framework)
