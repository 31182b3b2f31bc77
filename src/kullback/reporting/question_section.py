"""One question on the page: its estimates, its sampler, where it changes, what it is made of."""

from __future__ import annotations

from html import escape
from typing import Any

from kullback.reporting.along import cell_caption, cell_heads, cell_rows
from kullback.reporting.markup import Raw, drawn, table
from kullback.reporting.question_figures import along, log_ratios, methods, per_sequence
from kullback.reporting.words import (
    TRUST,
    advice,
    counted,
    interval,
    number,
    percent,
    reasons,
)

SAMPLER = {
    "accused": "{s} did not sample these tokens.",
    "consistent": "Nothing speaks against {s} having sampled these tokens.",
    "not-verifiable": "Whether {s} sampled these tokens cannot be told from this dump.",
}


def section(one: dict[str, Any], *, shown: bool = False) -> str:
    """The section of a question, folded unless it is to be shown.

    Args:
        one: The question, as the report has it.
        shown: Whether it is open at first.
    """
    best, verdict = one["estimates"]["auto"], one["trust"]["verdict"]
    because = reasons(one["trust"]["because"])
    size = number(best["mean"]) if best["mean"] is not None else "no number"
    return (
        f"<details{' open' * shown}><summary>{escape(one['question']['text'])} "
        f'<span class="dim">{size}</span> '
        f'<span class="{verdict}">{TRUST[verdict]}</span></summary>\n'
        + f'<p class="{verdict}">Trust: {TRUST[verdict]}; {escape(because)}.</p>' * bool(because)
        + _estimates(one)
        + _sampler(one)
        + f"<p><b>Advice.</b> {escape(' '.join(advice(one)))}</p>"
        + "".join(_by(one, axis) for axis in one["by"])
        + drawn(per_sequence(one))
        + drawn(log_ratios(one))
        + _per_token(one)
        + _weights(one)
        + _clamps(one["clamps"])
        + _worst(one["top"])
        + _counts(one["counts"])
        + "</details>"
    )


def _estimates(one: dict[str, Any]) -> str:
    rows = [
        (
            f"auto (λ = {number(e['lambda'])})" if name == "auto" else name,
            number(e["mean"], 4),
            interval(e),
            number(e["standard_error"]),
            e["scope"],
            ", ".join([*e["marks"], *([e["reason"]] if e["reason"] else [])]),
        )
        for name, e in one["estimates"].items()
    ]
    head = ("method", "mean", "interval", "error", "scope", "marks")
    told = drawn(methods(one), table(head, rows, text=(4, 5)), folded=False)
    forgot = one["unweighted_k1"]
    if forgot is not None:
        told += f"<p>A log that forgets the importance weight shows {number(forgot)} here.</p>"
    assumed = "; ".join(one["estimates"]["auto"]["assumptions"])
    return told + f'<p class="dim">It holds if: {escape(assumed)}.</p>'


def _sampler(one: dict[str, Any]) -> str:
    check, role = one["sampler_check"], one["question"]["sampler"]
    said = [SAMPLER[check["verdict"]].format(s=role)]
    if check["missing_mass"] is not None:
        said.append(
            f"Missing mass {number(check['missing_mass'])} ± {number(check['standard_error'], 2)}."
        )
    if check["entropy_z"] is not None:
        said.append(f"Surprise against logged entropy: z = {number(check['entropy_z'])}.")
    if check["log_bound"] is not None and check["log_bound"] < 0:
        said.append(f"A sum this low has a probability of at most e^{number(check['log_bound'])}.")
    return f"<p><b>Sampler.</b> {escape(' '.join(said))}</p>"


def _by(one: dict[str, Any], axis: str) -> str:
    if len(one["by"][axis]) < 2:
        return ""
    told = table(cell_heads(one, axis), cell_rows(one, axis), caption=cell_caption(one, axis))
    return drawn(along(one, axis), told)


def _per_token(one: dict[str, Any]) -> str:
    keys = ("mean", "std", "p50", "p95", "p99", "min", "max")
    rows = [
        (name, *(number(told[key]) for key in keys), percent(told["negative_share"], 0))
        for name, told in one["distribution"].items()
    ]
    return table(("per token", *keys, "below 0"), rows)


def _weights(one: dict[str, Any]) -> str:
    told = one["weights"]
    low, high = told["clip_band"]
    rows = [
        ("share of the tokens that they leave", percent(told["ess_fraction"])),
        ("largest", number(told["max"])),
        ("chi-square: variance of the weight", number(told["chi2"])),
        (f"outside {low}–{high}", percent(told["clip_fraction"])),
        (f"above {number(told['truncated_at'])}", percent(told["truncated_share"])),
        (f"mean when cut at {number(told['truncated_at'])}", number(told["truncated_mean"])),
    ]
    p, q, s = (one["question"][key] for key in ("p", "q", "sampler"))
    target = p if told["of"] == "p/s" else q
    return table((f"weights {target}/{s}", ""), rows)


def _clamps(clamps: list[dict[str, Any]]) -> str:
    if not clamps:
        return ""
    rows = [
        (
            one["rule"],
            one["used_by"],
            str(one["tokens"]),
            percent(one["share"], 2),
            percent(one["no_gradient"], 2),
            one["form"],
            number(one["mean"], 4),
            number(one["clamped_mean"], 4),
        )
        for one in clamps
    ]
    head = ("clamp", "used by", "tokens beyond", "share", "no gradient", "of", "mean", "with it")
    return table(head, rows, text=(0, 1, 5))


def _worst(top: list[dict[str, Any]]) -> str:
    rows = []
    for one in top:
        text = ""
        if one["text"] is not None:
            before, token, after = (escape(one[key]) for key in ("before", "text", "after"))
            text = f"{before}<mark>{token}</mark>{after}"
        rows.append(
            (one["by"], number(one["size"]), percent(one["share"]), Raw(text),
             number(one["log_p"]), number(one["log_q"]), one["source"], _row(one),
             str(one["position"]))
        )  # fmt: skip
    head = ("largest", "nats", "share", "text", "log p", "log q", "file", "row", "token")
    if not rows:
        return ""
    if not any(one["text"] for one in top):  # no ids, or nothing that says what they spell
        head, *rows = [(*row[:3], *row[4:]) for row in (head, *rows)]
        return table(head, rows, text=(5,))
    return table(head, rows, text=(3, 6))


def _row(one: dict[str, Any]) -> str:
    return f"{one['row']}, sequence {one['sequence']}" if "sequence" in one else str(one["row"])


def _counts(counts: dict[str, Any]) -> str:
    return (
        f'<p class="dim">{counted(counts["tokens"], "token")}, '
        f"{counted(counts['sequences'], 'sequence')}, "
        f"{counted(counts['clusters'], 'cluster')} "
        f"({number(counts['effective_clusters'])} effective); "
        f"{counts['masked']} masked, {counts['missing']} missing, "
        f"{counts['infinite']} infinite.</p>"
    )
