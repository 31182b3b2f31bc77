"""Every Python block of the README and docs runs, and every command they show exists.

The blocks of a page run in order, in one empty folder. A block marked `text` right below a Python
block is what that one prints. What stands below a `$ kullback` line is what the command prints in a
terminal of 80 columns, and below `$ echo $?` its exit status; `...` stands for anything.

Written out rather than taken from sybil or pytest-examples: both run Python blocks, neither knows
what a `$ kullback` line should be held against, and this is shorter than their configuration.
"""

from __future__ import annotations

import doctest
import functools
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

from kullback.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}

BLOCK = re.compile(r"^( *)```(python|console)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"\n\n( *)```text\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LIBRARIES = re.compile(r"^ *import (torch|jax)$", re.MULTILINE)
COMMAND = re.compile(r"^ *\$ (kullback\b(?:.*\\\n)*.*)$", re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--?\w[\w-]*")


def ran(words: list[str]) -> tuple[str, int]:
    """What the command prints on either stream, and its exit status."""
    output, status = io.StringIO(), 0
    arguments = mock.patch.object(sys, "argv", ["kullback", *words])
    with arguments, redirect_stdout(output), redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return output.getvalue(), status


@functools.cache
def help_of(*verb: str) -> str:
    return ran([*verb, "--help"])[0]


def is_like(shown: str, printed: str) -> bool:
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return doctest.OutputChecker().check_output(shown, lines, doctest.ELLIPSIS)


def words_of(command: str) -> list[str]:
    """The words behind `kullback`, up to a pipe or the like."""
    words = list(shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True))
    ends = [i for i, word in enumerate(words) if set(word) <= set("|&;<>()")]
    return words[1 : min(ends, default=len(words))]


def commands_of(console: str) -> Iterator[tuple[str, str]]:
    """Each command of a block and what is shown below it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n", " ", part).partition("\n")
        yield command, shown


def run_console(console: str) -> None:
    """Run what shows its output, and what reads the bundled rollouts or a file of this page."""
    status = 0
    for command, shown in commands_of(console):
        if command == "echo $?":
            assert shown == f"{status}\n"
            continue
        words = words_of(command)
        own = "--demo" in words or any(Path(word).is_file() for word in words)
        if command.startswith("kullback ") and (own or shown):
            printed, status = ran(words)
            assert not shown or is_like(shown, printed), f"{command} prints:\n{printed}"
        else:
            assert not shown, f"{command} is not run here, and its output is shown"


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if BLOCK.search(text)])
def test_blocks_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS[page]
    for library in LIBRARIES.findall(text):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        source = textwrap.dedent(block[3])
        if block[2] == "console":
            run_console(source)
            continue
        # Padded with empty lines, so that a traceback names the line of the page.
        above = text.count("\n", 0, block.start(3))
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile("\n" * above + source, ROOT / page, "exec"), names)
        if shown := PRINTED.match(text, block.end()):
            printed = output.getvalue()
            assert is_like(textwrap.dedent(shown[2]), printed), f"line {above} prints:\n{printed}"


@pytest.mark.parametrize(
    "command",
    dict.fromkeys(match[1] for text in TEXTS.values() for match in COMMAND.finditer(text)),
)
def test_command_and_its_flags_exist(command: str) -> None:
    words = words_of(command)
    verb = words[:1] if words and not words[0].startswith("-") else []
    flags = {w.partition("=")[0] for w in words if re.match("-[^0-9]", w)}  # -0.031 is a value
    text = help_of(*verb)
    assert "Usage: kullback" in text
    assert flags - {"--help"} <= set(FLAG.findall(text))


def test_a_page_that_shows_something_else_is_noticed() -> None:
    right = "demo.parquet: 128 sequences, 7632 tokens, sampled by rollout\n...\n"
    run_console(f"$ kullback report --demo\n{right}$ echo $?\n0\n$ make report\n")
    for wrong in (right.replace("7632", "7633"), "...\nno such line\n"):
        with pytest.raises(AssertionError):
            run_console(f"$ kullback report --demo\n{wrong}")
    with pytest.raises(AssertionError):
        run_console("$ kullback report --demo --fail-on error\n$ echo $?\n0\n")
    with pytest.raises(AssertionError):
        run_console("$ make report\nsomething\n")
