from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import kullback as kb
from kullback.arrays import to_numpy
from kullback.levels import Totals
from kullback.losses.forms import CLAIMS

from .enumerated import CASES, WORLDS, claimed, language, roles

RNG = np.random.default_rng(5)
SHAPE = (4, 6)
P, Q, S = (-RNG.exponential(1.0, SHAPE) for _ in range(3))
MASK = np.arange(6) < np.array([6, 3, 1, 5])[:, None]
KL = RNG.exponential(0.2, SHAPE)
NAMES = ("log_p", "log_q", "log_sampler")
OFF: dict[str, Any] = {"log_p": P, "log_q": Q, "log_sampler": S}
ON: dict[str, Any] = {"log_p": P, "log_q": Q}

# One of every kind: how the weights go, who learns, and what is summed along the sequence.
CHOICES: dict[str, dict[str, Any]] = {
    "on policy": {},
    "sequence": {"gradient": "sequence"},
    "ratio_k1": {"gradient": "sequence", "form": "ratio_k1", "aggregate": "sequence_sum"},
    "q learns": {"learn": "q"},
    "exact": {"exact": KL, "gradient": "sequence"},
    "biased": {"form": "k3", "biased": True, "clamp": 0.7},
}
STALE: dict[str, dict[str, Any]] = {
    "token weights": {},
    "prefix weights": {"prefixes": "p"},
    "stale sequence": {"gradient": "sequence"},
    "stale ratio_k3": {"gradient": "sequence", "form": "ratio_k3"},
    "stale k2": {"gradient": "sequence", "form": "k2"},
    "stale exact": {"exact": KL, "gradient": "sequence"},
    "truncated": {"gradient": "sequence", "form": "ratio_k1", "truncate": 1.2, "biased": True},
    "stale q": {"learn": "q"},
}
ALL = [*((ON, one) for one in CHOICES.values()), *((OFF, one) for one in STALE.values())]
every = pytest.mark.parametrize(("logs", "options"), ALL, ids=[*CHOICES, *STALE])


