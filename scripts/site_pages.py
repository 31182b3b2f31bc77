"""What the site prints that nobody writes by hand, and what it must not do.

mkdocs calls the functions that are named ``on_…``. A page says in a comment, ``<!-- claims -->``,
where the help of the command line, the claims of the formulas, the codes of the findings and the
worlds stand. So a new verb, claim, code or world appears by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
MARKER = re.compile(r"^<!-- ([a-z]+) -->$", re.MULTILINE)
# Attributes by which a page loads something at once; the `href` of an `a` waits for a click.
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
WIDTH = 80  # columns of a help text, as many as stand beside the lists on a page
STYLES = re.compile(r"(?:url\(|@import\s)\s*[\"']?((?:https?:)?//[^\"')\s]+)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with what its comments stand for."""
    return MARKER.sub(lambda found: PARTS[found[1]](), markdown)


def on_post_build(config: Any) -> None:
    """Refuse a site that would ask other hosts for anything.

    Raises:
        SystemExit: It would; the first place is named.
    """
    for page, address in asked_elsewhere(Path(config.site_dir)):
        raise SystemExit(f"{page} loads {address}: the site must ask nothing of other hosts")


def asked_elsewhere(site: Path) -> Iterator[tuple[str, str]]:
    """What pages and style sheets of a folder load from other hosts: the page, the address."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            loads = _Loads()
            loads.feed(path.read_text(encoding="utf-8"))
            found = [address for address in loads.addresses if ELSEWHERE.match(address)]
        elif path.suffix == ".css":
            found = STYLES.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        for address in found:
            yield str(path.relative_to(site)), address


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        # rel="canonical" and its like name an address and load nothing.
        if tag == "link" and given.get("rel") in ("canonical", "next", "prev", "alternate"):
            return
        self.addresses += [given.get(LOADS.get(tag, "")) or ""]
        self.addresses += STYLES.findall(given.get("style") or "")


def command_line() -> str:
    """The help of the command and of each of its verbs, as the terminal shows it."""
    from kullback.cli import app

    verbs = {f"kullback {name}": verb for name, verb in sorted(app.commands.items())}
    shown = [_help("kullback", app)]
    shown += [f"## {name}\n\n{_help(name, verb)}" for name, verb in verbs.items()]
    return "\n\n".join(shown)


def _help(name: str, command: click.Command) -> str:
    settings = {"info_name": name, "terminal_width": WIDTH, "max_content_width": WIDTH}
    with click.Context(command, **settings, help_option_names=["-h", "--help"]) as context:
        return f"```text\n{command.get_help(context)}\n```"


def claims() -> str:
    """The claims of every formula of one sample, and their conditions, as two tables."""
    from kullback.formulas import k_family, partial, weights

    every = {**k_family.CLAIMS, **weights.CLAIMS, **partial.CLAIMS}
    says = [
        (
            f"`{name}`",
            _code(claim.unbiased_for),
            claim.sampler,
            "yes" if claim.can_be_negative else "no",
            _code(claim.expected_gradient),
        )
        for name, claim in every.items()
    ]
    holds = [
        (f"`{name}`", "; ".join(claim.conditions), _code(claim.mean_without_support or ""))
        for name, claim in every.items()
    ]
    first = ("formula", "its mean is", "sampled by", "below 0?", "mean of its gradient")
    second = ("formula", "the mean is that if", "and where the supports do not fit")
    return f"{_table(first, says)}\n\n## On which conditions\n\n{_table(second, holds)}"


def losses() -> str:
    """Every form of a KL loss: its coefficient, and whose gradient its mean is."""
    from kullback.losses.forms import CLAIMS

    rows = [
        (
            f"`{learn}`",
            f"`{gradient}`",
            f"`{form}`",
            _code(claim.coefficient),
            _code(claim.gradient_of) if claim.gradient_of != "0" else "nothing: zero",
            claim.biased or "",
        )
        for (learn, gradient, form), claim in CLAIMS.items()
        if (learn, gradient) != ("q", "sequence")  # as with token: no score term where q learns
    ]
    heads = ("`learn`", "`gradient`", "`form`", "c_t", "its mean descends", "why it is biased")
    return _table(heads, rows)


def noise() -> str:
    """How many sequences a gradient takes, by form, from results/gradients.json."""
    found = json.loads((ROOT / "results" / "gradients.json").read_text(encoding="utf-8"))["forms"]
    columns = [
        (gradient, where)
        for gradient in ("token", "sequence")
        for where in ("fixed length, far", "fixed length, near")
    ]
    needs = {
        (row["form"], row["gradient"], row["world"]): f"{row['sequences_for_a_tenth']:,.0f}"
        for row in found
        if row["learn"] == "p" and row["weights"] == "none"
    }
    forms = dict.fromkeys(form for form, _, _ in needs)
    rows = [
        (f"`{form}`" if "," not in form else form, *(needs[form, *one] for one in columns))
        for form in forms
    ]
    heads = ("form", *(f"`{gradient}`, {where.split(', ')[1]}" for gradient, where in columns))
    return _table(heads, rows)


def distillation() -> str:
    """Every divergence of distillation: its value, its ends, where it is infinite, its slope."""
    from kullback.losses.distill_terms import CLAIMS

    rows = [
        (
            _code(name),
            _code(claim.value),
            _code(claim.at_0),
            _code(claim.at_1),
            _code(claim.infinite_where) or "nowhere",
            _code(claim.slope),
        )
        for name, claim in CLAIMS.items()
    ]
    return _table(("divergence", "value", "at 0", "at 1", "infinite where", "slope g"), rows)


def teachers() -> str:
    """What is claimed where of the teacher only a list or samples are known, as a table."""
    from kullback.losses import sampled_teacher, top_k_teacher

    every = {**top_k_teacher.CLAIMS, **sampled_teacher.CLAIMS}
    rows = [
        (
            name,
            _code(claim.value),
            claim.bias.replace("||", "‖") or "unbiased",
            claim.slope.replace("||", "‖"),
            "yes" if claim.can_be_negative else "no",
            "; ".join(claim.conditions),
        )
        for name, claim in every.items()
    ]
    heads = ("given", "value", "against the whole vocabulary", "slope g", "below 0?", "if")
    return _table(heads, rows)


def codes() -> str:
    """Every finding code, what it stands for and whether it accuses, as a table."""
    from kullback.diagnosis.finding import CODES

    rows = [
        (f"`{name}`", code.caption, "yes" if code.accuses else "no") for name, code in CODES.items()
    ]
    return _table(("code", "what was found", "accuses"), rows)


def clean() -> str:
    """Every clean world with what it is, as a table."""
    from kullback.worlds import CLEAN_WORLDS

    rows = [(f"`{name}`", build.__doc__ or "") for name, build in CLEAN_WORLDS.items()]
    return _table(("name", "what it is"), rows)


def faults() -> str:
    """Every fault with what it does, as a table."""
    from kullback.worlds import FAULTS

    rows = [(f"`{name}`", fault.caption) for name, fault in FAULTS.items()]
    return _table(("name", "what happens"), rows)


def _code(text: str) -> str:
    # A bar would end the cell, and within code no escape undoes that.
    return f"`{text.replace('||', '‖')}`" if text else ""


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PARTS = {
    "commands": command_line,
    "claims": claims,
    "losses": losses,
    "noise": noise,
    "distillation": distillation,
    "teachers": teachers,
    "codes": codes,
    "clean": clean,
    "faults": faults,
}
