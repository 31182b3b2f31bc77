"""Real processes: killed while they write, on a full disk, without permission."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import kullback as kb

ROW = '{"log_probs.old": [-1.0, -2.0], "log_probs.current": [-1.5, -2.5]}\n'
WRITE = "import kullback as kb; kb.write(kb.read(kb.demo_path()), {path!r})"
REPORT = """
import sys
from kullback.cli import main
sys.argv = ["kullback", "report", "--demo", {option!r}, {path!r}]
main()
"""
TARGETS = {
    "a.parquet": WRITE,
    "a.jsonl": WRITE,
    "a.html": REPORT.replace("{option!r}", "'--html'"),
    "a.json": REPORT.replace("{option!r}", "'--json'"),
}
# A file may have so many bytes; what happens to a process that goes on is up to it.
LIMIT = """
import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
signal.signal(signal.SIGXFSZ, signal.{then})
"""


def run(code: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(params=TARGETS)
def target(request, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.write_text("the old one")
    return path


def test_a_process_that_dies_while_it_writes_leaves_the_old_file(target: Path):
    """The system ends it in the middle of a write, where nothing of Python's runs any more."""
    code = TARGETS[target.name].format(path=str(target))
    done = run(LIMIT.format(then="SIG_DFL") + code)
    assert done.returncode == -signal.SIGXFSZ
    assert target.read_text() == "the old one"
    (draft,) = set(target.parent.iterdir()) - {target}
    assert draft.name.startswith(f".{target.name}.")
    assert draft.suffix == ".tmp"
    # And the next one is not hindered by what it left.
    assert run(code).returncode == 0
    assert set(target.parent.iterdir()) == {target, draft}
    assert target.stat().st_size > 3000


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_kill_9_between_two_batches_leaves_a_draft_that_nobody_reads(tmp_path: Path, name: str):
    other = tmp_path / f"b{Path(name).suffix}"
    kb.write(kb.pack({"a": [[-1.0]], "b": [[-2.0]]}), other)
    code = f"""
import os, signal
import kullback as kb
def batches():
    (batch,) = kb.read({str(other)!r})
    for _ in range(500):
        yield batch
    os.kill(os.getpid(), signal.SIGKILL)
kb.write(batches(), {str(tmp_path / name)!r})
"""
    assert run(code).returncode == -signal.SIGKILL
    (draft,) = set(tmp_path.iterdir()) - {other}
    assert draft.name.startswith(f".{name}.")
    for files in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/*.*"):
        assert kb.read(files).files == (str(other),)


def test_a_full_disk_is_one_sentence_and_the_old_file_stands(target: Path):
    done = run(LIMIT.format(then="SIG_IGN") + TARGETS[target.name].format(path=str(target)))
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert f"{target} cannot be written: " in last
    assert "too large" in last.lower()
    assert target.read_text() == "the old one"
    assert list(target.parent.iterdir()) == [target]
    if target.suffix in (".html", ".json"):
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


# In a mount namespace of its own, which needs no root; what is seen there is printed.
SMALL_DISK = """
mount -t tmpfs -o size=40k tmpfs "$FOLDER" || exit 99
printf "the old one" > "$FOLDER/$NAME"
"$PYTHON" -B -c "$CODE" 2> /dev/null && echo written
cat "$FOLDER/$NAME"; echo; ls -A "$FOLDER"
"""


def on_a_small_disk(code: str, folder: Path, name: str) -> str:
    """What stands on a disk of 40 kilobytes when the process has ended.

    Where the system lets nobody mount one, the file may have no more than 40 kilobytes.
    """
    given = {"FOLDER": str(folder), "NAME": name, "PYTHON": sys.executable, "CODE": code}
    command = ["unshare", "-rm", "sh", "-c", SMALL_DISK]
    with suppress(FileNotFoundError):
        done = subprocess.run(
            command, env=os.environ | given, capture_output=True, text=True, check=False
        )
        if "the old one" in done.stdout or "written" in done.stdout:
            return done.stdout
    (folder / name).write_text("the old one")
    done = run(LIMIT.format(then="SIG_IGN").replace("3000", "40960") + code)
    seen = ["written"] * (done.returncode == 0)
    names = [one.name for one in folder.iterdir()]
    return "\n".join([*seen, (folder / name).read_text(), *names, ""])


@pytest.mark.parametrize("name", TARGETS)
def test_a_disk_that_fills_up_keeps_the_old_file_and_no_draft(tmp_path: Path, name: str):
    code = TARGETS[name].format(path=str(tmp_path / name))
    assert on_a_small_disk(code, tmp_path, name).splitlines() == ["the old one", name]


@pytest.mark.parametrize("options", [[], ["--json", "-"]])
def test_an_output_that_takes_nothing_is_one_sentence(tmp_path: Path, options: list[str]):
    path = tmp_path / "a.jsonl"
    path.write_text(ROW)
    code = f"""
import sys
from kullback.cli import main
sys.argv = ["kullback", "report", {str(path)!r}, *{options!r}]
main()
"""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-B", "-c", code]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "kullback: the output cannot be written: No space left on device\n"


CLOSED = {
    "closed.jsonl": 0o000,
    "closed": 0o000,
    "listed": 0o311,  # may be entered, not listed
    "readonly": 0o555,
}


@pytest.fixture
def closed() -> Iterator[Path]:
    """Files and folders that their owner, and nobody else either, may not read or write."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open.jsonl").write_text(ROW)
        for inner in ("closed", "listed", "readonly"):
            (folder / inner).mkdir()
            (folder / inner / "a.jsonl").write_text(ROW)
        (folder / "readonly" / "old.json").write_text("the old one")
        (folder / "closed.jsonl").write_text(ROW)
        for inner, mode in CLOSED.items():
            (folder / inner).chmod(mode)
        yield folder
        for inner in CLOSED:
            (folder / inner).chmod(0o755)


# Root may do everything: it becomes somebody else first, once all is imported.
POWERLESS = """
import os, sys
from click.testing import CliRunner
from kullback.cli import app
import kullback as kb
kb.write(kb.read(kb.demo_path()), {folder!r} + "/warm.jsonl")
CliRunner().invoke(app, ["report", "--demo", "--html", {folder!r} + "/warm.html"])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.chdir({folder!r})
for arguments in {calls!r}:
    done = CliRunner().invoke(app, ["report", *arguments])
    print(done.exit_code, done.stderr.strip() or done.exception)
for path in ("readonly/b.parquet", "readonly/b.jsonl"):
    try:
        kb.write(kb.pack({{"a": [[-1.0]], "b": [[-2.0]]}}), path)
    except ValueError as error:
        print(2, error)
"""


def test_what_is_not_permitted_is_one_sentence(closed: Path):
    refused = "cannot be read: Permission denied"
    unwritten = "cannot be written: Permission denied"
    calls = {
        ("closed.jsonl",): f"kullback: closed.jsonl {refused}",
        ("closed",): f"kullback: closed {refused}",
        ("closed/a.jsonl",): f"kullback: closed/a.jsonl {refused}",
        ("listed",): f"kullback: listed {refused}",
        ("closed/*.jsonl",): f"kullback: closed/*.jsonl {refused}",
        ("open.jsonl", "--json", "readonly/old.json"): f"kullback: readonly/old.json {unwritten}",
        ("open.jsonl", "--html", "readonly/b.html"): f"kullback: readonly/b.html {unwritten}",
    }
    done = run(POWERLESS.format(folder=str(closed), calls=list(calls)))
    assert done.stderr == ""
    said = done.stdout.splitlines()
    expected = [f"2 {sentence}" for sentence in calls.values()]
    assert said[:-2] == expected
    for line, name in zip(said[-2:], ("b.parquet", "b.jsonl"), strict=True):
        assert line.startswith(f"2 readonly/{name} cannot be written: ")
        assert "Permission denied" in line
    assert (closed / "readonly" / "old.json").read_text() == "the old one"


LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from click.testing import CliRunner
from kullback.cli import app, main
CliRunner().invoke(app, ["report", "--demo"])  # so that all is loaded
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, used + 2**25))
sys.argv = ["kullback", "report", {path!r}]
main()
"""


def test_a_row_that_memory_does_not_hold_is_one_sentence(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    numbers = ",".join(["-1.5"] * 2_000_000)
    path.write_text(f'{{"log_probs.a": [{numbers}], "log_probs.b": [{numbers}]}}\n')
    done = run(LITTLE_MEMORY.format(path=str(path)))
    assert done.returncode == 2
    assert done.stderr.startswith("kullback: there is not enough memory for a chunk")
    assert done.stderr.count("\n") == 1
