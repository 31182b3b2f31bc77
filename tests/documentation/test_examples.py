"""Every Python block of the README and docs runs, and every command they show exists.

Written out rather than taken from sybil or pytest-examples: both run Python blocks, neither knows
what a `$ kullback` line should be held against, and this is shorter than their configuration.
"""

from __future__ import annotations

import functools
import io
import re
import shlex
import sys
import textwrap
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest import mock

import pytest

from kullback.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}

BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LIBRARIES = re.compile(r"^ *import (torch|jax)$", re.MULTILINE)
COMMAND = re.compile(r"^ *\$ (kullback\b(?:.*\\\n)*.*)$", re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--?\w[\w-]*")


@functools.cache
def help_of(*verb: str) -> str:
    output = io.StringIO()
    arguments = ["kullback", *verb, "--help"]
    with redirect_stdout(output), suppress(SystemExit), mock.patch.object(sys, "argv", arguments):
        main()
    return output.getvalue()


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if BLOCK.search(text)])
def test_python_blocks_run_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in LIBRARIES.findall(TEXTS[page]):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCK.finditer(TEXTS[page]):
        # Padded with empty lines, so that a traceback names the line of the page.
        above = TEXTS[page].count("\n", 0, block.start(2))
        code = "\n" * above + textwrap.dedent(block[2])
        exec(compile(code, ROOT / page, "exec"), names)


@pytest.mark.parametrize(
    "command", [match[1] for text in TEXTS.values() for match in COMMAND.finditer(text)]
)
def test_command_and_its_flags_exist(command: str) -> None:
    words = list(shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True))
    ends = [i for i, word in enumerate(words) if set(word) <= set("|&;<>()")]
    words = words[1 : min(ends, default=len(words))]
    verb = words[:1] if words and not words[0].startswith("-") else []
    flags = {w.partition("=")[0] for w in words if re.match("-[^0-9]", w)}  # -0.031 is a value
    text = help_of(*verb)
    assert "Usage: kullback" in text
    assert flags - {"--help"} <= set(FLAG.findall(text))
