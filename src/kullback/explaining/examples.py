"""For each finding code a small example in which it appears, and a clean twin in which it does not.

They are computed when asked, with a fixed seed: from a world and a fault of it where there is one,
else from a batch or a file that is made for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kullback.columns import Columns
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.finding import CODES, Diagnosis, Finding
from kullback.diagnosis.reading_faults import diagnose_reading
from kullback.dumps import read
from kullback.estimation.summary import summarize
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture, logged_by_step, small_steps
from kullback.worlds.faults import replaced, rounded_to_bf16, with_policy
from kullback.worlds.tables import drifted, zipf

SEED = 0
PROMPTS = 64  # enough of them for no note on the interval


@dataclass(frozen=True, slots=True)
class Example:
    """A code at work.

    Args:
        told: What was done.
        diagnosis: What was found then.
        clean: What was left undone in the twin.
        twin: What was found there.
    """

    told: str
    diagnosis: Diagnosis
    clean: str
    twin: Diagnosis

    def finding(self, code: str) -> Finding:
        """The finding of a code; the first, if there are several."""
        return next(one for one in self.diagnosis.findings if one.code == code)

    def passed(self, code: str) -> str:
        """What the twin's check of this code says, or that nothing is found."""
        reasons = (c.reason for c in self.twin.checks if c.code == code and c.status == "passed")
        return next(reasons, "nothing of it is found")


def example(code: str) -> Example:
    """The example of a code.

    Example:
        >>> shown = example("sentinel-inside-mask")
        >>> shown.finding("sentinel-inside-mask").numbers["sentinels"]
        1024
        >>> shown.passed("sentinel-inside-mask")
        '0 values of −9999'
    """
    from kullback.explaining.log_examples import log_example

    if shown := log_example(code):
        return shown
    return _FROM_WORLDS[code]() if code in _FROM_WORLDS else _FROM_FAULTS[code]()


def _seen(columns: Columns, *questions: str) -> Diagnosis:
    asked = [Question.parse(text) for text in questions] or None
    return diagnose(summarize([columns], questions=asked))


@cache
def _world(name: str, prompts: int = PROMPTS) -> Mixture:
    world = CLEAN_WORLDS[name](prompts)
    assert isinstance(world, Mixture)
    return world


def _draw(name: str, prompts: int = PROMPTS, top_k: int = 0) -> Columns:
    return _world(name, prompts).sample(np.random.default_rng(SEED), top_k=top_k)


@cache
def _honest(name: str, top_k: int = 0) -> Diagnosis:
    """The twin of many: nothing was done to it."""
    return _seen(_draw(name, top_k=top_k))


def _sizes(name: str, columns: Columns) -> str:
    prompts = len(np.unique(columns.clusters))
    return f"Simulated (world {name}, {prompts} prompts, {len(columns)} tokens, seed {SEED})"


def _of_fault(name: str) -> Callable[[], Example]:
    def build() -> Example:
        fault, world = FAULTS[name], _world("smooth")
        faulty = fault.inject(world, np.random.default_rng(SEED))
        return Example(
            told=f"{_sizes('smooth', faulty)}: {fault.caption}.",
            diagnosis=_seen(faulty),
            clean="without that",
            twin=_honest("smooth", top_k=20),
        )

    return build


def _mismatch() -> Example:
    """A temperature where no head is logged, which would tell that it is one."""
    fault, world = FAULTS["temperature"], _world("smooth")
    faulty = replace(fault.inject(world, np.random.default_rng(SEED)), top_k={})
    return Example(
        told=f"{_sizes('smooth', faulty)}: {fault.caption}; no heads.",
        diagnosis=_seen(faulty),
        clean="without that",
        twin=_honest("smooth"),
    )


def _other_temperature() -> Example:
    fault, world = FAULTS["trainer-temperature"], _world("training_loop")
    faulty = fault.inject(world, np.random.default_rng(SEED))
    return Example(
        told=f"{_sizes('training_loop', faulty)}: {fault.caption}.",
        diagnosis=_seen(faulty, "KL(rollout||old)"),
        clean="without that",
        twin=_seen(_draw("training_loop", top_k=20), "KL(rollout||old)"),
    )


def _weight_missing() -> Example:
    """The policy moved 0.12 nats from its sampler, and nobody says who sampled."""
    world = _moved(0.5)
    columns, asked = world.sample(np.random.default_rng(SEED)), "KL(current||reference)"
    return Example(
        told=f"{_sizes('training_loop', columns)}: rollout sampled, and the question does "
        "not say so.",
        diagnosis=_seen(columns, asked),
        clean=f"asked as {asked} ~ rollout",
        twin=_seen(columns, f"{asked} ~ rollout"),
    )


def _weights_degenerate() -> Example:
    """The policy moved 2 nats from its sampler."""
    asked = "KL(current||reference) ~ rollout"
    near, far = (world.sample(np.random.default_rng(SEED)) for world in (_moved(0.5), _moved(2.0)))
    return Example(
        told=f"{_sizes('training_loop', far)}: current moved far from rollout, which sampled.",
        diagnosis=_seen(far, asked),
        clean="with a fourth of the step",
        twin=_seen(near, asked),
    )


def _moved(size: float) -> Mixture:
    """A training loop whose policy took one step of this size."""
    world = _world("training_loop")
    policy = drifted(np.random.default_rng(SEED), world.log_probs["rollout"], size)
    return with_policy(world, "current", policy)


def _mean_owned() -> Example:
    holes = _draw("holes_in_policy")
    return Example(
        told=f"{_sizes('holes_in_policy', holes)}: the policy dropped 3 % of the reference's "
        "tokens.",
        diagnosis=_seen(holes),
        clean="in the world smooth, which drops none",
        twin=_honest("smooth"),
    )


