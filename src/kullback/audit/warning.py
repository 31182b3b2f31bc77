"""What else is wrong with a term: padding, infinities, clamps, batches."""

from __future__ import annotations

from kullback.audit.aggregating import Aggregation, breaks
from kullback.audit.calling import Caller
from kullback.audit.rounding import of_float32
from kullback.audit.value import Value

_BATCHES = {
    "sum": "It grows with the number of sequences in a batch.",
    "padded": "It shrinks with the padding of a batch.",
}


def warnings(caller: Caller, value: Value, averages: Aggregation) -> list[str]:
    """The sentences; none if all is well."""
    said = []
    if caller.untraced:
        said.append(f"JAX could not trace it ({caller.untraced}), so no gradient flows from it.")
    idle = [role for role in caller.roles if role not in value.depends_on]
    if idle:
        said.append(f"It does not depend on {' or '.join(idle)}, which it is given.")
    if averages.takes_mask:
        said += _of_mask(caller, averages)
    if averages.returns == "scalar" and averages.batch in _BATCHES:
        said.append(_BATCHES[averages.batch])
    if not averages.adds:
        said.append(
            f"Its {'value' if averages.batch == 'other' else 'gradient'} for a batch is not made "
            "of those for its sequences. Told is the gradient for a batch that holds every "
            "sequence as often as it is drawn."
        )
    if averages.level == "sequence_mean" and averages.takes_mask:
        said.append(
            "A mean of means weighs a token by the length of its sequence, which its own outcome "
            "decides: where lengths are random, terms of sampled tokens are biased by that."
        )
    said += _of_values(value)
    if value.form and value.factor and value.second is None:
        said += of_float32(caller, value.form, value.factor)
    return said


def _of_mask(caller: Caller, averages: Aggregation) -> list[str]:
    if averages.leaks:
        return ["What stands at masked positions changes it."]
    broken = breaks(caller)
    if broken in ("value", "gradient"):
        return [
            f"Its {broken} is not finite where a masked position holds -inf: select with the mask "
            "before the arithmetic, not by a product after it."
        ]
    return [f"Where masked positions hold -inf, {broken}."] if broken else []


def _of_values(value: Value) -> list[str]:
    said = []
    if any(not one.gradient for one in value.clamps):
        said.append("Beyond its clamp it has no gradient: the worst tokens are not pulled back.")
    if value.departures:
        places = ", ".join(f"{x:g}" for x in value.departures)
        said.append(f"It is not its formula where the log-ratio is {places}.")
    form = value.form
    is_of_pair = form is None or (form.p != form.q and form.method not in ("r", "cross-entropy"))
    if abs(value.at_identity) > 1e-9 and is_of_pair:
        said.append(f"Where all policies agree it is {value.at_identity:.4g} and not 0.")
    return said
