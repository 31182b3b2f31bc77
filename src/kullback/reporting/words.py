"""How numbers and verdicts are spoken, the same in the terminal and on the page."""

from __future__ import annotations

from typing import Any

from kullback.diagnosis.finding import CODES

# What is against a number: its marks here, and the captions of the findings.
REASONS = {
    "sampler-not-verifiable": "no column shows whether the sampler's log-probs leave out a "
    "temperature or top-p",
    "as-if-sampled-by": "it takes the tokens as sampled by",
    "biased": "the estimator is biased",
    "prefixes-unseen": "the sampler hardly saw what p does",
    "lower-bound": "it is what the KL is at least",
    "in-sample": "a policy was fitted to these tokens",
    "selected-on-outcome": "rows or lengths depend on what was drawn",
}
TRUST = {"yes": "yes", "with-care": "with care", "no": "no"}


def counted(count: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "row"), counted(7632, "token")
        ('1 row', '7632 tokens')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def number(value: float | None, digits: int = 3) -> str:
    """A number in a few digits; a dash where there is none.

    Example:
        >>> number(0.0365321), number(-1234.5), number(None)
        ('0.0365', '-1.23e+03', '–')
    """
    return "–" if value is None else f"{value:.{digits}g}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash where there is none.

    Example:
        >>> percent(0.0421), percent(0.5, 0), percent(None)
        ('4.2%', '50%', '–')
    """
    return "–" if share is None else f"{share:.{digits}%}"


def interval(estimate: dict[str, Any]) -> str:
    """The ends of an interval.

    Example:
        >>> interval({"low": 0.1, "high": 0.25})
        '0.1 … 0.25'
    """
    if estimate["low"] is None:
        return "–"
    return f"{number(estimate['low'])} … {number(estimate['high'])}"


NUMBERS = ("question", "KL", "interval", "k3", "exact")


def numbers(one: dict[str, Any]) -> tuple[str, ...]:
    """A question of the report under the heads ``NUMBERS``."""
    estimates = one["estimates"]
    best, exact = estimates["auto"], estimates.get("exact", {"mean": None})
    return (
        one["question"]["text"],
        number(best["mean"]),
        interval(best),
        number(estimates["k3"]["mean"]),
        number(exact["mean"]),
    )


def caption(report: dict[str, Any]) -> str:
    """What the table of numbers shows."""
    best = report["headline"]["estimate"]
    said = (
        f"KL by {best['method']} in nats per token unless the question says otherwise, "
        f"{best['confidence']:.0%} interval for {best['scope']}. It holds if the policies were "
        "fixed before the tokens were sampled and no row was chosen by its outcome."
    )
    if best["scope"] == "new sequences":
        said += " Without prompt ids, sequences of one prompt count as independent."
    return said


def headline(report: dict[str, Any]) -> str:
    """The report in one sentence: which KL, how big, how sure."""
    head = report["headline"]
    one = head["estimate"]
    if one["mean"] is None:
        return f"{head['question']} has no number: {one['reason']}."
    size = f"{head['question']} is {number(one['mean'])} {one['unit']}"
    if one["low"] is None:
        return f"{size}, without an interval: {one['reason']}."
    return (
        f"{size}, {one['confidence']:.0%} interval {number(one['low'])} to {number(one['high'])} "
        f"({one['method']}, {head['clusters']} {one['scope'].removeprefix('new ')})."
    )


def in_words(question: dict[str, str]) -> str:
    """What a question asks, without its notation.

    Example:
        >>> in_words({"p": "old", "q": "current", "sampler": "old"})
        'The mean of log old − log current over what old samples.'
    """
    p, q, sampler = question["p"], question["q"], question["sampler"]
    said = f"The mean of log {p} − log {q} over what {p} samples"
    if sampler == p:
        return f"{said}."
    up_to_it = " of all tokens up to it" if question["prefixes"] == p else ""
    return f"{said}, from tokens that {sampler} drew: each is weighed by {p}/{sampler}{up_to_it}."


def advice(one: dict[str, Any]) -> list[str]:
    """What to make of a question and what to log next, in sentences."""
    told, counts = one["advice"], one["counts"]
    said = [f"k1 or k3? {'; '.join(told['why'])}."]
    if told["where"]:
        said.append(f"Sampled where {one['question']['q']} is deepest: {'; '.join(told['where'])}.")
    measured = [rung for rung in told["next"] if rung["gain"] is not None]
    if measured:
        gains = (f"{rung['method']} {number(rung['gain'], 2)} times narrower" for rung in measured)
        said.append(f"Against sampled log-probs alone: {', '.join(gains)}.")
    elif told["next"]:
        needs = "; or ".join(rung["log"] for rung in told["next"])
        said.append(f"What would make it tighter, the cheapest first: {needs}.")
    if told["clusters_for_a_tenth"] is not None:
        kind = one["estimates"]["auto"]["scope"].removeprefix("new ")
        said.append(
            f"For an interval of ±10% by {told['method']} it takes about "
            f"{told['clusters_for_a_tenth']} {kind}; there are {counts['clusters']}."
        )
    return said


def forgotten_weight(report: dict[str, Any]) -> str:
    """What a log shows of the headline's question that forgets the importance weight, if any."""
    head = report["headline"]
    plain, mean, error = (
        head["unweighted_k1"], head["estimate"]["mean"], head["estimate"]["standard_error"]
    )  # fmt: skip
    if plain is None or mean is None or abs(plain - mean) <= (error or 0.0):
        return ""
    return f"A log that forgets the importance weight shows {number(plain)} for it."


