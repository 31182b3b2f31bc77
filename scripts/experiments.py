"""Rerun the documents' experiments: numbers into results/experiments, words into each README."""

from __future__ import annotations

import time
from pathlib import Path

from kullback.experiments import EXPERIMENTS, reproduced
from kullback.reporting.experiment import PRINTED_HEADS, Experiment, Part, Table
from kullback.reporting.write import write_json

ROOT = Path(__file__).parents[1]


def home(name: str) -> Path:
    """The folder of an experiment."""
    return ROOT / "src" / "kullback" / "experiments" / name.replace("-", "_")


def readme(one: Experiment) -> str:
    """An experiment as Markdown: the figures by their findings."""
    blocks = [
        f"# {one.name}",
        f"After *{one.source}*. Made by `make experiments`; `kullback reproduce {one.name} --html "
        f"{one.name}.html` draws it. Seed {one.seed}.",
        *(
            f"**{word}.** {said}"
            for word, said in (
                ("Question", one.question),
                ("Claim", one.claim),
                ("Result", one.answer),
                ("Method", one.method),
            )
        ),
        *(block for part in one.parts for block in _part(part)),
        "## Every number that the document prints",
        one.verdict(),
        *([_table(PRINTED_HEADS, [p.cells() for p in one.printed])] if one.printed else []),
        "## Limits",
        "\n".join(f"- {limit}" for limit in one.limits),
    ]
    return "\n\n".join(blocks) + "\n"


def _part(part: Part) -> list[str]:
    shown = [
        f"{one.caption}\n\n{_table(one.heads, one.cells())}"
        if isinstance(one, Table)
        else f"Figure: {one.title}"
        for one in part.shows
    ]
    return [f"## {part.title}", part.says, *shown]


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run all, and tell how long each took."""
    folder = ROOT / "results" / "experiments"
    folder.mkdir(exist_ok=True)
    for name in EXPERIMENTS:
        start = time.perf_counter()
        one = reproduced(name)
        write_json(one.as_data(), folder / f"{name}.json")
        (home(name) / "README.md").write_text(readme(one), encoding="utf-8")
        print(f"{name}: {time.perf_counter() - start:.1f} s. {one.verdict()}")


if __name__ == "__main__":
    main()
