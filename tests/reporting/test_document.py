from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import kullback as kb
from kullback.cli.report import demo_report
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.reporting.document import document, plain
from kullback.reporting.write import as_json
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

GOLDEN = Path(__file__).with_name("demo.json")
SCHEMA = json.loads(files("kullback.reporting").joinpath("report.schema.json").read_text())
HELD = jsonschema.Draft202012Validator(SCHEMA)  # it reads the schema once, not for every report


def close(found: Any, golden: Any, at: str = "") -> None:
    """Equal, numbers to nine digits: another processor may sum in another order."""
    assert (found is None) == (golden is None), at
    if isinstance(golden, float):
        assert found == pytest.approx(golden, rel=1e-9, abs=1e-12), at
    elif isinstance(golden, dict) and isinstance(found, dict):
        assert found.keys() == golden.keys(), at
        for key, value in golden.items():
            close(found[key], value, f"{at}/{key}")
    elif isinstance(golden, list) and isinstance(found, list):
        assert len(found) == len(golden), at
        for i, value in enumerate(golden):
            close(found[i], value, f"{at}/{i}")
    else:
        assert found == golden, at


def test_the_demo_report_is_the_golden_one():
    """To renew it: kullback report --demo --json tests/reporting/demo.json, and read the diff."""
    close(json.loads(as_json(demo_report())), json.loads(GOLDEN.read_text()))


def test_the_schema_is_a_schema_and_holds_for_the_demo():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    HELD.validate(demo_report())


@pytest.mark.parametrize("fault", FAULTS)
def test_the_schema_holds_whatever_is_wrong(fault):
    world = CLEAN_WORLDS["training_loop"](16)
    assert isinstance(world, Mixture)
    report = document(summarize([FAULTS[fault].inject(world, np.random.default_rng(0))]))
    HELD.validate(json.loads(as_json(report)))


def test_a_number_that_does_not_exist_is_null_and_has_its_reason():
    report = document(summarize([kb.pack({"p": [[-1.0]], "q": [[-np.inf]]})]))
    best = report["questions"][0]["estimates"]["auto"]
    assert best["mean"] is None
    assert best["reason"] == "no token has both log-probs" or "infinite" in best["reason"]
    assert report["headline"]["trust"] == "no"


def test_plain_leaves_only_what_json_has():
    odd = {"a": np.float32(1), "b": (np.int64(2), np.nan), 3: np.bool_(True), "c": np.array([1.0])}
    assert plain(odd) == {"a": 1.0, "b": [2, None], "3": True, "c": [1.0]}


def questions(columns, *texts: str):
    asked = [Question.parse(text) for text in texts] or None
    return document(summarize([columns], questions=asked))["questions"]


def test_the_distribution_is_that_of_the_sampled_tokens():
    rng = np.random.default_rng(0)
    log_p = rng.normal(-2.0, 1.0, size=(50, 40))
    log_q = log_p + rng.normal(0.0, 0.3, size=log_p.shape)
    (one,) = questions(kb.pack({"p": log_p, "q": log_q}))
    for name, values in (("k1", kb.k1(log_q - log_p)), ("k3", kb.k3(log_q - log_p))):
        spread = one["distribution"][name]
        assert spread["mean"] == pytest.approx(values.mean(), rel=1e-9)
        assert spread["std"] == pytest.approx(values.std(), rel=1e-9)
        assert spread["p95"] == pytest.approx(np.quantile(values, 0.95), rel=0.02)
        assert (spread["min"], spread["max"]) == pytest.approx((values.min(), values.max()))
    assert one["distribution"]["k1"]["negative_share"] == pytest.approx((log_q > log_p).mean())


def test_weights_on_and_off_policy_against_plain_numpy():
    rng = np.random.default_rng(1)
    s = rng.normal(-2.0, 1.0, size=(50, 40))
    p, q = s + rng.normal(0, 0.3, s.shape), s + rng.normal(0, 0.3, s.shape)
    columns = kb.pack({"s": s, "p": p, "q": q})
    on, off = questions(columns, "KL(s||q)", "KL(p||q) ~ s")
    for one, log_weight, of in ((on, q - s, "q/s"), (off, p - s, "p/s")):
        w = np.exp(log_weight)
        got = one["weights"]
        assert got["of"] == of
        assert got["ess_fraction"] == pytest.approx(w.sum() ** 2 / (w.size * (w**2).sum()))
        assert got["chi2"] == pytest.approx(((w - 1) ** 2).mean(), rel=1e-9)
        assert got["truncated_mean"] == pytest.approx(np.minimum(w, 2).mean())
        assert got["truncated_share"] == pytest.approx((w > 2).mean())
        assert got["clip_fraction"] == pytest.approx(((w < 0.8) | (w > 1.2)).mean())
        assert got["max"] == pytest.approx(w.max())
    assert off["unweighted_k1"] == pytest.approx((p - q).mean())
    assert on["unweighted_k1"] is None