def trust(report: dict[str, Any]) -> str:
    """Whether to act on it, in one sentence."""
    head = report["headline"]
    because = reasons(head["because"])
    said = {
        "yes": "Nothing that was found speaks against this number.",
        "with-care": f"Read it with care: {because}.",
        "no": f"Do not act on {head['question']}: {because}.",
    }[head["trust"]]
    others = head["untrusted"] - (head["trust"] == "no")
    if others:
        said += f" {others} of the other {head['of'] - 1} numbers cannot be trusted."
    return said


def opening(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The first lines, each as ``number``, ``plain`` or ``trust``: a verdict of no stands first."""
    said = [
        ("number", headline(report)),
        ("plain", forgotten_weight(report)),
        ("trust", trust(report)),
    ]
    if report["headline"]["trust"] == "no":
        said = [said[-1], *said[:-1]]
    return [(kind, line) for kind, line in said if line]


def reasons(because: list[str]) -> str:
    """What is against a number, in words where there are some.

    Example:
        >>> reasons(["A: mask-covers-padding", "as-if-sampled-by-old"])
        'A: padding is counted as tokens; it takes the tokens as sampled by old'
    """
    words = {code: said.caption for code, said in CODES.items()} | REASONS
    told = []
    for reason in because:
        side, colon, code = reason.rpartition(": ")
        name = next((name for name in words if code.startswith(name)), code)
        rest = code.removeprefix(name).replace("-", " ", 1)
        told.append(side + colon + words.get(name, code) + rest)
    return "; ".join(told)


def what_was_read(report: dict[str, Any]) -> str:
    """Files, sequences and tokens, in one line."""
    files = report["source"].get("files", [])
    named = files[0] if len(files) == 1 else f"{len(files)} files" if files else "arrays"
    return f"{named}: {how_much(report['source'], report['questions'][0]['counts'])}"


def how_much(source: dict[str, Any], counts: dict[str, Any]) -> str:
    """Sequences and tokens, who sampled them, and what was left out."""
    sizes = counted(counts["sequences"], "sequence"), counted(counts["tokens"], "token")
    said = ", ".join(sizes)
    if source.get("sampler"):
        said += f", sampled by {source['sampler']}"
    damaged = source.get("damaged_rows", 0)
    return f"{said}; {counted(damaged, 'damaged row')} left out" if damaged else said


def clamped(question: dict[str, Any]) -> list[str]:
    """What the clamps of trainers would do to a question; those that do the same in one line.

    Example:
        >>> clamp = {"rule": "k3 at most 10", "used_by": "ROLL", "tokens": 3, "share": 0.0015,
        ...     "form": "k3", "mean": 0.0164, "clamped_mean": 0.0121}
        >>> print(*clamped({"clamps": [clamp]}))
        Clamped as in ROLL (k3 at most 10), 3 tokens (0.15%) would change: k3 0.0121, not 0.0164.
    """
    alike: dict[tuple[str, int, float], list[dict[str, Any]]] = {}
    for one in question["clamps"]:
        if one["tokens"]:
            what = one["form"], one["tokens"], one["clamped_mean"]
            alike.setdefault(what, []).append(one)
    return [
        f"Clamped as in {', '.join(one['used_by'] for one in group)} "
        f"({min((one['rule'] for one in group), key=len)}), "
        f"{counted(group[0]['tokens'], 'token')} ({percent(group[0]['share'], 2)}) would change: "
        f"{group[0]['form']} {number(group[0]['clamped_mean'])}, not {number(group[0]['mean'])}."
        for group in alike.values()
    ]
