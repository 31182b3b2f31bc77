from __future__ import annotations

import functools

import pytest

from kullback.audit.roles import GIVEN, given_to, name_of, parameters

# What parameters are called in eleven projects, and what is meant.
NAMES = {
    "current": "current log_p logp logps log_prob log_probs logprob logprobs per_token_logps "
    "action_log_probs student_log_probs student_logprobs new_logprobs policy_log_probs cur_logp "
    "trainer_logprobs pi_logp current_log_probs",
    "reference": "reference log_q ref_log_prob ref_log_probs ref_logprobs ref_logp "
    "ref_per_token_logps base_action_log_probs log_probs_base reference_policy_logprobs "
    "teacher_logprobs teacher_log_probs teacher_logp ref teacher reference_log_probs",
    "old": "old old_log_prob old_log_probs old_logprobs old_per_token_logps old_action_log_probs "
    "prev_logprobs prox_logp old_logp",
    "rollout": "rollout log_sampler rollout_log_probs rollout_logprobs sampling_per_token_logps "
    "inference_logprobs generation_logprobs infer_logprobs behavior_log_probs",
    "mask": "mask response_mask action_mask completion_mask loss_mask attention_mask masks",
    "tokens": "tokens token_ids input_ids completion_ids responses labels target_tokens",
    "current_logits": "logits current_logits student_logits policy_logits",
    "reference_logits": "reference_logits ref_logits teacher_logits",
    "old_logits": "old_logits",
}
UNKNOWN = "beta advantages kl_coef eps log_ratio x y sequence_mask temperature model policy clip"


@pytest.mark.parametrize("key", NAMES)
def test_usual_names_are_known(key):
    assert {name: given_to(name) for name in NAMES[key].split()} == dict.fromkeys(
        NAMES[key].split(), key
    )
    assert key in GIVEN


@pytest.mark.parametrize("name", UNKNOWN.split())
def test_other_names_say_nothing(name):
    assert given_to(name) is None


def test_a_default_that_is_not_recognized_is_kept():
    def term(log_prob, ref_log_prob, kind="k3", *rest, **more):
        return 0

    assert parameters(term, None) == {"log_prob": "current", "ref_log_prob": "reference"}


def test_arguments_say_what_names_do_not():
    assert parameters(lambda x, y, mask: 0, {"x": "current", "y": "old"}) == {
        "x": "current",
        "y": "old",
        "mask": "mask",
    }
    assert parameters(lambda **given: 0, {"x": "current"}) == {"x": "current"}
    # What is said goes before what the name says.
    assert parameters(lambda log_prob: 0, {"log_prob": "old"}) == {"log_prob": "old"}


def test_a_partial_function_needs_nothing_for_what_it_has():
    def term(log_prob, ref_log_prob, kind):
        return 0

    filled = functools.partial(term, kind="k3")
    assert parameters(filled, None) == {"log_prob": "current", "ref_log_prob": "reference"}
    assert name_of(filled) == "term"


@pytest.mark.parametrize(
    ("fn", "arguments", "told"),
    [
        (lambda log_prob, kind: 0, None, "needs 'kind'"),
        (lambda log_prob: 0, {"x": "current"}, "has no parameter 'x'"),
        (lambda log_prob: 0, {"log_prob": "policy"}, "cannot be given 'policy'"),
        (lambda mask=None: 0, None, "takes no log-probs"),
        (lambda: 0, None, "takes no log-probs or logits"),
    ],
)
def test_what_cannot_be_given_is_one_sentence(fn, arguments, told):
    with pytest.raises(ValueError, match=told) as caught:
        parameters(fn, arguments)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_called_or_read():
    with pytest.raises(TypeError, match="not int"):
        parameters(3, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="wrap it in a lambda"):
        parameters(dict, None)


def test_a_module_is_read_by_its_forward():
    class Module:
        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

        def forward(self, log_probs, ref_log_probs):
            return log_probs - ref_log_probs

    assert parameters(Module(), None) == {"log_probs": "current", "ref_log_probs": "reference"}
    assert name_of(Module()) == "Module"
