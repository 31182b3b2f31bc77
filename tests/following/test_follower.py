from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.cli.reading import opened
from kullback.dumps import chunks, compression, jsonl
from kullback.following import follower as module
from kullback.following.follower import UNSETTLED, Follower
from kullback.following.progress import Progress
from kullback.following.reading import UNENDED
from kullback.reporting.document import document, source_of
from kullback.reporting.write import as_json

BY = ("position", "step", "task")
LATER = 1e12  # seconds: by then every file is old


def following(place: Path, by=(), progress: Progress | None = None, **how: Any) -> Follower:
    start = progress or Progress("1", str(place), by=tuple(by))
    return Follower(place, lambda path: opened(path, by), start, every=10.0, **how)


def told(follower: Follower) -> str:
    """The report of what was counted, to the last bit."""
    summary = follower.progress.summary
    assert summary is not None
    return as_json(document(summary, source_of(follower.progress)))


def one_pass(place: Any, by=()) -> str:
    """What ``kullback report`` says."""
    dump = opened(place, by)
    return as_json(document(kb.summarize(dump, by=by), source_of(dump)))


def line(i: int, rng: np.random.Generator, **more: Any) -> str:
    p = rng.normal(-2, 0.3, size=1 + i % 7)
    row = {
        "log_probs.rollout": p.tolist(),
        "log_probs.current": (p + rng.normal(0, 0.1, len(p))).tolist(),
        "log_probs.reference": (p + rng.normal(0, 0.2, len(p))).tolist(),
        "tokens": rng.integers(0, 9, len(p)).tolist(),
        "top_ids.rollout": [[int(t), 9] for t in rng.integers(0, 9, len(p))],
        "top_log_probs.rollout": [[-0.7, -1.5]] * len(p),
        "step": i // 20,
        "task": ["code", "math", None][i % 3],
        "prompt_id": i // 4,
    }
    return json.dumps(row | more) + "\n"


def packed(i: int, rng: np.random.Generator) -> str:
    lengths = rng.integers(1, 5, size=1 + i % 4).tolist()
    p = rng.normal(-2, 0.3, size=sum(lengths))
    row = {
        "log_probs.rollout": p.tolist(),
        "log_probs.current": (p + 0.1).tolist(),
        "tokens": rng.integers(0, 9, len(p)).tolist(),
        "lengths": lengths,
        "step": i // 20,
        "task": ["code"] * len(lengths),
    }
    return json.dumps(row) + "\n"


def a_run(kind: str, seed: int, rows: int = 150) -> bytes:
    """Lines as a trainer writes them, some of them damaged or blank."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    found = []
    for i in range(rows):
        text = line(i, rng) if kind == "rows" else packed(i, rng)
        if i > 20 and chance.random() < 0.1:
            text = chance.choice(
                ["\n", "{broken\n", '{"log_probs.rollout": [1]}\n', text[:-2] + "\n"]
            )
        if i == 60:
            text = text.replace('"step"', '"late": 1, "step"')
        found.append(text)
    return "".join(found).encode()


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 tokens, read some lines at a time: many ends to get wrong."""
    monkeypatch.setattr(chunks, "CHUNK_TOKENS", 64)
    monkeypatch.setattr(jsonl, "DECODED_AT_ONCE", 3000)
    monkeypatch.setattr(module, "SLICE", 5000)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def restarted(one: Follower, place: Path, by=()) -> Follower:
    """Another process, which has only what was kept."""
    from kullback.estimation.stored import load, store

    return following(place, by, load(store(one.progress), Progress))


@pytest.mark.parametrize("kind", ["rows", "packed"])
@pytest.mark.parametrize("seed", range(4))
def test_however_a_file_grows_the_report_is_that_of_one_pass(tmp_path, small_chunks, kind, seed):
    """After each look, over restarts, to the last bit: numbers, places, damage and columns."""
    path, copy, data = tmp_path / "run.jsonl", tmp_path / "copy" / "run.jsonl", a_run(kind, seed)
    copy.parent.mkdir()
    chance = random.Random(seed)
    one = following(path, BY)
    at = 0
    while at < len(data):
        step = chance.choice([1, 50, 400, 3000, 20000])
        append(path, data[at : at + step])
        at += step
        look = one.look(LATER)
        assert not look.said
        whole = data[: data[:at].rfind(b"\n") + 1]
        if not whole:
            assert one.progress.summary is None
            continue
        # The names of files are in the keys of clusters: the copy has to stand at the same path.
        path.rename(path.with_suffix(".kept"))
        path.write_bytes(whole)
        expected = one_pass(path, BY)
        path.with_suffix(".kept").replace(path)
        assert told(one) == expected
        assert (look.waiting == {"run.jsonl": UNENDED}) == (len(whole) < min(at, len(data)))
        if chance.random() < 0.3:
            one = restarted(one, path, BY)
    assert one.progress.closed is not None
    assert one.progress.files["run.jsonl"].begin.offset > len(data) / 2
