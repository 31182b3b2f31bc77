"""What each injected fault is told as, and whether anybody is accused where nothing is wrong."""

from __future__ import annotations

import zlib
from collections import Counter
from functools import cache
from functools import partial as bound
from typing import Any

import numpy as np

from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import CODES
from kullback.estimation.summary import summarize
from kullback.selftest.line import Line, attempted
from kullback.worlds.catalogue import CLEAN_WORLDS
from kullback.worlds.fault import Fault
from kullback.worlds.faults import FAULTS
from kullback.worlds.mixture import Mixture

WORLDS = ("smooth", "holes_in_policy", "training_loop")
PROMPTS = 16
SEEDS = 2
CLEAN = {16: 6, 64: 1}  # prompts to reports of each clean world
WITH_HEADS = 1  # more reports of each, of the fewest prompts, with the 20 largest log-probs
STANDS_IN, WRONG = "*", "!"  # behind a code: it may stand for the fault's own, or it is of another
CLEAN_LINE = "accusations"
LEVEL = 0.01  # at most so many reports on clean data accuse anybody


def detectors() -> tuple[Line, ...]:
    """A line for each fault: the codes by which it was told."""
    return tuple(attempted(name, bound(_line, name, fault)) for name, fault in FAULTS.items())


def clean_worlds() -> tuple[Line, ...]:
    """One line: how many reports on honest worlds accuse anybody."""
    return (attempted(CLEAN_LINE, _clean),)


def _line(name: str, fault: Fault) -> Line:
    told = {world: _told(world, fault) for world in WORLDS}
    reports = [codes for by_seed in told.values() for codes in by_seed]
    counts = Counter(code for codes in reports for code in codes)
    seen = [any(map(fault.names, by_seed)) for by_seed in told.values()]
    found = sum(map(fault.names, reports))
    strangers = [c for c in counts if CODES[c].accuses and c not in fault.codes]
    right = (all(seen) if fault.everywhere else any(seen)) and not strangers
    marks = {fault.code: ""} | dict.fromkeys(fault.also, STANDS_IN)
    marks |= dict.fromkeys(strangers, WRONG)
    listed = [f"{code}{mark} {counts[code]}" for code, mark in marks.items() if counts[code]]
    verdict, says = "passed" if right else "failed", f"{found} of {len(reports)}"
    if not fault.names(CODES):
        verdict, says = "not-reached", "no detector claims to see it"
    numbers = {
        "reports": len(reports),
        "found": found,
        "codes": list(fault.codes),
        "told": {code: counts[code] for code in CODES},
    }
    if listed:
        says += f": {', '.join(listed)}"
    return Line(name, verdict, says, numbers)


def _told(name: str, fault: Fault) -> list[set[str]]:
    """The codes told of each report on one world with the fault in it."""
    world = _world(name)
    drawn = (fault.inject(world, np.random.default_rng(seed)) for seed in range(SEEDS))
    return [{one.code for one in diagnose(summarize([columns])).findings} for columns in drawn]


@cache
def _world(name: str) -> Mixture:
    world = CLEAN_WORLDS[name](PROMPTS)
    assert isinstance(world, Mixture)
    return world


def _clean() -> Line:
    """The reports that accuse; more than the limit come by chance in one of a thousand runs."""
    from scipy.special import bdtr

    accused, reports = [], 0
    for name, build in CLEAN_WORLDS.items():
        for prompts, top_k, seeds in _ways(name):
            world = build(prompts)
            for seed in range(seeds):
                rng = np.random.default_rng([zlib.crc32(name.encode()), prompts, top_k, seed])
                heads: dict[str, Any] = {"top_k": top_k} if top_k else {}
                columns = world.sample(rng, **heads)
                codes = [f.code for f in diagnose(summarize([columns])).findings if f.accuses]
                reports += 1
                if codes:
                    accused.append(f"{name} with {prompts} prompts: {', '.join(set(codes))}")
    allowed = next(k for k in range(reports) if bdtr(k, reports, LEVEL) > 0.999)
    verdict = "passed" if len(accused) <= allowed else "failed"
    says = f"{len(accused)} of {reports} reports on {len(CLEAN_WORLDS)} worlds accuse anybody, "
    says += f"{allowed} may at {LEVEL:.0%}"
    says += "".join(f"; {one}" for one in accused)
    numbers = {"reports": reports, "accused": len(accused), "allowed": allowed}
    return Line(CLEAN_LINE, verdict, says, numbers)


def _ways(name: str) -> list[tuple[int, int, int]]:
    """Prompts, logged heads and reports."""
    ways = [(prompts, 0, seeds) for prompts, seeds in CLEAN.items()]
    if isinstance(CLEAN_WORLDS[name](1), Mixture):
        ways.append((min(CLEAN), 20, WITH_HEADS))
    return ways
