"""What is offered for a column's name."""

from __future__ import annotations

import pytest

from kullback.dumps.offers import SPOKEN_ROLES, offers, role_offered


@pytest.mark.parametrize(
    ("column", "role"),
    [
        ("old_logprobs", "old"),
        ("logp_ref", "reference"),
        ("base.log_probs", "reference"),
        ("lp-policy", "current"),
        ("behavior_per_token_logps", "rollout"),
        ("vllm_log_prob", "rollout"),
        ("teacher_logp", "teacher"),
        ("lp_bf16", "bf16"),
        ("actor_logprobs", "actor"),  # the policy in training, or who acts: it keeps its name
        ("logprobs", ""),
        ("old_policy_logprobs", "old"),
        ("ref_model_logps", "reference"),
        ("old_ref_logps", "old_ref"),
        ("sampler_top20_lps", None),
        ("help", None),
        ("alps", None),
        ("reward", None),
    ],
)
def test_a_name_says_whose_log_probs_it_may_be(column: str, role: str | None):
    assert role_offered(column) == role


@pytest.mark.parametrize("role", SPOKEN_ROLES)
def test_each_word_means_one_role(role: str):
    others = {word for other, words in SPOKEN_ROLES.items() if other != role for word in words}
    assert not others & set(SPOKEN_ROLES[role])
    assert {role_offered(f"{word}_logps") for word in SPOKEN_ROLES[role]} == {role}


@pytest.mark.parametrize(
    ("columns", "taken", "said"),
    [
        (["reward", "length"], [], []),
        (["old_log_prob"], ["current"], ["if they are log-probs: --map old=old_log_prob"]),
        (["ref_lp", "base_lp"], [], ["whose is ref_lp, base_lp? --map rollout= if"]),
        (["old_lp"], ["old"], ["whose is old_lp?"]),
        (["logps", "ref_logps"], [], ["--map reference=ref_logps", "whose is logps?"]),
    ],
)
def test_a_role_is_offered_to_one_column_only(columns: list[str], taken: list[str], said: list):
    made = offers(columns, taken)
    assert len(made) == len(said)
    assert all(part in sentence for part, sentence in zip(said, made, strict=True))
