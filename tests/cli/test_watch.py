from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kullback.cli import app, watch

run = CliRunner().invoke


def rows(first: int, count: int, loud: bool = False) -> str:
    rng = np.random.default_rng(first)
    lines = []
    for i in range(first, first + count):
        p = rng.normal(-2, 0.3, size=9)
        row = {
            "log_probs.rollout": p.tolist(),
            "log_probs.current": (p + 2 * loud + rng.normal(0, 0.1, 9)).tolist(),
            "step": i // 10,
            "prompt_id": i,
        }
        lines.append(json.dumps(row) + "\n")
    return "".join(lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(rows(0, 60))
    return path


def once(*args: object):
    return run(app, ["watch", *map(str, args), "--once"])


def test_once_writes_what_report_says(path: Path, tmp_path: Path):
    ours, theirs, page = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "a.html"
    done = once(path, "--by", "step", "--json", ours, "--html", page)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("60 rows, 540 tokens: KL(rollout||current) is ")
    assert run(app, ["report", str(path), "--by", "step", "--json", str(theirs)]).exit_code == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert 'http-equiv="refresh"' not in page.read_text()
    assert (tmp_path / ".a.html.kullback-watch").is_file()


def test_the_next_start_goes_on_and_another_question_begins_anew(path: Path, tmp_path: Path):
    assert once(path).exit_code == 0
    state = tmp_path / ".run.jsonl.kullback-watch"
    assert once(path).stdout.startswith("60 rows")
    path.rename(tmp_path / "gone")  # nothing is read again: it is not even there
    done = once(path)
    assert done.exit_code == 0
    assert "not there any more; what was counted stays counted" in done.stdout
    assert "60 rows" in done.stdout
    (tmp_path / "gone").rename(path)
    done = once(path, "--question", "KL(current||rollout)")
    assert f"kullback: what {state} holds answers other questions: all is counted" in done.stderr
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda place: None, "is not there yet"),
        (lambda place: place.mkdir(), "holds no dump yet"),
        (lambda place: place.write_text(""), "it is empty"),
        (lambda place: place.write_text('{"a'), "its last line has no end yet"),
        (lambda place: place.write_text("{broken}\n"), "it is not JSON lines"),
        (lambda place: place.write_text('{"a": 1}\n'), "a KL needs those of two policies"),
        (lambda place: place.write_text(half_used()), "no row can be used, of 1; the first: "),
    ],
    ids=["nothing", "folder", "empty", "half", "broken", "other", "damaged"],
)
def test_nothing_to_report_is_one_sentence_and_2(tmp_path: Path, make, said: str):
    make(tmp_path / "run.jsonl")
    done = once(tmp_path / "run.jsonl")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("kullback: there is nothing to report: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def half_used() -> str:
    return '{"log_probs.rollout": [-1.0], "log_probs.current": [-1.0, -2.0]}\n'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--html", "no/a.html"], "no/a.html cannot be written: there is no folder no"),
        (["--state", "no/a"], "no/a cannot be written: there is no folder no"),
        (["--json", "-"], "--json needs a file"),
        (["--question", "KL"], "'KL' is no question"),
        (["--map", "x"], "write role=column"),
        (["--question", "KL(a||b)"], "needs log-probs of a"),
        (["--by", "staleness"], "there is no versions"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_2(path: Path, options: list[str], said: str):
    done = once(path, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_fail_on_is_1(path: Path):
    assert once(path, "--fail-on", "error").exit_code == 0
    with path.open("a") as file:
        file.write(rows(60, 60, loud=True))
    done = once(path, "--fail-on", "error")
    assert done.exit_code == 1
    assert done.stderr == "kullback: --fail-on error: misaligned\n"


def test_fail_on_ends_a_watch_as_soon_as_it_is_found(path: Path, monkeypatch):
    """And a headline that has no interval yet does not."""
    path.write_text(rows(0, 1))
    looks = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        with path.open("a") as file:
            file.write(rows(len(looks), 60, loud=len(looks) > 2))

    monkeypatch.setattr(watch.time, "sleep", sleep)
    done = run(app, ["watch", str(path), "--every", "7", "--fail-on", "error"])
    assert done.exit_code == 1
    assert looks == [7, 7, 7]
    assert len(done.stdout.splitlines()) == 4
    assert done.stdout.splitlines()[-1].startswith("181 rows")


def test_ctrl_c_is_0_and_says_where_it_goes_on(path: Path, tmp_path: Path, monkeypatch):
    page = tmp_path / "a.html"
    seen = []

    def sleep(seconds: float) -> None:
        seen.append('http-equiv="refresh"' in page.read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(watch.time, "sleep", sleep)
    done = run(app, ["watch", str(path), "--html", str(page), "--every", "0.4"])
    assert done.exit_code == 0
    state = tmp_path / ".a.html.kullback-watch"
    assert done.stderr == f"Stopped. The next start goes on from {state}\n"
    assert seen == [True]
    assert 'http-equiv="refresh"' not in page.read_text()


def test_a_state_that_would_run_code_is_not_run(path: Path, tmp_path: Path):
    import pickle

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trap"),)

    state = tmp_path / ".run.jsonl.kullback-watch"
    state.write_bytes(pickle.dumps(Trap()))
    done = once(path)
    assert done.exit_code == 0
    assert "it is damaged; all is counted from the start" in done.stderr
    assert not (tmp_path / "trap").exists()


def test_what_is_no_state_is_not_overwritten(path: Path, tmp_path: Path):
    before = path.read_bytes()
    done = once(path, "--state", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is no state of kullback watch: name another file, or none" in done.stderr
    assert path.read_bytes() == before
    other, link = tmp_path / "other", tmp_path / ".run.jsonl.kullback-watch"
    other.write_text("mine")
    link.symlink_to(other)
    done = once(path)
    assert done.exit_code == 2
    assert "is a link: remove it, or say --state FILE" in done.stderr
    assert other.read_text() == "mine"


# Who runs the tests in the background may have told the system to ignore a Ctrl-C.
WATCH = """
import signal, sys
from kullback.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["kullback", "watch", *{arguments!r}]
main()
"""


def start(*arguments: object, before: str = "") -> subprocess.Popen[str]:
    code = before + WATCH.format(arguments=[str(one) for one in arguments])
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_kill_9_at_any_time_counts_no_row_twice_and_none_less(tmp_path: Path):
    """Killed again and again while rows come, in the end it says what a report says."""
    path, ours, theirs = (tmp_path / name for name in ("run.jsonl", "a.json", "b.json"))
    state = tmp_path / ".run.jsonl.kullback-watch"
    for i in range(5):
        process = start(path, "--every", "0.05", "--json", ours)
        began = time.monotonic()
        while not state.exists() and time.monotonic() < began + 60:
            time.sleep(0.01)
        for j in range(12):
            with path.open("a") as file:
                text = rows(20 * (12 * i + j), 20)
                file.write(text[: len(text) // 2])
                file.flush()
                time.sleep(0.01)
                file.write(text[len(text) // 2 :])
        time.sleep(0.03 * i)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert once(path, "--json", ours).exit_code == 0
    assert run(app, ["report", str(path), "--json", str(theirs)]).exit_code == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert json.loads(ours.read_text())["source"]["rows"] == 5 * 12 * 20


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_process_ends_calmly_when_it_is_told_to(path: Path, tmp_path: Path, sent: int):
    process = start(path, "--every", "30")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("60 rows")
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert err == f"Stopped. The next start goes on from {tmp_path / '.run.jsonl.kullback-watch'}\n"


# A file may have so many bytes; what a disk that is full does is said to the writer, too.
LIMIT = """
import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""


def test_a_full_disk_is_one_sentence_and_the_old_state_stands(path: Path, tmp_path: Path):
    state, page = tmp_path / ".a.html.kullback-watch", tmp_path / "a.html"
    assert once(path, "--html", page).exit_code == 0
    kept, drawn = state.read_bytes(), page.read_bytes()
    with path.open("a") as file:
        file.write(rows(60, 200))
    process = start(path, "--html", page, "--once", before=LIMIT.format(size=len(kept) + 100))
    _, err = process.communicate()
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert "cannot be written: File too large" in err
    assert state.read_bytes() == kept
    assert page.read_bytes() == drawn
    assert {one.name for one in tmp_path.iterdir()} == {path.name, state.name, page.name}
    assert once(path, "--html", page).stdout.startswith("260 rows")


def test_a_terminal_is_redrawn_in_place(path: Path):
    """On a pseudo-terminal of its own: the lines of the second look stand where the first did."""
    import pty

    parent, child = pty.openpty()
    code = WATCH.format(arguments=[str(path), "--every", "0.2", "--by", "step"])
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        stdout=child,
        stderr=child,
        env=os.environ | {"COLUMNS": "100", "LINES": "20", "TERM": "xterm"},
    )
    os.close(child)
    seen = b""
    began = time.monotonic()
    while seen.count(b"Looked at") < 3 and time.monotonic() < began + 60:
        seen += os.read(parent, 4096)
    process.send_signal(signal.SIGINT)
    while True:
        try:
            more = os.read(parent, 4096)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        seen += more
    os.close(parent)
    assert process.wait(60) == 0
    text = seen.decode()
    assert "KL(rollout||current) is " in text
    assert "\x1b[1A" in text or "\x1b[2K" in text  # up, and the line anew
    assert "Stopped. The next start goes on from" in text
