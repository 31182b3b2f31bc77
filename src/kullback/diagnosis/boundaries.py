"""Are the first tokens of packed sequences scored behind the sequence before them?"""

from __future__ import annotations

import math

from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.once import once
from kullback.estimation.boundary_state import BoundaryState, Edge
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "packed-boundary"
FEWEST_PACKED = 10  # first tokens behind another sequence; below, nothing is looked for
FEWEST_ROWS = 5  # first tokens of rows, to which they are compared
TIMES = 3.0  # as large must the mean of their squares be, cut at 4
BEYOND = 4.5  # standard errors between the two means
COMMON = 0.8  # share of rows that end in one id that also stands within: several sequences each
SELDOM = 0.1  # share of all tokens that such ids are; a small world has few ids, each of them often
LARGE = 1.0  # nats²: where borders are guessed, so large must the mean of the squares be


def diagnose_boundaries(summary: Summary) -> Diagnosis:
    """Compare the first tokens of packed sequences with the first tokens of rows.

    Sequences stand in a row in any order, so that both have the same distribution, however far two
    policies are apart where a sequence begins.
    """
    if not summary.boundaries:
        return Diagnosis()
    told = {question: _packed(summary, state) for question, state in summary.boundaries.items()}
    checks = []
    found: dict[Question, Edge] = {}
    for question, (packed, of) in told.items():
        rows = summary.boundaries[question].rows
        if packed.tokens < FEWEST_PACKED:
            reason = f"{packed.tokens} sequences stand behind another one in their row"
            checks.append(Check(CODE, str(question), "passed", reason))
            continue
        if rows.tokens < FEWEST_ROWS:
            reason = f"only {rows.tokens} first tokens of rows, to which to compare {packed.tokens}"
            checks.append(Check(CODE, str(question), "not-possible", reason))
            continue
        reason = (
            f"the mean of (log p − log q)², cut at 4, is {_mean(packed):.3g} at {packed.tokens} "
            f"first tokens behind {of}, {_mean(rows):.3g} at {rows.tokens} of rows"
        )
        apart = _apart(packed, rows, of)
        if apart:
            found[question] = packed
        status = "failed" if apart else "passed" if of == "a sequence" else "not-possible"
        checks.append(Check(CODE, str(question), status, reason))
    sound = set(summary.boundaries) - set(found)
    finding = (_finding(summary, found, sound),) if found else ()
    return Diagnosis(finding, tuple(checks))


@once
def badly_packed(summary: Summary) -> frozenset[str]:
    """The roles whose first tokens of packed sequences were scored behind another one."""
    found = {
        question
        for question, state in summary.boundaries.items()
        if _is_wrong(*_packed(summary, state), state.rows)
    }
    return frozenset(_suspects(found, set(summary.boundaries) - found))


def _is_wrong(packed: Edge, of: str, rows: Edge) -> bool:
    enough = packed.tokens >= FEWEST_PACKED and rows.tokens >= FEWEST_ROWS
    return enough and _apart(packed, rows, of)


def _suspects(found: set[Question], sound: set[Question]) -> set[str]:
    """The roles of wrong pairs that stand in no sound one, if each wrong pair has one; else all."""
    roles = {role for q in found for role in (q.p, q.q)}
    unheard = roles - {role for q in sound for role in (q.p, q.q)}
    return unheard if all(unheard & {q.p, q.q} for q in found) else roles


def _packed(summary: Summary, state: BoundaryState) -> tuple[Edge, str]:
    """The first tokens of packed sequences, and behind what they stand."""
    if state.packed.tokens:
        return state.packed, "a sequence"
    masks, tokens = summary.masks, max(column.tokens for column in summary.columns.values())
    for name, ending in masks.endings.items():
        packed = min(ending.sequences, ending.inside) >= COMMON * masks.sequences
        if packed and name in state.inner and state.inner[name].tokens <= SELDOM * tokens:
            return state.inner[name], f"id {name}"
    return state.packed, "a sequence"


def _mean(edge: Edge) -> float:
    return edge.squares / edge.tokens


def _apart(packed: Edge, rows: Edge, of: str) -> bool:
    """Whether the packed ones are far larger, in the error that both would share if alike."""
    if of != "a sequence" and _mean(packed) < LARGE:
        return False
    here, there, both = _mean(packed), _mean(rows), packed + rows
    variance = max(both.fourths / both.tokens - _mean(both) ** 2, 0.0)
    error = math.sqrt(variance * (1 / packed.tokens + 1 / rows.tokens))
    return here > TIMES * there and here - there > BEYOND * error


def _finding(summary: Summary, found: dict[Question, Edge], sound: set[Question]) -> Finding:
    question = max(found, key=lambda q: _mean(found[q]) - _mean(summary.boundaries[q].rows))
    edge, rows = found[question], summary.boundaries[question].rows
    _, of = _packed(summary, summary.boundaries[question])
    suspects = _suspects(set(found), sound) & {question.p, question.q}
    who = f"{' or '.join(sorted(suspects))} scored them"
    where = "the sequence before" if of == "a sequence" else f"what stands before {of}"
    share = edge.tokens / max(summary.questions[question].tokens, 1)
    return Finding(
        code=CODE,
        severity="error",
        certainty="beyond-chance" if of == "a sequence" else "likely",
        questions=tuple(map(str, found)),
        claim=(
            f"At {edge.tokens} first tokens behind {of} in the same row, {question.p} and "
            f"{question.q} are {math.sqrt(_mean(edge)):.2g} nats apart (root mean square, cut at "
            f"2), at the first tokens of {rows.tokens} rows {math.sqrt(_mean(rows)):.2g}: {who} "
            f"with {where} as their context."
        ),
        numbers={
            "packed": edge.tokens,
            "rows": rows.tokens,
            "squares_packed": _mean(edge),
            "squares_rows": _mean(rows),
            "share": share,
        },
        cost=_cost(summary, question, edge),
        advice="Cut the row into its sequences before the shift by one, and mask the last position "
        "of each: it predicts a token of another sequence; keep attention within sequences.",
        where=(str(edge.first),),
    )


def _cost(summary: Summary, question: Question, edge: Edge) -> str:
    whole = summary.questions[question]
    rest = whole.tokens - edge.tokens
    if rest <= 0:
        return "Every estimate of these pairs holds a token of another context per sequence."
    k1, k3 = whole.total("raw_k1"), whole.total("raw_k3")
    with_them, without = k3 / whole.tokens, (k3 - edge.k3) / rest
    return (
        f"With them KL({question.p}||{question.q}) is {k1 / whole.tokens:.4g} nats per token by k1 "
        f"and {with_them:.4g} by k3, without them {(k1 - edge.k1) / rest:.4g} and {without:.4g}. "
        f"{decided(with_them, without)}"
    ).rstrip()
