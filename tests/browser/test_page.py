"""The page as a browser shows it: Debian's Chromium, driven. The screenshots are for people."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.cli.report import demo_report
from kullback.experiments import EXPERIMENTS, reproduced
from kullback.reporting.comparison import comparison
from kullback.reporting.comparison_html import comparison_page
from kullback.reporting.document import document
from kullback.reporting.experiment_html import experiment_page
from kullback.reporting.html import page
from kullback.reporting.steps import steps_document
from kullback.reporting.steps_html import steps_page
from kullback.reporting.write import write_page
from kullback.worlds import CLEAN_WORLDS, LOG_FAULTS
from kullback.worlds.step_logs import NAMES, honest_log

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
# Without these a browser calls home, which a closed network refuses slowly.
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--no-first-run"]  # fmt: skip
LOOKS = [(width, scheme) for width in (1440, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "Chromium is not installed: apt-get install chromium"
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(page(demo_report(by=["position", "length"])), path)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run of ten steps from which the current policy drifts, with stale samples."""
    rng, batches = np.random.default_rng(0), []
    world = CLEAN_WORLDS["training_loop"](16)
    for step in range(10):
        batch = world.sample(rng, exact=True)
        labels = {"step": np.full(len(batch.lengths), step)}
        versions = np.full(len(batch), step) - rng.integers(0, 3, len(batch)).clip(0, step)
        batches.append(replace(batch, labels=labels, versions=versions))
    summary = kb.summarize(batches, by=["step", "staleness", "position"])
    path = tmp_path_factory.mktemp("page") / "run.html"
    write_page(page(document(summary)), path)
    return path


@pytest.fixture(scope="module")
def gallery(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "gallery.html"
    write_page(experiment_page([reproduced(name) for name in EXPERIMENTS]), path)
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A step log with a spike, a jump, a series that is logged twice and a runaway coefficient."""
    held, names = honest_log(np.random.default_rng(0)), NAMES["verl"]
    for fault in ("spike", "changed", "micro-batches", "runaway"):
        held = LOG_FAULTS[fault].inject(held, names)
    path = tmp_path_factory.mktemp("page") / "log.html"
    write_page(steps_page(steps_document(kb.judge_log(kb.StepLog.of(held)))), path)
    return path


class Seen:
    """A page in a tab, and everything that it said or asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1440, scheme: str = "light", **how):
        view = {"width": width, "height": 900}
        self.tab = browser.new_page(viewport=view, color_scheme=scheme, **how)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.url = path.as_uri()
        self.tab.goto(self.url)

    def open_all(self) -> None:
        """Unfold everything and scroll past it, so that every figure is drawn."""
        self.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.tab.evaluate("document.querySelectorAll('.plot').forEach((p) => p.scrollIntoView())")
        for place in self.tab.locator(".plot").all():
            place.scroll_into_view_if_needed()
            place.locator("svg").wait_for(timeout=10_000)

    def assert_quiet(self) -> None:
        assert self.said == []
        assert self.asked == [self.url]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("which", ["demo", "run", "gallery", "log"])
def test_every_figure_is_drawn_and_nothing_is_wider_than_the_screen(
    browser, request, which, width, scheme
):
    seen = Seen(browser, request.getfixturevalue(which), width, scheme)
    for place in seen.tab.locator("details[open] .plot").all():
        place.scroll_into_view_if_needed()
        place.locator("svg").wait_for(timeout=10_000)
    seen.tab.evaluate("scrollTo(0, 0)")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    seen.tab.screenshot(path=SCREENSHOTS / f"{which}-{width}-{scheme}.png", full_page=True)
    seen.open_all()
    assert seen.tab.locator(".plot").count() == seen.tab.locator(".plot svg").count() > 5
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= width
    for box in seen.tab.locator(".plot svg").all():
        assert box.bounding_box()["width"] <= width
    seen.assert_quiet()


def test_figures_take_the_colors_of_the_scheme(browser, demo):
    ink = {}
    for scheme in ("light", "dark"):
        seen = Seen(browser, demo, scheme=scheme)
        seen.tab.locator(".plot").first.scroll_into_view_if_needed()
        label = seen.tab.locator(".plot svg .role-axis-label text").first
        ink[scheme] = label.evaluate("(text) => getComputedStyle(text).fill")
        paper = seen.tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ink[scheme] != paper
    assert ink["light"] != ink["dark"]


