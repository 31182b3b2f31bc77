"""How often each code accused clean reports and found faults: results/accusations.jsonl, counted.

A test holds these figures equal to that file.
"""

from __future__ import annotations

CLEAN_REPORTS = 23_400
FALSE_ALARMS = {"sampler-mismatch": 15}
FAULTY_REPORTS = 150  # of each fault
LEAST = 5  # reports of a fault below which a finding is one of chance

# By code and fault, the faulty reports in which the code was found.
FOUND = {
    "negative-beyond-chance": {"wrong-sampler": 150, "stale-sampler": 104, "in-sample": 50},
    "sampler-mismatch": {"wrong-sampler": 98, "stale-sampler": 72, "in-sample": 24},
    "in-sample": {"in-sample": 50},
    "tokens-do-not-match-text": {"retokenized": 150},
    "shifted-by-one": {"shifted-by-one": 150},
    "misaligned": {"misaligned": 150},
    "not-log-probs": {"probabilities": 150, "unnormalized": 150},
    "not-normalized": {"unnormalized": 150},
    "sentinel-inside-mask": {"sentinel": 150},
    "missing-values": {"nan": 150},
    "mask-covers-padding": {"padding": 150},
    "mask-covers-prompt": {"prompt": 150, "prompt-scored": 150},
    "mask-covers-environment": {"environment": 150},
    "packed-boundary": {"packed": 150},
    "infinite-ratio": {"truncated-reference": 150},
    "temperature-mismatch": {"temperature": 150, "trainer-temperature": 50},
    "sampler-truncated": {"top-k": 150, "top-p": 150},
    "unit-or-scale": {"bits": 146},
}

# The same of step logs: results/step_logs.json, counted.
HONEST_LOGS = 1500
LOG_ALARMS: dict[str, int] = {}
FAULTY_LOGS = 50  # with each fault
FOUND_IN_LOGS = {
    "sign-impossible": {"sign": 50},
    "unit-or-scale": {"doubled": 50, "micro-batches": 50, "sequences": 50},
}
