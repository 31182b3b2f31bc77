"""Whose dump is it: each project by its own columns, and no guess where the names do not tell."""

from __future__ import annotations

import pytest

from kullback.dumps.aliases import ALIASES, GENERIC, NOT_ALIGNED
from kullback.dumps.errors import DumpError
from kullback.dumps.layout import Held, family
from kullback.dumps.recognize import Recognition, recognize

NUMBERS = Held(1, "number")
KINDS = {
    "text": Held(0, "text"),
    "prompt": Held(0, "text"),
    "prompt_id": Held(0, "text"),
    "sequence_mask": Held(0, "number"),
    "top_ids": Held(2, "number"),
    "top_log_probs": Held(2, "number"),
}


def found(
    *names: str, map: dict[str, str] | None = None, held: dict[str, Held] | None = None
) -> Recognition:
    return recognize("a.jsonl", dict.fromkeys(names, NUMBERS) | (held or {}), map or {})


def parts(one: Recognition) -> dict[str, str]:
    return {use.column: use.part for use in one.uses}


def columns_of(project: str) -> dict[str, Held]:
    return {
        name: KINDS.get(family(meanings[0]), NUMBERS) if meanings else NUMBERS
        for name, meanings in ALIASES[project].items()
    }


@pytest.mark.parametrize("project", sorted(set(ALIASES) - set(NOT_ALIGNED)))
def test_a_project_is_known_by_its_own_columns(project: str):
    held = columns_of(project)
    one = recognize("a.jsonl", held, {})
    assert one.layout == project
    wanted = {meanings[0] for meanings in ALIASES[project].values() if meanings}
    # verl's teacher has ids only beside a list of log-probs per token.
    assert set(parts(one).values()) == wanted - {"top_ids.teacher"}
    guess = next(guess for guess in one.guesses if guess.role == one.roles[0])
    assert guess.how in ("alias", "content")
    assert guess.reason.startswith(f"{project}'s name for the ")


def test_canonical_names_come_first():
    one = found("rollout_log_probs", "log_probs.rollout", "log_probs.current", "mask", "loss_mask")
    assert parts(one) == {
        "log_probs.rollout": "log_probs.rollout",
        "log_probs.current": "log_probs.current",
        "mask": "mask",
    }
    assert one.layout == "kullback"
    assert {guess.how for guess in one.guesses} == {"canonical"}
    assert one.unused["rollout_log_probs"] == "rollout is taken from log_probs.rollout"


def test_a_name_with_two_meanings_belongs_to_the_project_whose_columns_are_there():
    assert parts(found("rollout_log_probs", "log_probs"))["log_probs"] == "log_probs.old"
    roll = found("infer_logprobs", "old_log_probs", "log_probs")
    assert parts(roll)["log_probs"] == "log_probs.current"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("log_probs", "ref_log_probs"), "old in slime, current in ROLL"),
        (("logprobs", "mask"), "the name alone does not say whose it is"),
        (("logprobs", "prox_logp", "ref_logp"), "AReaL keeps its log-probs shifted"),
        (("logprobs", "log_probs.current"), "log-probs of current"),
        (("text", "reward"), "columns: reward, text"),
        (("old", "reference"), "if they are log-probs: --map old=old --map reference=reference"),
        (
            ("log_prob", "prev_lp"),
            "current, and a KL needs those of two policies: name them with "
            "--map role=column (if they are log-probs: --map old=prev_lp)",
        ),
        (("lp_old", "lp_x", "n"), "(if they are log-probs: --map old=lp_old --map x=lp_x)"),
    ],
)
def test_what_cannot_be_told_is_refused_and_a_map_is_asked_for(names: tuple[str, ...], said: str):
    with pytest.raises(DumpError, match=r"--map role=column") as error:
        found(*names)
    assert said in str(error.value)


