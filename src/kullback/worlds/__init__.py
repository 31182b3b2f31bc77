"""Small worlds whose answers are exact, and the faults one can put into them.

`Tabular` (every sequence enumerated), `Mixture` (like a language model's tokens) and `Gaussian`
each have roles, a sampler, `exact(question)` and `sample(rng)`. `CLEAN_WORLDS` holds honest ones,
`FAULTS` what goes wrong between a sampler and its log. `small_steps` is a run: a world for each
step of a policy that moves. `honest_log` is what a trainer logs of its steps, and `LOG_FAULTS` what
goes wrong there.

Example:
    >>> import numpy as np
    >>> from kullback.question import Question
    >>> world = CLEAN_WORLDS["shifted_normals"](prompts=8)
    >>> world.exact(Question("rollout", "reference"))
    0.125
    >>> columns = world.sample(np.random.default_rng(0))
    >>> len(columns.lengths), len(columns)
    (64, 1280)
"""

from __future__ import annotations

from kullback.worlds.catalogue import CLEAN_WORLDS, World
from kullback.worlds.fault import Fault
from kullback.worlds.faults import FAULTS
from kullback.worlds.gaussian import Gaussian
from kullback.worlds.mixture import Mixture
from kullback.worlds.runs import logged_by_step, small_steps
from kullback.worlds.step_logs import LOG_FAULTS, LogFault, honest_log
from kullback.worlds.tabular import Tabular, three_tokens

__all__ = [
    "CLEAN_WORLDS",
    "FAULTS",
    "LOG_FAULTS",
    "Fault",
    "Gaussian",
    "LogFault",
    "Mixture",
    "Tabular",
    "World",
    "honest_log",
    "logged_by_step",
    "small_steps",
    "three_tokens",
]
