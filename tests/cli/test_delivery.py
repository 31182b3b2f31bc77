from __future__ import annotations

import json

from kullback.cli.delivery import deliver

MADE = {"b": 1, "a": None}


def delivered(capsys, **where: str | None) -> str:
    how = {"html": None, "json": None, **where}
    deliver(
        MADE,
        **how,
        page=lambda made: f"<p>{made['b']}</p>",
        show=lambda made, console: console.print(f"shown {made['b']}"),
    )
    return capsys.readouterr().out


def test_it_is_shown_and_what_was_written_is_named(capsys, tmp_path) -> None:
    page, data = str(tmp_path / "a.html"), str(tmp_path / "a.json")
    assert delivered(capsys) == "shown 1\n"
    assert delivered(capsys, html=page, json=data) == f"shown 1\nWrote {page}\nWrote {data}\n"
    assert (tmp_path / "a.html").read_text() == "<p>1</p>"
    assert json.loads((tmp_path / "a.json").read_text()) == MADE


def test_data_on_the_output_stand_there_alone(capsys, tmp_path) -> None:
    page = str(tmp_path / "a.html")
    assert json.loads(delivered(capsys, html=page, json="-")) == MADE
    assert (tmp_path / "a.html").exists()