def _few_clusters() -> Example:
    few = _draw("smooth", 16)
    return Example(
        told=f"{_sizes('smooth', few)}.",
        diagnosis=_seen(few),
        clean=f"with {PROMPTS} prompts",
        twin=_honest("smooth"),
    )


def _end_not_counted() -> Example:
    columns = _draw("random_lengths")
    assert columns.tokens is not None
    mask = np.ones(len(columns), dtype=np.bool_)
    mask[columns.ends[columns.tokens[columns.ends - 1] == 0][::2] - 1] = False
    return Example(
        told=f"{_sizes('random_lengths', columns)}: the mask leaves out every second end.",
        diagnosis=_seen(replace(columns, mask=mask)),
        clean="with all ends counted",
        twin=_seen(columns),
    )


def _repeated() -> Example:
    columns = _draw("smooth")
    rows = len(columns.lengths)
    return Example(
        told=f"{_sizes('smooth', columns)}: the first eighth of its rows was read twice.",
        diagnosis=_seen(columns.take(np.r_[0:rows, 0 : rows // 8])),
        clean="read once",
        twin=_honest("smooth"),
    )


def _in_loop(fault: str, clean: str) -> Callable[[], Example]:
    """A fault that the world of a training loop shows, whose prompts begin alike."""

    def build() -> Example:
        injected = FAULTS[fault].inject(_world("training_loop"), np.random.default_rng(SEED))
        return Example(
            told=f"{_sizes('training_loop', injected)}: {FAULTS[fault].caption}.",
            diagnosis=_seen(injected),
            clean=clean,
            twin=_honest("training_loop"),
        )

    return build


def _precision_floor() -> Example:
    columns = _draw("smooth")
    own = columns.log_probs["rollout"]
    return Example(
        told=f"{_sizes('smooth', columns)}: the reference has the sampler's own log-probs, in "
        "bfloat16.",
        diagnosis=_seen(replaced(columns, "reference", rounded_to_bf16(own))),
        clean="with its own, in full precision",
        twin=_honest("smooth"),
    )


def _selected() -> Example:
    columns = _draw("smooth")
    rows = np.arange(len(columns.lengths))
    return Example(
        told=f"{_sizes('smooth', columns)}: the last row of every fourth prompt was left out.",
        diagnosis=_seen(columns.take(rows[rows % 32 != 31])),
        clean="with all rows",
        twin=_honest("smooth"),
    )


def _small_steps() -> Example:
    """Thirty steps of 0.001 nats, all in one direction, and the first three of them."""
    start = zipf(np.random.default_rng(SEED), contexts=32, alphabet=200)
    rng = np.random.default_rng(SEED)
    run = small_steps(rng, start, steps=30, size=0.05, prompts=32, max_length=50)
    batches = logged_by_step(rng, run)
    tokens = sum(map(len, batches))
    return Example(
        told=f"Simulated ({len(run)} steps in one direction, 32 prompts each, {tokens} tokens, "
        f"seed {SEED}).",
        diagnosis=diagnose(summarize(batches, by=["step"])),
        clean="after three steps",
        twin=diagnose(summarize(batches[:3], by=["step"])),
    )


ROW = {"log_probs.rollout": [-1.2, -0.5, -0.1], "log_probs.current": [-1.5, -0.4, -0.2]}


def _rows_left_out() -> Example:
    short = {**ROW, "log_probs.current": [-1.5, -0.4]}
    return Example(
        told="A file of 20 rows; in the third one role has two log-probs and the other three.",
        diagnosis=_read([ROW, ROW, short, *[ROW] * 17]),
        clean="with that row whole",
        twin=_read([ROW] * 20),
    )


def _column_not_read() -> Example:
    named = {**ROW, "answer_mask": [0, 1, 1]}
    return Example(
        told="A file of 20 rows with a column answer_mask, a name that is not known.",
        diagnosis=_read([named] * 20),
        clean="with the column named mask",
        twin=_read([{**ROW, "mask": [0, 1, 1]}] * 20),
    )


def _read(rows: list[dict[str, Any]]) -> Diagnosis:
    """What is found of a file with these rows."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rollouts.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        dump = read(path)
        summary = summarize(dump)
        questions = [str(question) for question in summary.questions]
        source = {
            "rows": dump.rows,
            "damaged_rows": dump.damaged_rows,
            "damaged": [asdict(row) | {"file": path.name} for row in dump.damaged],
            "unused": dump.unused,
        }
        return diagnose_reading(source, questions)


# Of a code that several faults lead to, the most usual.
_USUAL = {
    "negative-beyond-chance": "wrong-sampler",
    "mask-covers-prompt": "prompt",
}
_FROM_FAULTS = {
    code: _of_fault(_USUAL.get(code) or next(n for n, f in FAULTS.items() if f.code == code))
    for code in CODES
    if code in _USUAL or any(fault.code == code for fault in FAULTS.values())
}
_FROM_WORLDS: dict[str, Callable[[], Example]] = {
    "sampler-mismatch": _mismatch,
    "temperature-mismatch": _other_temperature,
    "rows-left-out": _rows_left_out,
    "rows-repeated": _repeated,
    "column-not-read": _column_not_read,
    "end-not-counted": _end_not_counted,
    "weight-missing": _weight_missing,
    "weights-degenerate": _weights_degenerate,
    "mean-owned-by-few": _mean_owned,
    "too-few-clusters": _few_clusters,
    "in-sample": _in_loop("in-sample", "before the training"),
    "stochastic-forward": _in_loop("dropout", "without dropout"),
    "precision-floor": _precision_floor,
    "selected-on-outcome": _selected,
    "drift-behind-small-steps": _small_steps,
}
