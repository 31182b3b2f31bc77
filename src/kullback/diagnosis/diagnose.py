"""Every detector over one summary."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.alignment import diagnose_alignment
from kullback.diagnosis.column_faults import diagnose_columns
from kullback.diagnosis.drifting import diagnose_drift
from kullback.diagnosis.finding import Diagnosis
from kullback.diagnosis.limits import diagnose_limits
from kullback.diagnosis.misaligned import diagnose_misaligned
from kullback.diagnosis.normalization import diagnose_normalization
from kullback.diagnosis.openings import diagnose_openings
from kullback.diagnosis.sampler import diagnose_sampler
from kullback.estimation.summary import Summary


@np.errstate(over="ignore", invalid="ignore")  # sums that overflowed tell nothing, and no warning
def diagnose(summary: Summary) -> Diagnosis:
    """What is wrong with these numbers, most severe first, and what was looked for.

    On clean data at most one report in a hundred accuses anybody.

    Args:
        summary: What ``summarize`` made.

    Returns:
        The findings, and every check: passed, failed, or not possible with what was logged.

    Example:
        >>> from kullback.columns import pack
        >>> from kullback.estimation.summary import summarize
        >>> batch = pack({"old": [[-1.0, -9999.0, -0.5]], "current": [[-1.1, -0.9, -0.4]]})
        >>> [finding.code for finding in diagnose(summarize([batch])).findings]
        ['sentinel-inside-mask', 'too-few-clusters']
    """
    return (
        diagnose_columns(summary)
        + diagnose_normalization(summary)
        + diagnose_openings(summary)
        + diagnose_alignment(summary)
        + diagnose_misaligned(summary)
        + diagnose_sampler(summary)
        + diagnose_limits(summary)
        + diagnose_drift(summary)
    )
