"""What the dictionary says of probed terms is what results/zoo measured."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from kullback.dictionary import METRICS

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "zoo"))
reading = importlib.import_module("reading")
zoo_page = importlib.import_module("zoo_page")
zoo_table = importlib.import_module("zoo_table")
RESULTS = zoo_table.results()


def met(choice):
    """Settings of which a choice is true."""
    return {k: v[0] if isinstance(v, tuple) else v for k, v in choice.when.items()}


# Each metric as it is by default, and as each choice that has an entry of its own makes it.
STATES = [
    state
    for one in METRICS
    for state in (one, *(one.under(met(choice))[0] for choice in one.choices))
    if state.zoo
]
PROBED = {(one.zoo, one.name): one for one in STATES}


@pytest.mark.parametrize("one", PROBED.values(), ids=[f"{key[0]}:{key[1]}" for key in PROBED])
def test_it_is_what_was_measured(one):
    file, _, name = one.zoo.partition("/")
    entry = RESULTS[file]["entries"][name]
    if one.use in ("loss", "reward"):
        assert in_its_words(one.gradient) == in_its_words(zoo_page.descends(entry, "on-policy"))
    told = in_its_words(reading.value(entry))
    if told.startswith(("k1", "k3")):
        samplers = {"current", "rollout"} if one.p == "student" else {one.p, one.sampler}
        p = {"student": "current"}.get(one.p, one.p)
        q = {"teacher": "reference"}.get(one.q, one.q)
        assert told in {f"{one.method} of KL({role}||{q})" for role in {p, *samplers}}
    elif told.startswith(("k2", "|log r|")):
        assert told.startswith(one.method) or one.method == "abs"


def in_its_words(said: str) -> str:
    """As results/zoo says it: it calls a teacher reference, and a student current."""
    said = said.replace("‖", "||").replace("**nothing** (zero on average)", "zero")
    return said.replace("teacher", "reference").replace("student", "current")
