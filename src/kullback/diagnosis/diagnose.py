"""Every detector over one summary."""

from __future__ import annotations

import numpy as np

from kullback.diagnosis.alignment import diagnose_alignment
from kullback.diagnosis.boundaries import diagnose_boundaries
from kullback.diagnosis.causes import without_consequences
from kullback.diagnosis.clamps import diagnose_clamps
from kullback.diagnosis.column_faults import diagnose_columns
from kullback.diagnosis.copied import diagnose_copies
from kullback.diagnosis.displaced import diagnose_displaced
from kullback.diagnosis.drifting import diagnose_drift
from kullback.diagnosis.endings import diagnose_endings
from kullback.diagnosis.engines import diagnose_engines
from kullback.diagnosis.environment import diagnose_environment
from kullback.diagnosis.finding import Diagnosis
from kullback.diagnosis.first_step import diagnose_first_step
from kullback.diagnosis.in_sample import diagnose_in_sample
from kullback.diagnosis.limits import diagnose_limits
from kullback.diagnosis.misaligned import diagnose_misaligned
from kullback.diagnosis.normalization import diagnose_normalization
from kullback.diagnosis.openings import diagnose_openings
from kullback.diagnosis.precision import diagnose_precision
from kullback.diagnosis.processed import diagnose_processed
from kullback.diagnosis.recovered import recovered
from kullback.diagnosis.rejected import diagnose_rejected
from kullback.diagnosis.rescored import diagnose_rescored
from kullback.diagnosis.reshaped import diagnose_reshaped
from kullback.diagnosis.sampler import diagnose_sampler
from kullback.diagnosis.scaled import diagnose_scaled
from kullback.diagnosis.selection import diagnose_selection
from kullback.diagnosis.staleness import diagnose_staleness
from kullback.diagnosis.temperatures import diagnose_temperatures
from kullback.diagnosis.unscored import diagnose_unscored
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
    causes = recovered(summary).items()
    drew = frozenset(role for role, one in causes if one.code == "temperature-mismatch")
    found = (
        diagnose_columns(summary)
        + diagnose_normalization(summary)
        + diagnose_openings(summary)
        + diagnose_unscored(summary)
        + diagnose_reshaped(summary)
        + diagnose_scaled(summary)
        + diagnose_environment(summary)
        + diagnose_alignment(summary)
        + diagnose_boundaries(summary)
        + diagnose_displaced(summary)
        + diagnose_misaligned(summary)
        + diagnose_sampler(summary)
        + diagnose_temperatures(summary, drew)
        + diagnose_processed(summary)
        + diagnose_in_sample(summary)
        + diagnose_staleness(summary)
        + diagnose_precision(summary)
        + diagnose_rescored(summary)
        + diagnose_selection(summary)
        + diagnose_rejected(summary)
        + diagnose_clamps(summary)
        + diagnose_endings(summary)
    )
    told = diagnose_engines(summary, found) + diagnose_first_step(summary, found)
    told += diagnose_copies(summary) + diagnose_limits(summary) + diagnose_drift(summary)
    return without_consequences(found + told)
