"""The reference has every public name once, and the docstring of each says what it must."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import kullback as kb
from kullback.formulas.k_family import CLAIMS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
SHOWN = [
    name
    for page in PAGES
    for name in re.findall(
        r"^::: kullback\.([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
]
# Sections that a docstring of the house may have; the first two name arguments or fields.
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")


def sections(of: Any) -> dict[str, str]:
    """The sections of a docstring by their names, what stands above them by an empty name."""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):$", inspect.getdoc(of) or "", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented(of: Any) -> set[str]:
    """The names that Args and Attributes explain."""
    said = sections(of)
    return {
        name
        for section in ("Args", "Attributes")
        for name in re.findall(r"^ {4}(\w+): ", said.get(section, ""), re.MULTILINE)
    }


def fields(of: type) -> set[str]:
    """What an object of a class is made of, if that is written down in the class."""
    return {name for name in inspect.get_annotations(of) if not name.startswith("_")}


def test_every_public_name_is_shown_once():
    assert sorted(name.rpartition(".")[2] for name in SHOWN) == sorted(kb.__all__)


def test_what_is_shown_is_the_public_object():
    for shown in SHOWN:
        home, _, name = shown.rpartition(".")
        module = importlib.import_module(f"kullback.{home}") if home else kb
        assert getattr(module, name) is getattr(kb, name)


@pytest.mark.parametrize("name", kb.__all__)
def test_a_public_name_has_an_example_that_runs(name):
    examples = doctest.DocTestParser().get_examples(sections(getattr(kb, name))["Example"])
    assert any(example.want for example in examples)  # pytest runs them with the tests


@pytest.mark.parametrize("name", [n for n in kb.__all__ if inspect.isfunction(getattr(kb, n))])
def test_a_function_explains_its_arguments_and_what_it_returns(name):
    function = getattr(kb, name)
    signature = inspect.signature(function)
    assert documented(function) == set(signature.parameters)
    if signature.parameters and signature.return_annotation != "None":
        assert sections(function)["Returns"].strip()


@pytest.mark.parametrize("name", [n for n in kb.__all__ if inspect.isclass(getattr(kb, n))])
def test_a_class_explains_what_it_is_made_of(name):
    assert documented(getattr(kb, name)) >= fields(getattr(kb, name))
    assert documented(getattr(kb, name))


@pytest.mark.parametrize("name", [n for n in kb.__all__ if inspect.isfunction(getattr(kb, n))])
def test_errors_that_a_function_raises_are_named(name):
    function = getattr(kb, name)
    raised = set(re.findall(r"raise (\w+)\(", inspect.getsource(function)))
    said = set(re.findall(r"^ {4}(\w+): ", sections(function).get("Raises", ""), re.MULTILINE))
    assert raised <= said


@pytest.mark.parametrize("name", ["k1", "k2", "k3", "k_lambda", "other_direction", "f_form"])
def test_a_formula_says_its_formula_its_unit_and_its_conditions(name):
    said = sections(getattr(kb, name))
    formula = said[""].split("\n\n")[1]
    assert re.fullmatch(r".*\br\b.*", formula)  # a line of its own
    assert "nats" in said["Args"]
    assert CLAIMS[name].unbiased_for in said[""]
    assert name == "k2" or "Unbiased" in said[""]
    assert "expected gradient" in said[""]
