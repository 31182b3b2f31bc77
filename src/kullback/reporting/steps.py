"""A judged step log as data: from it the terminal, the page and the file are made."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from kullback.diagnosis.finding import CODES, SEVERITIES
from kullback.diagnosis.judge_log import JudgedLog
from kullback.reporting.document import plain
from kullback.reporting.words import counted

if TYPE_CHECKING:
    from kullback.diagnosis.log_labels import Labelled
    from kullback.diagnosis.log_tokens import Tokens
    from kullback.dictionary import Metric

SCHEMA = "kullback.steps/1"
DRAWN = 500  # points of a series, about; of more, the ends of each block are kept
BAND = 2.0  # noises to either side of the running median


def steps_document(judged: JudgedLog) -> dict[str, Any]:
    """The report of a step log, as plain lists, dictionaries, strings and finite numbers.

    Args:
        judged: What ``judge_log`` made.

    Returns:
        What steps.schema.json describes; a number that does not exist is None.

    Example:
        >>> from kullback.diagnosis.judge_log import judge_log
        >>> from kullback.logs.step_log import StepLog
        >>> made = steps_document(judge_log(StepLog.of({"train/kl": [0.0, 0.25]})))
        >>> made["headline"], made["series"][0]["last"]
        ('1 KL series over 2 steps: nothing was found, and 1 check could not be made.', 0.25)
    """
    from kullback import __version__

    log = judged.log
    return plain(
        {
            "schema": SCHEMA,
            "kullback": __version__,
            "source": {
                "path": log.source,
                "format": log.format,
                "run": log.run,
                "steps": log.steps,
                "names": len(log),
                "notes": log.notes,
            },
            "framework": judged.framework,
            "framework_guessed": judged.guessed,
            "tokens": _tokens(judged.tokens),
            "headline": _headline(judged),
            "series": [_series(one) for one in judged.series],
            "findings": [asdict(one) | {"accuses": one.accuses} for one in judged.findings],
            "checks": [asdict(one) for one in judged.diagnosis.checks],
        }
    )


def _headline(judged: JudgedLog) -> str:
    kls = sum(one.kind == "kl" for one in judged.series)
    steps = counted(judged.log.steps, "step")
    if not kls:
        which = judged.framework or "NAME"
        return (
            f"No KL is known among {len(judged.log)} series over {steps}: kullback explain "
            f"--framework {which} lists what can be there; some is logged only if the KL has a "
            "coefficient above 0."
        )
    said = f"{kls} KL series over {steps}"
    severities = [one.severity for one in judged.findings]
    counts = [
        counted(severities.count(severity), severity)
        for severity in reversed(SEVERITIES)
        if severity in severities
    ]
    if counts:
        return f"{said}: {CODES[judged.findings[0].code].caption} ({', '.join(counts)})."
    open_ones = sum(one.status == "not-possible" for one in judged.diagnosis.checks)
    if open_ones:
        return f"{said}: nothing was found, and {counted(open_ones, 'check')} could not be made."
    return f"{said}: nothing is wrong with {'it' if kls == 1 else 'them'} as far as can be told."


def _tokens(tokens: Tokens | None) -> dict[str, Any] | None:
    if tokens is None:
        return None
    return {
        "how": tokens.how,
        "per_step": float(np.nanmedian(tokens.counts)),
        "with_prompts": tokens.whole,
    }


def _metric(one: Metric) -> dict[str, Any]:
    return {
        "framework": one.framework,
        "name": one.name,
        "meaning": one.meaning,
        "question": str(one.question) if one.question else None,
        "method": one.method,
        "level": one.level,
        "sign": one.sign,
        "can_be_negative": one.can_be_negative,
        "version": one.version,
    }


def _series(one: Labelled) -> dict[str, Any]:
    series, held = one.series, one.profile
    finite = series.values[np.isfinite(series.values)]
    return {
        "name": one.name,
        "kind": one.kind,
        "is": one.said,
        "can_be": [_metric(metric) for metric in one.metrics],
        "cannot_be": [_metric(metric) for metric in one.excluded],
        "steps": len(series),
        "first": float(finite[0]) if len(finite) else None,
        "last": float(finite[-1]) if len(finite) else None,
        "mean": float(finite.mean()) if len(finite) else None,
        "level": float(np.median(held.level)) if len(held.level) else None,
        "noise": held.noise,
        "negative_share": held.negative,
        "not_finite": held.not_finite,
        "spikes": [float(series.steps[i]) for i in held.spikes],
        "changes": [float(series.steps[i]) for i in held.changes],
        "points": _points(one),
    }


def _points(one: Labelled) -> dict[str, list[float]]:
    """What is drawn: of a long series the lowest and the highest of each block, and the events."""
    series, held = one.series, one.profile
    finite = np.flatnonzero(np.isfinite(series.values))
    values = series.values[finite]
    kept = np.arange(len(finite))
    if len(finite) > DRAWN:
        blocks = np.array_split(kept, DRAWN // 2)
        ends = [b[place] for b in blocks for place in (np.argmin(values[b]), np.argmax(values[b]))]
        events = np.flatnonzero(np.isin(finite, [*held.spikes, *held.changes]))
        kept = np.unique([*ends, *events])
    reach = BAND * (held.noise if np.isfinite(held.noise) else 0.0)
    level = held.level[kept]
    return {
        "steps": series.steps[finite[kept]].tolist(),
        "values": values[kept].tolist(),
        "level": level.tolist(),
        "low": (level - reach).tolist(),
        "high": (level + reach).tolist(),
    }
