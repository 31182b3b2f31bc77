"""Whose dump is this? From column names, and what the columns hold, to the parts they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kullback.dumps.aliases import (
    ALIASES,
    COMMON,
    GENERIC,
    NOT_ALIGNED,
    meaning,
    parts_of,
)
from kullback.dumps.batch import Use
from kullback.dumps.errors import DumpError
from kullback.dumps.grain import cut_part, grain_of
from kullback.dumps.layout import (
    CUTS,
    LABEL,
    Held,
    canonical,
    depth_in,
    expected,
    family,
    is_label,
    role_of,
    spoken,
)
from kullback.dumps.offers import offers
from kullback.question import is_role


@dataclass(frozen=True, slots=True)
class Guess:
    """A column, and what it is taken for.

    Args:
        role: The role whose log-probs it holds, or another part: ``mask``, ``tokens``,
            ``top_k of rollout``, ``entropy of rollout``, ``KL(old||current)``.
        column: Its name in the files.
        how: ``canonical`` (named as this project's dumps are), ``alias`` (another project's
            name), ``content`` (the name could be two things; what it holds decided), ``map``
            (the caller said so).
        reason: Why, in words.
    """

    role: str
    column: str
    how: str
    reason: str


@dataclass(slots=True)
class Recognition:
    """What the columns of one file are.

    Args:
        path: The file.
        held: What each of its columns holds.
        uses: The columns that are used.
        guesses: The same for a person, in the same order.
        unused: The other columns, with the reason.
        layout: Whose dump it is: ``kullback``, a project's name, or ``mapped``.
        grain: What one row of it is: a ``sequence``, a packed ``batch`` or a ``token``.
    """

    path: str
    held: Mapping[str, Held]
    uses: list[Use] = field(default_factory=list)
    guesses: list[Guess] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    layout: str = "mapped"
    grain: str = "sequence"

    @property
    def roles(self) -> list[str]:
        """The roles with log-probs, in the order of the columns."""
        return [role_of(use.part) for use in self.uses if use.family == "log_probs"]

    def column_of(self, part: str) -> str | None:
        """The column that is this part so far."""
        return next((use.column for use in self.uses if use.part == part), None)

    def depth(self, part: str, column: str) -> int | None:
        """How deep the lists of the part nest in this column; None if it cannot be it."""
        return depth_in(part, self.held[column], self.grain)

    def take(self, part: str, column: str, how: str, reason: str) -> None:
        """Use a column as a part."""
        self.uses.append(Use(part, column, self.held[column], self.grain))
        self.guesses.append(Guess(spoken(part), column, how, reason))

    def drop(self, part: str, reason: str) -> None:
        """Do without a part after all."""
        index = [use.part for use in self.uses].index(part)
        self.unused[self.uses.pop(index).column] = reason
        del self.guesses[index]


def recognize(
    path: str, held: Mapping[str, Held], map: Mapping[str, str], labels: Sequence[str] = ()
) -> Recognition:
    """Find out what the columns of a file are.

    What the caller maps comes first, then this project's own names, then the names of the
    project whose columns are there. A name that could be two things is not guessed.

    Args:
        path: The file, for sentences.
        held: What each column holds.
        map: Part or role to column, by the caller.
        labels: Columns to read as labels of the sequences, whatever else they are.

    Raises:
        DumpError: A mapped column or a label does not exist or cannot be what it is to be; two
            columns claim one role; fewer than two roles have log-probs.
    """
    found = Recognition(path, held, grain=grain_of(held, map))
    for key, column in map.items():
        _take_mapped(found, key, column)
    mapped = set(map.values())
    rest = {name: one for name, one in held.items() if name not in mapped}
    ours = any(name.startswith("log_probs.") and canonical(name) for name in rest)
    leaders = [] if ours else _leaders(rest)
    if ours or leaders:
        found.layout = "kullback" if ours else " or ".join(leaders)
    # Own names first: an alias must not take a role that has its own column.
    for name in sorted(rest, key=lambda name: canonical(name, found.grain) is None):
        if (part := canonical(name, found.grain)) and not any(
            name in ALIASES[one] for one in leaders
        ):
            _take(found, part, name, "canonical", "named as in a kullback dump")
        elif part := cut_part(name, found.grain):
            _take(found, part, name, "alias", f"a usual name for {meaning(part)}")
        else:
            _take_alias(found, name, leaders)
    _pair_heads(found)
    _require_one_cut(found)
    for name in labels:
        _take_label(found, name)
    _require_roles(found)
    return found


def _take_mapped(found: Recognition, key: str, column: str) -> None:
    part = canonical(key, found.grain) or (key if key == "prompt" else None)
    if part is None and key in CUTS:
        raise DumpError(
            f"{found.path}: nothing can be mapped to {key}, as a row is a {found.grain} there: "
            "lengths go with flat lists of log-probs, sequence with one log-prob per row"
        )
    part = part or (f"log_probs.{key}" if is_role(key) else None)
    if part is None:
        raise DumpError(
            f"{key!r} is neither a role nor a part of a dump: map a role, mask, tokens, text, "
            "prompt, step, versions or another column name of docs/format.md"
        )
    if column not in found.held:
        raise DumpError(
            f"{found.path} has no column {column!r} to take as {key}: it has {_some(found.held)}"
        )
    if found.depth(part, column) is None:
        raise DumpError(
            f"{found.path}: column {column} holds {found.held[column]}, but {spoken(part)} needs "
            f"{expected(part, found.grain)}"
        )
    found.take(part, column, "map", f"mapped to {key} by the caller")


def _require_one_cut(found: Recognition) -> None:
    """Of lengths and their running sums, one is enough."""
    if found.column_of("lengths") and found.column_of("cu_seqlens"):
        found.drop("cu_seqlens", f"the lengths are taken from {found.column_of('lengths')}")


def _take_label(found: Recognition, name: str) -> None:
    part = f"{LABEL}{name}"
    if is_label(name) and found.column_of(name) == name:
        return  # it comes under this name already
    if name not in found.held:
        raise DumpError(
            f"{found.path} has no column {name!r} to read as a label: it has {_some(found.held)}"
        )
    if found.depth(part, name) is None:
        raise DumpError(
            f"{found.path}: column {name} holds {found.held[name]}, but a label is one number, "
            "flag or text per sequence"
        )
    found.unused.pop(name, None)
    found.take(part, name, "map", "asked for as a label by the caller")


def _leaders(columns: Mapping[str, Held]) -> list[str]:
    """The projects with the most telling columns here, log-probs before all others."""
    score = {}
    for project, names in ALIASES.items():
        here = [name for name in names if name in columns and name not in GENERIC]
        parts = [part for name in here for part in names[name]]
        logged = sum(family(part) == "log_probs" for part in parts)
        generic = sum(name in columns for name in names if name in GENERIC)
        score[project] = (logged + (generic if logged else 0), len(here))
    best = max(score.values())
    return [project for project, one in score.items() if one == best and best[0] > 0]


def _take_alias(found: Recognition, name: str, leaders: list[str]) -> None:
    tables = {project: ALIASES[project][name] for project in leaders if name in ALIASES[project]}
    if not tables and name in COMMON:
        tables = {"": COMMON[name]}
    elif not tables:
        tables = {project: names[name] for project, names in ALIASES.items() if name in names}
        if tables and name in GENERIC:
            found.unused[name] = _undecided(tables)
            return
    meanings = {
        next((p for p in parts if found.depth(p, name) is not None), None)
        for parts in tables.values()
    }
    if not tables:
        found.unused[name] = "no name that is known here"
    elif len(meanings) > 1:
        found.unused[name] = _undecided(tables)
    elif (part := meanings.pop()) is None:
        found.unused[name] = _no_use(tables, found.held[name], found.grain)
    elif family(part) == "log_probs" and (shifted := set(tables) & set(NOT_ALIGNED)):
        found.unused[name] = NOT_ALIGNED[shifted.pop()]
    else:
        several = any(len(parts) > 1 for parts in tables.values())
        whose = " and ".join(project for project in tables if project)
        owner = f"{whose}'s" if whose else "a usual"
        reason = f"{owner} name for {meaning(part)}"
        if several:
            reason += f"; it holds {found.held[name]}"
        _take(found, part, name, "content" if several else "alias", reason)


def _undecided(tables: Mapping[str, tuple[str, ...]]) -> str:
    readings = {project: parts[0] for project, parts in tables.items() if parts}
    listed = ", ".join(f"{spoken(part)} in {project}" for project, part in readings.items())
    return f"the name alone does not say whose it is ({listed}): map it"


def _no_use(tables: Mapping[str, tuple[str, ...]], held: Held, grain: str) -> str:
    project, parts = next(iter(tables.items()))
    if not parts:
        return f"in {project} it covers other tokens than the log-probs do"
    return f"holds {held}, but {spoken(parts[0])} needs {expected(parts[0], grain)}"


def _take(found: Recognition, part: str, name: str, how: str, reason: str) -> None:
    other = found.column_of(part)
    if found.depth(part, name) is None:
        needed = expected(part, found.grain)
        found.unused[name] = f"holds {found.held[name]}, but {spoken(part)} needs {needed}"
    elif other is None or (family(part) == "mask" and how == "alias" and _is_alias(found, part)):
        found.take(part, name, how, reason)
    elif _must_be_one(part) and how != "canonical" and _is_alias(found, part):
        raise DumpError(
            f"{found.path}: {other} and {name} both look like {spoken(part)}: say which it is, "
            f"--map {spoken(part)}=COLUMN"
        )
    else:
        found.unused[name] = f"{spoken(part)} is taken from {other}"


def _must_be_one(part: str) -> bool:
    return family(part) in ("log_probs", "sequence")


def _is_alias(found: Recognition, part: str) -> bool:
    taken = {use.part: guess.how for use, guess in zip(found.uses, found.guesses, strict=True)}
    return taken.get(part) in ("alias", "content")


def _pair_heads(found: Recognition) -> None:
    """Ids without log-probs, or the other way round, are no head."""
    parts = {use.part for use in found.uses}
    for use in list(found.uses):
        if use.family not in ("top_ids", "top_log_probs", "top_k"):
            continue
        role = role_of(use.part)
        absent = [p for p in (f"top_ids.{role}", f"top_log_probs.{role}") if p not in parts]
        if absent:
            found.drop(use.part, f"{absent[0]} is not there")


def _require_roles(found: Recognition) -> None:
    if len(set(found.roles)) >= 2:
        return
    roles = ", ".join(found.roles) or "none"
    hint = (
        "; ".join([*_offers(found), *_single_numbers(found), *_open_cases(found)])
        or f"columns: {_some(found.held) or 'none'}"
    )
    raise DumpError(
        f"{found.path} has log-probs of {roles}, and a KL needs those of two policies: name them "
        f"with --map role=column ({hint})"
    )


def _offers(found: Recognition) -> list[str]:
    """What to write where names suggest log-probs, and nothing is known of them."""
    known = {use.column for use in found.uses}
    known |= {name for name in found.unused if parts_of(name)}  # which have a reason of their own
    unread = {
        name: held.depth
        for name, held in found.held.items()
        if name not in known and held.leaf == "number" and held.depth < 2
    }
    lists = [name for name, depth in unread.items() if depth]
    return offers(lists, found.roles) or offers(unread, found.roles)


def _single_numbers(found: Recognition) -> list[str]:
    """What to do where a row seems to be a token, and nothing says of which sequence."""
    single = [
        name
        for name, held in found.held.items()
        if held == Held(0, "number") and any(family(p) == "log_probs" for p in parts_of(name))
    ]
    if not single or found.grain != "sequence":
        return []
    return [
        f"{single[0]} holds one number: if a row is a token, --map sequence=COLUMN says of what"
    ]


def _some(columns: Iterable[str]) -> str:
    """The columns by name, as far as a sentence can hold them."""
    names = [name if len(name) <= 40 else f"{name[:37]}..." for name in sorted(columns)]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more


def _open_cases(found: Recognition) -> list[str]:
    """The unused columns that are log-probs in some project, by reason."""
    names: dict[str, list[str]] = {}
    for name, why in found.unused.items():
        parts = [part for table in ALIASES.values() for part in table.get(name, ())]
        if any(family(part) == "log_probs" for part in parts):
            names.setdefault(why, []).append(name)
    return [f"{', '.join(those)}: {why}" for why, those in names.items()]
