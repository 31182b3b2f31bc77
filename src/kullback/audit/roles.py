"""What a function's parameters are: whose log-probs or logits, the mask, or the tokens."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from kullback.dumps.aliases import parts_of

# The policies of a world, in the order in which they are looked for in a name: the policy in
# `ref_policy_logps` is the reference.
ROLES: dict[str, frozenset[str]] = {
    "reference": frozenset({"reference", "ref", "base", "teacher", "initial", "init", "sft"}),
    "old": frozenset({"old", "previous", "prev", "prox"}),
    "rollout": frozenset(
        [
            "rollout",
            "sampling",
            "sampler",
            "sampled",
            "inference",
            "infer",
            "generation",
            "gen",
            "behavior",
            "behave",
            "engine",
            "mu",
        ]
    ),
    "current": frozenset(
        [
            "current",
            "cur",
            "new",
            "student",
            "policy",
            "pi",
            "actor",
            "trainer",
            "training",
            "train",
            "learner",
            "model",
        ]
    ),
}

# What can be given to a parameter, and what it is.
GIVEN: dict[str, str] = {
    **{role: f"the {role} policy's log-probs, [sequences, tokens]" for role in ROLES},
    **{
        f"{role}_logits": f"the {role} policy's logits, [sequences, tokens, vocabulary]"
        for role in ROLES
    },
    "mask": "the tokens that count, [sequences, tokens]",
    "tokens": "the sampled tokens' ids, [sequences, tokens]",
}

_WHOLE_NAMES = {"log_p": "current", "log_q": "reference", "log_sampler": "rollout"}
_LOG_PROBS = frozenset({"logprob", "logprobs", "logp", "logps", "lp", "lps"})
_LOGITS = frozenset({"logit", "logits"})
_MASKS = frozenset({"mask", "masks"})
_OF_THESE_TOKENS = frozenset({"per", "token", "tokens", "action", "actions", "all"})
_TOKENS = frozenset(
    [
        "tokens",
        "token_ids",
        "input_ids",
        "ids",
        "labels",
        "targets",
        "actions",
        "responses",
        "completion_ids",
        "target_tokens",
    ]
)
_NOT_PER_TOKEN = frozenset({"sequence", "sample", "seq"})


def given_to(name: str) -> str | None:
    """What a parameter of this name is given, a key of ``GIVEN``; None if the name says nothing.

    Example:
        >>> given_to("ref_per_token_logps"), given_to("student_logits"), given_to("beta")
        ('reference', 'current_logits', None)
    """
    name = name.lower()
    if name in GIVEN or name in _WHOLE_NAMES:
        return _WHOLE_NAMES.get(name, name)
    if name in _TOKENS:
        return "tokens"
    words = set(re.sub(r"log_?(prob|p)", r"log\1", name).split("_"))
    if words & _MASKS:
        return None if words & _NOT_PER_TOKEN else "mask"
    role = next((role for role, called in ROLES.items() if words & called), None)
    unknown = words - _LOG_PROBS - _LOGITS - _OF_THESE_TOKENS - frozenset().union(*ROLES.values())
    if unknown:
        return _in_dumps(name)
    if words & _LOGITS:
        return f"{role or 'current'}_logits"
    if words & _LOG_PROBS or (role and len(words) == 1 and name not in ("model", "policy")):
        return role or "current"
    return None


def _in_dumps(name: str) -> str | None:
    """What the name means in every dump that has it, if that is one thing."""
    parts = {
        part.removeprefix("log_probs.").replace("teacher", "reference") for part in parts_of(name)
    }
    return parts.pop() if len(parts) == 1 and parts <= GIVEN.keys() else None


def parameters(fn: Callable[..., Any], arguments: Mapping[str, str] | None) -> dict[str, str]:
    """What each parameter is given, by its name; those left out keep their default.

    Args:
        fn: The function.
        arguments: What the names do not say, by parameter.

    Raises:
        TypeError: It cannot be called, or its parameters cannot be read.
        ValueError: A parameter must be given and nobody knows what, or ``arguments`` names what
            is not there.

    Example:
        >>> parameters(lambda log_prob, ref_log_prob, beta=0.1: 0, None)
        {'log_prob': 'current', 'ref_log_prob': 'reference'}
    """
    if not callable(fn):
        raise TypeError(f"probe takes a function that can be called, not {type(fn).__name__}")
    try:
        signature = inspect.signature(getattr(fn, "forward", fn))  # a module of torch takes all
    except ValueError as error:
        raise TypeError(
            f"the parameters of {name_of(fn)} cannot be read: wrap it in a lambda whose parameters "
            f"are named, as in lambda current, reference: ..."
        ) from error
    named, said = signature.parameters, dict(arguments or {})
    _refuse_unknown(fn, named, said)
    found: dict[str, str] = {}
    for name, parameter in named.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        key = said.get(name) or given_to(name)
        if key:
            found[name] = key
        elif parameter.default is parameter.empty:
            raise ValueError(
                f"{name_of(fn)} needs {name!r}, and nothing says what that is: say "
                f"arguments={{{name!r}: ...}} (--argument {name}=...) with one of "
                f"{', '.join(GIVEN)}; or give it a value "
                "(functools.partial, a lambda)"
            )
    found |= {name: key for name, key in said.items() if name not in found}
    if not any(key not in ("mask", "tokens") for key in found.values()):
        raise ValueError(
            f"{name_of(fn)} takes no log-probs or logits that could be recognized: name its "
            f"parameters, or say arguments={{...}} with {', '.join(GIVEN)}"
        )
    return found


def _refuse_unknown(
    fn: Callable[..., Any], named: Mapping[str, inspect.Parameter], said: Mapping[str, str]
) -> None:
    takes_any = any(one.kind is one.VAR_KEYWORD for one in named.values())
    for name, key in said.items():
        if name not in named and not takes_any:
            raise ValueError(
                f"{name_of(fn)} has no parameter {name!r}, only {', '.join(named) or 'none'}"
            )
        if key not in GIVEN:
            raise ValueError(f"{name!r} cannot be given {key!r}, only {', '.join(GIVEN)}")


def name_of(fn: Callable[..., Any]) -> str:
    """What to call a function in a sentence.

    Example:
        >>> name_of(print), name_of(lambda: 0)
        ('print', 'the function')
    """
    inner = getattr(fn, "func", fn)  # of a functools.partial
    name = getattr(inner, "__name__", type(inner).__name__)
    return "the function" if name == "<lambda>" else name
