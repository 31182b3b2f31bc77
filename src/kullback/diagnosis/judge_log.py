"""A step log, judged: what each KL series is, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kullback.diagnosis.finding import Diagnosis
from kullback.diagnosis.log_coefficients import diagnose_coefficients
from kullback.diagnosis.log_events import diagnose_events, diagnose_noise
from kullback.diagnosis.log_labels import Labelled, guessed, labelled
from kullback.diagnosis.log_pairs import diagnose_pairs
from kullback.diagnosis.log_price import diagnose_signs
from kullback.diagnosis.log_tokens import Tokens, tokens_of
from kullback.logs.step_log import StepLog


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """A step log and what it shows.

    Args:
        log: What was read.
        series: Its KL series and coefficients, each with what it can be.
        tokens: The tokens of a step, where known.
        framework: The trainer that wrote it, as said or as guessed; None if unknown.
        guessed: Whether it is guessed, by two or more whole names of its.
        diagnosis: The findings and checks of all series.

    Example:
        >>> import numpy as np
        >>> log = StepLog.of({"rollout_corr/k3_kl": np.linspace(-0.1, -0.2, 20)})
        >>> judged = judge_log(log, framework="verl")
        >>> judged.series[0].said
        'by its name k3 of KL(rollout||old) (verl), which its values do not fit'
        >>> [one.code for one in judged.findings]
        ['sign-impossible']
    """

    log: StepLog
    series: tuple[Labelled, ...]
    tokens: Tokens | None
    framework: str | None
    guessed: bool
    diagnosis: Diagnosis

    @property
    def findings(self) -> tuple:
        """The findings, most severe first."""
        return self.diagnosis.findings


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a log may hold what overflows
def judge_log(
    log: StepLog, *, framework: str | None = None, tokens: int | None = None
) -> JudgedLog:
    """Say what the KL series of a step log are, and what is wrong with them.

    A series is labelled by its name and by its values: one that is negative cannot be a k3. A
    negative k1 has a price: if p sampled and q was fixed before, the sum of k1 over all tokens
    falls to −c with a probability of e^−c at most, whenever one looks. On honest logs at most one
    in a hundred accuses anybody; what accuses nobody is told as such.

    Args:
        log: What `read_log` read, or `StepLog.of` made.
        framework: The trainer that wrote it (``verl``, ``trl``, …): a name that several use means
            what it means there. If it is not given, it is guessed from two or more names that are
            whole its own.
        tokens: How many tokens the mean of a step is over, where the log does not say it.

    Returns:
        The series with their labels, the findings, and the checks: passed, failed, or not possible
        and what to log.

    Raises:
        ValueError: The framework is not in the dictionary, or tokens is no count.

    Example:
        >>> steps = np.arange(50)
        >>> log = StepLog.of({"rollout_corr/kl": 0.001 * np.sin(steps) - 0.03})
        >>> judged = judge_log(log, framework="verl", tokens=8192)
        >>> judged.findings[0].code, judged.findings[0].certainty
        ('negative-beyond-chance', 'beyond-chance')
        >>> judge_log(log, framework="verl").diagnosis.accused
        False
    """
    said, framework = framework, framework or guessed(log)
    series, counted = labelled(log, framework), tokens_of(log, tokens)
    signs = diagnose_signs(series, counted, named=framework is not None)
    events = diagnose_events(series, counted)
    diagnosis = (
        signs
        + diagnose_pairs(log, series, _failed(signs))
        + diagnose_coefficients(series)
        + events
        + diagnose_noise(series, _failed(events, "far-apart", "precision-floor"))
    )
    return JudgedLog(log, series, counted, framework, said is None and bool(framework), diagnosis)


def _failed(found: Diagnosis, *codes: str) -> set[str]:
    """The series of which something was found, of these codes or of any."""
    return {
        one.subject
        for one in found.checks
        if one.status == "failed" and (not codes or one.code in codes)
    }
