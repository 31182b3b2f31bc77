from __future__ import annotations

import pytest

import kullback as kb

torch = pytest.importorskip("torch")

INF = float("inf")


@pytest.fixture(params=["plain", "compiled"])
def compiled(request):
    if request.param == "compiled":
        pytest.importorskip("numba")
    return request.param == "compiled"


def sides(dtype=torch.float64, tokens=(2, 7), vocabulary=5000):
    made = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(shape, generator=made, dtype=torch.float64)

    hidden, head = random(*tokens, 16), random(vocabulary, 16) / 2
    return {
        "hidden_p": hidden.to(dtype),
        "head_p": head.to(dtype),
        "hidden_q": (hidden + 0.1 * random(*tokens, 16)).to(dtype),
        "head_q": (head + 0.05 * random(vocabulary, 16)).to(dtype),
    }


def with_all_logits(given, temperature=1.0, soft_cap=None):
    """The numbers of whole_vocabulary, in float64, from all logits."""
    logits = {}
    for side in "pq":
        z = given[f"hidden_{side}"].double() @ given[f"head_{side}"].double().T
        bias = given.get(f"bias_{side}")
        logits[f"logits_{side}"] = z if bias is None else z + bias.double()
    return kb.whole_vocabulary(**logits, temperature=temperature, soft_cap=soft_cap)


def assert_close(found, truth, *, rtol, atol):
    for name in found._fields[: 5 if found.js is None else 6]:
        torch.testing.assert_close(
            getattr(found, name), getattr(truth, name), rtol=rtol, atol=atol, equal_nan=True
        )


@pytest.mark.parametrize("js", [False, True])
@pytest.mark.parametrize("how", [{}, {"temperature": 0.7, "soft_cap": 20.0}])
def test_without_the_logits_the_numbers_are_the_same(js, how):
    given = sides()
    given["bias_p"] = given["head_p"][:, 0].clone()
    found = kb.head_divergences(**given, js=js, **how)
    assert found.kl_pq.shape == (2, 7)
    assert (found.js is not None) == js
    assert_close(found, with_all_logits(given, **how), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("js", [False, True])
def test_in_float32(js, compiled):
    given = sides(torch.float32)
    found = kb.head_divergences(**given, js=js, compiled=compiled)
    # A product rounded to float32 moves each logit by some 1e-6.
    assert_close(found, with_all_logits(given), rtol=1e-4, atol=1e-5)


def test_half_precision(compiled):
    given = sides(torch.bfloat16)
    found = kb.head_divergences(**given, compiled=compiled)
    logits = {
        f"logits_{side}": (given[f"hidden_{side}"] @ given[f"head_{side}"].T).float()
        for side in "pq"
    }
    assert_close(found, kb.whole_vocabulary(**logits), rtol=2e-2, atol=2e-2)


def test_one_head_for_both_sides(compiled):
    given = sides(torch.float32)
    given["bias_p"] = given["bias_q"] = given["head_p"][:, 0].clone()
    given["head_q"] = given["head_p"]
    found = kb.head_divergences(**given, compiled=compiled)
    assert_close(found, with_all_logits(given), rtol=1e-4, atol=1e-5)
    two = kb.head_divergences(**{**given, "head_q": given["head_q"].clone()}, compiled=compiled)
    assert_close(found, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("js", [False, True])
def test_what_a_bias_rules_out(js, compiled):
    given = sides(torch.float32)
    padding = torch.zeros(5000)
    padding[4000:] = -INF
    both = {**given, "bias_p": padding, "bias_q": padding}
    found = kb.head_divergences(**both, js=js, compiled=compiled)
    assert_close(found, with_all_logits(both), rtol=1e-4, atol=1e-5)
    assert found.kl_pq.isfinite().all()
    for side, infinite, finite in (("p", "kl_qp", "kl_pq"), ("q", "kl_pq", "kl_qp")):
        one = {**given, f"bias_{side}": padding}
        found = kb.head_divergences(**one, js=js, compiled=compiled)
        assert_close(found, with_all_logits(one), rtol=1e-4, atol=1e-5)
        assert getattr(found, infinite).isinf().all()
        assert getattr(found, finite).isfinite().all()
    none = {**given, "bias_q": torch.full((5000,), -INF)}
    found = kb.head_divergences(**none, js=js, compiled=compiled)
    assert found.kl_pq.isnan().all()
    assert found.entropy_p.isfinite().all()


@pytest.mark.parametrize("tokens", [(), (0, 3), (1,), (5, 2)])
@pytest.mark.parametrize("vocabulary", [1, 2047, 2049])
def test_any_number_of_tokens_and_categories(monkeypatch, tokens, vocabulary):
    monkeypatch.setattr("kullback.vocabulary.heads._CPU_TOKENS", 4)
    given = sides(tokens=tokens, vocabulary=vocabulary)
    for js in (False, True):
        found = kb.head_divergences(**given, js=js)
        assert found.kl_pq.shape == tokens
        assert_close(found, with_all_logits(given), rtol=1e-10, atol=1e-12)


def test_widths_may_differ():
    given = sides()
    for name in ("hidden_q", "head_q"):
        given[name] = torch.nn.functional.pad(given[name], (0, 3))
    assert_close(kb.head_divergences(**given), with_all_logits(given), rtol=1e-10, atol=1e-12)


def test_logits_are_never_all_there(monkeypatch):
    import kullback.vocabulary.head as module

    seen = []
    logits = module.Head.logits
    monkeypatch.setattr(
        module.Head,
        "logits",
        lambda self, part, scale, out: seen.append(out.shape) or logits(self, part, scale, out),
    )
    kb.head_divergences(**sides())
    assert max(shape[1] for shape in seen) <= 2048
    assert sum(shape[1] for shape in seen) == 2 * 5000


def test_errors():
    given = sides()
    with pytest.raises(ValueError, match="soft_cap is 0"):
        kb.head_divergences(**given, soft_cap=0)
    with pytest.raises(ValueError, match="expected the same tokens"):
        kb.head_divergences(**{**given, "hidden_q": given["hidden_q"][0]})
    with pytest.raises(ValueError, match=r"compiled=True of torch.float64"):
        kb.head_divergences(**given, compiled=True)
