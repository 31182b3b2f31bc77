"""The report as one page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting import policies, step_drift, who_sampled
from kullback.reporting.markup import Raw, drawn, shell, table
from kullback.reporting.question_figures import overview
from kullback.reporting.question_section import section
from kullback.reporting.words import (
    NUMBERS,
    TRUST,
    caption,
    counted,
    in_words,
    number,
    numbers,
    opening,
    what_was_read,
)

PLACES = 4  # places of a finding that are named; the JSON has more
GLOSSARY = {
    "KL(p||q)": "the mean of log p − log q over what p samples, in nats; never below 0",
    "~ s": "answered from tokens that s sampled, by the importance weight p/s",
    "auto": "the default estimate: k1 with as much of k3 as the data warrant",
    "k1": "log p − log q of a token: right on average, noisy, often negative",
    "k3": "r − 1 − log r with r = q/p: right on average, never negative, blind to unsampled holes",
    "missing mass": "1 − mean of q/sampler: mass of q that was not seen; alone it accuses nobody",
    "weights left": "the share of the tokens that the importance weights leave to the estimate",
    "interval": "for new prompts (or sequences): these, not tokens, are the units that vary",
    "effective": "how many prompts of equal size would weigh as much as these of unequal size",
}


def page(report: dict[str, Any], *, refresh: int | None = None) -> str:
    """The whole page, styles included; it asks for nothing over the network.

    Args:
        report: What ``document`` made.
        refresh: Seconds after which a browser loads it anew; None: it does not.
    """
    head = report["headline"]["question"]
    ordered = sorted(report["questions"], key=lambda one: one["question"]["text"] != head)
    body = "\n".join(
        [
            _head(report),
            "<h2>What stands out</h2>",
            *map(finding_card, report["findings"]),
            "" if report["findings"] else "<p>Nothing.</p>",
            "<h2>The numbers</h2>",
            drawn(overview(report), _numbers(report), folded=False),
            policies.section(report),
            step_drift.section(report),
            "<h2>Each question</h2>",
            *(section(one, shown=one["question"]["text"] == head) for one in ordered),
            who_sampled.section(report),
            "<h2>What was checked</h2>",
            checks_table(report["checks"], of="question"),
            _columns(report),
            "<h2>Words</h2>",
            table(("word", "meaning"), GLOSSARY.items(), text=(1,)),
        ]
    )
    return shell(opening(report)[0][1], body, refresh=refresh)


def _head(report: dict[str, Any]) -> str:
    verdict, asked = report["headline"]["trust"], report["headline"]["question"]
    (question,) = (
        one["question"] for one in report["questions"] if one["question"]["text"] == asked
    )
    first, *others = opening(report)
    style = {"number": "", "plain": "", "trust": f' class="{verdict}"'}
    return (
        f'<p class="dim">kullback {escape(report["kullback"])} · '
        f"{escape(what_was_read(report))}</p>\n<h1{style[first[0]]}>{escape(first[1])}</h1>\n"
        + "".join(f"<p{style[kind]}>{escape(line)}</p>" for kind, line in others)
        + f'<p class="dim">{escape(in_words(question))}</p>'
    )


def finding_card(finding: dict[str, Any], of: str = "") -> str:
    """One finding as a card; ``of`` says whose it is, where there are several."""
    where, questions = finding["where"], finding["questions"]
    evidence = table(("evidence", "value"), _evidence(finding["numbers"]), text=(1,))
    folded = f"<details><summary>Evidence</summary>{evidence}</details>"
    more = f" and {len(where) - PLACES} more" if len(where) > PLACES else ""
    places = f'<p class="dim">At {escape("; ".join(where[:PLACES]))}{more}.</p>' * bool(where)
    word = "Touches" if finding["severity"] == "note" else "Spoils"
    touched = f'<p class="dim">{word} {escape(", ".join(questions))}.</p>' * bool(questions)
    return (
        f'<div class="card {finding["severity"]}">{escape(of)}<b>{finding["severity"]}</b> '
        f"<code>{escape(finding['code'])}</code> "
        f'<span class="dim">{escape(finding["certainty"])}</span>'
        f"<p>{escape(finding['claim'])}</p><p><b>Cost.</b> {escape(finding['cost'])}</p>"
        f"<p><b>Do.</b> {escape(finding['advice'])}</p>{touched}{places}"
        + folded * bool(finding["numbers"])
        + "</div>"
    )


def _evidence(numbers: dict[str, Any]) -> list[tuple[str, str]]:
    """The numbers of a finding, a line each; what stands within others is named by its path."""
    lines = []
    for name, value in numbers.items():
        if isinstance(value, dict):
            lines += [(f"{name}: {inner}", said) for inner, said in _evidence(value)]
        elif isinstance(value, list):
            lines.append((name, ", ".join(map(_spoken, value))))
        else:
            lines.append((name, _spoken(value)))
    return [(name.replace("_", " "), said) for name, said in lines]


def _spoken(value: Any) -> str:
    return number(value, 6) if isinstance(value, float) or value is None else str(value)


def _numbers(report: dict[str, Any]) -> str:
    rows = []
    for one in report["questions"]:
        verdict = one["trust"]["verdict"]
        trusted = Raw(f'<span class="{verdict}">{TRUST[verdict]}</span>')
        text, *values = numbers(one)
        rows.append((text, trusted, *values, ", ".join(one["trust"]["because"])))
    head = (NUMBERS[0], "trust", *NUMBERS[1:], "because")
    return table(head, rows, caption=caption(report), text=(6,))


def checks_table(checks: list[dict[str, Any]], *, of: str) -> str:
    """What failed or cannot be told in sight, what passed folded; ``of`` names whose it is."""

    def listed(*statuses: str) -> tuple[int, str]:
        rows = [
            (one["status"], one["code"], one[of], one["reason"])
            for one in checks
            if one["status"] in statuses
        ]
        return len(rows), table(("status", "code", "of", "reason"), rows, text=(1, 2, 3))

    count, open_ones = listed("failed", "not-possible")
    passed, folded = listed("passed")
    return (open_ones if count else "") + (
        f"<details><summary>{counted(passed, 'check')} passed</summary>{folded}</details>"
    )


def _columns(report: dict[str, Any]) -> str:
    """What the columns were taken for: guesses and losses in sight, canonical names folded."""
    source = report["source"]
    guesses = source.get("columns", [])
    by_name, odd = (
        [
            (one["column"], one["role"], one["how"], one["reason"])
            for one in guesses
            if (one["how"] == "canonical") is canonical
        ]
        for canonical in (True, False)
    )
    odd += [(name, "–", "not read", why) for name, why in source.get("unused", {}).items()]
    odd += [
        (f"{one['file']}, {one['place']}", "–", "damaged", one["reason"])
        for one in source.get("damaged", [])
    ]
    odd += [(axis, "–", "not split by", why) for axis, why in report["not_split_by"].items()]
    if not guesses:
        return ""
    head = ("column", "read as", "how", "reason")
    shown = table(head, odd, text=(1, 2, 3)) if odd else ""
    folded = table(head, by_name, text=(1, 2, 3))
    return (
        f"<h2>What was read</h2><p>{escape(source['format'])}; sampler "
        f"{escape(source['sampler'])}: {escape(source['sampler_reason'])}.</p>{shown}"
        "<details><summary>"
        f"{counted(len(by_name), 'column')} by canonical names</summary>{folded}</details>"
    )
