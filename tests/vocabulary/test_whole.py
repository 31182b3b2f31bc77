from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.vocabulary.whole import Whole, on_one_device, same_rows

torch = pytest.importorskip("torch")

INF = float("inf")


def rows(seed=0, shape=(6, 700), scale=3.0, apart=0.3, dtype=torch.float64):
    made = torch.Generator().manual_seed(seed)
    p = torch.randn(shape, generator=made, dtype=dtype) * scale
    return p, p + apart * torch.randn(shape, generator=made, dtype=dtype)


def by_formula(logits_p, logits_q):
    """The same numbers by the formulas, in float64."""
    p, q = logits_p.double(), logits_q.double()
    p_probs, q_probs = p.softmax(-1), q.softmax(-1)
    return Whole(
        kl_pq=kb.exact(logits_p=p, logits_q=q),
        kl_qp=kb.exact(logits_p=q, logits_q=p),
        entropy_p=kb.entropy(logits=p),
        entropy_q=kb.entropy(logits=q),
        chi2_qp=kb.divergence(q_probs, p_probs, "chi2"),
        js=kb.divergence(p_probs, q_probs, "js"),
    )


def assert_close(found, truth, *, rtol, atol):
    for name in Whole._fields:
        one, other = getattr(found, name), getattr(truth, name)
        torch.testing.assert_close(
            one, other.to(one.dtype), rtol=rtol, atol=atol, equal_nan=True, msg=f"{name}: {one}"
        )


@pytest.fixture(params=["plain", "compiled"])
def compiled(request):
    if request.param == "compiled":
        pytest.importorskip("numba")
    return request.param == "compiled"


@pytest.mark.parametrize("apart", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 20.0])
def test_in_float64_the_numbers_are_those_of_the_formulas(scale, apart):
    p, q = rows(scale=scale, apart=apart)
    assert_close(
        kb.whole_vocabulary(logits_p=p, logits_q=q), by_formula(p, q), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("apart", [1e-4, 1e-2, 0.3, 3.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 20.0])
def test_in_float32_they_agree_however_close_the_two_are(scale, apart, compiled):
    p, q = rows(shape=(4, 5000), scale=scale, apart=apart, dtype=torch.float32)
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    truth = by_formula(p, q)
    for name in ("kl_pq", "kl_qp", "chi2_qp", "js"):
        torch.testing.assert_close(
            getattr(found, name), getattr(truth, name), rtol=2e-5, atol=1e-13
        )
    for name in ("entropy_p", "entropy_q"):
        torch.testing.assert_close(getattr(found, name), getattr(truth, name), rtol=0, atol=1e-5)


@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-6, 1e-5])
@pytest.mark.parametrize("offset", [0.0, 90.0])
def test_no_noise_below_zero_where_the_two_are_nearly_equal(apart, offset, compiled):
    p, q = rows(shape=(8, 3000), apart=apart, dtype=torch.float32)
    found = kb.whole_vocabulary(logits_p=p, logits_q=q + offset, compiled=compiled)
    truth = by_formula(p, q + offset)
    for name in ("kl_pq", "kl_qp", "chi2_qp", "js"):
        assert (getattr(found, name) >= 0).all()
        torch.testing.assert_close(
            getattr(found, name), getattr(truth, name), rtol=2e-5, atol=3e-13
        )


def test_equal_rows_have_no_divergence(compiled):
    p, _ = rows(dtype=torch.float32)
    found = kb.whole_vocabulary(logits_p=p, logits_q=p.clone(), compiled=compiled)
    assert all((getattr(found, name) == 0).all() for name in ("kl_pq", "kl_qp", "chi2_qp", "js"))
    assert found.S.isnan().all()


def test_extreme_logits(compiled):
    p, q = rows(scale=1e4, apart=1e4, dtype=torch.float32)
    p[0], q[0] = 0.0, 0.0
    p[0, 0], q[0, 1] = 1e4, -1e4
    found, truth = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled), by_formula(p, q)
    # chi2 is beyond the largest number, which the formula cannot see: its p and q are both 0.
    assert_close(found._replace(chi2_qp=truth.chi2_qp), truth, rtol=1e-6, atol=1e-12)
    assert (found.chi2_qp == INF).all()
    same = kb.whole_vocabulary(logits_p=p, logits_q=p.clone(), compiled=compiled)
    assert all((one == 0).all() for one in (same.kl_pq, same.kl_qp, same.chi2_qp, same.js))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("apart", [-77.0, -45.0, -35.0, -17.0, 25.0, 29.0, 35.0])
