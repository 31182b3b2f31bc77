"""Which number is this? What trainers log under which name, as data.

`find` looks a name up, `METRICS` holds all entries, `FRAMEWORKS` who logs them. An entry says of
which two policies a number is, who sampled, the formula, the mean, the sign, the clamp, what
training on it descends, what is wrong with it, where it is made, and how that is known.

Example:
    >>> update, *others = find("approx_kl")
    >>> update.framework, update.sign, update.faults[0], len(others)
    ('areal', -1, 'It is minus the KL: below 0 on average.', 2)
    >>> loss, *_ = find("actor/kl_loss", "verl")
    >>> str(loss.question), loss.method, loss.gradient
    ('KL(current||reference) ~ old', 'k3', 'KL(reference||current), token by token')
    >>> loss.under({"actor.kl_loss_type": "k1"})[0].gradient
    'zero'
"""

from __future__ import annotations

from kullback.dictionary.find import FRAMEWORKS, METRICS, find
from kullback.dictionary.metric import Choice, Metric

__all__ = ["FRAMEWORKS", "METRICS", "Choice", "Metric", "find"]
