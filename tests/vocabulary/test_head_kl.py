from __future__ import annotations

import pytest

import kullback as kb

torch = pytest.importorskip("torch")

BOTH = ["KL(student||teacher)", "KL(teacher||student)"]
SCALINGS = [{}, {"temperature": 0.7}, {"temperature": 1.5, "soft_cap": 4.0}]


def given(dtype=torch.float64, tokens=(3, 13), vocabulary=50):
    made = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(shape, generator=made).to(dtype)

    return {
        "hidden_student": random(*tokens, 6),
        "head_student": random(vocabulary, 6),
        "bias_student": random(vocabulary),
        "hidden_teacher": random(*tokens, 8),
        "head_teacher": random(vocabulary, 8),
        "bias_teacher": random(vocabulary),
    }


LEARNED = ("hidden_student", "head_student", "bias_student")


def taped(one):
    return {name: x.clone().requires_grad_(name in LEARNED) for name, x in one.items()}


def by_autograd(one, direction, weights=None, temperature=1.0, soft_cap=None):
    """The same loss from all logits."""
    logits = {}
    for side in ("student", "teacher"):
        z = one[f"hidden_{side}"] @ one[f"head_{side}"].T + one[f"bias_{side}"]
        logits[side] = (z if soft_cap is None else soft_cap * (z / soft_cap).tanh()) / temperature
    p, q = ("student", "teacher") if direction == BOTH[0] else ("teacher", "student")
    kl = kb.exact(logits_p=logits[p], logits_q=logits[q])
    weights = torch.full_like(kl, 1 / kl.numel()) if weights is None else weights
    return (weights * kl).sum(), kl


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("how", SCALINGS)
def test_value_and_gradients_are_those_of_autograd(direction, how):
    ours, theirs = taped(given()), taped(given())
    found = kb.head_kl(**ours, direction=direction, **how)
    loss, kl = by_autograd(theirs, direction, **how)
    torch.testing.assert_close(found.loss, loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.kl, kl, rtol=1e-11, atol=1e-14)
    (3 * found.loss).backward()
    (3 * loss).backward()
    for name in LEARNED:
        torch.testing.assert_close(ours[name].grad, theirs[name].grad, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("direction", BOTH)
@pytest.mark.parametrize("how", SCALINGS)
def test_gradcheck(direction, how):
    one = taped(given(tokens=(19,), vocabulary=7))
    rest = {name: x for name, x in one.items() if name not in LEARNED}

    def loss(*learned):
        named = dict(zip(LEARNED, learned, strict=True))
        return kb.head_kl(**named, **rest, direction=direction, **how).loss

    assert torch.autograd.gradcheck(loss, tuple(one[name] for name in LEARNED))


@pytest.mark.parametrize("direction", BOTH)
def test_weights_and_what_they_leave_out(direction):
    weights = torch.arange(39.0, dtype=torch.float64).reshape(3, 13) % 3 / 10
    one = given()
    one["hidden_student"][0, 0] = float("nan")  # padding, of weight 0
    ours, theirs = taped(one), taped(given())
    found = kb.head_kl(**ours, direction=direction, weights=weights)
    loss, kl = by_autograd(theirs, direction, weights)
    torch.testing.assert_close(found.loss, loss, rtol=1e-12, atol=0)
    assert torch.equal(found.kl.isnan(), weights == 0)
    torch.testing.assert_close(found.kl[weights != 0], kl[weights != 0].detach())
    found.loss.backward()
    loss.backward()
    for name in LEARNED:
        torch.testing.assert_close(ours[name].grad, theirs[name].grad, rtol=1e-10, atol=1e-14)
    assert (ours["hidden_student"].grad[0, 0] == 0).all()


def test_a_mask_is_a_weight():
    one = given(torch.float32)
    mask = torch.arange(39).reshape(3, 13) % 2 == 0
    total = kb.head_kl(**one, weights=mask)
    mean = kb.head_kl(**one, weights=mask / mask.sum())
    torch.testing.assert_close(total.loss / mask.sum(), mean.loss)


def test_float32_against_float64():
    one = given(torch.float32, tokens=(40,), vocabulary=3000)
    ours, theirs = taped(one), taped({name: x.double() for name, x in one.items()})
    kb.head_kl(**ours).loss.backward()
    by_autograd(theirs, BOTH[0])[0].backward()
    for name in LEARNED:
        error = (ours[name].grad - theirs[name].grad).norm() / theirs[name].grad.norm()
        assert error < 1e-5


@pytest.mark.parametrize("direction", BOTH)
def test_half_precision(direction):
    one = given(torch.bfloat16, tokens=(40,))
    ours, theirs = taped(one), taped({name: x.double() for name, x in one.items()})
    found = kb.head_kl(**ours, direction=direction)
    assert found.loss.dtype == torch.float32
    found.loss.backward()
    by_autograd(theirs, direction)[0].backward()
    for name in LEARNED:
        assert ours[name].grad.dtype == torch.bfloat16
        error = (ours[name].grad - theirs[name].grad).norm() / theirs[name].grad.norm()
        assert error < 3e-2


def test_only_what_needs_a_gradient_gets_one():
    one = given()
    one["head_student"].requires_grad_()
    kb.head_kl(**one).loss.backward()
    assert one["head_student"].grad is not None
    assert one["hidden_student"].grad is None
    with torch.no_grad():
        assert not kb.head_kl(**one).loss.requires_grad
    assert not kb.head_kl(**given()).loss.requires_grad
    assert not kb.head_kl(**one).kl.requires_grad


def test_without_biases():
    one = taped(given())
    del one["bias_student"], one["bias_teacher"]
    kb.head_kl(**one).loss.backward()
    flat = taped(given())
    with torch.no_grad():
        flat["bias_student"].zero_()
        flat["bias_teacher"].zero_()
    by_autograd(flat, BOTH[0])[0].backward()
    torch.testing.assert_close(one["head_student"].grad, flat["head_student"].grad)


def test_a_second_backward_works_anew_and_says_so_when_it_cannot():
    one = taped(given())
    loss = kb.head_kl(**one).loss
    first = torch.autograd.grad(loss, one["head_student"], retain_graph=True)[0].clone()
    again = torch.autograd.grad(loss, one["head_student"], retain_graph=True)[0]
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    with torch.no_grad():
        one["head_student"].add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_no_second_derivatives():
    one = taped(given())
    loss = kb.head_kl(**one).loss
    (slope,) = torch.autograd.grad(loss, one["bias_student"], create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        slope.sum().backward()


def test_student_and_teacher_alike():
    one = given()
    for name in ("hidden", "head", "bias"):
        one[f"{name}_teacher"] = one[f"{name}_student"].clone()
    one = taped(one)
    found = kb.head_kl(**one)
    found.loss.backward()
    assert found.loss == 0
    assert all((one[name].grad == 0).all() for name in LEARNED)


@pytest.mark.parametrize("weights", [None, "none"])
def test_no_tokens(weights):
    one = taped(given(tokens=(0,) if weights is None else (4,)))
    found = kb.head_kl(**one, weights=None if weights is None else torch.zeros(4))
    found.loss.backward()
    assert found.loss == 0
    assert (one["head_student"].grad == 0).all()


def test_one_category():
    found = kb.head_kl(**given(vocabulary=1))
    assert found.loss < 1e-30


def test_errors():
    one = given()
    with pytest.raises(
        ValueError, match=r"direction is 'KL\(a\|\|b\)', expected one of KL\(student"
    ):
        kb.head_kl(**one, direction="KL(a||b)")
    assert kb.head_kl(**one, direction="KL(teacher‖student)").loss > 0
    with pytest.raises(ValueError, match=r"weights have the shape \(5,\), expected one for each"):
        kb.head_kl(**one, weights=torch.ones(5))
    with pytest.raises(ValueError, match=r"student has hidden states .* expected the same tokens"):
        kb.head_kl(**{**one, "hidden_teacher": one["hidden_teacher"][0]})
    with pytest.raises(TypeError, match="head_student is of type list"):
        kb.head_kl(**{**one, "head_student": [1.0]})
