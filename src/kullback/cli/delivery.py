"""What a verb made, to where it was asked for: a page, data, or the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def deliver(
    made: dict[str, Any],
    *,
    html: str | None,
    json: str | None,
    page: Callable[[dict[str, Any]], str],
    show: Callable[[dict[str, Any], Console], None],
) -> None:
    """Write the page and the data where they are named; print, unless the data go to the output.

    Args:
        made: What there is to tell.
        html: The file for the page.
        json: The file for the data; ``-`` is the output, and nothing else is printed there.
        page: Makes the page.
        show: Prints to a terminal.
    """
    from kullback.reporting.write import as_json, write_json, write_page

    if html:
        write_page(page(made), Path(html))
    if json == "-":
        sys.stdout.write(as_json(made))
        return
    if json:
        write_json(made, Path(json))
    from rich.console import Console

    show(made, Console(highlight=False))
    for path in (html, json):
        if path:
            sys.stdout.write(f"Wrote {path}\n")