def test_a_pointer_near_a_point_is_told_its_numbers(browser, run):
    seen = Seen(browser, run)
    figure = seen.tab.locator("details[open] figure", has_text="By step").first
    figure.scroll_into_view_if_needed()
    figure.locator("svg").wait_for()
    box = figure.locator("svg").bounding_box()
    seen.tab.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.4)
    seen.tab.mouse.move(box["x"] + box["width"] * 0.52, box["y"] + box["height"] * 0.42)
    tip = seen.tab.locator("#vg-tooltip-element.visible")
    tip.wait_for(timeout=5_000)
    told = tip.inner_text()
    assert "step" in told
    assert "mean" in told
    seen.tab.screenshot(path=SCREENSHOTS / "hover.png")
    seen.assert_quiet()


def test_without_scripts_everything_but_the_drawings_is_there(browser, demo):
    seen = Seen(browser, demo, java_script_enabled=False)
    assert seen.tab.locator("h1").inner_text().startswith("KL(current||reference)")
    assert not seen.tab.locator(".plot").first.is_visible()
    figure = seen.tab.locator("details[open] figure", has_text="By position").first
    figure.locator("summary").click()
    assert figure.locator("td", has_text="32–63").is_visible()
    assert seen.asked == [seen.url]


def test_text_of_a_dump_cannot_act(browser, tmp_path):
    report = demo_report()
    evil = "</script><script>alert(1)</script><img src=http://example.com/x onerror=alert(2)>"
    shown = next(
        one
        for one in report["questions"]
        if one["question"]["text"] == report["headline"]["question"]
    )
    shown["top"][0] |= {"text": evil, "before": evil}
    shown["by"]["position"][0]["name"] = evil
    report["findings"][0]["claim"] = evil
    write_page(page(report), tmp_path / "evil.html")
    seen = Seen(browser, tmp_path / "evil.html")
    seen.open_all()
    assert evil in seen.tab.locator("body").inner_text()
    seen.assert_quiet()


def test_the_page_of_a_comparison_is_drawn(browser, tmp_path):
    whole = CLEAN_WORLDS["training_loop"](16).sample(np.random.default_rng(0))
    a, b = (kb.summarize([whole.take(slice(8 * i, 8 * i + 96))]) for i in (0, 4))
    write_page(comparison_page(comparison(a, b)), tmp_path / "change.html")
    seen = Seen(browser, tmp_path / "change.html", 390)
    seen.open_all()
    assert seen.tab.locator(".plot svg").count() == 1
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= 390
    seen.tab.screenshot(path=SCREENSHOTS / "change-390-light.png", full_page=True)
    seen.assert_quiet()


def test_a_page_of_one_token_is_drawn_without_complaint(browser, tmp_path):
    row = {"log_probs.old": [-1.0], "log_probs.current": [-1.5]}
    (tmp_path / "one.jsonl").write_text(json.dumps(row) + "\n")
    write_page(page(document(kb.summarize(kb.read(tmp_path / "one.jsonl")))), tmp_path / "one.html")
    seen = Seen(browser, tmp_path / "one.html")
    assert "no error can be told" in seen.tab.locator("h1").inner_text()
    seen.open_all()
    seen.assert_quiet()


def test_a_slider_and_the_pointer_turn_what_stands_beside(browser, gallery):
    seen = Seen(browser, gallery)
    seen.open_all()
    dials = seen.tab.locator(".plot:has(input[type=range])").all()
    assert len(dials) == gallery.read_text(encoding="utf-8").count('"input": "range"') >= 2
    for dial in dials:
        dial.scroll_into_view_if_needed()
        drawing, slider = dial.locator("svg"), dial.locator("input[type=range]")
        before = drawing.inner_html()
        slider.fill(slider.get_attribute("min"))
        seen.tab.wait_for_timeout(200)
        turned = drawing.inner_html()
        assert turned != before
        box = drawing.bounding_box()
        for share in (0.8, 0.85):
            x, y = box["x"] + share * box["width"], box["y"] + 0.5 * box["height"]
            seen.tab.mouse.move(x, y)
        seen.tab.wait_for_timeout(200)
        assert float(slider.input_value()) > float(slider.get_attribute("min"))
        assert drawing.inner_html() != turned
    seen.assert_quiet()
