from __future__ import annotations

from kullback.dictionary import find


def test_padding_is_told():
    for name in ("kl_approx", "kl_to_ref", "kl_to_inference"):
        one, *_ = find(name, "torchrl")
        assert one.level == "padded_mean"
        assert "padding" in one.aggregation


def test_the_default_of_tunix_is_no_leash():
    loss, *_ = find("kl", "tunix")
    assert (loss.method, loss.level) == ("k1", "sequence_mean")
    assert "E[1 / length]" in loss.gradient
    assert loss.under({"loss_agg_mode": "token-mean"})[0].gradient == "zero"
    right, _ = loss.under({"loss_agg_mode": "token-mean", "kl_loss_mode": "mse_kl"})
    assert right.gradient == "KL(current||reference), token by token"
    assert loss.under({"kl_loss_mode": "low_var_kl"})[0].method == "k3"


def test_a_monitor_mixes_what_it_reads():
    one, *_ = find("kl", "rldoctor")
    assert one.question is None
    assert one.can_be_negative
