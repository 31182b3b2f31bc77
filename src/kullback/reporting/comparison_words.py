"""How a comparison is spoken, the same in the terminal and on the page."""

from __future__ import annotations

from typing import Any

from kullback.reporting.words import TRUST, how_much, interval, number

CHANGES = {"rose": "rose", "fell": "fell", "within-noise": "within noise", "unknown": "–"}
HEADS = ("question", "A", "B", "B − A", "interval", "change", "by k3", "by exact", "trust")


def headline(made: dict[str, Any]) -> str:
    """The comparison in one sentence: did this KL change, by how much, how sure."""
    head = made["headline"]
    change, question = head["change"], head["question"]
    if change["difference"] is None:
        return f"{question} cannot be compared: {change['reason']}."
    if change["low"] is None:
        size = f"{number(change['difference'])} {change['unit']}"
        return f"{question}: B − A is {size}, without an interval: {change['reason']}."
    how = f"({change['method']}, {pairing(head['pairing'])})"
    if change["difference"] == 0 and change["standard_error"] == 0:
        size = f"{number(change['a']['mean'])} {change['unit']}"
        return f"{question} is the same in A and B: {size} {how}."
    return f"{question} {_moved(change, change['unit'], change['verdict'])} {how}."


def _moved(change: dict[str, Any], unit: str, verdict: str) -> str:
    """``rose by 0.01 nats per token from A to B, 95% interval 0.002 to 0.018``."""
    low, high, size = change["low"], change["high"], change["difference"]
    if verdict == "fell":
        low, high, size = -high, -low, -size
    moved = {
        "within-noise": f"did not change beyond noise: B − A is {number(size)} {unit}",
        "rose": f"rose by {number(size)} {unit} from A to B",
        "fell": f"fell by {number(size)} {unit} from A to B",
    }[verdict]
    return f"{moved}, {change['confidence']:.0%} interval {number(low)} to {number(high)}"


def pairing(one: dict[str, Any]) -> str:
    """By what the sides are paired.

    Example:
        >>> pairing({"by": "prompt", "shared": 40, "only_a": 24, "only_b": 0})
        'paired by 40 prompts; only A has 24 more'
        >>> pairing({"by": "sequence", "shared": 0, "only_a": 24, "only_b": 9})
        'unpaired: no prompt ids'
    """
    if not one["shared"]:
        return (
            "unpaired: no prompt ids" if one["by"] == "sequence" else "unpaired: no shared prompt"
        )
    said = f"paired by {one['shared']} {one['by']}{'s' * (one['shared'] != 1)}"
    alone = [
        f"{side} has {n} more" for side, n in (("A", one["only_a"]), ("B", one["only_b"])) if n
    ]
    return f"{said}; only {' and only '.join(alone)}" if alone else said


def about_the_pairing(made: dict[str, Any]) -> str:
    """What the pairing leaves open, in a sentence or two; empty where it leaves nothing."""
    head = made["headline"]
    one, change = head["pairing"], head["change"]
    if change["difference"] is None:
        return ""
    if not one["shared"] and one["by"] == "sequence":
        return (
            "Without prompt ids the sides count as independent, and so do sequences of one prompt: "
            "the interval may be too wide or too narrow. Log prompt_id."
        )
    if not one["shared"]:
        return (
            "No prompt is on both sides, so the difference may be one of the prompts, and not of "
            "the policies."
        )
    if not (one["only_a"] or one["only_b"]):
        return ""
    return _on_shared(one, change) + (
        "The whole difference is also one of the prompts that only one side has."
    )


def _on_shared(one: dict[str, Any], change: dict[str, Any]) -> str:
    alone = change["on_shared"]
    if alone is None or alone["difference"] is None:
        return ""
    kinds = f"the {one['shared']} shared {one['by']}s" if one["shared"] > 1 else "the shared one"
    size = f"B − A is {number(alone['difference'])} {change['unit']}"
    if alone["low"] is None:
        return f"Over {kinds} alone {size}, without an interval. "
    span = f"{number(alone['low'])} to {number(alone['high'])}"
    return f"Over {kinds} alone {size}, {change['confidence']:.0%} interval {span}. "


def sides(made: dict[str, Any]) -> list[str]:
    """What was read of each side, in a line each."""
    return [
        f"{name}: {side['name']}: {how_much(side['source'], side['counts'])}"
        for name, side in (("A", made["a"]), ("B", made["b"]))
    ]


def row(one: dict[str, Any]) -> tuple[str, ...]:
    """A question under the heads ``HEADS``."""
    changes = one["changes"]
    auto = changes["auto"]
    return (
        one["question"]["text"],
        number(auto["a"]["mean"]),
        number(auto["b"]["mean"]),
        signed(auto["difference"]),
        interval(auto),
        CHANGES[auto["verdict"]],
        *(_other(changes.get(name)) for name in ("k3", "exact")),
        TRUST[one["trust"]["verdict"]],
    )


def signed(value: float | None) -> str:
    """A difference in a few digits, its sign always there; a dash where there is none.

    Example:
        >>> signed(0.01234), signed(-2.0), signed(0.0), signed(None)
        ('+0.0123', '-2', '0', '–')
    """
    return "–" if value is None else f"{value:+.3g}" if value else "0"


def _other(change: dict[str, Any] | None) -> str:
    """The difference by another method, and how it is to be read where it is more than noise."""
    if change is None:
        return "–"
    size = signed(change["difference"])
    return f"{size} {change['verdict']}" if change["verdict"] in ("rose", "fell") else size


def caption(made: dict[str, Any]) -> str:
    """What the table of differences shows, and what must not be read out of it."""
    change = made["headline"]["change"]
    told = sum(one["changes"]["auto"]["low"] is not None for one in made["questions"])
    said = (
        f"KL by {change['method']} in nats per token unless the question says otherwise; B − A "
        f"with its {change['confidence']:.0%} interval for {change['scope']}. It holds if on each "
        "side the policies were fixed before the tokens were sampled and no row was chosen by its "
        "outcome."
    )
    if told > 1:
        said += (
            f" Each interval holds on its own: of {told} where nothing changed, "
            f"{told * (1 - change['confidence']):.2g} are expected to say otherwise."
        )
    return said


def whose(finding: dict[str, Any]) -> str:
    """Which side a finding is of."""
    return f"Only {finding['side'].upper()}" if finding["alone"] else finding["side"].upper()


def in_common(made: dict[str, Any]) -> str:
    """The codes that both sides have, in a line; empty where there are none."""
    codes = dict.fromkeys(one["code"] for one in made["findings"] if not one["alone"])
    return (
        f"On both sides, and told in full by kullback report: {', '.join(codes)}." if codes else ""
    )


def not_compared(made: dict[str, Any]) -> list[str]:
    """The questions that one side alone answers, in a line for each side."""
    return [
        f"Only {name} answers {', '.join(made[key])}."
        for name, key in (("A", "only_a"), ("B", "only_b"))
        if made[key]
    ]
