"""What float32 makes of a term: digits that cancel where policies agree, and overflows."""

from __future__ import annotations

import numpy as np

from kullback.audit.calling import Caller
from kullback.audit.clamping import Tail, has_tails
from kullback.audit.forms import Form

_NEAR = 1e-3  # a log-ratio of neighboring policies, nats
_FAR = 90.0  # one whose exponential float32 does not have
_MUCH = 0.01  # relative


def of_float32(caller: Caller, form: Form, factor: float) -> list[str]:
    """What to warn of, for a term of sampled tokens that was recognized.

    Args:
        caller: The function.
        form: Its formula.
        factor: By what that is multiplied.
    """
    if not has_tails(form, caller):
        return []
    tail, said = Tail(caller, form, factor), []
    meant = tail.meant(_NEAR)
    seen = float(tail.outcome(_NEAR, dtype=np.float32).values.sum())
    if abs(seen - meant) > _MUCH * abs(meant):
        off = abs(seen / meant - 1)
        said.append(
            f"In float32 it is off by {off:.0%} where the log-ratio is {_NEAR:g}: its terms "
            "cancel. k3 is expm1(x) - x."
        )
    for side, where in ((1.0, "above e^88"), (-1.0, "below e^-88")):
        far = tail.outcome(side * _FAR, dtype=np.float32)
        ratio = f"{form.q}/{form.p} is {where}"
        if not np.isfinite(far.values).all():
            said.append(f"In float32 its value is not finite where {ratio}.")
        elif not all(np.isfinite(one).all() for one in far.gradient.values()):
            said.append(
                f"In float32 its gradient is not finite where {ratio}: clamp before the "
                "exponential, not after."
            )
    return said
