"""By its name: a finding code, a mark, a number of a report, or one number of a log."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from kullback.diagnosis.finding import CODES
from kullback.dictionary import FRAMEWORKS, find
from kullback.dictionary.find import near as near_logged
from kullback.explaining.codes import explain_code
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.explanation import Explanation, Section
from kullback.explaining.marks import MARKS, explain_mark
from kullback.explaining.metrics import explain_metric
from kullback.explaining.scalar import TERMS, judge
from kullback.explaining.settings import read_settings
from kullback.explaining.trainer_numbers import explain_logged, listed
from kullback.explaining.trainer_values import judge_logged
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
    name: str | None = None,
    value: float | None = None,
    tokens: int | None = None,
    *,
    framework: str | None = None,
    version: str | None = None,
    config: str | Path | None = None,
) -> Explanation:
    """Say what a finding code or a number means, or whether a number of a log is noise or a bug.

    Examples are computed when asked, from small worlds with a fixed seed. A value is judged with
    the price of a negative sum: P(Σ k1 ≤ −c) ≤ e^−c with c = −value · tokens, if p sampled these
    tokens and q was fixed before. What a trainer logs under a name is looked up in
    `kullback.dictionary`.

    Args:
        name: A finding code (``weights-degenerate``), a mark (``biased``), a number of a
            report (``ess``, ``k3``), one of a trainer's log (``actor/kl_loss``), or nothing for
            the list of all.
        value: The mean of kl, k1, k2 or k3 over tokens, as a log shows it, in nats; with a
            framework, of the number that it logs, whose sign it may have turned.
        tokens: How many tokens that mean is over.
        framework: Whose log it is: ``trl``, ``trl/GRPO``, ``verl``, …
        version: Its release.
        config: The trainer's settings, a YAML, JSON or TOML file: they may decide what the number
            is.

    Returns:
        The explanation; ``str(it)`` is its text in lines of 80 columns, ``numbers`` its numbers.

    Raises:
        ValueError: Nothing has this name, the file cannot be read, or of value and tokens only one
            is given or is impossible.

    Example:
        >>> print(explain("kl", value=-0.031, tokens=8192).text.splitlines()[0])
        kl = -0.031 over 8192 tokens: noise cannot do this
        >>> explain("weights-degenerate").kind, explain("ess_fraction").name
        ('finding', 'ess')
        >>> explain("actor/policykl", framework="roll").caption
        'minus k1 of the update'
    """
    if framework is None and (version is not None or config is not None):
        raise ValueError("whose version or settings? say it: --framework verl")
    if value is not None or tokens is not None:
        return _judged(name, value, tokens, framework, version, config)
    if framework is not None and name is None:
        return listed(framework)
    if framework is not None and name is not None:
        return explain_logged(name, framework, version, read_settings(config) if config else None)
    if name is None:
        return _everything()
    if not (known := _known(name)):
        return explain_logged(name)
    if known in CODES:
        return explain_code(known)
    said = explain_mark(known) if known in MARKS else explain_metric(known)
    return replace(said, sections=(*said.sections, *_in_logs(known)))


def _judged(
    name: str | None,
    value: float | None,
    tokens: int | None,
    framework: str | None,
    version: str | None,
    config: str | Path | None,
) -> Explanation:
    if name is None or value is None or tokens is None:
        raise ValueError(
            "a number is judged by its name, its value and its tokens: "
            "kullback explain kl --value -0.031 --tokens 8192"
        )
    if framework is not None:
        settings = read_settings(config) if config else None
        return judge_logged(name, value, tokens, framework, version, settings)
    if not (known := _known(name)):
        first, *others = dict.fromkeys(one.framework for one in find(name))
        also = f" (or {', '.join(others)})" if others else ""
        raise ValueError(f"whose {name} is it? say it, and it is judged: --framework {first}{also}")
    return judge(known, value, tokens)


def _in_logs(name: str) -> tuple[Section, ...]:
    """Who logs something by this name, which may be anything."""
    who = list(dict.fromkeys(one.framework for one in find(name)))
    if not who:
        return ()
    count = f"{len(find(name))} numbers" if len(find(name)) > 1 else "a number"
    said = (
        f"{', '.join(who)} log{'s' * (len(who) == 1)} {count} by this name, which may be another "
        f"thing.\nkullback explain {name} --framework {who[0]}"
    )
    return (Section("In logs", said),)


def _known(name: str) -> str | None:
    """The code or number of our own that is meant; case, blanks, - and _ do not matter.

    None if a trainer logs it.

    Raises:
        ValueError: Nobody has this name.
    """
    names = {_key(known): known for known in (*CODES, *MARKS, *ESTIMATORS, *TRUST)}
    names |= {_key(other): known for other, known in _ALSO.items()}
    key = _key(name)
    if key.startswith("as-if-sampled-by-"):  # a role follows
        key = "as-if-sampled-by"
    if key in names:
        return names[key]
    if find(name):
        return None
    close = [names[one] for one in get_close_matches(key, names, n=3, cutoff=0.7)]
    near = dict.fromkeys(close or near_logged(name))
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
            (
                f"{', '.join(TERMS)}",
                "noise or bug? with --value V --tokens N, a mean over N tokens",
            ),
            ("--framework NAME", f"what a trainer logs: {', '.join(FRAMEWORKS)}"),
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
