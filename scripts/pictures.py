"""The pictures of the demo's page that README and docs show, from Debian's Chromium."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kullback.cli.report import demo_report
from kullback.reporting.html import page
from kullback.reporting.write import write_page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
VIEW = {"width": 1000, "height": 760}


def main() -> None:
    """Take the top of the page, and the headline's question."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        write_page(page(demo_report()), path)
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport=VIEW, color_scheme="light")
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
        browser.close()


if __name__ == "__main__":
    main()
