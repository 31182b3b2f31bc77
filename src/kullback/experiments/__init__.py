"""The documents' experiments: each a folder that asks the public names of kullback only.

An experiment is a function of a seed, takes seconds, and returns an ``Experiment``: its question,
the document's claim, what was found, every number that the document prints beside ours, and the
limits. The README.md of a folder is made of that by ``make experiments``.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kullback.reporting.experiment import Experiment

# What each asks; the module of the same name is loaded when it is run.
EXPERIMENTS = {
    "gaussian": "Two normal policies a shift apart: how noisy are k1, k2 and k3?",
    "four-faces": "One formula, two directions: which candidate wins, and is a KL below 0 a bug?",
    "holes": "Two distributions with one KL: why is k3 good for one and useless for the other?",
    "tangent": "KL as a gap, as a quadratic, as a limit on steps: how far does each carry?",
    "sampling": "The sampler was filtered: whose KL do k1 and k3 estimate, and what repairs them?",
    "gradients": "A KL term is differentiated or paid as a reward: where does it drive the policy?",
    "sequences": "A KL of whole sequences from their tokens: what does length do to each estimate?",
    "frontier": "Reward against KL: which way does a policy go, and where does a noisy KL stop it?",
    "epsilon": "A KL is infinite and ε makes it finite: whose number is it then?",
    "occupancy": "The KL per action is small and nothing is clipped: has the policy moved?",
    "real-lm": "Pairs of a real language model: smooth or holed, and is k1 the one to use?",
    "controller": "A noisy KL sets its own coefficient: how much of the unrest is the noise?",
}


def reproduced(name: str, seed: int = 0) -> Experiment:
    """Run an experiment.

    Args:
        name: A key of ``EXPERIMENTS``.
        seed: Of what it draws; the same seed, the same numbers.

    Raises:
        ValueError: No experiment has that name.
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EXPERIMENTS)}"
        raise ValueError(f"no experiment is called {name!r}: {hint}")
    return import_module(f"kullback.experiments.{name.replace('-', '_')}").run(seed)
