"""The report as one page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting.along import cell_caption, cell_heads, cell_rows
from kullback.reporting.markup import Raw, shell, table
from kullback.reporting.words import (
    NUMBERS,
    TRUST,
    caption,
    counted,
    forgotten_weight,
    headline,
    interval,
    number,
    numbers,
    percent,
    trust,
    what_was_read,
)

GLOSSARY = {
    "KL(p||q)": "the mean of log p − log q over what p samples, in nats; never below 0",
    "k1": "log p − log q of a token: right on average, noisy, often negative",
    "k3": "r − 1 − log r with r = q/p: right on average, never negative, blind to unsampled holes",
    "missing mass": "1 − mean of q/sampler: mass of q that was not seen; alone it accuses nobody",
    "weights left": "the share of the tokens that the importance weights leave to the estimate",
    "interval": "Student's, with whole prompts (or sequences) as the units that vary",
}


def page(report: dict[str, Any], *, refresh: int | None = None) -> str:
    """The whole page, styles included; it asks for nothing over the network.

    Args:
        report: What ``document`` made.
        refresh: Seconds after which a browser loads it anew; None: it does not.
    """
    body = "\n".join(
        [
            _head(report),
            "<h2>What stands out</h2>",
            *map(_finding, report["findings"]),
            "" if report["findings"] else "<p>Nothing.</p>",
            "<h2>The numbers</h2>",
            _numbers(report),
            *_along(report),
            *map(_question, report["questions"]),
            "<h2>What was checked</h2>",
            _checks(report),
            _columns(report),
            "<h2>Words</h2>",
            table(("word", "meaning"), GLOSSARY.items(), text=(1,)),
        ]
    )
    return shell(headline(report), body, refresh=refresh)


def _head(report: dict[str, Any]) -> str:
    verdict = report["headline"]["trust"]
    forgotten = forgotten_weight(report)
    return (
        f'<p class="dim">kullback {escape(report["kullback"])} · '
        f"{escape(what_was_read(report))}</p>\n<h1>{escape(headline(report))}</h1>\n"
        + f"<p>{escape(forgotten)}</p>" * bool(forgotten)
        + f'<p class="{verdict}">{escape(trust(report))}</p>'
    )


def _finding(finding: dict[str, Any]) -> str:
    where, questions = finding["where"], finding["questions"]
    places = f'<p class="dim">At {escape("; ".join(where))}.</p>' * bool(where)
    word = "Touches" if finding["severity"] == "note" else "Spoils"
    touched = f'<p class="dim">{word} {escape(", ".join(questions))}.</p>' * bool(questions)
    return (
        f'<div class="card {finding["severity"]}"><b>{finding["severity"]}</b> '
        f"<code>{escape(finding['code'])}</code> "
        f'<span class="dim">{escape(finding["certainty"])}</span>'
        f"<p>{escape(finding['claim'])}</p><p><b>Cost.</b> {escape(finding['cost'])}</p>"
        f"<p><b>Do.</b> {escape(finding['advice'])}</p>{touched}{places}</div>"
    )


def _numbers(report: dict[str, Any]) -> str:
    rows = []
    for one in report["questions"]:
        verdict = one["trust"]["verdict"]
        trusted = Raw(f'<span class="{verdict}">{TRUST[verdict]}</span>')
        text, *values = numbers(one)
        rows.append((text, trusted, *values, ", ".join(one["trust"]["because"])))
    head = (NUMBERS[0], "trust", *NUMBERS[1:], "because")
    return table(head, rows, caption=caption(report), text=(6,))


def _question(one: dict[str, Any]) -> str:
    check, weights, counts = one["sampler_check"], one["weights"], one["counts"]
    auto = one["estimates"]["auto"]["method"]
    methods = [
        (
            f"auto ({auto})" if name == "auto" else name,
            number(e["mean"], 4),
            interval(e),
            number(e["standard_error"]),
            e["scope"],
            ", ".join([*e["marks"], *([e["reason"]] if e["reason"] else [])]),
        )
        for name, e in one["estimates"].items()
        if name != auto  # shown as auto
    ]
    spread = [
        (name, *(number(d[key]) for key in ("mean", "std", "p50", "p95", "p99", "min", "max")),
         percent(d["negative_share"], 0))
        for name, d in one["distribution"].items()
    ]  # fmt: skip
    unweighted = one["unweighted_k1"]
    forgot = f"<p>A log that forgets the importance weight shows {number(unweighted)} here.</p>"
    return (
        f"<details><summary>{escape(one['question']['text'])}</summary>\n"
        f'<p class="dim">{counted(counts["tokens"], "token")}, '
        f"{counted(counts['sequences'], 'sequence')}, "
        f"{counted(counts['clusters'], 'cluster')} "
        f"({number(counts['effective_clusters'])} effective); "
        f"{counts['masked']} masked, {counts['missing']} missing, {counts['infinite']} infinite</p>"
        + table(("method", "mean", "interval", "error", "scope", "marks"), methods, text=(4, 5))
        + forgot * (unweighted is not None)
        + f"<p>Sampler {escape(one['question']['sampler'])}: {check['verdict']}. Missing mass "
        f"{number(check['missing_mass'])} ± {number(check['standard_error'], 2)}. Weights "
        f"{weights['of']}: {percent(weights['ess_fraction'])} left, largest "
        f"{number(weights['max'])}, {percent(weights['clip_fraction'])} outside "
        f"{weights['clip_band'][0]}–{weights['clip_band'][1]}, "
        f"{percent(weights['truncated_share'])} above {number(weights['truncated_at'])}.</p>"
        + table(("per token", "mean", "std", "p50", "p95", "p99", "min", "max", "below 0"), spread)
        + "".join(_cells(one, axis) for axis in one["by"])
        + _worst(one["top"])
        + "</details>"
    )


def _along(report: dict[str, Any]) -> list[str]:
    """The headline's tables by axis; those of the other questions stand with them."""
    [head] = (
        one
        for one in report["questions"]
        if one["question"]["text"] == report["headline"]["question"]
    )
    return [
        f"<h3>{escape(head['question']['text'])} by {escape(axis)}</h3>{_cells(head, axis)}"
        for axis in head["by"]
    ]


