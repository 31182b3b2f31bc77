"""The report as data: one dictionary, from which the terminal, the page and the file are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from kullback.diagnosis import clamps
from kullback.diagnosis.advise import Advice, advise
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import Check, Diagnosis, Finding
from kullback.diagnosis.reading_faults import diagnose_reading
from kullback.diagnosis.sampler import SamplerCheck, sampler_check
from kullback.diagnosis.who_sampled import WhoSampled, who_sampled
from kullback.estimation.cells import Row
from kullback.estimation.conditions import ess_fraction
from kullback.estimation.contributors import Contributor
from kullback.estimation.estimate import METHODS, Estimate, from_state
from kullback.estimation.question_state import QuestionState
from kullback.estimation.rungs import rungs_of
from kullback.estimation.summary import Summary
from kullback.estimation.terms import CLIP_BAND, TRUNCATED_AT
from kullback.question import Question
from kullback.reporting import policies, step_drift
from kullback.reporting.spread import octaves, per_sequence, per_token

if TYPE_CHECKING:
    from kullback.dumps import Dump
    from kullback.following.progress import Progress

SCHEMA = "kullback.report/1"


def document(
    summary: Summary, source: Mapping[str, Any] | None = None, *, confidence: float = 0.95
) -> dict[str, Any]:
    """The report of a summary, as plain lists, dictionaries, strings and finite numbers.

    Args:
        summary: What was read.
        source: Where it came from, as ``source_of`` tells it of a dump.
        confidence: Nominal coverage of the intervals.

    Returns:
        What report.schema.json describes; a number that does not exist is None.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> batch = pack({"old": [[-1.0], [-0.5]], "current": [[-1.1], [-0.4]]})
        >>> report = document(summarize([batch]))
        >>> report["schema"], report["questions"][0]["question"]["text"]
        ('kullback.report/1', 'KL(old||current)')
    """
    from kullback import __version__

    origin = dict(source or {})
    texts = [str(question) for question in summary.questions]
    diagnosis = diagnose(summary) + diagnose_reading(origin, texts)
    questions = [
        _question(summary, one.question, diagnosis, confidence, origin.get("sampler"))
        | {"advice": _advice(one)}
        for one in advise(summary)
    ]
    return plain(
        {
            "schema": SCHEMA,
            "kullback": __version__,
            "source": origin,
            "headline": _headline(questions),
            "questions": questions,
            "findings": [_finding(one) for one in diagnosis.findings],
            "checks": [_check(one) for one in diagnosis.checks],
            "who_sampled": _who(who_sampled(summary)),
            "policies": policies.as_data(summary, confidence),
            "steps": step_drift.as_data(summary, confidence),
            "not_split_by": summary.refused,
        }
    )


def plain(value: Any) -> Any:
    """Down to what JSON has; a number that does not exist becomes None."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if value is None:
        return value
    if isinstance(value, str):  # a name of a file or column may hold what UTF-8 has no bytes for
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(one) for key, one in value.items()}
    return [plain(one) for one in value]


def _question(
    summary: Summary,
    question: Question,
    diagnosis: Diagnosis,
    confidence: float,
    sampler: str | None,
) -> dict[str, Any]:
    state, check = summary.questions[question], sampler_check(summary, question)
    scope = f"new {summary.cluster_kind}s"
    estimates = {
        name: from_state(state, name, confidence, scope=scope)
        for name in (*METHODS, *rungs_of(state))
        if name != "exact" or state.total("exact_tokens")
    }
    return {
        "question": {
            "text": str(question),
            "p": question.p,
            "q": question.q,
            "sampler": question.sampler,
            "prefixes": question.prefixes,
            "level": question.level,
        },
        "counts": {
            "tokens": state.tokens,
            "sequences": state.sequences,
            "clusters": state.groups.clusters,
            "effective_clusters": state.effective_clusters(),
            "missing": state.missing,
            "infinite": state.infinite,
            "masked": state.masked,
        },
        "estimates": {name: _estimate(one) for name, one in estimates.items()},
        "unweighted_k1": _unweighted(state),
        "sampler_check": asdict(check),
        "distribution": per_token(state),
        "histogram": octaves(state),
        "sequences": per_sequence(state),
        "weights": _weights(state),
        "clamps": clamps.rows(summary, question),
        # From sampled tokens S cannot be read: what decides it may be what was not sampled.
        "shape": {"S": None, "lambda": None, "source": "not known from sampled tokens"},
        "by": {
            axis: [_cell(row) for row in state.rows(confidence=confidence, scope=scope)]
            for axis, state in summary.by.get(question, {}).items()
        },
        "top": _top(state),
        "trust": _trust(estimates["auto"], check, diagnosis, sampler or question.sampler),
    }