def given(library: Any, logs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The arrays as the library's."""
    return {
        name: library.array(one) if isinstance(one, np.ndarray) else one
        for name, one in {**logs, **options}.items()
    }


def slopes(library: Any, logs: dict[str, Any], **options: Any) -> tuple[Any, dict[str, Any]]:
    """The value, and the gradients in each log-prob."""
    arrays = given(library, logs, options)
    names = [name for name in arrays if name in NAMES]

    def value(*of: Any) -> Any:
        return kb.loss(**{**arrays, **dict(zip(names, of, strict=True))})

    found = library.gradient(value, tuple(range(len(names))))(*(arrays[name] for name in names))
    gradients = (to_numpy(one, "") for one in found)
    return to_numpy(kb.loss(**arrays), ""), dict(zip(names, gradients, strict=True))


@every
def test_the_value_is_the_same_in_all_libraries(library, logs, options):
    found = kb.loss(**given(library, logs, {**options, "mask": MASK * 1.0}))
    assert float(found) == pytest.approx(
        kb.loss(**logs, **options, mask=MASK), rel=1e-12, abs=1e-13
    )


@pytest.mark.parametrize("level", ["token_mean", "sequence_sum"])
@pytest.mark.parametrize("prefixes", ["sampler", "p"])
@pytest.mark.parametrize("logs", [ON, OFF], ids=["on", "off"])
def test_the_value_is_what_estimate_calls_k3(logs, prefixes, level):
    estimate = kb.estimate(**logs, mask=MASK, level=level, prefixes=prefixes, method="k3")
    found = kb.loss(**logs, mask=MASK, aggregate=level, prefixes=prefixes)
    assert float(found) == pytest.approx(estimate.mean, rel=1e-12)


@every
def test_only_who_learns_has_a_gradient(traceable, logs, options):
    _, found = slopes(traceable, logs, **options)
    learner = "log_q" if options.get("learn") == "q" else "log_p"
    for name, gradient in found.items():
        assert gradient.any() == (name == learner and "exact" not in options) or (
            "exact" in options and name == "log_p"
        )


@every
@pytest.mark.parametrize("junk", [np.nan, -np.inf])
def test_what_stands_outside_the_mask_reaches_neither_value_nor_gradient(
    traceable, logs, options, junk
):
    clean = slopes(traceable, logs, **options, mask=MASK)
    spoilt = {name: np.where(MASK, one, junk) for name, one in logs.items()}
    if "exact" in options:
        options = {**options, "exact": np.where(MASK, KL, junk)}
    value, gradients = slopes(traceable, spoilt, **options, mask=MASK)
    assert float(value) == float(clean[0])
    for name, gradient in gradients.items():
        assert gradient.tolist() == clean[1][name].tolist()
        assert not gradient[~MASK].any()


@every
def test_packed_rows_give_what_padded_ones_give(traceable, logs, options):
    value, gradients = slopes(traceable, logs, **options, mask=MASK)
    lengths = traceable.xp.asarray(MASK.sum(axis=1).tolist())
    flat = {name: one[MASK] for name, one in logs.items()}
    if "exact" in options:
        options = {**options, "exact": KL[MASK]}
    packed, flat_gradients = slopes(traceable, flat, **options, lengths=lengths)
    assert float(packed) == pytest.approx(float(value), rel=1e-13)
    for name, gradient in flat_gradients.items():
        np.testing.assert_allclose(gradient, gradients[name][MASK], rtol=1e-12, atol=1e-14)


@every
def test_it_can_be_traced_in_one_graph(traceable, logs, options):
    arrays = given(traceable, logs, options)
    others = {name: one for name, one in arrays.items() if name not in NAMES}
    names = [name for name in arrays if name in NAMES]
    mask = traceable.xp.asarray(MASK.tolist())

    def value(mask: Any, *of: Any) -> Any:
        return kb.loss(**others, mask=mask, **dict(zip(names, of, strict=True)))

    logs = [arrays[name] for name in names]
    assert float(traceable.traced(value)(mask, *logs)) == pytest.approx(
        float(value(mask, *logs)), rel=1e-12
    )


# Pooled totals are those of the unbiased loss, and of the weights of the prefix.
@pytest.mark.parametrize(
    ("logs", "options"),
    [
        one
        for one in ALL
        if not {"clamp", "truncate"} & one[1].keys() and one[1] is not STALE["stale k2"]
    ],
)
def test_shares_of_a_pooled_step_add_to_the_loss_and_gradient_of_the_step(traceable, logs, options):
    value, gradients = slopes(traceable, logs, **options, mask=MASK)
    over_p = options.get("prefixes") == "p" or options.get("gradient") == "sequence"
    exact = {"exact": KL} if "exact" in options else {}
    parts = [slice(0, 1), slice(1, 4)]

    def cut(arrays: dict[str, Any], rows: slice) -> dict[str, Any]:
        return {n: a[rows] if isinstance(a, np.ndarray) else a for n, a in arrays.items()}

    pooled = [
        kb.loss_totals(
            **given(traceable, cut({**logs, **exact, "mask": MASK * 1.0}, rows), {}),
            prefixes="p" if over_p else "sampler",
        )
        for rows in parts
    ]
    shares = [
        slopes(traceable, cut(logs, r), **cut({**options, "mask": MASK}, r), pooled=sum_of(pooled))
        for r in parts
    ]
    assert sum(float(share) for share, _ in shares) == pytest.approx(float(value), rel=1e-12)
    for name in logs:
        joined = np.concatenate([share[name] for _, share in shares])
        np.testing.assert_allclose(joined, gradients[name], rtol=1e-11, atol=1e-14)


def sum_of(totals: list[Totals]) -> Totals:
    first, second = totals
    return first + second


def test_the_mean_of_micro_batch_losses_is_another_number():
    whole = float(kb.loss(**ON, mask=MASK))
    parts = [
        float(kb.loss(log_p=P[a:b], log_q=Q[a:b], mask=MASK[a:b])) for a, b in pairwise((0, 1, 4))
    ]
    assert abs(np.mean(parts) - whole) > 0.01


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_widened_first(traceable, dtype):
    half = {name: traceable.array(one, dtype) for name, one in OFF.items()}
    single = {name: traceable.array(to_numpy(one, "")) for name, one in half.items()}
    found = kb.loss(**half)
    assert str(found.dtype).endswith("float32")
    assert float(found) == pytest.approx(float(kb.loss(**single)), rel=1e-6)


@every
def test_extreme_log_ratios_are_finite(traceable, logs, options):
    """e^300 is no float32; a log-prob of float32 can be of a policy that is so far away."""
    far = {**logs, "log_q": np.where(np.arange(6) % 2, Q - 300.0, Q + 0.0)}
    far["log_p"] = np.where(np.arange(6) % 3 == 1, P - 300.0, P)
    value, gradients = slopes(traceable, far, **options, mask=MASK)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


def test_a_token_that_q_rules_out_makes_the_loss_infinite_and_a_clamp_says_so(traceable):
    q = np.where(np.arange(6) == 2, -np.inf, Q)
    value, gradients = slopes(traceable, {"log_p": P, "log_q": q})
    assert np.isposinf(value)
    assert np.isfinite(gradients["log_p"]).all()
    for form in ("k1", "k3"):
        value, gradients = slopes(traceable, {"log_p": P, "log_q": q}, learn="q", form=form)
        assert np.isposinf(value)
        assert np.isfinite(gradients["log_q"]).all()
        assert not gradients["log_q"][:, 2].any()
    kl = np.where(np.arange(6) == 2, np.inf, KL)
    value, gradients = slopes(traceable, ON, exact=kl, gradient="sequence")
    assert np.isposinf(value)
    assert np.isfinite(gradients["log_p"]).all()
    value, gradients = slopes(traceable, {"log_p": P, "log_q": q}, clamp=20.0, biased=True)
    assert np.isfinite(value)
    assert np.isfinite(gradients["log_p"]).all()


@pytest.mark.parametrize(("logs", "options"), [one for one in ALL if one[0] is OFF])
def test_a_token_that_p_cannot_draw_has_no_gradient(traceable, logs, options):
    gone = {**logs, "log_p": np.where(np.arange(6) == 2, -np.inf, P)}
    value, gradients = slopes(traceable, gone, **options, mask=MASK)
    assert np.isfinite(value)
    assert np.isfinite(gradients["log_p"]).all()
    assert not gradients["log_p"][:, 2].any()


def test_a_sampler_that_draws_what_p_cannot_leaves_the_value_unbiased():
    """E_s[w k3] = KL(p||q) with the mass q/s where p has none."""
    p, q, s = np.array([0.6, 0.4, 0.0]), np.array([0.5, 0.2, 0.3]), np.array([0.4, 0.4, 0.2])
    with np.errstate(divide="ignore"):
        log_p, log_q, log_s = (np.log(one)[:, None] for one in (p, q, s))
    values = [
        float(kb.loss(log_p=log_p[i : i + 1], log_q=log_q[i : i + 1], log_sampler=log_s[i : i + 1]))
        for i in range(3)
    ]
    assert s @ values == pytest.approx(0.6 * np.log(1.2) + 0.4 * np.log(2.0), rel=1e-12)


def test_all_of_it_stays_on_the_device_of_the_log_probs():
    """A device without numbers refuses to meet another: the host is never asked."""
    torch = pytest.importorskip("torch")
    logs = {name: torch.empty(7, device="meta") for name in NAMES}
    every_kind: list[dict[str, Any]] = [{}, {"gradient": "sequence"}, {"prefixes": "p"}]
    for options in every_kind:
        assert kb.loss(**logs, lengths=[3, 4], **options).device.type == "meta"
    found = kb.advantage(**{n: logs[n] for n in NAMES[:2]}, lengths=[3, 4], gradient="sequence")
    assert found.device.type == "meta"


def test_an_empty_mask_is_no_number(traceable):
    value, gradients = slopes(traceable, ON, mask=0 * MASK)
    assert np.isnan(value)
    assert not np.nan_to_num(gradients["log_p"]).any()


def test_what_is_biased_is_refused_and_then_described():
    with pytest.raises(ValueError, match=r"(?s)biased=True takes it as it is.*KL\(q\|\|p\)"):
        kb.loss(**ON, form="k3")
    with pytest.raises(ValueError, match="a baseline goes with form='score', not with k2"):
        kb.loss(**ON, baseline=KL)
    with pytest.raises(ValueError, match="shape"):
        kb.loss(**ON, exact=KL[:2])


def test_a_mask_of_weights_is_no_number(traceable):
    arrays = given(traceable, ON, {})
    assert np.isnan(float(kb.loss(**arrays, mask=traceable.array(MASK * 0.5))))


@pytest.mark.parametrize(
    ("learn", "gradient", "form", "setting"),
    [case for case in CASES if case[3][:2] != ("p", "sampler")],
)
def test_the_mean_gradient_in_jax_is_the_one_that_is_claimed(learn, gradient, form, setting):
    # m is the mean of the KL, and not of the square that ratio_k2 descends.
    aggregate = "sequence_sum" if form == "ratio_k2" else "token_mean"
    pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    lang = language("eos")
    p, q, s = roles(learn, setting)
    over = p if setting.prefixes == "p" else s
    with jax.enable_x64(True):
        numbers = [lang.at_prefixes(lang.kl(p, q), over), lang.length(over), 0.0, 1.0]
        pooled = Totals(*(jax.numpy.asarray(float(one)) for one in map(_plain, numbers)))
        found = jax.grad(_mean_in_jax(jax, lang, (p, q, s), setting, pooled))(
            jax.numpy.asarray(lang.logits.detach().numpy()),
            learn=learn,
            gradient=gradient,
            form=form,
            aggregate=aggregate,
        )
    claim = CLAIMS[learn, gradient, form].gradient_of
    truth = lang.slope(claimed(lang, claim, learn, gradient, setting, aggregate))
    assert np.abs(np.asarray(found) - truth).max() <= 1e-12


def _plain(value: Any) -> float:
    return float(value.detach()) if hasattr(value, "detach") else value


def _mean_in_jax(
    jax: Any, lang: Any, of: tuple[str, str, str], setting: Any, pooled: Totals
) -> Any:
    jnp, (_, tokens, context, alive) = jax.numpy, WORLDS["eos"].tree

    def mean(logits: Any, **options: Any) -> Any:
        table = {role: jnp.asarray(one) for role, one in lang.world.log_probs.items()}
        table["current"] = jax.nn.log_softmax(logits)
        p, q, s = (jnp.where(alive, table[role][context, tokens], 0.0) for role in of)
        a, b = table[of[0]], table[of[1]]
        kl = jnp.where(alive, (jnp.exp(a) * (a - b)).sum(-1)[context], 0.0)

        def one(p: Any, q: Any, s: Any, mask: Any, kl: Any) -> Any:
            return kb.loss(
                log_p=p[None],
                log_q=q[None],
                log_sampler=None if setting.sampled_by == "p" else s[None],
                mask=mask[None],
                exact=kl[None] if options["form"] == "rao_blackwell" else None,
                prefixes=setting.prefixes,
                weights=setting.weights,
                biased=True,
                pooled=pooled,
                **options,
            )

        found = jax.vmap(one)(p, q, s, jnp.asarray(alive), kl)
        return (jnp.asarray(lang.world.probability(of[2])) * found).sum()

    return mean
