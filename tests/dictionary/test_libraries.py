from __future__ import annotations

from kullback.dictionary import find


def test_padding_is_told():
    for name in ("kl_approx", "kl_to_ref", "kl_to_inference"):
        one, *_ = find(name, "torchrl")
        assert one.level == "padded_mean"
        assert "padding" in one.aggregation


def test_the_default_of_tunix_is_no_leash():
    loss, *_ = find("kl", "tunix")
    assert (loss.method, loss.gradient) == ("k1", "zero")
    assert loss.under({"kl_loss_mode": "low_var_kl"})[0].method == "k3"


def test_a_monitor_mixes_what_it_reads():
    one, *_ = find("kl", "rldoctor")
    assert one.question is None
    assert one.can_be_negative
