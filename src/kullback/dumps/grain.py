"""What one row of a file is: a sequence, a packed batch of sequences, or one token of one."""

from __future__ import annotations

from collections.abc import Mapping

from kullback.dumps.aliases import CUT_NAMES, parts_of
from kullback.dumps.layout import CUTS, Held, canonical, depth_in, family

SAID = {"sequence": "", "batch": ", packed rows", "token": ", one row per token"}


def grain_of(held: Mapping[str, Held], map: Mapping[str, str]) -> str:
    """``sequence``, ``batch`` or ``token``, by what the columns hold.

    A row is a packed batch if it has a list of lengths beside lists of log-probs; a token if its
    log-probs are single numbers and it names the sequence it belongs to; else a sequence.

    Example:
        >>> lists, number = Held(1, "number"), Held(0, "number")
        >>> grain_of({"log_probs.old": lists, "lengths": lists}, {})
        'batch'
        >>> grain_of({"log_probs.old": number, "sequence_id": number}, {})
        'token'
    """
    logged = {held[name].depth for name in _log_probs(held, map)}
    if logged == {1} and _cuts(held, map, "batch"):
        return "batch"
    if logged == {0} and "sequence" in _cuts(held, map, "token"):
        return "token"
    return "sequence"


def _log_probs(held: Mapping[str, Held], map: Mapping[str, str]) -> list[str]:
    """The columns that are log-probs by their name or by the caller's word."""
    named = [name for name in held if any(family(p) == "log_probs" for p in parts_of(name))]
    mapped = [column for key, column in map.items() if _is_role(key)]
    return [name for name in (*named, *mapped) if name in held]


def _is_role(key: str) -> bool:
    """Whether a key of the caller stands for log-probs, and not for another part."""
    part = canonical(key)
    return family(part) == "log_probs" if part else key not in CUTS and key != "prompt"


def _cuts(held: Mapping[str, Held], map: Mapping[str, str], grain: str) -> set[str]:
    """What is there that cuts rows of this grain into sequences, or joins them."""
    names = {name: cut_part(name, grain) for name in held}
    names |= {map[key]: key for key in map if canonical(key, grain) and key in CUTS}
    return {
        part
        for name, part in names.items()
        if part and name in held and depth_in(part, held[name], grain) is not None
    }


def cut_part(name: str, grain: str) -> str | None:
    """``lengths``, ``sequence``, …, if a column of this name is that in files of this grain."""
    part = CUT_NAMES[grain].get(name, name)
    return part if part in CUTS and canonical(part, grain) else None
