"""The whole way of a damaged dump, and the verdict: refused, read, or a failure of kullback."""

from __future__ import annotations

import io
import json
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import kullback as kb
from kullback.estimation.axes import USUAL
from kullback.reporting.document import document, source_of
from kullback.reporting.html import page
from kullback.reporting.write import as_json

from .cases import Case
from .damage import DAMAGED, EITHER
from .dumps import K, Row, meaning, packed_key

LONGEST_SENTENCE = 600
SCHEMA = Path(kb.__file__).parent / "reporting" / "report.schema.json"


@dataclass(frozen=True)
class Outcome:
    """What came of a dump: ``refused``, ``read``, ``damaged rows named``, ``other values`` or
    ``failed``.

    ``other values``: the bytes were damaged, and say something else that is as good a dump.

    Args:
        kind: One of these.
        why: The sentence of a refusal; what went wrong in a failure.
    """

    kind: str
    why: str = ""


class FailedError(Exception):
    """kullback did what it must not."""


def judge(case: Case, folder: Path, *, thorough: bool) -> Outcome:
    """Read, summarize, diagnose, report.

    Args:
        case: The damaged dump.
        folder: An empty folder for it.
        thorough: Hold the report against its schema, draw the page and the text, and compare it
            with that of the rows which were not damaged.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            with _written(case.files, folder) as paths:
                outcome, report = _read(case, paths)
            if report and thorough:
                _check_report(report, case, folder)
        except FailedError as failure:
            return Outcome("failed", str(failure))
        except Exception:  # noqa: BLE001 - a traceback of any kind is what is looked for
            return Outcome("failed", traceback.format_exc())
    return outcome


@contextmanager
def _written(files: dict[str, bytes], folder: Path) -> Iterator[list[Path]]:
    paths = [folder / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    try:
        yield paths
    finally:
        for path in paths:
            path.unlink()


def _read(case: Case, paths: list[Path]) -> tuple[Outcome, dict[str, Any] | None]:
    chunks: list[kb.Columns] = []
    try:
        dump = kb.read(paths)
        summary = kb.summarize(dump, also=USUAL, on_batch=chunks.append)
    except ValueError as error:
        if case.must_read:
            raise FailedError(f"refused as a whole: {error}") from error
        return Outcome("refused", _sentence(error, case)), None
    report = document(summary, source_of(dump))
    read_as = _check_rows(case, dump, chunks)
    json.dumps(report, allow_nan=False, ensure_ascii=False).encode()
    return Outcome("damaged rows named" if dump.damaged_rows else read_as), report


def _sentence(error: ValueError, case: Case) -> str:
    """A refusal is one sentence that names a file."""
    said = str(error)
    if not any(name in said for name in case.files):
        raise FailedError(f"names no file: {type(error).__name__}: {said}") from error
    if not said.isprintable() or len(said) > LONGEST_SENTENCE or "Traceback" in said:
        raise FailedError(f"is no sentence: {said!r}") from error
    return said


def _check_rows(case: Case, dump: kb.Dump, chunks: list[kb.Columns]) -> str:
    read = {key: one for chunk in chunks for key, one in _rows(chunk)}
    damaged = {(Path(one.file).name, one.row) for one in dump.damaged}
    named = len({(one.file, one.place) for one in dump.damaged})
    if len(read) + named != dump.rows or dump.damaged_rows != named:
        raise FailedError(f"{len(read)} rows and {named} damaged ones are said to be {dump.rows}")
    if case.whole and read.keys() | damaged != case.expected.keys():
        raise FailedError(
            f"rows that are neither read nor named: {case.expected.keys() ^ read.keys()}"
        )
    # Where damage decides what a column is, sound rows may be the odd ones, and a column unused.
    # A Parquet footer has no checksum: a column may also have got another name that is one.
    names = {guess.role for guess in dump.columns}
    lost = not case.must_read and (dump.unused or not names >= case.names)
    for key, verdict in case.expected.items():
        if key in damaged and verdict not in (DAMAGED, EITHER) and not case.kind.startswith("many"):
            raise FailedError(
                f"{key} was sound: {next(d for d in dump.damaged if d.row == key[1])}"
            )
        if key in read and verdict == DAMAGED and not lost:
            raise FailedError(f"{key} is damaged, and was read: {read[key]}")
        if lost or key in damaged or not isinstance(verdict, dict):
            continue
        if other := _difference(meaning(verdict), read[key]):
            raise FailedError(f"{key}: {other}")
    if not lost:
        _check_prompts(case, read)
    same = read.keys() >= case.before.keys() and not any(
        _difference(meaning(row), read[key]) for key, row in case.before.items()
    )
    return "read" if same else "other values"


def _rows(chunk: kb.Columns) -> Iterator[tuple[tuple[str, int], Row]]:
    """What was read, row by row, under canonical names."""
    by_token: Row = {f"log_probs.{role}": v for role, v in chunk.log_probs.items()}
    by_token |= {f"entropy.{role}": v for role, v in chunk.entropy.items()}
    by_token |= dict(chunk.exact) | {"mask": chunk.mask}
    by_token |= {"tokens": chunk.tokens, "versions": chunk.versions}
    by_token |= {"token_bytes": chunk.token_bytes}
    for role, head in chunk.top_k.items():
        by_token[f"top_ids.{role}"], by_token[f"top_log_probs.{role}"] = head
    assert chunk.rows is not None
    for i, (start, end) in enumerate(zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True)):
        row = {name: v[start:end] for name, v in by_token.items() if v is not None}
        row |= {name: values[i] for name, values in chunk.labels.items()}
        row |= {"text": None if chunk.text is None else chunk.text[i]}
        key = int(chunk.rows[i])
        if chunk.within is not None:
            key = packed_key(key, int(chunk.within[i]))
        yield (chunk.source, key), row | {"cluster": int(chunk.clusters[i])}


def _difference(said: Row, found: Row) -> str:
    """The first value that is not the one that was read, if there is one."""
    for name, value in said.items():
        if name in ("prompt", "prompt_id", "top_k.rollout"):
            continue
        if name not in found:
            return f"{name} was not read"
        got = found[name]
        if name.startswith("top_") and value is not None:
            got = got[:, :K] if np.shape(got)[1:] else got
        if isinstance(value, list) and name == "token_bytes":
            value, got = [None if one is None else bytes(one) for one in value], list(got)
        elif isinstance(value, list):
            value = [_missing(name) if one is None else one for one in value]
            got = np.asarray(got).tolist()
        elif value is None and len(np.shape(got)):
            value = got = None if _all_missing(got) else f"not missing: {got}"
        if not _equal(value, got):
            return f"{name} is {value} and was read as {got}"
    return ""


def _missing(name: str) -> float:
    return -1 if name in ("tokens", "versions") else np.nan


def _all_missing(got: Any) -> bool:
    return all(one is None or one != one or one == -1 for one in got)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return a == b or (a is None and b is None) or (a != a and b != b) or (a is None and b != b)


def _check_prompts(case: Case, read: dict[tuple[str, int], Row]) -> None:
    """Rows of one prompt, and no others, are of one cluster."""
    pairs = set()
    for key, verdict in case.expected.items():
        if key in read and isinstance(verdict, dict):
            prompt = verdict.get("prompt_id", verdict.get("prompt", key))
            pairs.add((prompt, read[key]["cluster"]))
    if not len(pairs) == len({p for p, _ in pairs}) == len({c for _, c in pairs}):
        raise FailedError(f"prompts and clusters do not go together: {pairs}")


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(SCHEMA.read_text()))


def _check_report(report: dict[str, Any], case: Case, folder: Path) -> None:
    from rich.console import Console

    from kullback.reporting.text import print_report

    for error in _validator().iter_errors(json.loads(as_json(report))):
        raise FailedError(f"the report breaks its schema: {error.message} at {error.json_path}")
    page(report).encode()
    print_report(report, Console(file=io.StringIO()))
    if case.rest is None:
        return
    with _written(case.rest, folder) as paths:
        try:
            dump = kb.read(paths)
            alone = document(kb.summarize(dump, also=USUAL), source_of(dump))
        except ValueError as error:
            raise FailedError(f"the other rows alone are refused: {error}") from error
    if (one := _numbers(report)) != (other := _numbers(alone)):
        raise FailedError(f"the damaged rows moved the numbers of the others:\n{one}\n{other}")


def _numbers(report: dict[str, Any]) -> str:
    """All that is computed; where a row stands, and whether rows are missing, apart."""
    questions = [one | {"trust": None} for one in report["questions"]]
    for one in questions:
        one["top"] = [top | {"row": None} for top in one["top"]]
    return json.dumps(questions)
