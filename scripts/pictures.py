"""The pictures that README and docs show, of the demo's page and of the arena, from Chromium."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kullback.cli.report import demo_report
from kullback.reporting.html import page
from kullback.reporting.markup import drawn, shell
from kullback.reporting.write import write_page

ROOT = Path(__file__).parents[1]
IMAGES, ARENA = ROOT / "docs" / "images", ROOT / "results" / "arena"
VIEW = {"width": 1000, "height": 760}


def main() -> None:
    """Take them all."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport=VIEW, color_scheme="light")
        of_the_demo(tab, Path(folder) / "report.html")
        of_the_arena(tab, Path(folder) / "arena.html")
        browser.close()


def of_the_demo(tab: Any, path: Path) -> None:
    """The top of the page, and the headline's question."""
    write_page(page(demo_report()), path)
    tab.goto(path.as_uri())
    tab.screenshot(path=IMAGES / "report-top.png")
    tab.locator("details[open]").first.scroll_into_view_if_needed()
    for place in tab.locator("details[open] .plot").all():
        place.scroll_into_view_if_needed()
        place.locator("svg").wait_for()
    tab.locator("h2", has_text="Each question").evaluate("(head) => head.scrollIntoView()")
    tab.wait_for_timeout(200)
    tab.set_viewport_size({"width": VIEW["width"], "height": 1400})
    tab.screenshot(path=IMAGES / "report-question.png")


def of_the_arena(tab: Any, path: Path) -> None:
    """Coverage and regret by family."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "arena"))
    import figures

    lines = (ARENA / "cells.jsonl").read_text(encoding="utf-8").splitlines()
    found = [one for one in map(json.loads, lines) if one["sums"]]
    made = {"coverage": figures.coverage(found), "regret": figures.regret(found)}
    write_page(shell("arena", "".join(drawn(figure) for figure in made.values())), path)
    tab.goto(path.as_uri())
    for name, place in zip(made, tab.locator("figure").all(), strict=True):
        place.scroll_into_view_if_needed()
        place.locator("svg").wait_for()
        place.screenshot(path=ARENA / f"{name}.png")


if __name__ == "__main__":
    main()
