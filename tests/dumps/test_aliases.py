"""The tables of other projects' names are consistent with the layout."""

from __future__ import annotations

from kullback.dumps.aliases import ALIASES, COMMON, GENERIC, NOT_ALIGNED, meaning
from kullback.dumps.layout import expected, family


def test_every_alias_is_a_part_that_can_be_said_in_words():
    tables = [*ALIASES.values(), COMMON]
    parts = {part for names in tables for meanings in names.values() for part in meanings}
    for part in parts:
        assert expected(part)
        assert meaning(part)


def test_every_project_with_a_table_names_two_roles():
    for project, names in ALIASES.items():
        parts = {part for meanings in names.values() for part in meanings}
        assert len({part for part in parts if family(part) == "log_probs"}) >= 2, project


def test_generic_names_and_shifted_projects_are_in_the_tables():
    assert all(any(name in names for names in ALIASES.values()) for name in GENERIC)
    assert set(NOT_ALIGNED) <= set(ALIASES)