def test_a_sampler_that_is_not_the_dumps_is_read_with_care():
    clean = CLEAN_WORLDS["training_loop"](64).sample(np.random.default_rng(0))
    asked = [Question("old", "reference"), Question("rollout", "reference")]
    report = document(summarize([clean], questions=asked), {"sampler": "rollout"})
    own, rollout = (one["trust"] for one in report["questions"])
    assert "as-if-sampled-by-old" in own["because"]
    assert rollout == {"verdict": "yes", "because": []}


def test_the_headline_is_the_policy_against_the_reference():
    batch = {role: [[-1.0], [-0.5]] for role in ("rollout", "old", "reference")}
    report = document(summarize([kb.pack(batch)]))
    assert report["headline"]["question"] == "KL(old||reference) ~ rollout"


def test_rows_that_were_lost_are_a_finding():
    lost = {"file": "a.jsonl", "row": 2, "place": "line 3", "reason": "no JSON object"}
    source = {"rows": 4, "damaged_rows": 2, "damaged": [lost]}
    batch = kb.pack({"p": [[-1.0], [-0.5]], "q": [[-1.0], [-0.6]]})
    report = document(summarize([batch]), source)
    assert report["findings"][0]["code"] == "rows-left-out"
    assert report["headline"]["trust"] == "no"


def test_trust_follows_the_findings_that_touch_the_question():
    clean = CLEAN_WORLDS["smooth"](64).sample(np.random.default_rng(0))
    assert questions(clean)[0]["trust"] == {"verdict": "yes", "because": []}
    bare = kb.pack({"p": clean.log_probs["rollout"], "q": clean.log_probs["reference"]}, lengths=1)
    assert questions(bare)[0]["trust"] == {
        "verdict": "with-care",
        "because": ["sampler-not-verifiable"],
    }
    world = CLEAN_WORLDS["training_loop"](64)
    assert isinstance(world, Mixture)
    shifted = FAULTS["shifted-by-one"].inject(world, np.random.default_rng(0))
    verdicts = {one["question"]["text"]: one["trust"]["verdict"] for one in questions(shifted)}
    assert verdicts["KL(rollout||old)"] == "no"
    assert verdicts["KL(rollout||reference)"] == "yes"


def test_the_schema_holds_for_cells_and_null_stands_where_nothing_is():
    columns = kb.pack({"p": [[-1.0, np.nan]] * 3, "q": [[-1.5, -1.0]] * 3})
    labels = {"task": np.array(["a", None, "a"], dtype=object), "x": np.array([0.5, np.inf, 2.0])}
    summary = summarize([replace(columns, labels=labels)], by=["position", "task", "x", "length"])
    report = json.loads(as_json(document(summary)))
    HELD.validate(report)
    by = report["questions"][0]["by"]
    assert [(one["name"], one["low"], one["high"]) for one in by["task"]] == [
        ("a", None, None),
        (None, None, None),
    ]
    assert [(one["name"], one["low"]) for one in by["x"]] == [("0.5", 0.5), ("2", 2), ("inf", None)]
    assert [(one["tokens"], one["missing"]) for one in by["position"]] == [(3, 0), (0, 3)]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            report | {"questions": [report["questions"][0] | {"by": {"x": [{}]}}]}, SCHEMA
        )


@pytest.mark.parametrize(("log_q", "largest"), [(705.0, math.exp(705.0)), (800.0, None)])
def test_a_weight_beyond_all_bounds_is_itself_or_no_number(log_q, largest):
    (one,) = questions(kb.pack({"p": [[0.0, -1.0]], "q": [[log_q, -1.0]]}))
    assert one["weights"]["max"] == largest


@pytest.mark.parametrize("size", [1e308, -1e308, 1.7e308, -1.7e308])
def test_numbers_that_overflow_are_no_numbers_and_no_warnings(size):
    batch = kb.pack({"p": [[size, -1.0], [-size, 1.0]], "q": [[-size, size], [size, -size]]})
    batch = replace(batch, entropy={"p": np.array([1.0, 1.7e308, 1.0, 1.0])})
    found = document(summarize([batch, batch]))
    HELD.validate(found)
    assert found["headline"]["trust"] == "no"
    assert json.loads(as_json(found)) == found


def test_names_without_utf8_are_written_with_escapes(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.jsonl")
    row = {"log_probs.a": [-1.0], "log_probs.b": [-2.0], "x\ud83d": 1}
    Path(path).write_text(json.dumps(row) + "\n")
    dump = kb.read(path)
    found = kb.report(summarize(dump), tmp_path / "r.json", dump=dump)
    assert found["source"]["files"] == ["a\\udcff.jsonl"]
    assert found["source"]["unused"].keys() == {"x\\ud83d"}
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == found
    kb.report(summarize(dump), tmp_path / "r.html", dump=dump)
