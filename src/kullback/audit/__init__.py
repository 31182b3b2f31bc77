"""What does this function really compute, and what does training with it descend?

`probe` runs anybody's KL term, in torch or JAX, on small worlds where every answer is exact. It
names the term's value and its expected gradient, and says what to do if they are not what was
meant. It shares no code with the losses of this package.

`identify` is for a number instead of a function: which formula, policies, weight, clamp and mean
give what was logged of these tokens?

Example:
    >>> def penalty(log_prob, ref_log_prob):
    ...     return log_prob - ref_log_prob
    >>> found = probe(penalty, library="numpy", credit="reward_to_go")
    >>> print(found.advice)
    Nothing: subtract it from the reward, and credit each token with later costs.
"""

from __future__ import annotations

from kullback.audit.candidates import Candidate
from kullback.audit.gradients import Gradient
from kullback.audit.identifying import Identification, Match, identify
from kullback.audit.probing import Probe, probe
from kullback.audit.value import Value

__all__ = [
    "Candidate",
    "Gradient",
    "Identification",
    "Match",
    "Probe",
    "Value",
    "identify",
    "probe",
]
