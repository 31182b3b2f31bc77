"""What holds for every experiment: it is recorded, explained, and told the same everywhere."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from kullback.experiments import EXPERIMENTS, reproduced
from kullback.reporting.write import as_json

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("experiments", ROOT / "scripts" / "experiments.py")
assert _SPEC
assert _SPEC.loader
script = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(script)

every = pytest.mark.parametrize("name", EXPERIMENTS)


def numbers_apart(told, numbers=None):
    """The data with their numbers taken out, and the numbers in order."""
    numbers = [] if numbers is None else numbers
    if isinstance(told, dict):
        return {key: numbers_apart(value, numbers)[0] for key, value in told.items()}, numbers
    if isinstance(told, list):
        return [numbers_apart(value, numbers)[0] for value in told], numbers
    if isinstance(told, float):
        numbers.append(told)
        return "a number", numbers
    return told, numbers


@every
def test_the_recorded_result_is_that_of_a_new_run(name, made):
    path = ROOT / "results" / "experiments" / f"{name}.json"
    recorded = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    new = json.loads(as_json(made(name).as_data()))
    assert (
        set(recorded.pop("versions")) == set(new.pop("versions")) == {"kullback", "numpy", "scipy"}
    )
    (told, numbers), (told_now, numbers_now) = numbers_apart(recorded), numbers_apart(new)
    assert told_now == told
    assert numbers_now == pytest.approx(numbers, rel=1e-5, abs=1e-9)


@every
def test_the_readme_says_what_a_new_run_says(name, made):
    assert (script.home(name) / "README.md").read_text(encoding="utf-8") == script.readme(
        made(name)
    )


@every
def test_every_difference_from_the_document_is_explained(name, made):
    one = made(name)
    assert one.printed or one.verdict() == "The document prints no number on this."
    assert all(printed.agrees or printed.why for printed in one.printed)
    assert one.question == EXPERIMENTS[name]
    assert one.name == name


def test_they_use_public_names_only():
    """Beside them what a result is told with: figures, and the Experiment itself."""
    allowed = (
        r"kullback(\.worlds|\.experiments\..+|\.reporting\.(curves|enclosed|experiment|figures))?"
    )
    for path in (ROOT / "src" / "kullback" / "experiments").glob("*/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            ours = [name for name in names if name.partition(".")[0] == "kullback"]
            assert all(re.fullmatch(allowed, name) for name in ours), path
            roots = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
            assert roots <= {"kullback", "numpy", "scipy"}, path


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean gaussian"):
        reproduced("gausian")
    with pytest.raises(ValueError, match="there are gaussian"):
        reproduced("zzz")
