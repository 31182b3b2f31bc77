"""What a term's value is: the form, how it is averaged, its clamps, and what its mean is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from kullback.audit.aggregating import Aggregation
from kullback.audit.calling import Caller
from kullback.audit.catalogue import Reading, all_sequences, recognized, value_table
from kullback.audit.clamping import Clamp, clamps, departures
from kullback.audit.enumerating import Calls
from kullback.audit.forms import Form
from kullback.audit.scenes import APART, Array, sequence, single, staged, together
from kullback.question import Question
from kullback.worlds import Tabular


@dataclass(frozen=True, slots=True)
class Value:
    """What a term computes.

    Attributes:
        form: The formula; None if it is none that is known.
        factor: By what it is multiplied.
        second: A form that is added, with its factor.
        averaged: Whether it is divided by the length of the sequence.
        aggregation: How it comes from tokens to what is returned.
        clamps: Where it, its log-ratio or its weight is held.
        departures: Log-ratios of q/p at which it is not its formula, and no clamp says why.
        means: By scenario, the KL that its mean is and by what that is multiplied, on the scale of
            a sum over tokens; None where it is none.
        at_identity: What it gives for one token where all policies agree.
        by_vocabulary: Whether it is divided by the size of the vocabulary.
        depends_on: The policies that it depends on.
    """

    form: Form | None
    factor: float | None
    second: tuple[Form, float] | None
    averaged: bool
    aggregation: Aggregation
    clamps: tuple[Clamp, ...]
    departures: tuple[float, ...]
    means: Mapping[str, tuple[str, float] | None]
    at_identity: float
    by_vocabulary: bool
    depends_on: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """As lists, dictionaries, strings and numbers."""
        return {
            "form": _form_data(self.form),
            "factor": self.factor,
            "second": self.second
            and {"form": _form_data(self.second[0]), "factor": self.second[1]},
            "averaged": self.averaged,
            "level": self.aggregation.level,
            "leaks": self.aggregation.leaks,
            "clamps": [one.as_data() for one in self.clamps],
            "departures": list(self.departures),
            "means": {
                scenario: found and {"of": found[0], "factor": found[1]}
                for scenario, found in self.means.items()
            },
            "at_identity": self.at_identity,
            "by_vocabulary": self.by_vocabulary,
            "depends_on": list(self.depends_on),
        }


def _form_data(form: Form | None) -> dict[str, Any] | None:
    if form is None:
        return None
    weight = form.weight
    said = {name: getattr(form, name) for name in ("method", "p", "q", "unit", "scale", "credit")}
    return said | {
        "weight": weight and {name: getattr(weight, name) for name in weight.__dataclass_fields__}
    }


def reading_data(found: Reading) -> dict[str, Any]:
    """A form that was recognized, as dictionaries, strings and numbers."""
    form, factor = found.second or (None, None)
    return {
        "form": _form_data(found.form),
        "factor": found.factor,
        "averaged": found.averaged,
        "second": form and {"form": _form_data(form), "factor": factor},
    }


def reading(caller: Caller, apart: tuple[Calls, Calls]) -> Reading | None:
    """The form of what it gives, with all policies apart."""
    by_token = all(one.values.ndim == 2 for one in apart)
    batch = all_sequences()
    lengths = batch.mask.sum(axis=1)
    logits = any(key.endswith("_logits") for key in caller.given)
    table = value_table(caller.roles, logits=logits, by_token=by_token)
    seen = np.concatenate([one.values for one in apart])
    if by_token:
        seen, lengths = seen[batch.mask], np.repeat(lengths, lengths)
    if not np.isfinite(seen).all() or not np.any(seen):
        return None
    return recognized(seen, table, lengths)


def value(
    caller: Caller,
    apart: tuple[Calls, Calls],
    found: Reading | None,
    aggregation: Aggregation,
    scenarios: Mapping[str, tuple[Calls, Calls]],
) -> Value:
    """All that is said of the value.

    Args:
        caller: The function.
        apart: What it gives where all policies are apart, in the two worlds.
        found: The form of that.
        aggregation: How it averages.
        scenarios: What it gives in each scenario, in the two worlds; of a whole draw, where a
            sequence's part depends on the others of its batch.
    """
    form, factor = (found.form, found.factor) if found else (None, None)
    held: tuple[Clamp, ...] = ()
    odd: tuple[float, ...] = ()
    if found and found.second is None:
        held = clamps(caller, found.form, found.factor)
        odd = departures(caller, found.form, found.factor, held)
    averaged = found.averaged if found else aggregation.within == "mean"
    means = {name: _mean(both, averaged, aggregation) for name, both in scenarios.items()}
    return Value(
        form,
        factor,
        found.second if found else None,
        averaged,
        aggregation,
        held,
        odd,
        means,
        at_identity(caller),
        by_vocabulary(caller, form),
        depends_on(caller, apart[0]),
    )


def _mean(
    both: tuple[Calls, Calls], averaged: bool, aggregation: Aggregation
) -> tuple[str, float] | None:
    if aggregation.adds:
        return mean_of(both, averaged=averaged, random=not averaged or counts_tokens(aggregation))
    return mean_of(both, averaged=True, random=True) or mean_of(both, averaged=False, random=True)


def counts_tokens(aggregation: Aggregation) -> bool:
    """Whether, over many sequences, each token counts alike."""
    return aggregation.batch in ("tokens", "padded")


def mean_of(both: tuple[Calls, Calls], *, averaged: bool, random: bool) -> tuple[str, float] | None:
    """The KL that the mean is in both worlds, with one factor.

    Args:
        both: What the term gives in the two worlds, whose sampler is that of the scenario.
        averaged: Whether it is divided by the length of the sequence.
        random: Whether lengths can be taken back where they are random.
    """
    kls: list[dict[str, float]] = []
    seen = []
    for calls in both:
        world = calls.world
        take_back = averaged and (random or world.eos is None)
        totals = calls.totals * world.lengths if take_back else calls.totals
        if not np.isfinite(totals).all():
            return None
        seen.append(world.mean(totals, by=world.sampler))
        kls.append(_kls(world))
    if max(map(abs, seen)) < 1e-12:
        return "zero", 0.0
    for name in kls[0]:
        ratios = [mean / kl[name] for mean, kl in zip(seen, kls, strict=True)]
        if np.isclose(*ratios, rtol=1e-9) or np.isclose(*ratios, rtol=1e-6):
            return name, float(ratios[1])
    return None


def _kls(world: Tabular) -> dict[str, float]:
    """Per sequence: of the sequence policies, and of the tokens at the sampler's prefixes."""
    apart: dict[str, Array] = {}
    for role, table in world.log_probs.items():
        if not any(table is one for one in apart.values()):
            apart[role] = table
    found = {}
    order = [role for role in ("current", "reference", "old", "rollout") if role in apart]
    for p, q in permutations(order, 2):
        question = Question(p, q, sampler=world.sampler, prefixes=p, level="sequence_sum")
        found[f"KL({p}||{q})"] = world.exact(question)
        if p != world.sampler:
            at = Question(p, q, sampler=world.sampler, level="sequence_sum")
            found[f"KL({p}||{q}) at the sampler's prefixes"] = world.exact(at)
    return found


