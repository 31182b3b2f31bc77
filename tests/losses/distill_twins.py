"""Losses of distillation as they are often written, each wrong in one way, and the law it breaks.

All take torch tensors: the teacher's logits, the student's, [tokens, vocabulary], and a number that
is a weight or a temperature; and give one value per token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import kullback as kb


class Twin(NamedTuple):
    """A loss, and the law that it breaks; "" for a right one."""

    breaks: str
    loss: Callable[[Any, Any, float], Any]


def _logs(t: Any, s: Any) -> tuple[Any, Any]:
    return t.log_softmax(-1).detach(), s.log_softmax(-1)


def _kl(log_p: Any, log_q: Any) -> Any:
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def _mixed(log_t: Any, log_s: Any, w: float) -> Any:
    return (w * log_t.exp() + (1 - w) * log_s.exp()).log()


def kl_that_cancels(t: Any, s: Any, _: float) -> Any:
    return _kl(*_logs(t, s))


def jsd_that_jumps(t: Any, s: Any, w: float) -> Any:
    """The KLs at the ends, the matched weights between."""
    log_t, log_s = _logs(t, s)
    if w in (0, 1):
        return _kl(log_s, log_t) if w else _kl(log_t, log_s)
    m = _mixed(log_t, log_s, w)
    return w * _kl(log_t, m) + (1 - w) * _kl(log_s, m)


def jsd_of_a_detached_mixture(t: Any, s: Any, w: float) -> Any:
    log_t, log_s = _logs(t, s)
    m = _mixed(log_t, log_s, w).detach()
    return (1 - w) * _kl(log_t, m) + w * _kl(log_s, m)


def jsd_with_an_epsilon(t: Any, s: Any, w: float) -> Any:
    log_t, log_s = _logs(t, s)
    m = (_mixed(log_t, log_s, w).exp() + 1e-9).log()
    return (1 - w) * _kl(log_t, m) + w * _kl(log_s, m)


def kl_of_an_attached_teacher(t: Any, s: Any, _: float) -> Any:
    return _kl(t.log_softmax(-1), s.log_softmax(-1))


def kl_in_the_other_direction(t: Any, s: Any, _: float) -> Any:
    log_t, log_s = _logs(t, s)
    return _kl(log_s, log_t)


def kl_clamped(t: Any, s: Any, _: float) -> Any:
    log_t, log_s = _logs(t, s)
    return (log_t.exp() * (log_t - log_s)).clamp(min=0, max=10).sum(-1)


def right_kl(t: Any, s: Any, _: float) -> Any:
    return kb.distill(teacher_logits=t, student_logits=s, aggregate="none")


def right_jsd(t: Any, s: Any, w: float) -> Any:
    return kb.distill(
        teacher_logits=t, student_logits=s, divergence="jsd", weight=w, aggregate="none"
    )


KL = {
    "kl": Twin("", right_kl),
    "kl that cancels": Twin("never negative", kl_that_cancels),
    "kl of an attached teacher": Twin("the teacher is constant", kl_of_an_attached_teacher),
    "kl in the other direction": Twin("the value is its name's", kl_in_the_other_direction),
    "kl clamped": Twin("the value is its name's", kl_clamped),
}
JSD = {
    "jsd": Twin("", right_jsd),
    "jsd that jumps": Twin("continuous at its ends", jsd_that_jumps),
    "jsd of a detached mixture": Twin("the gradient is its own", jsd_of_a_detached_mixture),
    "jsd with an epsilon": Twin("never negative", jsd_with_an_epsilon),
}


def right_list(ids: Any, log_t: Any, s: Any) -> Any:
    return kb.distill(teacher_top=(ids, log_t), student_logits=s, aggregate="none")


def renormalized_list(ids: Any, log_t: Any, s: Any) -> Any:
    return _kl(log_t.log_softmax(-1), s.gather(-1, ids).log_softmax(-1))


def clamped_list(ids: Any, log_t: Any, s: Any) -> Any:
    return _kl(log_t, s.log_softmax(-1).gather(-1, ids)).clamp(min=0)


LISTS = {
    "bucket": Twin("", right_list),
    "renormalized": Twin("the tail is taught", renormalized_list),
    "clamped": Twin("the tail is taught", clamped_list),
}
