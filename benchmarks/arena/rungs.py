"""What does better data buy? The rungs above sampled log-probs, where the truth is known.

    python benchmarks/arena/rungs.py [--seeds 1000] [--only FAMILY]

Some cells of cells.py are drawn anew with the 20 largest log-probs of both policies (each its own),
and with the exact KL at 5 % of the positions, chosen at random, or at all. The sums are kept in
results/arena/rungs.jsonl with the rounds of 100 that they are of, so that it goes on where it
stopped; results/arena/rungs.md is the table. About 20 minutes of CPU time for 1000 seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, World, cells, keys
from numpy.typing import NDArray
from recorded import DATA, Recorded
from score import KEPT, LEVELS, added, row

import kullback as kb
from kullback.columns import TopK
from kullback.estimation.estimate import Estimate, from_state
from kullback.estimation.question_state import QuestionState
from kullback.worlds.tables import head

RESULTS = Path(__file__).parents[2] / "results" / "arena"
ROUND, LISTED, SHARE = 100, 20, 0.05
METHODS = ("k1", "auto", "partial", "bound", "subset alone", "subset", "rao_blackwell")
CELLS = (
    "drift 0.05 n 4096",
    "drift 0.2 n 256",
    "drift 0.2 n 4096",
    "drift 0.2 n 65536",
    "drift 1.0 n 4096",
    "diffuse 0.03 3.0-12.0 n 256",
    "diffuse 0.03 3.0-12.0 n 4096",
    "diffuse 0.05 9.0-12.0 n 4096",
    "three-valued n 4096",
    "other side 0.01 6.0-15.0 n 4096",
    "other side 0.001 12.0-15.0 n 4096",
    "peaked 0.6 n 4096",
    "peaked 0.98 n 4096",
    "peaked holes n 256",
    "peaked holes n 4096",
    "prompts 32 sigma 1.2",
    "prompts 64 sigma 0.6",
    "smollm2 light prompts 64",
    "smollm2 noise prompts 64",
    "smollm2 strong prompts 64",
    "smollm2 strong prompts 256",
)
NOTES = """The same samples by what was logged of them. *k1* and *auto* have the log-probs of the
sampled tokens; *partial* and *bound* the {k} largest of either policy as well; *subset alone* and
*subset* the exact KL at {share:.0%} of the positions, the second with the bound at all of them;
*rao_blackwell* the exact KL at every position. Error and bias are relative to the KL, *width* is
that of the 95 % interval over that of k1's. *bound* is no estimate: its bias is what the tokens
outside the lists hold, and its coverage says so. The binomial error of a coverage of 0.95 is
{error:.3f}."""
HEAD = (
    "cell", "KL", "clusters", "method", "error / KL", "bias / KL", "coverage 95 %", "width / k1",
)  # fmt: skip


@cache
def world_of(name: str) -> tuple[Cell, World]:
    """A cell and its world."""
    (cell,) = (one for one in cells() if one.name == name)
    return cell, cell.build()


@cache
def lists(world: Any) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Of each role, its likeliest ids at each context and their log-probs."""
    return {role: head(table, LISTED) for role, table in world.log_probs.items()}


@cache
def heads_of(pair: str) -> tuple[NDArray[Any], ...]:
    """Of each draw of a real pair its rank, and at the 20 likeliest ids log p and log r."""
    with np.load(DATA.with_name("smollm2_heads.npz")) as held:
        return tuple(held[key] for key in ("rank", "log_p", f"{pair}/log_r"))


def logged(name: str, rng: np.random.Generator) -> tuple[kb.Columns, NDArray[np.float64]]:
    """A sample with heads, and the exact KL at each position."""
    cell, world = world_of(name)
    if isinstance(world, Recorded):
        return recorded(world, rng)
    draw = world.draw(rng, world.log_probs[world.sampler])
    place = draw.contexts * world.shape[1] + draw.tokens
    columns = kb.Columns(
        lengths=draw.lengths,
        mask=np.ones(len(place), dtype=np.bool_),
        log_probs={role: table.ravel()[place] for role, table in world.log_probs.items()},
        clusters=np.repeat(keys(world.prompts), world.sequences_per_prompt),
        cluster_kind="prompt",
        top_k={
            role: TopK(ids[draw.contexts], logs[draw.contexts])
            for role, (ids, logs) in lists(world).items()
        },
        tokens=draw.tokens,
    )
    return columns, world.kl(cell.question.p, cell.question.q)[draw.contexts]


def recorded(world: Recorded, rng: np.random.Generator) -> tuple[kb.Columns, NDArray[np.float64]]:
    """Prompts with replacement; the ids of the heads are counted from 0 at each prefix."""
    rank, log_p, log_r = heads_of(world.pair)
    chosen = [world.places[i] for i in rng.integers(len(world.places), size=world.prompts)]
    prefixes = np.concatenate([at for at, _ in chosen])
    which = rng.integers(rank.shape[1], size=len(prefixes))
    ids = np.tile(np.arange(log_p.shape[1]), (len(prefixes), 1))
    columns = kb.Columns(
        lengths=np.concatenate([cuts for _, cuts in chosen]),
        mask=np.ones(len(prefixes), dtype=np.bool_),
        log_probs={
            "rollout": np.zeros(len(prefixes)),
            "reference": world.data["log_r"][prefixes, which],
        },
        clusters=np.repeat(keys(world.prompts), [len(cuts) for _, cuts in chosen]),
        cluster_kind="prompt",
        top_k={
            "rollout": TopK(ids, log_p[prefixes]),
            "reference": TopK(ids, (log_p + log_r)[prefixes]),
        },
        tokens=rank[prefixes, which].astype(np.int64),
    )
    return columns, world.data["kl"][prefixes]


