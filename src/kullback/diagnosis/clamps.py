"""Was a clamp applied before logging, and what would those of trainers do to these tokens?"""

from __future__ import annotations

from typing import Any

import numpy as np

from kullback.diagnosis.clamped import clamped_at
from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.soundness import unfit
from kullback.estimation.clamp_state import CLAMPS, End
from kullback.estimation.estimate import from_state
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "clamp-active"
# Who clamps so by default, as far as was read in their sources in 2026.
USED_BY = {
    "k3_within_20_10": "verl, SkyRL, NeMo RL, ms-swift",
    "k3_10": "slime, ROLL",
    "k3_above_minus_10_10": "OpenRLHF",
    "k1_10": "OpenRLHF and AReaL, in the reward",
    "ratio_0.5_5": "IcePop",
}
SPOKEN = {
    "k3_within_20_10": "log r within ±20, k3 at most 10",
    "k3_10": "k3 at most 10",
    "k3_above_minus_10_10": "log r at least −10, k3 at most 10",
    "k1_10": "k1 within ±10",
    "ratio_0.5_5": "nothing outside 0.5 to 5 times",
}


def means(summary: Summary, question: Question, name: str) -> tuple[float, float]:
    """The mean of a clamp's formula over the tokens without any weight, and with the clamp."""
    whole, form = summary.questions[question], CLAMPS[name].form
    free = whole.mean(f"raw_{form}")
    with np.errstate(over="ignore", invalid="ignore"):
        return free, free + summary.clamps[question].added[name] / whole.tokens


def rows(summary: Summary, question: Question) -> list[dict[str, Any]]:
    """What each clamp would do to these tokens, as a report has it; nothing if none does anything.

    ``no_gradient`` is the share of the tokens that a loss with the clamp does not move; of a
    reward, which is not differentiated, there is none.
    """
    state, tokens = summary.clamps[question], summary.questions[question].tokens
    if not any(state.changed.values()) or not tokens:
        return []
    told = {name: means(summary, question, name) for name in CLAMPS}
    return [
        {
            "clamp": name,
            "rule": SPOKEN[name],
            "used_by": USED_BY[name],
            "form": clamp.form,
            "tokens": state.changed[name],
            "share": state.changed[name] / tokens,
            "mean": told[name][0],
            "clamped_mean": told[name][1],
            "no_gradient": None if name == "k1_10" else state.changed[name] / tokens,
        }
        for name, clamp in CLAMPS.items()
    ]


def diagnose_clamps(summary: Summary) -> Diagnosis:
    """Log-ratios that pile up at a limit; else, clamps that would move k3 beyond its error."""
    ends = {question: clamped_at(summary, question) for question in summary.questions}
    found = {question: at for question, at in ends.items() if at}
    checks = tuple(
        Check(CODE, str(question), "failed" if at else "passed", _told(summary, question, at))
        for question, at in ends.items()
    )
    if found:
        return Diagnosis((_applied(summary, found),), checks)
    note = _would_be(summary)
    return Diagnosis((note,) if note else (), checks)


def _told(summary: Summary, question: Question, at: tuple[End, ...]) -> str:
    if at:
        return f"log-ratios pile up at {_spoken(at)}"
    share = max(summary.clamps[question].changed.values(), default=0)
    return f"no limit holds the log-ratios; {share} tokens lie beyond one that trainers use"


def _spoken(at: tuple[End, ...]) -> str:
    return " and ".join(f"{one.value:.3g}" for one in at)


def _applied(summary: Summary, found: dict[Question, tuple[End, ...]]) -> Finding:
    question, at = next(iter(found.items()))
    state = summary.questions[question]
    ties = sum(one.ties for one in at)
    return Finding(
        code=CODE,
        severity="warning",
        certainty="likely",
        questions=tuple(map(str, found)),
        claim=f"{ties} of {state.tokens} log-ratios of {question.q} to {question.p} stand at "
        f"{_spoken(at)}, and none beyond: they were clamped before they were logged.",
        numbers={"limits": [one.value for one in at], "tokens": ties, "of": state.tokens},
        cost=f"{ties / state.tokens:.1%} of the tokens show less than they had, and in a loss they "
        f"have no gradient. The mean of k3, {state.mean('raw_k3'):.3g}, is what is left; "
        "how much was cut off cannot be told from these numbers.",
        advice="Log the log-probs as they are, and clamp, if at all, in the loss alone.",
    )


def _would_be(summary: Summary) -> Finding | None:
    """The clamp of a trainer that changes the mean of k3 most, beyond its standard error."""
    moved: dict[tuple[Question, str], float] = {}
    for question, whole in summary.questions.items():
        plain = question.weight == "none" and question.level == "token_mean"
        if not plain or unfit(summary, question):  # another finding speaks of these ratios
            continue
        for name, clamp in CLAMPS.items():
            # A band that drops tokens is one of the policy loss, and of no KL.
            if clamp.drops or not summary.clamps[question].changed[name]:
                continue
            free, cut = means(summary, question, name)
            error = from_state(whole, clamp.form).standard_error
            if abs(cut - free) > error > 0:
                moved[question, name] = abs(cut - free) / error
    if not moved:
        return None
    question, name = max(moved, key=lambda key: moved[key])
    state, form = summary.clamps[question], CLAMPS[name].form
    (free, cut), changed = means(summary, question, name), state.changed[name]
    return Finding(
        code=CODE,
        severity="note",
        certainty="certain",
        questions=(),
        claim=f"The clamp of {USED_BY[name]} ({SPOKEN[name]}) changes {changed} of "
        f"{state.tokens} tokens of {question}: {form} is {free:.4g} nats per token without it and "
        f"{cut:.4g} with it, {moved[question, name]:.1f} standard errors apart.",
        numbers={
            "question": str(question),
            "clamp": name,
            "tokens": changed,
            "of": state.tokens,
            "mean": free,
            "clamped_mean": cut,
        },
        cost=f"{changed / state.tokens:.2%} of the tokens have no gradient in such a loss: those "
        f"that are farthest apart. {decided(cut, free)}".rstrip(),
        advice="If your trainer clamps so, its KL and its leash are smaller than the true ones: "
        "take k1, or no clamp, and look at the largest tokens. If it does not, nothing is lost.",
    )
