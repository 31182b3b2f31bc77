from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any, cast

import jsonschema
import numpy as np
import pytest

import kullback as kb
from kullback.columns import Columns
from kullback.estimation.compare import compare
from kullback.estimation.summary import Summary, summarize
from kullback.reporting.comparison import comparison
from kullback.reporting.document import document
from kullback.reporting.write import as_json
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture


def schema(name: str) -> dict[str, Any]:
    return json.loads(files("kullback.reporting").joinpath(f"{name}.schema.json").read_text())


SCHEMA = schema("compare")
HELD = jsonschema.Draft202012Validator(SCHEMA)  # it reads the schema once
LOOP = cast(Mixture, CLEAN_WORLDS["training_loop"](16))
A, B = (summarize([LOOP.sample(np.random.default_rng(seed), exact=True)]) for seed in (0, 1))


def valid(a: Summary, b: Summary) -> dict[str, Any]:
    made = json.loads(as_json(comparison(a, b)))
    HELD.validate(made)
    return made


def test_the_schema_is_a_schema_and_shares_its_words_with_that_of_reports() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    report = schema("report")
    assert SCHEMA["$defs"]["source"] == report["properties"]["source"]
    for name in ("number", "trust_verdict", "estimate", "finding"):
        assert SCHEMA["$defs"][name] == report["$defs"][name], name


def test_the_numbers_are_those_of_compare_and_of_the_sides_reports() -> None:
    made = valid(A, B)
    for method in ("auto", "k3", "exact"):
        for told, found in zip(made["questions"], compare(A, B, method=method), strict=True):
            change = told["changes"][method]
            assert told["question"]["text"] == str(found.question)
            for name in ("difference", "low", "high", "standard_error", "degrees_of_freedom"):
                assert change[name] == getattr(found, name)
            assert told["pairing"] == {"by": "prompt", "shared": 16, "only_a": 0, "only_b": 0}
    for side, summary in (("a", A), ("b", B)):
        estimates = [one["estimates"] for one in document(summary)["questions"]]
        told = [one["changes"]["k3"][side] for one in made["questions"]]
        assert told == [json.loads(json.dumps(one["k3"])) for one in estimates]
    assert made["headline"]["question"] == "KL(current||reference) ~ rollout"
    assert made["headline"]["change"] == made["questions"][-1]["changes"]["auto"]


@pytest.fixture(scope="module")
def clean() -> Summary:
    return summarize([LOOP.sample(np.random.default_rng(1))])


@pytest.mark.parametrize("fault", FAULTS)
def test_the_schema_holds_whatever_is_wrong_with_a_side(fault, clean) -> None:
    broken = summarize([FAULTS[fault].inject(LOOP, np.random.default_rng(0))])
    if broken.cluster_kind == clean.cluster_kind:
        made = valid(broken, clean)
        assert {one["side"] for one in made["findings"]} <= {"a", "b"}


def test_what_one_side_has_alone_stands_first_and_lowers_the_trust() -> None:
    columns = LOOP.sample(np.random.default_rng(1))
    logs = dict(columns.log_probs)
    logs["reference"] = np.where(np.arange(len(columns)) % 99 == 5, -9999.0, logs["reference"])
    gap = summarize([replace(columns, log_probs=logs)])
    made = valid(A, gap)
    first, *others = made["findings"]
    assert (first["code"], first["side"], first["alone"]) == ("sentinel-inside-mask", "b", True)
    few = [one for one in others if one["code"] == "too-few-clusters"]
    assert [(one["side"], one["alone"]) for one in few] == [("a", False), ("b", False)]
    told = {one["question"]["text"]: one["trust"] for one in made["questions"]}
    spoiled = told["KL(rollout||reference)"]
    assert spoiled["verdict"] == "no"
    assert spoiled["because"] == ["B: sentinel-inside-mask"]
    assert told["KL(rollout||old)"] == {"verdict": "with-care", "because": ["too-few-clusters"]}
    assert made["headline"]["untrusted"] == 2


def test_a_difference_without_a_number_is_null_and_is_not_to_be_trusted() -> None:
    columns = LOOP.sample(np.random.default_rng(1))
    logs = dict(columns.log_probs)
    logs["current"] = np.where(np.arange(len(columns)) == 7, -np.inf, logs["current"])
    made = valid(A, summarize([replace(columns, log_probs=logs)]))
    change = made["questions"][1]["changes"]["auto"]
    assert (change["difference"], change["low"], change["verdict"]) == (None, None, "unknown")
    assert change["reason"].startswith("B: infinite")
    assert made["questions"][1]["trust"]["verdict"] == "no"


def test_questions_of_one_side_alone_are_named() -> None:
    columns = LOOP.sample(np.random.default_rng(1))
    fewer = {role: v for role, v in columns.log_probs.items() if role != "reference"}
    made = valid(A, summarize([replace(columns, log_probs=fewer, entropy={}, exact={})]))
    assert made["only_a"] == ["KL(rollout||reference)", "KL(current||reference) ~ rollout"]
    assert made["only_b"] == []
    assert made["headline"]["question"] == "KL(rollout||old)"
    assert "exact" not in made["questions"][0]["changes"]


def sliced(columns: Columns, first: int, last: int) -> Summary:
    """The prompts from one to another; each has eight sequences."""
    return summarize([columns.take(slice(8 * first, 8 * last))])


def test_shared_prompts_alone_are_told_where_there_are_others() -> None:
    columns = LOOP.sample(np.random.default_rng(0))
    made = valid(sliced(columns, 0, 12), sliced(columns, 4, 16))
    question = made["questions"][0]
    assert question["pairing"] == {"by": "prompt", "shared": 8, "only_a": 4, "only_b": 4}
    assert question["changes"]["auto"]["on_shared"]["difference"] == 0.0
    assert question["changes"]["auto"]["on_shared"]["standard_error"] == 0.0
    assert question["changes"]["auto"]["difference"] != 0.0
    lone = valid(sliced(columns, 0, 9), sliced(columns, 8, 16))["questions"][0]
    assert lone["changes"]["auto"]["on_shared"]["low"] is None


def test_keys_are_sorted_and_the_same_input_gives_the_same_bytes() -> None:
    text = as_json(comparison(A, B))
    assert text == as_json(comparison(A, B))
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_names_and_sources_of_the_sides_are_kept() -> None:
    dump = kb.read(kb.demo_path())
    side = summarize(dump)
    source = {"files": ["demo.parquet"], "sampler": "rollout"}
    made = comparison(side, side, (source, None), names=("x", "y"))
    assert (made["a"]["name"], made["b"]["name"]) == ("x", "y")
    assert (made["a"]["source"], made["b"]["source"]) == (source, {})
    assert made["a"]["counts"] == {"sequences": 128, "tokens": 7632, "clusters": 64}
