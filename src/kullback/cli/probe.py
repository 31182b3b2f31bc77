"""``kullback probe``: which value and which expected gradient a KL term has."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import click

from kullback.cli import options
from kullback.cli.failing import one_sentence, require_place


@click.command(short_help="What a KL term computes and descends.")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option(
    "--library",
    type=click.Choice(["torch", "jax", "numpy"]),
    help="Call it in this; else what it uses is found.",
)
@click.option(
    "--style",
    type=click.Choice(["loss", "reward"]),
    help="Differentiate it, or take its values as a cost in the reward; else what it can be.",
)
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="NAME=ROLE",
    help="Give this parameter current, reference, old, rollout, their logits (current_logits, …), "
    "mask or tokens, where its name does not say so; may be repeated.",
)
@options.json
def probe(
    function: str,
    library: str | None,
    style: str | None,
    arguments: tuple[str, ...],
    json: str | None,
) -> None:
    """Name the value and the expected gradient of a KL term, by exact enumeration.

    FUNCTION takes per-token log-probs [sequences, tokens] (or logits) and returns a loss, one
    number per sequence or one per token. It is called on every sequence of two small languages;
    nothing is sampled, so nothing is noise. The current directory can be imported from.

    \b
    Examples:
      kullback probe my_losses:kl_penalty
      kullback probe src/trainer/losses.py:kl_loss --library torch
      kullback probe my_losses:kl --argument x=current --argument y=reference
      kullback probe my_losses:kl_penalty --style reward --json -

    Exit status: 0 whatever was found, or 2 if the function cannot be found or called.
    """
    from kullback.audit import probe as probed
    from kullback.reporting.document import plain
    from kullback.reporting.write import as_json, write_json

    with one_sentence():
        require_place(json if json != "-" else None)
        said = dict(map(_argument, arguments))
        try:
            found = probed(loaded(function), library=library, style=style, arguments=said)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if json == "-":
            sys.stdout.write(as_json(plain(found.as_data())))
            return
        if json:
            write_json(plain(found.as_data()), Path(json))
    click.echo(str(found))


def _argument(text: str) -> tuple[str, str]:
    name, equals, role = text.partition("=")
    if not (name and equals and role):
        raise ValueError(f"--argument {text!r}: expected NAME=ROLE, as in x=current")
    return name, role


def loaded(place: str) -> Callable[..., Any]:
    """The function at ``module:function`` or ``path/to/file.py:function``.

    Args:
        place: Where it is.

    Raises:
        ValueError: It is not there, or its module cannot be imported.
    """
    home, _, name = place.rpartition(":")
    if not (home and name):
        raise ValueError(f"{place!r}: expected MODULE:FUNCTION, or path/to/file.py:FUNCTION")
    found: Any = _module(home)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{home} has no {name!r}{_instead(found)}")
        found = getattr(found, part)
    return found


def _instead(module: Any) -> str:
    """The functions that a module has of its own."""
    if not isinstance(module, ModuleType):
        return ""
    own = [
        name
        for name, one in vars(module).items()
        if isinstance(one, FunctionType) and one.__module__ == module.__name__
    ]
    return f"; its functions are {', '.join(own[:8])}" if own else ""


def _module(home: str) -> ModuleType:
    path = Path(home)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {home}")
    # As `python -m` has it: what is imported may lie in the current directory.
    for folder in (str(path.resolve().parent), str(Path.cwd())) if is_file else (str(Path.cwd()),):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        return _from_file(path) if is_file else importlib.import_module(home)
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise ValueError(
            f"{home} cannot be imported: {type(error).__name__}: {lines[0]}"
        ) from error


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickles look there
    spec.loader.exec_module(module)
    return module
