from __future__ import annotations

import pytest

import kullback as kb
from kullback.vocabulary.pieces import Compiled, Plain, piece_rows, pieces

torch = pytest.importorskip("torch")

SMALL, LARGE = 1000, 2**27
FLOAT, DOUBLE = torch.empty(0), torch.empty(0, dtype=torch.float64)


def pair(rows=23, categories=300):
    made = torch.Generator().manual_seed(0)
    p = torch.randn(rows, categories, generator=made)
    return p, p + torch.randn(rows, categories, generator=made)


def test_the_kernel_is_taken_where_it_pays():
    pytest.importorskip("numba")
    assert isinstance(pieces(FLOAT, LARGE, 10, None), Compiled)
    assert isinstance(pieces(FLOAT, SMALL, 10, True), Compiled)
    for like, pairs, asked in ((FLOAT, SMALL, None), (FLOAT, LARGE, False), (DOUBLE, LARGE, None)):
        assert isinstance(pieces(like, pairs, 10, asked), Plain)


def test_without_numba_torch_does_it(monkeypatch):
    monkeypatch.setattr("kullback.vocabulary.pieces.find_spec", lambda name: None)
    assert isinstance(pieces(FLOAT, LARGE, 10, None), Plain)
    with pytest.raises(ValueError, match=r"needs Numba, which is not installed: pip install"):
        pieces(FLOAT, SMALL, 10, True)


def test_the_kernel_cannot_be_had_everywhere():
    with pytest.raises(ValueError, match=r"compiled=True of torch.float64 on cpu, expected logits"):
        pieces(DOUBLE, LARGE, 10, True)
    with pytest.raises(ValueError, match="on meta, expected logits of float32 or less on the CPU"):
        pieces(FLOAT.to("meta"), LARGE, 10, True)


def test_a_piece_is_as_large_as_its_device_likes(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert piece_rows(FLOAT, 152_000) == 1
    assert piece_rows(FLOAT, 50_000) == 5
    assert piece_rows(FLOAT.to("meta"), 152_000) == 27
    assert piece_rows(FLOAT, 10**9) == 1


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 23])
def test_threads_and_pieces_change_nothing(monkeypatch, compiled, rows):
    if compiled:
        pytest.importorskip("numba")
    p, q = pair(rows)
    how = {"logits_p": p, "logits_q": q, "compiled": compiled}
    with_one = kb.whole_vocabulary(**how)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    monkeypatch.setattr("kullback.vocabulary.pieces._CPU_PIECE", 900)
    with_five = kb.whole_vocabulary(**how)
    assert all(torch.equal(a, b) for a, b in zip(with_one, with_five, strict=True))
    scaled = kb.whole_vocabulary(**how, temperature=2.0)  # in pieces of its own
    torch.testing.assert_close(
        scaled.kl_pq, kb.exact(logits_p=p / 2, logits_q=q / 2), rtol=2e-5, atol=1e-12
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_normalizers_alone(compiled):
    if compiled:
        pytest.importorskip("numba")
    p, _ = pair()
    way = pieces(FLOAT, SMALL, 100, compiled)
    torch.testing.assert_close(way.log_normalizers(p), p.double().logsumexp(-1), rtol=1e-6, atol=0)
    assert way.log_normalizers(p[:0]).shape == (0,)


def test_one_workspace_serves_all_pieces_but_a_narrower_one():
    way = Plain(FLOAT, 300)
    p, q = pair()
    way.sums(p, q)
    first = way._room
    way.sums(p[:5], q[:5])
    assert way._room is first
    way.sums(p[:, :7], q[:, :7])
    assert way._room.shape == (7, 23, 7)