def _advice(one: Advice) -> dict[str, Any]:
    size = 0.1 * abs(one.estimate.mean) if one.estimate else math.nan
    return {
        "method": one.method,
        "verdict": one.verdict,
        "certainty": one.certainty,
        "why": one.why,
        "where": one.where,
        "next": [asdict(rung) for rung in one.next_rungs],
        # For an interval of a tenth of the estimate to either side.
        "clusters_for_a_tenth": one.needed(size) if size > 0 else None,
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    fields = ("mean", "low", "high", "confidence", "standard_error", "unit", "method", "scope",
              "assumptions", "marks", "reason")  # fmt: skip
    return {name: getattr(one, name) for name in fields} | {"lambda": one.lam}


def _cell(row: Row) -> dict[str, Any]:
    """A cell as JSON has it."""
    told = {field.name: getattr(row, field.name) for field in fields(row)}
    return told | {"estimates": {name: _estimate(one) for name, one in row.estimates.items()}}


def _unweighted(state: QuestionState) -> float | None:
    """What a log shows that forgets the importance weight; None where none is needed."""
    return None if state.question.weight == "none" else state.mean("raw_k1")


def _weights(state: QuestionState) -> dict[str, Any]:
    """The weights with which these tokens would stand for another policy."""
    count = max(state.tokens, 1)
    on_policy = state.question.weight == "none"
    if on_policy:  # of q
        chi2 = state.squared_growth / count
        mean = np.float64(1 + state.total("q_over_s") / count)  # overflows to inf, not to an error
        square = chi2 + 2 * mean - 1
        with np.errstate(over="ignore", invalid="ignore"):
            ess = mean**2 / square if square > 0 else math.nan
            largest = np.exp(state.log_q_over_p.high)
    else:
        ess, largest = ess_fraction(state), state.weight_max
        mean = state.total("weight") / count
        chi2 = state.total("weight_squared") / count - 2 * mean + 1
    return {
        "of": "q/s" if on_policy else "p/s",
        "ess_fraction": ess,
        "chi2": chi2,
        "truncated_mean": state.total("truncated") / count,
        "truncated_at": TRUNCATED_AT,
        "truncated_share": state.total("cut") / count,
        "clip_fraction": state.total("clipped") / count,
        "clip_band": list(CLIP_BAND),
        "max": largest,
    }


def _top(state: QuestionState) -> list[dict[str, Any]]:
    sums = {"k1": state.size_k1, "k3": state.total("k3")}
    return [
        _contributor(name, one, sums[name])
        for name, tokens in (("k1", state.top_k1), ("k3", state.top_k3))
        for one in tokens
    ]


def _contributor(name: str, one: Contributor, total: float) -> dict[str, Any]:
    before, token, after = one.text or (None, None, None)
    which = {} if one.place.sequence is None else {"sequence": one.place.sequence}
    return which | {
        "by": name,
        "size": one.size,
        "share": one.size / total if total else math.nan,
        "source": one.place.source,
        "row": one.place.row,
        "position": one.place.position,
        "token": one.token,
        "text": token,
        "before": before,
        "after": after,
        "log_p": one.log_p,
        "log_q": one.log_q,
    }


def _trust(
    estimate: Estimate, check: SamplerCheck, diagnosis: Diagnosis, sampler: str
) -> dict[str, Any]:
    """Whether to act on the number: ``yes``, ``with-care`` or ``no``, and because of what."""
    mine = [f for f in diagnosis.findings if str(estimate.question) in f.questions]
    against = [f.code for f in mine if f.severity != "note"]
    if estimate.reason:
        against.append(estimate.reason)
    if against:
        return {"verdict": "no", "because": list(dict.fromkeys(against))}
    care = [f.code for f in mine]
    if estimate.question.sampler != sampler:
        care.append(f"as-if-sampled-by-{estimate.question.sampler}")
    if check.verdict == "not-verifiable":
        care.append("sampler-not-verifiable")
    care += [mark for mark in estimate.marks if mark not in care and mark != "few-clusters"]
    return {"verdict": "with-care" if care else "yes", "because": care}


def chosen_of(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """The question of the headline: the policy against the reference if asked, else the first."""

    def rank(one: dict[str, Any]) -> tuple[bool, bool, bool]:
        p, q = one["question"]["p"], one["question"]["q"]
        return q != "reference", p != "current", p != "old"

    return min(questions, key=rank)


def _headline(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """The one number of the report."""
    chosen = chosen_of(questions)
    trust = chosen["trust"]
    return {
        "question": chosen["question"]["text"],
        "estimate": chosen["estimates"]["auto"],
        "unweighted_k1": chosen["unweighted_k1"],
        "clusters": chosen["counts"]["clusters"],
        "trust": trust["verdict"],
        "because": trust["because"],
        "untrusted": sum(one["trust"]["verdict"] == "no" for one in questions),
        "of": len(questions),
    }


def _finding(one: Finding) -> dict[str, Any]:
    question = one.questions[0] if one.questions else None
    return asdict(one) | {"question": question, "accuses": one.accuses}


def _check(one: Check) -> dict[str, Any]:
    return {"code": one.code, "question": one.subject, "status": one.status, "reason": one.reason}


def _who(found: WhoSampled) -> dict[str, Any]:
    return {
        "candidates": [asdict(one) for one in found.candidates],
        "answers": [asdict(one) | {"text": str(one)} for one in found.answers],
    }


def source_of(dump: Dump | Progress) -> dict[str, Any]:
    """Where a summary came from: the files, who sampled, what was guessed and what was left out.

    Rows and damage are known once the dump has been read.
    """
    return {
        "files": list(dump.names),
        "format": dump.format,
        "rows": dump.rows,
        "sampler": dump.sampler.role,
        "sampler_reason": dump.sampler.reason,
        "damaged_rows": dump.damaged_rows,
        "damaged": [asdict(row) for row in dump.damaged[:20]],
        "columns": [asdict(guess) for guess in dump.columns],
        "unused": dict(dump.unused),
    }
