"""By its name: a finding code, a mark, a number of a report, or one number of a log."""

from __future__ import annotations

from difflib import get_close_matches

from kullback.diagnosis.finding import CODES
from kullback.explaining.codes import explain_code
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.explanation import Explanation, Section
from kullback.explaining.marks import MARKS, explain_mark
from kullback.explaining.metrics import explain_metric
from kullback.explaining.scalar import TERMS, judge
from kullback.explaining.trust import TRUST

# What a report and its JSON call the same numbers.
_ALSO = {
    "clip_band": "clip-fraction",
    "clusters": "effective-clusters",
    "entropy_z": "entropy-test",
    "ess_fraction": "ess",
    "few-clusters": "too-few-clusters",
    "high": "interval",
    "level": "levels",
    "low": "interval",
    "mean": "kl",
    "not-verifiable": "sampler-not-verifiable",
    "sequence_mean": "levels",
    "sequence_sum": "levels",
    "shape": "S",
    "standard_error": "interval",
    "token_mean": "levels",
    "truncated_at": "truncated-share",
    "truncated_mean": "truncated-share",
    "weights": "ess",
    "weights left": "ess",
}


def explain(
    name: str | None = None, value: float | None = None, tokens: int | None = None
) -> Explanation:
    """Say what a finding code or a number means, or whether a number of a log is noise or a bug.

    Examples are computed when asked, from small worlds with a fixed seed. A value is judged with
    the price of a negative sum: P(Σ k1 ≤ −c) ≤ e^−c with c = −value · tokens, if p sampled these
    tokens and q was fixed before.

    Args:
        name: A finding code (``weights-degenerate``), a mark (``biased``), a number of a
            report (``ess``, ``k3``), or nothing for the list of all.
        value: The mean of kl, k1, k2 or k3 over tokens, as a log shows it, in nats.
        tokens: How many tokens that mean is over.

    Returns:
        The explanation; ``str(it)`` is its text in lines of 80 columns, ``numbers`` its numbers.

    Raises:
        ValueError: Nothing has this name, or of value and tokens only one is given or is
            impossible.

    Example:
        >>> print(explain("kl", value=-0.031, tokens=8192).text.splitlines()[0])
        kl = -0.031 over 8192 tokens: noise cannot do this
        >>> explain("weights-degenerate").kind, explain("ess_fraction").name
        ('finding', 'ess')
    """
    if value is not None or tokens is not None:
        if name is None or value is None or tokens is None:
            raise ValueError(
                "a number is judged by its name, its value and its tokens: "
                "kullback explain kl --value -0.031 --tokens 8192"
            )
        judged = _known(name)
        return judge(judged, value, tokens)
    if name is None:
        return _everything()
    known = _known(name)
    if known in CODES:
        return explain_code(known)
    return explain_mark(known) if known in MARKS else explain_metric(known)


def _known(name: str) -> str:
    """The code or number that is meant; case, blanks, - and _ do not matter."""
    names = {_key(known): known for known in (*CODES, *MARKS, *ESTIMATORS, *TRUST)}
    names |= {_key(other): known for other, known in _ALSO.items()}
    key = _key(name)
    if key.startswith("as-if-sampled-by-"):  # a role follows
        key = "as-if-sampled-by"
    if key in names:
        return names[key]
    near = dict.fromkeys(names[one] for one in get_close_matches(key, names, n=3, cutoff=0.7))
    if near:
        raise ValueError(f"nothing is called {name!r}; did you mean {' or '.join(near)}?")
    raise ValueError(f"nothing is called {name!r}; kullback explain lists what can be explained")


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _everything() -> Explanation:
    accuse = [(code, said.caption) for code, said in CODES.items() if said.accuses]
    tell = [(code, said.caption) for code, said in CODES.items() if not said.accuses]
    groups = {
        "Findings that accuse": accuse,
        "Findings that tell": tell,
        "Why a number is read with care": [(name, one.caption) for name, one in MARKS.items()],
        "The KL and its estimators": [(name, one.caption) for name, one in ESTIMATORS.items()],
        "Whether to trust it": [(name, one.caption) for name, one in TRUST.items()],
        "A number of a log": [
            (f"{', '.join(TERMS)}", "noise or bug? with --value V --tokens N, a mean over N tokens")
        ],
    }
    return Explanation(
        name="kullback explain NAME",
        kind="list",
        caption="what it means, with an example",
        sections=tuple(
            Section(title, "\n".join(f"{name}\t{caption}" for name, caption in rows))
            for title, rows in groups.items()
        ),
    )