def test_a_category_that_one_side_hardly_has(apart, dtype, compiled):
    p, q = torch.zeros(1, 50, dtype=dtype), torch.zeros(1, 50, dtype=dtype)
    p[0, 3], q[0, 3] = (-10.0, apart - 10) if apart < 0 else (-10.0 - apart, -10.0)
    compiled = compiled and dtype == torch.float32
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    near = 1e-12 if dtype == torch.float64 else 2e-5
    assert_close(found, by_formula(p, q), rtol=near, atol=1e-14)


def test_a_large_chi2_that_float32_could_not_hold(compiled):
    p, q = torch.zeros(1, 3), torch.zeros(1, 3)
    p[0, 0] = -300.0
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    assert_close(found, by_formula(p, q), rtol=1e-6, atol=0)
    assert 1e129 < found.chi2_qp < 1e130


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_what_cannot_occur(dtype, compiled):
    p, q = (one.to(dtype) for one in rows())
    compiled = compiled and dtype != torch.float64
    p[0, :300] = q[0, :300] = -INF  # nobody has them: as if they were not there
    p[1, :5] = -INF
    q[2, 5:9] = -INF
    p[3], q[4] = -INF, -INF
    p[5, 7] = float("nan")
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    truth = by_formula(p, q)
    for name in Whole._fields:
        one, other = getattr(found, name), getattr(truth, name)
        torch.testing.assert_close(one[:3], other[:3], rtol=2e-5, atol=1e-6)
    without = kb.whole_vocabulary(logits_p=p[:1, 300:], logits_q=q[:1, 300:], compiled=compiled)
    torch.testing.assert_close(found.kl_pq[:1], without.kl_pq, rtol=2e-6, atol=0)
    assert found.kl_qp[1] == found.chi2_qp[1] == found.kl_pq[2] == INF
    assert found.kl_pq[1] < INF
    assert found.kl_qp[2] < INF
    assert found.chi2_qp[2] < INF
    assert all(one[3:].isnan().all() for one in (found.kl_pq, found.kl_qp, found.chi2_qp, found.js))
    assert found.entropy_p[[3, 5]].isnan().all()
    assert found.entropy_q[4].isnan()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_goes_through_float32(dtype, compiled):
    p, q = (one.to(dtype) for one in rows(apart=1.0))
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    assert_close(found, by_formula(p.float(), q.float()), rtol=2e-5, atol=1e-5)
    mixed = kb.whole_vocabulary(logits_p=p, logits_q=q.float(), compiled=compiled)
    assert_close(mixed, found, rtol=1e-12, atol=0)


def test_shapes_go_in_and_come_out(compiled):
    p, q = rows(shape=(3, 5, 11, 40), dtype=torch.float32)
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    assert found.kl_pq.shape == (3, 5, 11)
    assert_close(found, by_formula(p, q), rtol=2e-5, atol=1e-5)
    cut = kb.whole_vocabulary(logits_p=p[:, :, :-1], logits_q=q[:, :, :-1], compiled=compiled)
    assert_close(cut, Whole(*(one[:, :, :-1] for one in found)), rtol=1e-6, atol=1e-6)
    for turned in ((p.mT, q.mT), (p[..., 3:], q[..., 3:]), (p[..., ::2], q[..., ::2])):
        strided = kb.whole_vocabulary(logits_p=turned[0], logits_q=turned[1], compiled=compiled)
        assert_close(strided, by_formula(*turned), rtol=2e-5, atol=1e-5)
    one = kb.whole_vocabulary(logits_p=p[0, 0, 0], logits_q=q[0, 0, 0], compiled=compiled)
    assert one.js.shape == ()
    torch.testing.assert_close(one.js, found.js[0, 0, 0])
    nothing = kb.whole_vocabulary(logits_p=p[:0], logits_q=q[:0], compiled=compiled)
    assert nothing.kl_pq.shape == (0, 5, 11)


