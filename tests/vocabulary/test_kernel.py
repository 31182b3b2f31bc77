from __future__ import annotations

import numpy as np
import pytest

import kullback as kb
from kullback.vocabulary.kernel import _handed_to, load

pytest.importorskip("numba")

INF = np.inf
FIELDS = ("kl_pq", "kl_qp", "entropy_p", "entropy_q", "chi2_qp", "js")


def pair(seed=0, rows=3, categories=5000, scale=3.0, apart=0.3):
    rng = np.random.default_rng(seed)
    p = (scale * rng.normal(size=(rows, categories))).astype(np.float32)
    return p, (p + apart * rng.normal(size=p.shape)).astype(np.float32)


def normalized(*sides):
    found = [np.zeros(len(z)) for z in sides]
    for z, log_z in zip(sides, found, strict=True):
        load().normalize(z, z.view(np.int32), log_z)
    return found


def six(p, q):
    sums = np.zeros((len(p), 6))
    load().add_sums(p, q, *normalized(p, q), sums)
    return dict(zip(FIELDS, sums.T, strict=True))


def formula(p, q):
    found = kb.whole_vocabulary(logits_p=p.astype(np.float64), logits_q=q.astype(np.float64))
    return found._asdict()


@pytest.mark.parametrize("categories", [1, 2, 7, 2047, 2048, 2049, 6000])
@pytest.mark.parametrize("apart", [1e-4, 0.3, 3.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 20.0])
def test_the_kernel_is_the_formula(scale, apart, categories):
    p, q = pair(categories=categories, scale=scale, apart=apart)
    found, truth = six(p, q), formula(p, q)
    for name in FIELDS:
        far = 2e-6 if "entropy" in name else 1e-13
        np.testing.assert_allclose(found[name], truth[name], rtol=5e-6, atol=far, err_msg=name)


def test_normalizers():
    p, _ = pair(scale=30.0)
    p[0, :2] = -INF
    with np.errstate(all="ignore"):
        truth = np.log(np.sum(np.exp(p.astype(np.float64) - 100), axis=1)) + 100
    np.testing.assert_allclose(normalized(p)[0], truth, rtol=1e-7)
    odd = np.array([[-INF, -INF], [np.nan, 0.0], [-np.nan, 0.0], [INF, 0.0]], dtype=np.float32)
    assert normalized(odd)[0][0] == -INF
    assert np.isnan(normalized(odd)[0][1:]).all()


@pytest.mark.parametrize("apart", [40.0, 100.0, 1e3, 1e4])
def test_tiles_that_float32_cannot_hold_are_summed_with_care(apart):
    p, q = pair(apart=0.1, rows=2)
    q[0, 2500] = p[0, 2500] - apart
    q[1, 10] = p[1, 10] + apart
    found = six(p, q)
    torch = pytest.importorskip("torch")
    wide = [torch.from_numpy(z).double() for z in (p, q)]
    truth = kb.whole_vocabulary(logits_p=wide[0], logits_q=wide[1])._asdict()
    for name in FIELDS:
        far = 2e-6 if "entropy" in name else 0
        np.testing.assert_allclose(found[name], truth[name], rtol=5e-6, atol=far, err_msg=name)


def test_each_way_of_being_impossible():
    p, q = pair(rows=4)
    p[0, 4000:], q[0, 4000:] = -INF, -INF
    p[1, 3], q[2, 3] = -INF, -INF
    q[3, 17] = np.nan
    found, truth = six(p[:3], q[:3]), formula(p[:3], q[:3])
    for name in FIELDS:
        np.testing.assert_allclose(found[name], truth[name], rtol=5e-6, atol=2e-6, err_msg=name)
    assert np.isinf(found["kl_qp"][1])
    assert np.isinf(found["kl_pq"][2])
    assert np.isnan(six(p[3:], q[3:])["kl_pq"]).all()


def test_sums_are_added_to_what_is_there():
    p, q = pair()
    once = np.stack(list(six(p, q).values()), axis=1)
    sums = once.copy()
    load().add_sums(p, q, *normalized(p, q), sums)
    np.testing.assert_allclose(sums, 2 * once, rtol=1e-14)


def test_loading_again_compiles_nothing():
    assert load() is load()


def test_without_a_folder_to_write_to_nothing_is_kept():
    def njit(*, cache=False, **how):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, how)

    assert _handed_to(njit, abs, {"cache": True, "nogil": True}) == (abs, {"nogil": True})
