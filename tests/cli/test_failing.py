from __future__ import annotations

import pytest

from kullback.cli.failing import is_grave, one_sentence, require_place


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no good"), "kullback: no good\n"),
        (MemoryError(), "kullback: there is not enough memory"),
        (OSError(28, "No space left on device", "a.html"), "a.html cannot be written: No space"),
        (OSError("odd"), "the output cannot be written: odd"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_2(error, said, capsys):
    with pytest.raises(SystemExit) as stopped, one_sentence():
        raise error
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_reader_who_left_is_no_failure():
    with pytest.raises(BrokenPipeError), one_sentence():
        raise BrokenPipeError


def test_a_place_is_refused_before_the_work(tmp_path):
    require_place(None)
    require_place(str(tmp_path / "new.html"))
    for path in ("", str(tmp_path), str(tmp_path / "no" / "new.html")):
        with pytest.raises(ValueError, match=r"no file name|there is no folder"):
            require_place(path)


@pytest.mark.parametrize(
    ("severity", "mean", "trust", "fail_on", "grave"),
    [
        ("warning", 0.1, "yes", "warning", True),
        ("warning", 0.1, "yes", "error", False),
        ("error", 0.1, "yes", "error", True),
        ("note", 0.1, "no", "warning", True),
        ("note", 0.1, "no", "error", False),
        ("note", None, "no", "error", True),
    ],
)
def test_a_report_is_grave_by_its_findings_or_its_headline(severity, mean, trust, fail_on, grave):
    head = {"estimate": {"mean": mean}, "trust": trust}
    report = {"findings": [{"code": "holes", "severity": severity}], "headline": head}
    assert is_grave(report, fail_on) is grave
