from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import kullback as kb
from kullback.cli import app

run = CliRunner().invoke


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["weights-degenerate"],
        ["k3"],
        ["kl", "--value", "-0.031", "--tokens", "8192"],
    ],
)
def test_the_command_prints_what_the_library_says(arguments):
    done = run(app, ["explain", *arguments])
    name, _, value, _, tokens = (arguments + [None] * 5)[:5]
    said = kb.explain(name, value and float(value), tokens and int(tokens))
    assert done.exit_code == 0
    assert done.stdout == f"{said.text}\n"


@pytest.mark.parametrize("columns", ["60", "160"])
def test_it_fits_the_terminal(columns):
    done = run(app, ["explain", "sampler-mismatch"], env={"COLUMNS": columns})
    said = kb.explain("sampler-mismatch")
    assert done.stdout == "\n".join(said.lines(int(columns))) + "\n"
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_json_has_its_keys_sorted_and_only_finite_numbers():
    done = run(app, ["explain", "misaligned", "--json", "-"])
    data = json.loads(done.stdout, parse_constant=pytest.fail)
    assert list(data) == sorted(data)
    assert (data["schema"], data["kind"]) == ("kullback.explanation/1", "finding")
    assert data["numbers"]["tokens"] == 51200


def test_json_is_written_to_a_file_beside_the_text(tmp_path):
    path = tmp_path / "said.json"
    done = run(app, ["explain", "ess", "--json", str(path)])
    assert json.loads(path.read_text(encoding="utf-8"))["name"] == "ess"
    assert done.stdout.startswith("ess: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["weight-degenerate"], "did you mean weights-degenerate?"),
        (["kl", "--value", "-0.031"], "by its name, its value and its tokens"),
        (["ess", "--value", "1", "--tokens", "3"], "not of ess"),
        (["kl", "--value", "nan", "--tokens", "3"], "not finite"),
        (["ess", "--json", "nowhere/said.json"], "there is no folder"),
        (["actor/klloss"], "did you mean actor/kl_loss"),
        (["kl", "--framework", "verll"], "did you mean verl?"),
        (["kl", "--config", "run.json"], "whose version or settings"),
        (["kl", "--framework", "trl", "--config", "nowhere.json"], "cannot be read"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence_and_exit_status_2(arguments, told):
    done = run(app, ["explain", *arguments])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_framework_its_release_and_its_settings_are_taken(tmp_path):
    config = tmp_path / "run.json"
    config.write_text('{"actor": {"kl_loss_coef": 0}}', encoding="utf-8")
    asked = ["explain", "actor/kl_loss", "--framework", "verl", "--version", "0.9.1"]
    done = run(app, [*asked, "--config", str(config)])
    said = kb.explain("actor/kl_loss", framework="verl", version="0.9.1", config=config)
    assert done.stdout == f"{said.text}\n"
    assert "Nothing is trained on it: actor.kl_loss_coef is 0." in done.stdout


def test_a_value_of_a_framework_is_judged():
    asked = ["explain", "ref_kl", "--framework", "prime-rl", "--value", "-0.031"]
    done = run(app, [*asked, "--tokens", "8192", "--json", "-"])
    assert json.loads(done.stdout)["numbers"]["sign"] == -1
