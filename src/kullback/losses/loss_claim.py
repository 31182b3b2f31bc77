"""Which loss is asked for: what goes together, what it claims, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from kullback.losses.forms import CLAIMS, FORMS
from kullback.question import LEVELS

# What a token counts, and whose prefixes are averaged over then.
WEIGHTS = {"none": "sampler", "token": "sampler", "prefix": "p", "sequence": "p"}


@dataclass(frozen=True, slots=True)
class LossClaim:
    """What a loss is: its value, whose gradient it has in the mean, and what is wrong with it.

    Attributes:
        learn: Who is differentiated, ``p`` or ``q``.
        gradient: ``token``: at each prefix, the prefixes held fixed; ``sequence``: of whole
            sequences, with the score term.
        form: How the gradient is written.
        weights: What a token counts: ``none``, ``token``, ``prefix`` or ``sequence``.
        prefixes: Whose prefixes are averaged over, ``sampler`` or ``p``.
        aggregate: The level.
        value: What the value is, on each token.
        coefficient: c_t, if the gradient is written as the sum of c_t d log p(token).
        gradient_of: The quantity whose gradient the mean gradient is; "0" where it vanishes.
        wrong_value: Why the value does not estimate KL(p||q); empty where it does.
        wrong_gradient: Why the gradient is not that of KL(p||q); empty where it is.

    Example:
        >>> print(loss_claim(form="k3"))
        Value: k3 on each token, as token_mean; estimates KL(p||q).
        Gradient: of KL(q||p) at each prefix, prefixes held fixed; v (1 - r) d log p per token.
        Biased: k3 differentiated is the gradient of KL(q||p), the other direction.
    """

    learn: str
    gradient: str
    form: str
    weights: str
    prefixes: str
    aggregate: str
    value: str
    coefficient: str
    gradient_of: str
    wrong_value: tuple[str, ...]
    wrong_gradient: tuple[str, ...]

    @property
    def biased(self) -> bool:
        """Whether the value or the gradient is not what KL(p||q) has."""
        return bool(self.wrong_value or self.wrong_gradient)

    def __str__(self) -> str:
        whose = " of p" if self.prefixes == "p" else ""
        scope = {
            "token": f"at each prefix{whose}, prefixes held fixed",
            "sequence": "of whole sequences, score term included",
        }[self.gradient]
        of = "zero in the mean" if self.gradient_of == "0" else f"of {self.gradient_of} {scope}"
        how = self.coefficient
        if self.form != "rao_blackwell":
            how = f"{how} d log {self.learn} per token"
        reasons = dict.fromkeys((*self.wrong_value, *self.wrong_gradient))
        estimates = "does not estimate KL(p||q)" if self.wrong_value else "estimates KL(p||q)"
        return "\n".join(
            [
                f"Value: {self.value} on each token, as {self.aggregate}; {estimates}.",
                f"Gradient: {of}; {how}.",
                *(f"Biased: {reason}." for reason in reasons),
            ]
        )


def loss_claim(
    *,
    learn: str = "p",
    gradient: str = "token",
    form: str = "auto",
    aggregate: str = "token_mean",
    other_sampler: bool = False,
    prefixes: str | None = None,
    weights: str | None = None,
    truncate: float | None = None,
    clamp: float | None = None,
    exact: bool = False,
) -> LossClaim:
    """What `kb.loss` would be with these options: value, gradient, and what is wrong with it.

    Nothing is computed. The gradients are proved by enumeration of small languages.

    Args:
        learn: As in `kb.loss`, like all that follow.
        gradient: ``token`` or ``sequence``.
        form: One of the forms, or ``auto``.
        aggregate: ``token_mean``, ``sequence_sum`` or ``sequence_mean``.
        other_sampler: Whether a third policy sampled (log_sampler= is given).
        prefixes: ``sampler`` or ``p``.
        weights: ``none``, ``token``, ``prefix`` or ``sequence``.
        truncate: What a weight counts at most.
        clamp: What a log-ratio counts at most, of either sign.
        exact: Whether the exact KL at each prefix is given.

    Returns:
        The claim; ``str`` of it is what a person reads.

    Raises:
        ValueError: A name is unknown, or the options do not go together.

    Example:
        >>> loss_claim(gradient="sequence", other_sampler=True).weights
        'prefix'
        >>> loss_claim(form="k1").wrong_gradient
        ('k1 differentiated is noise around zero: E[d log p] = 0, and q has no part in it',)
    """
    _known("learn", learn, ("p", "q"))
    _known("gradient", gradient, ("token", "sequence"))
    _known("form", form, ("auto", *FORMS))
    _known("aggregate", aggregate, tuple(LEVELS))
    if form == "auto":
        form = "rao_blackwell" if exact else _AUTO[learn, gradient]
    if (form == "rao_blackwell") != exact:
        raise ValueError(
            "rao_blackwell is made of exact=, the KL at each prefix, and no other form is: give "
            "both or neither"
        )
    if (learn, gradient, form) not in CLAIMS:
        raise ValueError(f"{form} differentiates log p or its weight, and here q learns: take k3")
    prefixes, weights = _weighted(gradient, form, other_sampler, prefixes, weights)
    claim = CLAIMS[learn, gradient, form]
    wrong = _wrong(weights, prefixes, other_sampler, truncate, clamp, aggregate)
    if gradient == "sequence" and aggregate == "sequence_mean":
        raise ValueError("sequence_mean has no gradient of whole sequences: take token_mean")
    weighted = "" if weights == "none" else "weighted "
    return LossClaim(
        learn=learn,
        gradient=gradient,
        form=form,
        weights=weights,
        prefixes=prefixes,
        aggregate=aggregate,
        value=weighted + ("exact KL" if form == "rao_blackwell" else "k3"),
        coefficient=claim.coefficient,
        gradient_of=claim.gradient_of,
        wrong_value=wrong,
        wrong_gradient=(*((claim.biased,) if claim.biased else ()), *wrong),
    )


_AUTO = {
    ("p", "token"): "k2",
    ("p", "sequence"): "score",
    ("q", "token"): "k3",
    ("q", "sequence"): "k3",
}


def _known(name: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise ValueError(f"{name} {value!r} is none of {', '.join(names)}")


def _weighted(
    gradient: str, form: str, other: bool, prefixes: str | None, weights: str | None
) -> tuple[str, str]:
    """Whose prefixes, and what a token counts: the question decides, unless it is overruled."""
    prefixes = prefixes or ("p" if gradient == "sequence" else "sampler")
    _known("prefixes", prefixes, ("sampler", "p"))
    if gradient == "sequence" and prefixes != "p":
        raise ValueError(
            "the gradient of whole sequences is over the prefixes of p; over those of a sampler "
            "that does not learn there is no score term: gradient='token' is all of it"
        )
    if weights is not None:
        _known("weights", weights, tuple(WEIGHTS))
    if not other:
        if weights not in (None, "none"):
            raise ValueError(f"weights {weights!r} take log_sampler=, the policy that sampled")
        return prefixes, "none"
    # The square, or k3, of the sum over a sequence goes with the weight of the sequence.
    of_sums = gradient == "sequence" and form in ("k1", "k2", "k3")
    asked = {"sampler": "token", "p": "sequence" if of_sums else "prefix"}[prefixes]
    weights = weights or asked
    if (gradient, weights) == ("sequence", "token") or (of_sums and weights == "prefix"):
        raise ValueError(f"{weights} weights do not go with the gradient of {form} of sequences")
    if prefixes == "sampler" and weights in ("prefix", "sequence"):
        raise ValueError(f"{weights} weights answer for the prefixes of p: say prefixes='p'")
    return prefixes, weights


def _wrong(
    weights: str,
    prefixes: str,
    other: bool,
    truncate: float | None,
    clamp: float | None,
    aggregate: str,
) -> tuple[str, ...]:
    """What is wrong with the weights or the level, for value and gradient alike."""
    wrong: list[str] = []
    if other and weights == "none":
        wrong.append("tokens of another policy are taken for p's, without a weight")
    if other and weights == "token" and prefixes == "p":
        wrong.append("token weights leave the prefixes the sampler's, and p's are asked for")
    if truncate is not None:
        _positive("truncate", truncate)
        wrong.append(f"weights above {truncate:g} count as {truncate:g}")
    if clamp is not None:
        _positive("clamp", clamp)
        wrong.append(
            f"log-ratios beyond {clamp:g} count as {clamp:g} (`kb.clamp_bias` measures it)"
        )
    if aggregate == "sequence_mean":
        wrong.append(
            "sequence_mean selects on the outcome where lengths are random: what ends a sequence "
            "decides what its tokens count"
        )
    return tuple(wrong)


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} is {value}, expected a number above 0")
