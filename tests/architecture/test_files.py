"""The house stays readable: short files, short functions, and a test file for each source file."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kullback"
TEXTS = {
    path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(SOURCE.rglob("*.py"))
}
MIRRORED = [name for name in TEXTS if not name.endswith("__init__.py")]

# "folder/file.py" or "folder/file.py::function" to the reason why it breaks a rule.
EXCEPTIONS: dict[str, str] = {}


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    last = function.end_lineno or function.lineno
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function) is not None:
        docstring = (first.end_lineno or first.lineno) - first.lineno + 1
    return last - function.lineno + 1 - docstring


def test_source_files_have_a_test_file_at_the_mirrored_path() -> None:
    mirrors = {name: Path(name).with_name(f"test_{Path(name).name}") for name in MIRRORED}
    alone = {name for name, mirror in mirrors.items() if not (ROOT / "tests" / mirror).is_file()}
    assert alone <= EXCEPTIONS.keys()


def test_files_have_at_most_400_lines() -> None:
    long = {name for name, text in TEXTS.items() if text.count("\n") > 400}
    assert long <= EXCEPTIONS.keys()


def test_functions_have_at_most_55_lines() -> None:
    long = {
        f"{name}::{node.name}"
        for name, text in TEXTS.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_without_docstring(node) > 55
    }
    assert long <= EXCEPTIONS.keys()


def test_every_exception_is_still_there() -> None:
    assert {key.partition("::")[0] for key in EXCEPTIONS} <= TEXTS.keys()
