"""How often is the adviser right where the truth is known, and how often can it not tell?

    python benchmarks/arena/advice.py [--seeds 200]

Each cell of cells.py of at most 8192 tokens is drawn anew; what the evidence says of k1 and k3 is
held against their exact errors. Then with the exact KL at every position, in worlds that know it.
The table is results/arena/advice.md; about ten minutes of CPU time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from cells import Cell, World, cells, drawn, keys
from exact import error
from rich.console import Console
from rich.progress import track

import kullback as kb
from kullback.estimation.question_state import QuestionState
from kullback.estimation.shape_evidence import shape_evidence
from kullback.worlds.mixture import Mixture

RESULTS = Path(__file__).parents[2] / "results" / "arena"
MOST, FEWEST = 8192, 1000
NOTE = """# Is the adviser right?

`python benchmarks/arena/advice.py --seeds {seeds}`; {seeds} seeds in each of {cells} cells of at
most 8192 tokens. *Better* is the one of k1 and k3 with the smaller exact error; *right* says so
(`holes` for k1, `smooth` for k3), *wrong* says the other. From sampled tokens alone it never says
`smooth`. *With exact* has the exact KL at every position, in cells with a thousand of them. Where
the reference nearly forbids what p rarely draws, k1 and k3 err alike, and are both too low where
none was drawn: there *wrong* is a k3 rightly called too low.

"""


def with_exact(world: Mixture, question: kb.Question, rng: np.random.Generator) -> kb.Columns:
    """A sample with the exact KL at its positions."""
    draw = world.draw(rng, world.log_probs[world.sampler])
    place = draw.contexts * world.shape[1] + draw.tokens
    exact = world.kl(question.p, question.q)[draw.contexts]
    return kb.Columns(
        lengths=draw.lengths,
        mask=np.ones(len(exact), dtype=np.bool_),
        log_probs={role: table.ravel()[place] for role, table in world.log_probs.items()},
        clusters=np.repeat(keys(world.prompts), world.sequences_per_prompt),
        cluster_kind="prompt",
        exact={f"KL({question.p}||{question.q})": exact},
    )


def verdicts(cell: Cell, world: World, seeds: int, *, exact: bool) -> Counter[str]:
    """How often each verdict came."""
    found: Counter[str] = Counter()
    for seed in range(seeds):
        rng = np.random.default_rng([cell.seed, 1, seed])
        if exact and isinstance(world, Mixture):
            columns = with_exact(world, cell.question, rng)
        else:
            columns = drawn(world, rng)
        found[shape_evidence(QuestionState.of(columns, cell.question)).verdict] += 1
    return found


def size(world: World) -> float:
    """The tokens of a sample, about."""
    rng = np.random.default_rng(0)
    return len(drawn(world, rng))


def line(cell: Cell, seeds: int) -> dict[str, Any] | None:
    """What the adviser says in one cell; None where it is too large."""
    world = cell.build()
    if size(world) > MOST:
        return None
    k1, k3 = (error(world, cell.question, method) for method in ("k1", "k3"))
    told = {"family": cell.family, "cell": cell.name, "better": "k1" if k1 < k3 else "k3"}
    told["ratio"] = max(k1, k3) / min(k1, k3) if np.isfinite([k1, k3]).all() else None
    told["sampled"] = verdicts(cell, world, seeds, exact=False)
    on_policy = cell.question.weight == "none"
    if isinstance(world, Mixture) and on_policy and size(world) >= FEWEST:
        told["exact"] = verdicts(cell, world, seeds, exact=True)
    return told


def row(told: dict[str, Any], seeds: int) -> str:
    """A line of the table."""
    right, wrong = ("holes", "smooth") if told["better"] == "k1" else ("smooth", "holes")
    cells = [f"{told['family']}: {told['cell']}", told["better"], f"{told['ratio'] or np.inf:.3g}"]
    for kind in ("sampled", "exact"):
        found = told.get(kind)
        cells += [
            "–" if found is None else f"{found.get(verdict, 0) / seeds:.0%}"
            for verdict in (right, wrong, "cannot-tell")
        ]
    return "| " + " | ".join(cells) + " |"


def write(lines: Iterable[dict[str, Any]], seeds: int) -> None:
    """The table."""
    lines = list(lines)
    heads = ["cell", "better", "times", "right", "wrong", "cannot tell"]
    heads += [f"{name}, with exact" for name in heads[3:]]
    table = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    table += [row(one, seeds) for one in lines]
    text = NOTE.format(seeds=seeds, cells=len(lines)) + "\n".join(table) + "\n"
    (RESULTS / "advice.md").write_text(text)
    (RESULTS / "advice.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def main() -> None:
    """Ask in every cell, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    asked = parser.parse_args()
    console = Console(file=sys.stderr)
    bar = track(list(cells()), console=console, disable=not sys.stderr.isatty())
    found = (line(cell, asked.seeds) for cell in bar)
    write((one for one in found if one is not None), asked.seeds)


if __name__ == "__main__":
    main()
