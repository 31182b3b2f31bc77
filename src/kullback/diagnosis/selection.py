"""Were rows left out because of what they became? What is left shows it where groups have gaps."""

from __future__ import annotations

from collections import Counter
from math import exp, log, log1p

import numpy as np

from kullback.diagnosis.finding import Diagnosis, Finding
from kullback.diagnosis.sampler_tests import ALPHA
from kullback.estimation.summary import Summary

CODE = "selected-on-outcome"
USUAL = 0.6  # share of the prompts that have the usual number of sequences, at least
FEWEST = 3  # prompts with fewer; one or two are where a file was cut
SHARE = 0.02  # of all prompts, likewise
FEWEST_ALIKE = 20  # rewards; fewer are equal by chance
# In the reason of those that were not finished.
CUT_OFF = ("length", "max", "trunc", "abort", "limit", "timeout")

COST = (
    "If they were left out for what was sampled (too long, without reward, all of one prompt "
    "alike), k1 and k3 are biased over the rest, the sampler's tests mean nothing, and only exact "
    "columns answer. If not (a worker that died, a batch cut short), nothing is lost but rows."
)
ADVICE = (
    "Log every row that was sampled, with a flag for those that are not trained on, and take the "
    "KL of all."
)


def diagnose_selection(summary: Summary) -> Diagnosis:
    """Look for prompts with too few rows, for groups that should be there, for unfinished rows."""
    labels = _unlabelled(summary) or _mixed(summary) + _finished(summary)
    return _uneven(summary) + labels


def _unlabelled(summary: Summary) -> Diagnosis | None:
    """One line where neither rewards nor reasons were read."""
    if summary.outcomes.reasons or summary.outcomes.values:
        return None
    reason = (
        "neither a reward nor a finish_reason per row was read: --by reward, --by finish_reason"
    )
    return Diagnosis.not_possible(CODE, "the dump", reason)


def _uneven(summary: Summary) -> Diagnosis:
    """Prompts with fewer sequences than nearly all others."""
    state = next(iter(summary.questions.values()))
    if summary.cluster_kind != "prompt" or state.groups.folded:
        reason = "prompts are not logged, or too many to keep apart: log prompt_id"
        return Diagnosis.not_possible(CODE, "rows of a prompt", reason)
    sizes = state.by_group("sequences")
    sizes = sizes[sizes > 0].astype(int)
    usual = Counter(sizes.tolist()).most_common(1)[0][0] if len(sizes) else 1
    often = int((sizes % usual == 0).sum())
    if usual < 2 or often < USUAL * len(sizes):
        reason = "the prompts have no usual number of rows"
        return Diagnosis.not_possible(CODE, "rows of a prompt", reason)
    few = sizes[sizes % usual != 0]
    told = f"{len(few)} of {len(sizes)} prompts have no whole number of groups of {usual} rows"
    if len(few) < max(FEWEST, SHARE * len(sizes)):
        return Diagnosis.passed(CODE, "rows of a prompt", told)
    missing = int((-few % usual).sum())
    finding = Finding(
        code=CODE,
        severity="note",
        certainty="likely",
        questions=tuple(map(str, summary.questions)),
        claim=f"{often} of {len(sizes)} prompts have whole groups of {usual} sequences, and the "
        f"other {len(few)} do not: {missing} rows are missing.",
        numbers={"usual": usual, "prompts": len(sizes), "uneven": len(few), "missing": missing},
        cost=COST,
        advice=ADVICE,
    )
    return Diagnosis.failed(finding, "rows of a prompt", told)


def _mixed(summary: Summary) -> Diagnosis:
    """No prompt whose rewards are all equal, where chance would leave some.

    Of n rewards that are 0 or 1 and independent given the prompt, all are equal with a probability
    of 2^(1 − n) at least, whatever the share of ones.
    """
    state = summary.outcomes
    subject = "rewards of a prompt"
    counts, sums, squares = state.rewards.sums if len(state.rewards.keys) else np.zeros((3, 0))
    several = counts >= 2
    if len(state.values) == 1 and counts.sum() >= FEWEST_ALIKE:
        reason = (
            f"all {counts.sum():.0f} rewards are {state.values[0]:g}: if rows with another one "
            "were left out, these are a selection; log them too"
        )
        return Diagnosis.not_possible(CODE, subject, reason)
    if state.rewards.folded or len(state.values) != 2 or summary.cluster_kind != "prompt":
        reason = "no reward of two values is logged per row, by prompt: read it (--by reward)"
        return Diagnosis.not_possible(CODE, subject, reason)
    equal = int((several & (counts * squares - sums * sums <= 1e-9 * counts * squares)).sum())
    log_p = sum(log1p(-(2.0 ** (1 - n))) for n in counts[several])
    told = f"{equal} of {int(several.sum())} prompts have rewards that are all equal"
    if equal or log_p >= log(ALPHA):
        return Diagnosis.passed(CODE, subject, told)
    finding = Finding(
        code=CODE,
        severity="note",
        certainty="beyond-chance",
        questions=tuple(map(str, summary.questions)),
        claim=f"No prompt of {int(several.sum())} has rewards that are all equal. Of prompts that "
        f"nobody chose some would be, but for a probability of {exp(log_p):.1g}: groups without a "
        "difference in reward were left out.",
        numbers={"prompts": int(several.sum()), "log_p": log_p, "values": list(state.values)},
        cost=COST,
        advice=ADVICE,
    )
    return Diagnosis.failed(finding, subject, told)


def _finished(summary: Summary) -> Diagnosis:
    """Whether sequences that were cut are there; if none is, nobody can tell whether any was."""
    reasons, subject = summary.outcomes.reasons, "unfinished rows"
    cut = sum(n for reason, n in reasons.items() if any(w in reason.lower() for w in CUT_OFF))
    if not reasons:
        reason = "why sequences ended was not read: --by finish_reason"
        return Diagnosis.not_possible(CODE, subject, reason)
    told = f"{cut} of {reasons.total()} sequences were cut"
    if cut:
        return Diagnosis.passed(CODE, subject, told)
    told += ": if any was and is left out, long ones are missing; log them too"
    return Diagnosis.not_possible(CODE, subject, told)
