from __future__ import annotations

from kullback.dictionary import find
from kullback.dictionary.classic import CLASSIC


def test_all_are_of_the_update():
    assert {(one.p, one.q) for one in CLASSIC if one.p} == {("old", "current")}
    assert all(one.is_estimate for one in CLASSIC if one.p)


def test_spinning_up_can_miss_its_stop():
    ppo, trpo = find("KL", "spinningup")
    assert ppo.can_be_negative
    assert not trpo.can_be_negative


def test_nothing_stops_by_default_where_no_target_is_set():
    for name in ("train/approx_kl", "losses/approx_kl"):
        one, *_ = find(name)
        assert "Nothing stops" in one.under({})[1][0]
        assert one.under({"target_kl": 0.01})[1] == ()
