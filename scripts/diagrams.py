"""The diagrams of docs/which-kl-do-i-have.md, each for a wide screen and for a phone, as SVG.

Plain text and rectangles: no program draws them but this, and the tests hold every question and
every name in them to the package. Colors follow the reader's dark mode, on a ground of their own.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTHS = {"": 880, "-narrow": 380}
MARGIN, LINE, PAD = 16, 20, 12
STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1b2a30}
.ground{fill:#fff}.ask{fill:#eef4f5;stroke:#5d7b84}.say{fill:#fff;stroke:#00796b;stroke-width:1.5}
.head{font-weight:600;font-size:17px}.bold{font-weight:600}.page{fill:#00695c;font-weight:600}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.code{font-size:13px}.name{font-weight:700}.quiet{fill:#4c6168}
.way{stroke:#5d7b84;stroke-width:1.5;fill:none;marker-end:url(#tip)}.tip{fill:#5d7b84}
@media (prefers-color-scheme:dark){text{fill:#e6eef0}.ground{fill:#1b2327}
.ask{fill:#263238;stroke:#8ba6ae}.say{fill:#1b2327;stroke:#4db6ac}.page{fill:#80cbc4}
.quiet{fill:#b0c4cb}.way{stroke:#8ba6ae}.tip{fill:#8ba6ae}}
"""


class Way(NamedTuple):
    """One answer of a reader, and where it leads."""

    answer: tuple[str, ...]
    name: str
    call: str
    page: str
    note: str = ""


class Step(NamedTuple):
    """One place in the training loop: what happens there, and what to log."""

    title: str
    happens: tuple[str, ...]
    log: tuple[str, ...]


HOW = {
    "1  What do you have?": "Take the richest that you have.",
    "2  Who drew the tokens?": "P comes first. For the other direction exchange P and Q.",
    "3  What is it for, and who learns?": "Asked of every number above: it is another choice.",
}
CHOICES: dict[str, tuple[Way, ...]] = {
    "1  What do you have?": (
        Way(
            ("Only a number from a log, and", "the count of its tokens"),
            "",
            "kullback explain kl --value …",
            "My KL is negative",
            "noise, or no KL at all",
        ),
        Way(
            ("Both distributions: Gaussians,", "or rows of probabilities"),
            "KL(old||current)",
            "kb.divergence(p, q)",
            "Formulas",
            "exact, nobody samples",
        ),
        Way(
            ("The logits of both, behind", "prefixes that were sampled"),
            "KL(current||reference) ~ rollout",
            "kb.exact(logits_p=, logits_q=)",
            "What does better data buy?",
            "exact there; only prefixes vary",
        ),
        Way(
            ("Tokens of a data set, and", "log-probs of your models only"),
            "KL(teacher||student)",
            "mean of -log q, between models",
            "Which divergence to distill with?",
            "a difference, never the value",
        ),
        Way(
            ("Sampled tokens, with", "log-probs of both"), "", "", "", "one more question, then: 2"
        ),
    ),
    "2  Who drew the tokens?": (
        Way(
            ("P did, and these are the", "log-probs that it drew with"),
            "KL(rollout||reference)",
            "kb.estimate(log_p=, log_q=)",
            "Which estimator?",
            "no weight",
        ),
        Way(
            ("Q did",),
            "KL(current||reference) ~ reference",
            "kb.estimate(…, question=)",
            "Which KL is it?",
            "weight P/Q: noisy from afar",
        ),
        Way(
            ("A third did: an engine, or the", "policy before this epoch"),
            "KL(current||reference) ~ rollout",
            "kb.estimate(…, log_sampler=)",
            "Which KL is it?",
            "weight P/rollout",
        ),
        Way(
            ("Not sure: scored once more, a", "temperature, or stale weights"),
            "",
            "kullback report FILES",
            "Is my sampler my policy?",
            "nobody's KL until this is known",
        ),
    ),
    "3  What is it for, and who learns?": (
        Way(
            ("A report: nobody learns from it",),
            "KL(current||reference) ~ rollout",
            "kb.estimate(…)",
            "What should I log?",
            "with its ends, low and high",
        ),
        Way(
            ("A limit: a stop, an alarm,", "a trust region"),
            "KL(old||current)",
            "kb.Evidence(limit=)",
            "Is the KL above my limit?",
            "a limit per step bounds no drift",
        ),
        Way(
            ("A penalty in the reward:", "P learns"),
            "KL(current||reference)",
            "kb.penalty(log_p=, log_q=)",
            "Which loss should I use?",
            "k1, and not in the loss too",
        ),
        Way(
            ("A term of the loss: P learns,", "mostly from its own samples"),
            "KL(student||teacher)",
            'kb.loss(…)  learn="p"',
            "Which loss should I use?",
            "leaves out what Q seldom does",
        ),
        Way(
            ("A term of the loss: Q learns,", "mostly from samples of P"),
            "KL(teacher||student)",
            'kb.loss(…, learn="q")',
            "Which loss should I use?",
            "covers all that P does",
        ),
    ),
}
LOOP = (
    Step(
        "1  Sample",
        ("the engine draws as rollout",),
        ("its log-probs while it draws,", "entropy, prompt id, version"),
    ),
    Step(
        "2  Score",
        ("old and reference, by the trainer",),
        ("KL(rollout||old)", "engine and trainer: near 0"),
    ),
    Step(
        "3  Estimate",
        ("how far from the reference?",),
        ("KL(old||reference) ~ rollout", "mean, low, high"),
    ),
    Step(
        "4  Penalize",
        ("kb.penalty or kb.loss, not both",),
        ("β, and what the KL takes", "of the reward"),
    ),
    Step(
        "5  Update",
        ("epochs over the same tokens",),
        ("KL(old||current)", "on tokens held out; clip share"),
    ),
    Step(
        "6  Retune",
        ("β up, or stop, if it is no noise",),
        ("kb.Evidence: limit, e, decision", "β before and after"),
    ),
)


