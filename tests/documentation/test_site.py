"""What the site prints by itself is complete, and what would ask other hosts is refused."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from kullback.cli import app
from kullback.diagnosis.finding import CODES
from kullback.formulas import k_family, partial, weights
from kullback.losses import distill_terms, sampled_teacher, top_k_teacher
from kullback.worlds import CLEAN_WORLDS, FAULTS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT / "docs")): page.read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").rglob("*.md"))
}
_SPEC = importlib.util.spec_from_file_location("site_pages", ROOT / "scripts" / "site_pages.py")
assert _SPEC
assert _SPEC.loader
site_pages = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(site_pages)


def test_every_page_is_listed_once():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(PAGES)


def test_the_readme_leads_to_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    led = re.findall(r"\]\(docs/([^)]+\.md)[^)]*\)", readme)
    assert set(led) <= set(PAGES)
    assert {page for page in PAGES if "/" not in page} - set(led) == {"index.md"}


def test_each_part_stands_on_one_page():
    markers = [m for text in PAGES.values() for m in site_pages.MARKER.findall(text)]
    assert sorted(markers) == sorted(site_pages.PARTS)


def test_the_command_line_has_the_help_of_every_verb():
    shown = site_pages.on_page_markdown(PAGES["reference/command-line.md"])
    assert re.findall(r"^## kullback (.*)$", shown, re.MULTILINE) == sorted(app.commands)
    for name, verb in app.commands.items():
        assert f"Usage: kullback {name} " in shown
        for option in verb.params:
            assert all(flag in shown for flag in option.opts if flag.startswith("-"))
    assert max(map(len, re.findall(r"^  -.*$", shown, re.MULTILINE))) <= site_pages.WIDTH


def test_the_claims_are_all_there_with_what_they_say():
    shown = site_pages.on_page_markdown(PAGES["reference/claims.md"])
    for name, claim in {**k_family.CLAIMS, **weights.CLAIMS, **partial.CLAIMS}.items():
        says, holds = (
            [cell.strip() for cell in row.strip("|").split(" | ")]
            for row in re.findall(rf"^\| `{name}` .*$", shown, re.MULTILINE)
        )
        mean, gradient = (
            f"`{text}`".replace("||", "‖") for text in (claim.unbiased_for, claim.expected_gradient)
        )
        below = "yes" if claim.can_be_negative else "no"
        assert says == [f"`{name}`", mean, claim.sampler, below, gradient]
        assert holds[1] == "; ".join(claim.conditions)


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_the_claims_of_distillation_are_all_there():
    shown = site_pages.on_page_markdown(PAGES["distillation.md"]).replace("‖", "||")
    for name, claim in distill_terms.CLAIMS.items():
        (row,) = re.findall(rf"^\| `{re.escape(name)}` .*$", shown, re.MULTILINE)
        said = (claim.value, claim.at_0, claim.at_1, claim.infinite_where or "nowhere", claim.slope)
        assert [cell.strip("`") for cell in cells_of(row)] == [name, *said]
    shown = site_pages.on_page_markdown(PAGES["reference/distillation.md"]).replace("‖", "||")
    for name, claim in {**top_k_teacher.CLAIMS, **sampled_teacher.CLAIMS}.items():
        (row,) = re.findall(rf"^\| {name} \|.*$", shown, re.MULTILINE)
        below = "yes" if claim.can_be_negative else "no"
        said = [f"`{claim.value}`", claim.bias or "unbiased", claim.slope, below]
        assert cells_of(row) == [name, *said, "; ".join(claim.conditions)]


def test_the_codes_are_all_there():
    shown = site_pages.on_page_markdown(PAGES["reference/findings.md"])
    for name, code in CODES.items():
        assert f"| `{name}` | {code.caption} | {'yes' if code.accuses else 'no'} |" in shown


def test_the_worlds_and_faults_are_all_there():
    shown = site_pages.on_page_markdown(PAGES["reference/worlds.md"])
    for name, build in CLEAN_WORLDS.items():
        assert f"| `{name}` | {build.__doc__} |" in shown
    for name, fault in FAULTS.items():
        assert f"| `{name}` | {fault.caption} |" in shown


ASKS = {
    "a script": '<script src="https://cdn.example/x.js"></script>',
    "a font": '<link rel="stylesheet" href="https://fonts.example/css">',
    "a connection": '<link rel="preconnect" href="//fonts.example">',
    "a picture": '<img src="http://example/x.png">',
    "a style": '<p style="background: url(https://example/x.png)">',
}


@pytest.mark.parametrize("asks", ASKS.values(), ids=ASKS)
def test_a_page_that_asks_other_hosts_is_refused(asks, tmp_path):
    (tmp_path / "page.html").write_text(f"<html>{asks}</html>", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"page.html loads .*example"):
        site_pages.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))


def test_a_style_sheet_that_asks_other_hosts_is_refused(tmp_path):
    (tmp_path / "x.css").write_text('@import "https://fonts.example/a.css";', encoding="utf-8")
    assert list(site_pages.asked_elsewhere(tmp_path)) == [("x.css", "https://fonts.example/a.css")]


def test_what_waits_for_a_click_or_lies_beside_it_is_let_through(tmp_path):
    page = """<a href="https://example/">there</a> <img src="a.png"> <script src="../b.js"></script>
    <link rel="canonical" href="https://example/page"> <svg xmlns="http://www.w3.org/2000/svg"/>"""
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    site_pages.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
