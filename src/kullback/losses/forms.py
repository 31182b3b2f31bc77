"""Every form of a KL loss as one coefficient per token, and what each descends in the mean.

From sampled tokens, whatever is differentiated, the gradient comes out as

    sum over tokens of c_t d log p(token)

(d log q where q learns). A form is therefore a formula for c_t: what autograd makes of k1, k2, k3
with the weight held constant or differentiated too, of a score function, and so on. Here
x = log p/q of the token, r = q/p, v the weight of the token by the question, X the sum of x over
its sequence and V the weight of the sequence, b a baseline, and m the mean per token, where that
is what is differentiated, else 0. Under the weight of the sequence the sums of the ratio forms are
over all u, since every token is in that weight. ``CLAIMS`` says whose gradient the mean is;
tests/losses proves it by enumeration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kullback.formulas.k_family import k3
from kullback.losses.tokens import Tokens


@dataclass(frozen=True, slots=True)
class FormClaim:
    """What the gradient of a form is in the mean, if the weights are right.

    Attributes:
        coefficient: c_t.
        gradient_of: The quantity whose gradient it is; "0" where it vanishes.
        biased: Why it is not the gradient of KL(p||q); None where it is.
    """

    coefficient: str
    gradient_of: str
    biased: str | None = None


_NOISE = "k1 differentiated is noise around zero: E[d log p] = 0, and q has no part in it"
_OTHER = "k3 differentiated is the gradient of KL(q||p), the other direction"
_SQUARE = "k2 is no KL: with its weight differentiated its own mean is descended, E[x^2] / 2"
_SQUARE_Q = "k2 differentiated in q is the gradient of E[x^2] / 2, not of a KL"

# By who learns, whether the score term is there, and the form.
CLAIMS: dict[tuple[str, str, str], FormClaim] = {
    ("p", "token", "k1"): FormClaim("v", "0", _NOISE),
    ("p", "token", "k2"): FormClaim("v x", "KL(p||q)"),
    ("p", "token", "k3"): FormClaim("v (1 - r)", "KL(q||p)", _OTHER),
    ("p", "token", "ratio_k1"): FormClaim("v (x + 1)", "KL(p||q)"),
    ("p", "token", "ratio_k2"): FormClaim("v (x + x^2 / 2)", "E_p[x^2] / 2", _SQUARE),
    ("p", "token", "ratio_k3"): FormClaim("v x", "KL(p||q)"),
    ("p", "token", "score"): FormClaim("v (x - b)", "KL(p||q)"),
    ("p", "token", "rao_blackwell"): FormClaim("d KL_t itself", "KL(p||q)"),
    ("p", "sequence", "k1"): FormClaim("V", "0", _NOISE),
    ("p", "sequence", "k2"): FormClaim("V sum_u (x_u - m)", "KL(p||q)"),
    ("p", "sequence", "k3"): FormClaim("V (1 - exp(-X))", "KL(q||p)", _OTHER),
    ("p", "sequence", "ratio_k1"): FormClaim("v + sum_{u>=t} v_u (x_u - m)", "KL(p||q)"),
    ("p", "sequence", "ratio_k2"): FormClaim(
        "v x + sum_{u>=t} v_u (x_u^2 / 2 - m)", "E_p[x^2] / 2", _SQUARE
    ),
    ("p", "sequence", "ratio_k3"): FormClaim("v (1 - r) + sum_{u>=t} v_u (k3_u - m)", "KL(p||q)"),
    ("p", "sequence", "score"): FormClaim("sum_{u>=t} v_u (x_u - m) - v b", "KL(p||q)"),
    ("p", "sequence", "rao_blackwell"): FormClaim(
        "d KL_t itself, and sum_{u>t} v_{u-1} (KL_u - m)", "KL(p||q)"
    ),
    **{
        ("q", gradient, form): claim
        for gradient in ("token", "sequence")
        for form, claim in {
            "k1": FormClaim("-v", "KL(p||q)"),
            "k2": FormClaim("-v x", "E_p[x^2] / 2", _SQUARE_Q),
            "k3": FormClaim("v (r - 1)", "KL(p||q)"),
            "rao_blackwell": FormClaim("d KL_t itself", "KL(p||q)"),
        }.items()
    },
}
FORMS = tuple(dict.fromkeys(form for _, _, form in CLAIMS))


def coefficients(
    tokens: Tokens,
    *,
    learn: str,
    gradient: str,
    form: str,
    weights: str,
    truncate: float | None,
    mean: Any,
    baseline: Any,
) -> Any:
    """c_t of a form that is made of sampled tokens alone, a constant, 0 outside the mask.

    Args:
        tokens: The tokens.
        learn: "p" or "q".
        gradient: "token" or "sequence".
        form: The form, any but rao_blackwell.
        weights: What a token counts.
        truncate: Above what a weight counts as this; None for never.
        mean: m, the mean per token; 0 where the sum is differentiated.
        baseline: b, known before the token is drawn; 0 for none.
    """
    xp, x = tokens.xp, 0.0 - tokens.log_q_over_p
    # Where q rules the token out the value is infinite; so would be the gradient of everything.
    x = xp.where(xp.isinf(x), 0.0, x)
    v = tokens.weight(truncate)
    if learn == "q":
        slope = {"k1": 0.0 * x - 1.0, "k2": 0.0 - x, "k3": xp.expm1(0.0 - x)}[form]
        alone = tokens.q_alone if form == "k3" else 0.0
        return (v * slope + alone) * tokens.counted
    # The slope of each k in log p; a part of it is sums, of whole sequences if they are asked for.
    if form in ("k1", "k2", "k3"):
        if gradient == "sequence":
            x = tokens.along.whole((x - (mean if form == "k2" else 0.0)) * tokens.counted)
        return v * _slope(form, x, xp) * tokens.counted
    if form == "score":
        term, slope = x, 0.0 - baseline
    else:
        k = form.removeprefix("ratio_")
        term, slope = _value(k, x), _slope(k, x, xp)
    # A weight that is cut is a constant: what it multiplies has no score term then.
    cut = form != "score" and truncate is not None
    free = xp.where(v < truncate, 1.0, 0.0) if cut else 1.0
    rewards = v * (term - mean) * free * tokens.counted
    if gradient == "sequence":
        # The weight of a whole sequence has every token in it; any other what stands before.
        of_all = form != "score" and weights == "sequence"
        rewards = (tokens.along.whole if of_all else tokens.along.from_here)(rewards)
    return (rewards + v * slope) * tokens.counted


def _value(form: str, x: Any) -> Any:
    return {"k1": x, "k2": x * x / 2, "k3": k3(0.0 - x)}[form]


def _slope(form: str, x: Any, xp: Any) -> Any:
    return {"k1": xp.ones_like(x), "k2": x, "k3": 0.0 - xp.expm1(0.0 - x)}[form]