def depends_on(caller: Caller, apart: Calls) -> tuple[str, ...]:
    """The policies that change its value or its gradient when they change."""
    batch = together([sequence(apart.world, row) for row in (5, 15, 22)])
    before = caller(batch)
    found = []
    for role in caller.roles:
        turned = np.roll(batch.log_probs[role], 1, axis=-1)
        after = caller(replace(batch, log_probs={**batch.log_probs, role: turned}))
        same = np.allclose(before.values, after.values, equal_nan=True) and all(
            np.allclose(one, after.gradient.get(key, 0.0), equal_nan=True)
            for key, one in before.gradient.items()
        )
        if not same:
            found.append(role)
    return tuple(found)


def by_vocabulary(caller: Caller, form: Form | None) -> bool:
    """Whether it halves where each token of the vocabulary is split into two that are alike."""
    if form is None or form.method not in ("KL", "JS", "TV"):
        return False
    one = sequence(staged(APART.name, ends=False), 5)
    tables = {
        role: np.repeat(table, 2, axis=-1) - np.log(2) for role, table in one.log_probs.items()
    }
    split = caller(replace(one, log_probs=tables, tokens=2 * one.tokens)).values
    return bool(np.isclose(2 * split.sum(), caller(one).values.sum(), rtol=1e-6))


def at_identity(caller: Caller) -> float:
    """What it gives for one token that all policies give the same probability."""
    roles = ("current", "reference", "old", "rollout")
    return float(caller(single(dict.fromkeys(roles, -0.7))).values.sum())