def _cells(one: dict[str, Any], axis: str) -> str:
    return table(cell_heads(one, axis), cell_rows(one, axis), caption=cell_caption(one, axis))


def _worst(top: list[dict[str, Any]]) -> str:
    rows = []
    for one in top:
        text = ""
        if one["text"] is not None:
            before, token, after = (escape(one[key]) for key in ("before", "text", "after"))
            text = f"{before}<mark>{token}</mark>{after}"
        rows.append(
            (one["by"], number(one["size"]), percent(one["share"]), number(one["log_p"]),
             number(one["log_q"]), one["source"], _row(one), str(one["position"]), Raw(text))
        )  # fmt: skip
    head = ("largest", "nats", "share", "log p", "log q", "file", "row", "token", "text")
    return table(head, rows, text=(8,)) if rows else ""


def _row(one: dict[str, Any]) -> str:
    return f"{one['row']}, sequence {one['sequence']}" if "sequence" in one else str(one["row"])


def _checks(report: dict[str, Any]) -> str:
    def listed(*statuses: str) -> tuple[int, str]:
        rows = [
            (one["status"], one["code"], one["question"], one["reason"])
            for one in report["checks"]
            if one["status"] in statuses
        ]
        return len(rows), table(("status", "code", "of", "reason"), rows, text=(1, 2, 3))

    count, open_ones = listed("failed", "not-possible")
    passed, folded = listed("passed")
    return (open_ones if count else "") + (
        f"<details><summary>{counted(passed, 'check')} passed</summary>{folded}</details>"
    )


def _columns(report: dict[str, Any]) -> str:
    source = report["source"]
    rows = [
        (one["column"], one["role"], one["how"], one["reason"]) for one in source.get("columns", [])
    ]
    rows += [(name, "–", "not read", why) for name, why in source.get("unused", {}).items()]
    rows += [
        (f"{one['file']}, {one['place']}", "–", "damaged", one["reason"])
        for one in source.get("damaged", [])
    ]
    head = ("column", "read as", "how", "reason")
    return f"<h2>What was read</h2>{table(head, rows, text=(1, 2, 3))}" if rows else ""