def main() -> None:
    """Write them all."""
    for name, text in drawings().items():
        (IMAGES / name).write_text(text, encoding="utf-8")


def drawings() -> dict[str, str]:
    """Every file with what it holds."""
    made = {}
    for suffix, width in WIDTHS.items():
        made[f"which-kl-do-i-have{suffix}.svg"] = choices(width)
        made[f"training-loop{suffix}.svg"] = loop(width)
    return made


def choices(width: int) -> str:
    """Three questions, each with its answers and where they lead: side by side, or below."""
    parts, y = [], MARGIN
    for head, ways in CHOICES.items():
        parts.append(_text(MARGIN, y + 18, head, "head"))
        told = wrap(HOW[head], 110 if width > 600 else 48)
        parts += [_text(MARGIN, y + 40 + i * LINE, t, "quiet") for i, t in enumerate(told)]
        y += 32 + len(told) * LINE
        for way in ways:
            drawn, height = _way(way, y, width)
            parts += drawn
            y += height + 12
        y += 14
    says = "Three questions, one below the other. " + " ".join(
        f"{head}: {'; '.join(_said(way) for way in ways)}." for head, ways in CHOICES.items()
    )
    return _svg(width, y - 10, "Which KL do I have?", says, parts)


def _way(way: Way, y: int, width: int) -> tuple[list[str], int]:
    """An answer and its card, and how high both are."""
    lines = [
        (text, kind)
        for text, kind in (
            (way.name, "code name"),
            (way.call, "code"),
            (way.note, "quiet"),
            (f"→ {way.page}" if way.page else "", "page"),
        )
        if text
    ]
    if width > 600:
        # The card has two columns: what it is and how to get it; what to mind and where to read.
        left = [one for one in lines if "code" in one[1]]
        right = [one for one in lines if "code" not in one[1]]
        rows = max(len(way.answer), len(left), len(right))
        height = rows * LINE + PAD
        x = 292
        parts = [*_box("ask", MARGIN, y, 238, height, [(t, "") for t in way.answer])]
        parts.append(_path(MARGIN + 238, y + height // 2, f"H{x - 3}"))
        parts += _box("say", x, y, width - MARGIN - x, height, left)
        parts += _lines(x + 288 if left else x + PAD, y, height, right)
        return parts, height
    top, low = len(way.answer) * LINE + PAD, len(lines) * LINE + PAD
    parts = _box("ask", MARGIN, y, width - 2 * MARGIN, top, [(t, "") for t in way.answer])
    parts.append(_path(MARGIN + 14, y + top, f"V{y + top + 8 + low // 2}H{MARGIN + 27}"))
    parts += _box("say", MARGIN + 30, y + top + 8, width - 2 * MARGIN - 30, low, lines)
    return parts, top + 8 + low


def _said(way: Way) -> str:
    leads = ", ".join(one for one in (way.name, way.call, way.note, way.page) if one)
    return f"{' '.join(way.answer)} – {leads}"


def loop(width: int) -> str:
    """The training loop: two rows that run round on a wide screen, one column on a phone."""
    head, y = 40, MARGIN
    high = 5 * LINE + PAD + 6
    parts = [_text(MARGIN, y + 18, "The loop, and what to log in it", "head")]
    if width > 600:
        across, gap = 258, 37
        places = [
            (MARGIN + column * (across + gap), head + MARGIN + row * (high + 44))
            for row, columns in ((0, (0, 1, 2)), (1, (2, 1, 0)))
            for column in columns
        ]
        bottom = places[-1][1] + high
    else:
        across, gap = width - 2 * MARGIN - 26, 22
        places = [(MARGIN + 26, head + MARGIN + i * (high + gap)) for i in range(len(LOOP))]
        bottom = places[-1][1] + high
    for (x, top), step in zip(places, LOOP, strict=True):
        lines = [(step.title, "bold"), *((t, "") for t in step.happens)]
        lines += [("log:", "quiet"), *((t, "code" if "(" in t else "") for t in step.log)]
        parts += _box("say", x, top, across, high, lines)
    parts += _round(places, across, high)
    says = " ".join(
        f"{step.title}: {', '.join(step.happens)}; log {', '.join(step.log)}." for step in LOOP
    )
    return _svg(width, bottom + MARGIN, "The training loop, and what to log", says, parts)


def _round(places: list[tuple[int, int]], across: int, high: int) -> list[str]:
    """Arrows from each place to the next, and from the last to the first."""
    parts = []
    for (x, y), (to_x, to_y) in zip(places, places[1:] + places[:1], strict=True):
        if y == to_y and to_x > x:
            parts.append(_path(x + across, y + high // 2, f"H{to_x - 3}"))
        elif y == to_y:
            parts.append(_path(x, y + high // 2, f"H{to_x + across + 3}"))
        elif to_y > y:
            parts.append(_path(x + across // 2, y + high, f"V{to_y - 3}"))
        elif len({place[0] for place in places}) == 1:
            turn = f"H{x - 18}V{to_y + high // 2}H{x - 3}"
            parts.append(_path(x, y + high // 2, turn))
        else:
            parts.append(_path(x + across // 2, y, f"V{to_y + high + 3}"))
    return parts


def _svg(width: int, height: int, title: str, says: str, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title says">'
    )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    ground = f'<rect class="ground" width="{width}" height="{height}" rx="8"/>'
    named = f'<title id="title">{escape(title)}</title>\n<desc id="says">{escape(says)}</desc>'
    return "\n".join([head, named, f"<style>{STYLE}</style>", tip, ground, *parts, "</svg>\n"])


def _box(
    kind: str, x: int, y: int, width: int, height: int, lines: list[tuple[str, str]]
) -> list[str]:
    box = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    return [box, *_lines(x + PAD, y, height, lines)]


def _lines(x: int, y: int, height: int, lines: list[tuple[str, str]]) -> list[str]:
    """Lines in the middle of a height."""
    first = y + (height - LINE * len(lines)) // 2 + 15
    return [_text(x, first + i * LINE, text, kind) for i, (text, kind) in enumerate(lines)]


def _text(x: int, y: int, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}">{escape(text)}</text>'


def _path(x: int, y: int, turn: str) -> str:
    return f'<path class="way" d="M{x} {y}{turn}"/>'


if __name__ == "__main__":
    main()
