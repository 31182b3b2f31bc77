"""By its name in a log, however the log spells it: the entries that it can be."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from kullback.dictionary.classic import CLASSIC
from kullback.dictionary.disaggregated import DISAGGREGATED
from kullback.dictionary.libraries import LIBRARIES
from kullback.dictionary.metric import Metric
from kullback.dictionary.openrlhf import OPENRLHF
from kullback.dictionary.ray_trainers import RAY_TRAINERS
from kullback.dictionary.trl import TRL
from kullback.dictionary.verl import VERL

METRICS: tuple[Metric, ...] = (
    *TRL,
    *VERL,
    *OPENRLHF,
    *RAY_TRAINERS,
    *DISAGGREGATED,
    *LIBRARIES,
    *CLASSIC,
)
FRAMEWORKS: tuple[str, ...] = tuple(dict.fromkeys(one.framework for one in METRICS))
_ALSO = {
    "cookbook": "tinker",
    "huggingface": "trl",
    "liger-kernel": "liger",
    "nemo": "nemo-rl",
    "sb3": "stable-baselines3",
    "spinup": "spinningup",
    "swift": "ms-swift",
    "tinker-cookbook": "tinker",
}
_SUMMARIES = ("mean", "avg", "average")


def find(name: str, framework: str | None = None, version: str | None = None) -> tuple[Metric, ...]:
    """What a number of a log can be, by its name.

    A logger's own prefix (``train/``) and suffix (``/mean``) may be there, and case, dashes and
    blanks do not matter. A name without a prefix (``kl``) is that of all who log it, in a
    framework that has no such name also under any prefix. With one, the whole name counts, if
    somebody has it; else its end.

    Args:
        name: As the log has it: ``actor/kl_loss``, ``train/approx_kl``, ``kl``.
        framework: The project that wrote it, if known, and which of its trainers: ``trl``,
            ``trl/GRPO``.
        version: Its release; entries that are gone in it are left out.

    Returns:
        The entries that it can be; empty if nobody has it.

    Raises:
        ValueError: The framework is not in the dictionary.

    Example:
        >>> [one.framework for one in find("policykl")], find("ref_kl", "prime-rl")[0].sign
        (['roll'], -1)
        >>> sorted({one.framework for one in find("approx_kl")})
        ['areal', 'cleanrl', 'stable-baselines3']
    """
    key = _key(name)
    there = [one for one in _of(framework) if not _gone(one, version)]
    if "/" not in key:
        whole = {one.framework for one in there if _fits(one, key, _same)}
        there = [one for one in there if one.framework not in whole or _fits(one, key, _same)]
        return tuple(one for one in there if _fits(one, key, _ends_alike))
    for way in (_same, _prefixed, _shortened, _ends_alike):
        if found := tuple(one for one in there if _fits(one, key, way)):
            return _longest(found, key) if way is _prefixed else found
    return ()


def _longest(found: tuple[Metric, ...], key: str) -> tuple[Metric, ...]:
    """Those of the longest name: ``train/objective/kl`` is ``objective/kl``, and no ``kl``."""
    lengths = [max(len(n) for n in map(_key, one.names) if _prefixed(key, n)) for one in found]
    return tuple(one for one, size in zip(found, lengths, strict=True) if size == max(lengths))


def _fits(one: Metric, key: str, way: Callable[[str, str], bool]) -> bool:
    return any(way(key, _key(known)) for known in one.names)


def _same(key: str, known: str) -> bool:
    return key == known


def _prefixed(key: str, known: str) -> bool:
    """A logger put something before it."""
    return key.endswith(f"/{known}")


def _shortened(key: str, known: str) -> bool:
    """Somebody left the beginning out."""
    return known.endswith(f"/{key}")


def _ends_alike(key: str, known: str) -> bool:
    return key.rpartition("/")[2] == known.rpartition("/")[2]


def _of(framework: str | None) -> list[Metric]:
    if not framework:
        return list(METRICS)
    project, _, trainer = framework.partition("/")
    own, said = framework_name(project), trainer.strip().lower()
    return [
        one
        for one in METRICS
        if one.framework == own and (one.trainer.lower().startswith(said) or not one.trainer)
    ]


def framework_name(name: str) -> str:
    """How the dictionary spells a framework; what follows a ``/`` is one of its trainers.

    Raises:
        ValueError: It is not there.

    Example:
        >>> framework_name("NeMo_RL"), framework_name("sb3")
        ('nemo-rl', 'stable-baselines3')
    """
    key = name.partition("/")[0].strip().lower().replace("_", "-").replace(" ", "-")
    key = _ALSO.get(key, key)
    if key in FRAMEWORKS:
        return key
    near = get_close_matches(key, [*FRAMEWORKS, *_ALSO], n=1)
    meant = f"; did you mean {near[0]}?" if near else "."
    raise ValueError(f"no framework {name!r} is known{meant} Known are {', '.join(FRAMEWORKS)}")


def near(name: str, framework: str | None = None, most: int = 3) -> tuple[str, ...]:
    """Names in the dictionary that are spelled nearly so.

    Example:
        >>> near("aprox_kl", "stable-baselines3")
        ('train/approx_kl',)
    """
    there = {
        key: known
        for one in _of(framework)
        for known in one.names
        for key in (_key(known), _key(known).rpartition("/")[2])
    }
    close = get_close_matches(_key(name), there, n=3 * most, cutoff=0.7)
    return tuple(dict.fromkeys(there[key] for key in close))[:most]


def _key(name: str) -> str:
    key = re.sub(r"[\s-]+", "_", name.strip().lower()).replace(".", "/").strip("/")
    while (parts := key.rpartition("/"))[0] and parts[2] in _SUMMARIES:
        key = parts[0]
    return key


def _gone(one: Metric, version: str | None) -> bool:
    return bool(version and one.until) and _numbers(version or "") >= _numbers(one.until)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
