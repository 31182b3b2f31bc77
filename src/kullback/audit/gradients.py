"""Which gradient it is: an expected gradient, named if it is a known one, and measured if not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kullback.audit.catalogue import EXACTLY, ROUGHLY
from kullback.audit.scenes import SCENARIOS, Array, staged
from kullback.audit.targets import SHORTNESS, WHOLE, Target, expected, targets

NOTHING = Target("zero", WHOLE)


@dataclass(frozen=True, slots=True)
class Gradient:
    """The expected gradient of a term, in one scenario, over sequences of one kind.

    Attributes:
        scenario: Who sampled: ``on-policy``, ``stale`` or ``engine``.
        use: How the term is used: ``loss`` (differentiated), or in the reward with the credit
            ``reward_to_go``, ``full_return`` or ``immediate``.
        lengths: ``fixed``: all sequences have one length; ``random``: a token can end one.
        of: What it is the gradient of, as ``KL(reference||current)``, ``zero`` or a difference;
            None if it is that of nothing known.
        part: ``whole``, or ``token``: the tokens' own gradients, their prefixes held fixed; of a
            difference also ``mixed``: the first side whole, the second token by token.
        prefixes: Whose prefixes those are.
        factor: By what that gradient is multiplied.
        nearest: The known gradient that it is most like, of those of divergences.
        cosine: The cosine of the angle between the two.
        relative_error: The distance between them, relative to the nearest's size.
        distances: The last two for each main candidate, by its name.
    """

    scenario: str
    use: str
    lengths: str
    of: str | None
    part: str | None
    prefixes: str | None
    factor: float | None
    nearest: str
    cosine: float
    relative_error: float
    distances: dict[str, tuple[float, float]]

    def is_of(self, divergence: str) -> bool:
        """Whether it is that of this divergence, in sum or per token, times anything."""
        return self.of is not None and self.of.partition(" per token")[0] == divergence

    def as_data(self) -> dict[str, Any]:
        """As lists, dictionaries, strings and numbers."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["distances"] = {
            name: {"cosine": cosine, "relative_error": error}
            for name, (cosine, error) in self.distances.items()
        }
        return data


def gradients(
    fixed: Array,
    random: Array,
    *,
    scenario: str,
    use: str,
    roles: Collection[str],
    other: str,
    drawn: bool = False,
) -> tuple[Gradient, Gradient]:
    """Name the mean of what each sequence gives, where lengths are fixed and where random.

    Args:
        fixed: By the logits at each position of each sequence of the scenario's world of one
            length, [sequences, tokens, alphabet], on the scale of a sum over tokens.
        random: The same of the world whose sequences can end.
        scenario: A name of ``SCENARIOS``.
        use: How the term is used.
        roles: What the function is given.
        other: The policy that current is compared with; distances are to the KLs with it.
        drawn: Whether the worlds are those whose batches hold all that is drawn.
    """
    one, two = (
        _gradient(derivatives, scenario, use, ends=ends, roles=roles, other=other, drawn=drawn)
        for derivatives, ends in ((fixed, False), (random, True))
    )
    # What holds where lengths are random holds where they are not; else it is the world's doing.
    if not _agree(one, two):
        two = replace(two, of=None, part=None, prefixes=None, factor=None)
    return one, two


def _agree(fixed: Gradient, random: Gradient) -> bool:
    """Whether a name for random lengths is that for one length, and its factor."""
    if random.of is None or fixed.of is None:
        return random.of is None
    if random.of == SHORTNESS:  # which does not move where all have one length
        return fixed.of == "zero"
    if random.of != fixed.of:  # per token of a random length there is more than one mean
        return random.is_of(fixed.of)
    return abs((random.factor or 0.0) - (fixed.factor or 0.0)) < 1e-6 * max(
        1.0, abs(random.factor or 0.0)
    )


def _gradient(
    derivatives: Array,
    scenario: str,
    use: str,
    *,
    ends: bool,
    roles: Collection[str],
    other: str,
    drawn: bool,
) -> Gradient:
    world = staged(scenario, ends=ends, drawn=drawn)
    seen = expected(world, derivatives, by=world.sampler).ravel()
    known = {
        _called(name, scenario, roles): table.ravel()
        for name, table in targets(scenario, ends=ends, drawn=drawn).items()
    }
    sizes = np.sqrt((derivatives**2).sum(axis=(1, 2)))
    found, factor = _named(seen, known, world.mean(sizes, by=world.sampler))
    if found is NOTHING:  # what rounding left has no direction
        seen = np.zeros_like(seen)
    ahead, back = f"KL(current||{other})", f"KL({other}||current)"
    main = [name for name in known if name.of in (ahead, back, f"{ahead} - {back}")]
    distances = {
        str(name): (_cosine(seen, known[name]), _error(seen, known[name])) for name in main or known
    }
    nearest = max(distances, key=lambda name: distances[name][0])
    return Gradient(
        scenario,
        use,
        "random" if ends else "fixed",
        found.of if found else None,
        found.part if found else None,
        found.prefixes if found else None,
        factor,
        nearest,
        *distances[nearest],
        distances,
    )


def _called(name: Target, scenario: str, roles: Collection[str]) -> Target:
    """The sampler by the name that the function knows: where it is stale, old is rollout too."""
    if SCENARIOS[scenario].same.get("rollout") != "old" or "old" in roles or "rollout" not in roles:
        return name
    prefixes = "rollout" if name.prefixes == "old" else name.prefixes
    return Target(name.of.replace("old", "rollout"), name.part, prefixes)


def _named(
    seen: Array, known: dict[Target, Array], size: float
) -> tuple[Target | None, float | None]:
    for error in (EXACTLY, ROUGHLY):
        if np.linalg.norm(seen) <= error * size:
            return NOTHING, 0.0
        for name, table in known.items():
            if not np.any(table):
                continue
            factor = float(seen @ table / (table @ table))
            if np.linalg.norm(seen - factor * table) < error * np.linalg.norm(seen):
                return name, factor
    return None, None


def _cosine(seen: Array, table: Array) -> float:
    sizes = float(np.linalg.norm(seen) * np.linalg.norm(table))
    return float(seen @ table) / sizes if sizes > 1e-30 else 0.0


def _error(seen: Array, table: Array) -> float:
    size = float(np.linalg.norm(table))
    return float(np.linalg.norm(seen - table)) / size if size else float("inf")