def test_a_slice_of_a_batch_is_not_copied(monkeypatch):
    p, q = rows(shape=(3, 5, 40), dtype=torch.float32)
    seen = []
    monkeypatch.setattr(
        "kullback.vocabulary.whole._sums",
        lambda a, b, *_: seen.append((a.data_ptr(), b.data_ptr())) or a.new_zeros(len(a), 6),
    )
    kb.whole_vocabulary(logits_p=p[:, :-1], logits_q=q[:, :-1])
    assert seen == [(p[i].data_ptr(), q[i].data_ptr()) for i in range(3)]


def test_one_category_leaves_nothing_to_differ_in(compiled):
    p, q = rows(shape=(4, 1), dtype=torch.float32)
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    assert all((one == 0).all() for one in found)


def test_temperature_and_soft_cap(compiled):
    p, q = rows(scale=8.0, dtype=torch.float32)
    how = {"temperature": 0.7, "soft_cap": 30.0}
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled, **how)
    scaled = [(one.double() / 30).tanh() * 30 / 0.7 for one in (p, q)]
    assert_close(found, by_formula(*scaled), rtol=3e-5, atol=1e-5)


def test_the_input_is_left_alone_and_no_gradient_flows(compiled):
    p, q = rows(dtype=torch.float32)
    kept = p.clone()
    p.requires_grad_()
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, temperature=0.5, compiled=compiled)
    assert not found.kl_pq.requires_grad
    assert torch.equal(p.detach(), kept)


@pytest.mark.parametrize("how", [{}, {"temperature": 0.7, "soft_cap": 20.0}])
def test_numpy_and_jax_go_through_the_formulas(library, how):
    p, q = rows(shape=(2, 3, 30))
    given = {"logits_p": library.array(p.numpy()), "logits_q": library.array(q.numpy())}
    found = kb.whole_vocabulary(**given, **how)
    truth = kb.whole_vocabulary(logits_p=p, logits_q=q, **how)
    for name in Whole._fields:
        assert getattr(found, name).shape == (2, 3)
        np.testing.assert_allclose(
            getattr(found, name), getattr(truth, name), rtol=1e-12, atol=1e-14
        )


def test_numpy_in_pieces(monkeypatch):
    p, q = (one.numpy() for one in rows())
    whole = kb.whole_vocabulary(logits_p=p, logits_q=q)
    monkeypatch.setattr("kullback.vocabulary.whole._FORMULA_PIECE", 1500)
    pieces = kb.whole_vocabulary(logits_p=p, logits_q=q)
    np.testing.assert_array_equal(pieces.kl_pq, whole.kl_pq)


def test_entropies_of_logits_with_a_large_common_offset(compiled):
    p, q = (one.round(decimals=1) + 2**14 for one in rows(dtype=torch.float32))
    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=compiled)
    assert_close(found, by_formula(p, q), rtol=2e-5, atol=2e-6)


def test_what_is_derived():
    p, q = rows()
    found = kb.whole_vocabulary(logits_p=p, logits_q=q)
    shape = kb.shape(p.softmax(-1), q.softmax(-1))
    np.testing.assert_allclose(found.jeffreys, shape.jeffreys, rtol=1e-12)
    np.testing.assert_allclose(found.S, shape.S, rtol=1e-12)


def test_errors_say_what_to_do():
    p, q = rows(shape=(2, 3))
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 2\), expected rows over the"):
        kb.whole_vocabulary(logits_p=p, logits_q=q[:, :2])
    with pytest.raises(ValueError, match="expected rows"):
        same_rows(p[:, :0], q[:, :0])
    with pytest.raises(ValueError, match="expected rows"):
        kb.whole_vocabulary(logits_p=np.float64(1.0), logits_q=np.float64(1.0))
    with pytest.raises(TypeError, match=r"logits of torch.int64, expected floating numbers"):
        kb.whole_vocabulary(logits_p=p.long(), logits_q=q)
    with pytest.raises(ValueError, match="logits on cpu and on meta, expected one device"):
        on_one_device("logits", p, q.to("meta"))
    with pytest.raises(TypeError, match="of one library"):
        kb.whole_vocabulary(logits_p=p, logits_q=q.numpy())
    with pytest.raises(ValueError, match=r"compiled=True takes tensors of torch"):
        kb.whole_vocabulary(logits_p=p.numpy(), logits_q=q.numpy(), compiled=True)
    with pytest.raises(ValueError, match=r"temperature is 0, expected a number above 0"):
        kb.whole_vocabulary(logits_p=p, logits_q=q, temperature=0)