def test_an_undecided_name_is_left_out_if_two_roles_are_known():
    one = found("rollout_log_probs", "old_log_probs", "responses", "log_probs")
    assert one.roles == ["rollout", "old"]
    assert "map it" in one.unused["log_probs"]


def test_two_columns_for_one_role_are_refused():
    with pytest.raises(DumpError, match="rollout_log_probs and rollout_logprobs both look like"):
        found("rollout_log_probs", "rollout_logprobs", "old_log_probs")


def test_what_a_column_holds_decides_between_two_parts_of_one_name():
    text = found("rollout_log_probs", "old_log_probs", held={"responses": Held(0, "text")})
    assert parts(text)["responses"] == "text"
    guess = next(guess for guess in text.guesses if guess.column == "responses")
    assert (guess.how, guess.reason) == (
        "content",
        "verl's name for the completion; it holds a text",
    )
    ids = found("rollout_log_probs", "old_log_probs", "responses")
    assert parts(ids)["responses"] == "tokens"


def test_several_masks_of_one_project_all_count():
    one = found(
        "generation_logprobs",
        "prev_logprobs",
        "token_loss_mask",
        held={"sample_loss_mask": Held(0, "number")},
    )
    masks = {use.column: use.part for use in one.uses if "mask" in use.part}
    assert masks == {"token_loss_mask": "mask", "sample_loss_mask": "sequence_mask"}
    assert [guess.role for guess in one.guesses].count("mask") == 2


def test_a_map_overrides_names():
    one = found("log_probs.rollout", "mine", "logprobs", map={"rollout": "mine", "new": "logprobs"})
    assert parts(one) == {"mine": "log_probs.rollout", "logprobs": "log_probs.new"}
    assert {guess.how for guess in one.guesses} == {"map"}
    assert one.unused == {"log_probs.rollout": "rollout is taken from mine"}


def test_parts_can_be_mapped_too():
    held = {"p": Held(0, "text"), "m": Held(1, "flag"), "e": NUMBERS}
    wanted = {"prompt": "p", "mask": "m", "entropy.a": "e", "a": "x", "b": "y"}
    one = found("x", "y", map=wanted, held=held)
    assert parts(one) == {
        "p": "prompt",
        "m": "mask",
        "e": "entropy.a",
        "x": "log_probs.a",
        "y": "log_probs.b",
    }


@pytest.mark.parametrize(
    ("map", "said"),
    [
        ({"current": "nowhere"}, "a.jsonl has no column 'nowhere' to take as current: it has x, y"),
        ({"text": "x"}, "column x holds a list of numbers, but text needs a text"),
        ({"not a role": "x"}, "'not a role' is neither a role nor a part"),
    ],
)
def test_a_map_that_cannot_be_is_one_sentence(map: dict[str, str], said: str):
    with pytest.raises(DumpError) as error:
        found("x", "y", map=map)
    assert said in str(error.value)


def test_heads_need_ids_and_log_probs():
    roles = ("log_probs.a", "log_probs.b")
    one = found(*roles, held={"top_ids.a": Held(2, "number"), "top_k.a": Held(0, "number")})
    assert one.unused == dict.fromkeys(["top_ids.a", "top_k.a"], "top_log_probs.a is not there")


def test_columns_that_hold_something_else_say_so():
    roles = ("log_probs.a", "log_probs.b")
    held = {"completion": Held(0, "other"), "tokens": Held(0, "text")}
    one = found(*roles, "input_ids", "x", held=held)
    assert one.unused == {
        "completion": "holds an object, but text needs a text",
        "input_ids": "in verl it covers other tokens than the log-probs do",
        "tokens": "holds a text, but tokens needs a list of numbers",
        "x": "no name that is known here",
    }


def test_generic_names_stay_undecided_in_a_dump_of_ours():
    one = found("log_probs.a", "log_probs.b", *GENERIC)
    assert all(why.endswith("map it") for why in one.unused.values())
    assert set(one.unused) == set(GENERIC)