def scored(name: str, seed: int) -> dict[str, dict[str, float]]:
    """By method, what one sample adds to each sum."""
    cell, world = world_of(name)
    rng = np.random.default_rng([cell.seed, seed, LISTED])
    columns, exact = logged(name, rng)
    column, truth = f"KL({cell.question.p}||{cell.question.q})", world.exact(cell.question)
    some = np.where(rng.random(len(exact)) < SHARE, exact, np.nan)
    listed = QuestionState.of(replace(columns, exact={column: some}), cell.question)
    alone = QuestionState.of(replace(columns, exact={column: some}, top_k={}), cell.question)
    whole = QuestionState.of(replace(columns, exact={column: exact}, top_k={}), cell.question)
    found = {}
    for method in METHODS:
        state = {"subset alone": alone, "rao_blackwell": whole}.get(method, listed)
        by = method.partition(" ")[0]
        found[method] = kept(*(from_state(state, by, level) for level in LEVELS), truth)
    return found


def kept(wide: Estimate, narrow: Estimate, truth: float) -> dict[str, float]:
    """What one estimate adds to each sum of ``KEPT``."""
    if wide.mean != wide.mean or wide.low != wide.low:
        return dict.fromkeys(KEPT, 0.0) | {"seeds": 1.0, "none": 1.0}
    off = wide.mean - truth
    return dict.fromkeys(KEPT, 0.0) | {
        "seeds": 1.0,
        "error": off,
        "square": off * off,
        "below": float(truth < wide.low),
        "above": float(truth > wide.high),
        "below_90": float(truth < narrow.low),
        "above_90": float(truth > narrow.high),
        "width": wide.high - wide.low,
    }


def known(name: str) -> dict[str, Any]:
    """What a cell is, before anything is drawn."""
    cell, world = world_of(name)
    return {
        "name": name,
        "family": cell.family,
        "truth": world.exact(cell.question),
        "clusters": world.prompts if not hasattr(world, "sequences") else world.sequences,
        "exact": {"k1": 1.0},
        "rounds": [],
        "sums": {},
    }


def left(found: dict[str, dict[str, Any]], seeds: int) -> Iterator[tuple[str, int]]:
    """The rounds that are not done, one of every cell before the next of any."""
    for number in range(-(-seeds // ROUND)):
        for name, one in found.items():
            if number not in one["rounds"]:
                yield name, number


def save(found: dict[str, dict[str, Any]]) -> None:
    """All cells, a line each."""
    draft = RESULTS / ".rungs.jsonl.tmp"
    draft.write_text("".join(json.dumps(one, sort_keys=True) + "\n" for one in found.values()))
    draft.replace(RESULTS / "rungs.jsonl")


def lines(found: Iterable[dict[str, Any]]) -> str:
    """The table, a line for each method of each cell."""
    rows = [HEAD, ("---",) * len(HEAD)]
    for one in found:
        width = row(one, "k1")["width"]
        for method in METHODS:
            said = row(one, method)
            rows.append(
                (f"{one['family']}: {one['name']}", f"{one['truth']:.3g}", str(one["clusters"]),
                 method, f"{said['rmse']:.3g}", f"{said['bias']:+.2g}",
                 f"{said['coverage']:.3f}", f"{said['width'] / width:.3g}")
            )  # fmt: skip
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def write_table(found: dict[str, dict[str, Any]], seeds: int) -> None:
    """Write the page."""
    least = min(int(one["sums"]["k1"]["seeds"]) for one in found.values())
    notes = NOTES.format(k=LISTED, share=SHARE, error=(0.95 * 0.05 / least) ** 0.5)
    parts = [
        "# What better data buys",
        f"`python benchmarks/arena/rungs.py --seeds {seeds}` (kullback {kb.__version__}); at least "
        f"{least} seeds in each\nof {len(found)} cells.",
        notes,
        lines(found.values()),
    ]
    (RESULTS / "rungs.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    """Draw what is missing, save as it comes, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--only", default="", metavar="FAMILY")
    asked = parser.parse_args()
    path = RESULTS / "rungs.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before = {one["name"]: one for one in map(json.loads, text.splitlines())}
    found = {name: before.get(name) or known(name) for name in CELLS}
    chosen = {name: one for name, one in found.items() if asked.only in one["family"]}
    for name, number in left(chosen, asked.seeds):
        sums = found[name]["sums"]
        for seed in range(number * ROUND, (number + 1) * ROUND):
            sums = added(sums, scored(name, seed))
        found[name] |= {"rounds": sorted([*found[name]["rounds"], number]), "sums": sums}
        save(found)
        print(name, found[name]["rounds"], flush=True)
    write_table(found, asked.seeds)


if __name__ == "__main__":
    main()
