"""Each form has the mean gradient that it claims, and is what autograd makes of its words."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kullback.levels import Totals
from kullback.losses.forms import CLAIMS
from kullback.losses.loss import loss

from .enumerated import CASES, SETTINGS, WORLDS, Language, Setting, claimed, goes, language, roles

pytest.importorskip("torch")
ORACLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "d_tabular_autoregressive.json").read_text()
)


def losses(lang: Language, learn: str, setting: Setting, aggregate: str, **options: Any) -> Any:
    """The loss of each sequence alone, its denominators those of the whole language."""
    import torch

    p, q, s = roles(learn, setting)
    exact = lang.along(lang.kl(p, q)) if options.get("form") == "rao_blackwell" else None
    over = p if setting.prefixes == "p" else s
    total = lang.at_prefixes(lang.kl(p, q), over).detach()
    length = lang.length(over).detach()
    pooled = Totals(total, length, total * 0, total * 0 + 1)
    arrays = [lang.by_token(p), lang.by_token(q), lang.by_token(s), lang.alive]
    arrays += [] if exact is None else [exact]

    def one(log_p: Any, log_q: Any, log_s: Any, mask: Any, kl: Any = None) -> Any:
        return loss(
            log_p=log_p[None],
            log_q=log_q[None],
            log_sampler=None if setting.sampled_by == "p" else log_s[None],
            mask=mask[None],
            exact=None if kl is None else kl[None],
            learn=learn,
            aggregate=aggregate,
            prefixes=setting.prefixes,
            weights=setting.weights,
            biased=True,
            pooled=pooled,
            **options,
        )

    return torch.func.vmap(one)(*arrays)


def expected(lang: Language, learn: str, setting: Setting, aggregate: str, **options: Any) -> Any:
    """The mean of the loss, of which the probabilities do not learn."""
    found = losses(lang, learn, setting, aggregate, **options)
    return (lang.probability(roles(learn, setting)[2]).detach() * found).sum()


def same(found: np.ndarray, truth: np.ndarray) -> bool:
    return bool(np.abs(found - truth).max() <= 1e-12)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    ("learn", "gradient", "form", "setting", "aggregate"),
    [
        (*case, aggregate)
        for case in CASES
        for aggregate in ("token_mean", "sequence_sum")
        # There m is the mean of the KL, and not of the square that this form descends.
        if (*case[1:3], aggregate) != ("sequence", "ratio_k2", "token_mean")
    ],
)
def test_the_mean_gradient_is_the_one_that_is_claimed(
    learn, gradient, form, setting, aggregate, name
):
    lang, claim = language(name), CLAIMS[learn, gradient, form]
    mean = expected(lang, learn, setting, aggregate, gradient=gradient, form=form)
    truth = claimed(lang, claim.gradient_of, learn, gradient, setting, aggregate)
    assert same(lang.slope(mean), lang.slope(truth))
    kl = claimed(lang, "KL(p||q)", learn, gradient, setting, aggregate)
    assert same(lang.slope(mean), lang.slope(kl)) == (claim.biased is None)
    assert abs(mean - kl).item() < 1e-12  # the value is right whatever the gradient


def written(form: str, lang: Language, gradient: str, setting: Setting) -> Any:
    """The forms in the words of autograd, summed over each sequence; current learns as p."""
    import torch

    p, q, s = (lang.by_token(role) for role in ("current", "reference", "old"))
    s = p.detach() if setting.sampled_by == "p" else s
    q = q.detach()
    x, log_w = p - q, p - s
    to_here = log_w.cumsum(-1)
    if setting.weights == "sequence":
        to_here = log_w.sum(-1, keepdim=True).expand_as(log_w)
    if gradient == "sequence":
        attached = to_here
    elif setting.weights in ("none", "token"):
        attached = log_w
    else:
        attached = (to_here - log_w).detach() + log_w
    held = attached.detach() if setting.weights != "none" else torch.zeros_like(p)
    whole = x.sum(-1)
    k: dict[str, Callable[[Any], Any]] = {
        "k1": lambda x: x,
        "k2": lambda x: x**2 / 2,
        "k3": lambda x: torch.expm1(-x) + x,
    }
    if form.startswith("ratio_"):
        return (attached.exp() * torch.where(lang.alive, k[form[6:]](x), 0.0)).sum(-1)
    if form == "score":
        after = (held.exp() * x).detach()
        if gradient == "sequence":
            after = after.flip(-1).cumsum(-1).flip(-1)
        return (after * p).sum(-1)
    if gradient == "sequence":
        return held[:, 0].exp() * k[form](whole)
    return (held.exp() * k[form](x)).sum(-1)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    ("gradient", "form", "setting"),
    [case[1:] for case in CASES if case[0] == "p" and case[2] != "rao_blackwell"],
)
def test_the_gradient_of_each_sequence_is_autograd_s(gradient, form, setting, name):
    lang = language(name)
    found = losses(lang, "p", setting, "sequence_sum", gradient=gradient, form=form)
    words = written(form, lang, gradient, setting)
    for one, other in zip(found, words, strict=True):
        assert same(lang.slope(one), lang.slope(other))


def test_straight_through_is_ratio_k3_is_score_token_by_token():
    lang, setting = language("eos"), Setting("other", "sampler", "token")
    k2, k3, score = (
        losses(lang, "p", setting, "sequence_sum", gradient="token", form=form)
        for form in ("k2", "ratio_k3", "score")
    )
    for a, b, c in zip(k2, k3, score, strict=True):
        assert same(lang.slope(a), lang.slope(b))
        assert same(lang.slope(a), lang.slope(c))


def options(row: dict[str, Any]) -> dict[str, Any] | None:
    """The row of the oracle as a loss, where it is one of ours."""
    whole, weight = row["level"] == "sequence", row["weight"]
    form = row["estimator"]
    if row["use"].startswith("reward"):
        credit = {"reward_to_go": "sequence", "immediate": "token"}.get(row["use"][7:])
        if form != "k1" or credit is None or row["sampler"] == "mu":
            return None
        return {"form": "score", "gradient": credit, "weights": "none", "prefixes": "p"}
    if form == "rao_blackwell":
        gradient = "sequence" if "future" in row["use"] else "token"
        return {"form": form, "gradient": gradient, "weights": "none", "prefixes": "p"}
    if weight == "seq_attached":
        gradient = {"form": f"ratio_{form}", "gradient": "sequence"}
        return None if whole else {**gradient, "weights": "sequence", "prefixes": "p"}
    if weight == "token_attached":
        return {"form": f"ratio_{form}", "weights": "token", "prefixes": "sampler"}
    weights = {
        "none": "none",
        "seq_detached": "sequence",
        "token_detached": "token",
        "prefix_detached": "prefix",
    }[weight]
    prefixes = "sampler" if weights in ("none", "token") and not whole else "p"
    gradient = "sequence" if whole else "token"
    return {"form": form, "gradient": gradient, "weights": weights, "prefixes": prefixes}


ROWS = [
    (name, number)
    for name in WORLDS
    for number, row in enumerate(ORACLES[name]["expected_gradients"])
    if options(row)
]


@pytest.mark.parametrize(("name", "number"), ROWS)
def test_the_oracle_agrees(name, number):
    row = ORACLES[name]["expected_gradients"][number]
    given = options(row)
    assert given
    setting = Setting(
        "p" if row["sampler"] == "pi" else "other", given.pop("prefixes"), given.pop("weights")
    )
    lang = language(name)
    mean = expected(lang, "p", setting, "sequence_sum", **given)
    truth = np.array(row["expected_gradient"], dtype=np.float64).reshape(lang.logits.shape)
    assert same(lang.slope(mean), truth)


def test_the_other_rows_of_the_oracle_are_no_losses_here():
    """Rewards of k2 and k3, full returns, stale rewards, squares of sums under their own weight."""
    assert len(ROWS) == 68


@pytest.mark.parametrize(
    ("form", "gradient", "weights"),
    [
        (form, gradient, weights)
        for form in ("score", "ratio_k1", "ratio_k3", "k2")
        for gradient in ("token", "sequence")
        for weights in ("prefix", "sequence")
        if goes(gradient, form, Setting("other", "p", weights))
    ],
)
def test_a_truncated_weight_is_a_constant_where_it_is_cut(form, gradient, weights):
    lang, setting, cap = language("eos"), Setting("other", "p", weights), 0.9
    found = losses(lang, "p", setting, "sequence_sum", gradient=gradient, form=form, truncate=cap)
    import torch

    p, q, s = (lang.by_token(role) for role in ("current", "reference", "old"))
    x, log_w = p - q.detach(), p - s
    to_here = log_w.cumsum(-1) if weights == "prefix" else log_w.sum(-1, keepdim=True) + 0 * log_w
    mixed = to_here if gradient == "sequence" else (to_here - log_w).detach() + log_w
    w = mixed.exp().clamp(max=cap)
    assert 0 < int((w == cap).sum()) < w.numel()
    if form == "score":
        after = (w * x).detach()
        after = after.flip(-1).cumsum(-1).flip(-1) if gradient == "sequence" else after
        words = (after * p).sum(-1)
    elif form == "k2":
        square = x.sum(-1, keepdim=True) ** 2 / 2 if gradient == "sequence" else x**2 / 2
        words = (w.detach() * square)[:, : 1 if gradient == "sequence" else None].sum(-1)
    else:
        k = x if form == "ratio_k1" else torch.expm1(-x) + x
        words = (w * torch.where(lang.alive, k, 0.0)).sum(-1)
    for one, other in zip(found, words, strict=True):
        assert same(lang.slope(one), lang.slope(other))


@pytest.mark.parametrize(
    ("gradient", "setting"),
    [(g, one) for g in ("token", "sequence") for one in SETTINGS if goes(g, "score", one)],
)
def test_a_baseline_that_knows_only_the_prefix_leaves_the_mean(setting, gradient):
    lang, (p, q, s) = language("eos"), roles("p", setting)
    import torch

    def one(log_p: Any, log_q: Any, log_s: Any, mask: Any, b: Any, times: float) -> Any:
        return loss(
            log_p=log_p[None],
            log_q=log_q[None],
            log_sampler=None if setting.sampled_by == "p" else log_s[None],
            mask=mask[None],
            form="score",
            gradient=gradient,
            aggregate="sequence_sum",
            prefixes=setting.prefixes,
            weights=setting.weights,
            baseline=times * b[None],
        )

    arrays = [lang.by_token(role) for role in (p, q, s)] + [lang.alive, lang.along(lang.kl(p, q))]
    means = []
    for times in (0.0, 3.0):
        rows = torch.func.vmap(partial(one, times=times))(*arrays)
        means.append(lang.slope((lang.probability(s).detach() * rows).sum()))
    assert same(*means)


def quarters() -> Language:
    """A language whose probabilities are quarters: 64 rows are exactly all that is drawn."""
    from kullback.worlds.tabular import Tabular, tree

    contexts = len(tree(3, 3, 2).contexts)
    rows = np.array([[1, 1, 2], [2, 1, 1], [1, 2, 1]])[np.arange(contexts) % 3] / 4
    current, old = np.log(rows), np.log(np.roll(rows, 1, axis=0))
    reference = WORLDS["eos"].log_probs["reference"]
    tables = {"current": current, "old": old, "reference": reference}
    return Language(Tabular(tables, sampler="current", max_length=3, eos=2))


@pytest.mark.parametrize("aggregate", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize(
    ("learn", "gradient", "form", "setting"),
    # The reference's probabilities are no quarters: it does not sample here.
    [c for c in CASES if not CLAIMS[c[:3]].biased and (c[0], c[3].sampled_by) != ("q", "p")],
)
def test_a_batch_that_is_all_that_is_drawn_needs_no_pooled_sums(
    learn, gradient, form, setting, aggregate
):
    """Then what is divided by, and the mean that is taken off, are those of the language."""
    lang = quarters()
    p, q, s = roles(learn, setting)
    rows = np.repeat(np.arange(15), np.round(64 * lang.world.probability(s)).astype(int))
    assert len(rows) == 64
    found = loss(
        log_p=lang.by_token(p)[rows],
        log_q=lang.by_token(q)[rows],
        log_sampler=None if setting.sampled_by == "p" else lang.by_token(s)[rows],
        mask=lang.alive[rows],
        exact=lang.along(lang.kl(p, q))[rows] if form == "rao_blackwell" else None,
        learn=learn,
        gradient=gradient,
        form=form,
        aggregate=aggregate,
        prefixes=setting.prefixes,
        weights=setting.weights,
    )
    truth = claimed(lang, "KL(p||q)", learn, gradient, setting, aggregate)
    assert abs(found - truth).item() < 1e-12
    assert same(lang.slope(found), lang.slope(truth))


def test_a_length_that_is_held_fixed_bends_the_gradient_by_a_fifth():
    """What docs/value-is-not-gradient.md says of this language."""
    lang = language("eos")
    total = lang.expected(lang.along(lang.kl("current", "reference")).sum(-1), "current")
    length = lang.length("current")
    right, held = lang.slope(total / length), lang.slope(total / length.detach())
    assert round(np.linalg.norm(held - right) / np.linalg.norm(right), 2) == 0.20
