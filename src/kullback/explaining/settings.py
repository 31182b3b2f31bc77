"""A trainer's own settings file, as far as it decides what a number of its log is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kullback.dictionary import Metric

_READ = (".json", ".toml", ".yaml", ".yml")


def read_settings(path: str | Path) -> dict[str, Any]:
    """A YAML, JSON or TOML file as one flat mapping, its keys joined by dots.

    A list of ``key=value`` texts, as Hydra keeps the overrides of a run, is read, too. A value
    ``${a.b}`` is that of ``a.b``; what else is to be computed (``${oc.env:…}``) is left out.

    Raises:
        ValueError: The file is of another kind, cannot be read, or holds no settings; or it is
            YAML and PyYAML is not installed.
    """
    source = Path(path)
    if source.suffix.lower() not in _READ:
        raise ValueError(f"{path} is none of {', '.join(_READ)}: give the trainer's settings file")
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise ValueError(f"{path} cannot be read: {said}") from None
    held = _parsed(text, source)
    if isinstance(held, list) and all(isinstance(one, str) and "=" in one for one in held):
        pairs = (one.partition("=") for one in held)
        held = {key.lstrip("+~"): value for key, _, value in pairs}
    if not isinstance(held, Mapping) or not held:
        raise ValueError(f"{path} holds no settings: they are keys with values")
    flat = dict(_flat(held, ""))
    resolved = {key: _resolved(value, flat) for key, value in flat.items()}
    return {key: value for key, value in resolved.items() if not _is_computed(value)}


def _parsed(text: str, source: Path) -> Any:
    kind = source.suffix.lower()
    if kind in (".yaml", ".yml"):
        try:
            import yaml
        except ImportError:
            raise ValueError(
                f"{source} is YAML, which PyYAML reads: pip install 'kullback[yaml]'"
            ) from None
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"{source} is no YAML: {_first_line(error)}") from None
    try:
        return json.loads(text) if kind == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{source} is no {kind[1:].upper()}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _flat(held: Mapping[Any, Any], above: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in held.items():
        name = f"{above}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return found


def _resolved(value: Any, flat: Mapping[str, Any]) -> Any:
    for _ in range(len(flat)):  # a chain of references may be a ring
        if not _is_computed(value) or (name := value[2:-1].strip()) not in flat:
            return value
        value = flat[name]
    return value


def _is_computed(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")


def deciding(metric: Metric) -> list[str]:
    """The settings that a number depends on."""
    keys = [*metric.defaults, *(key for choice in metric.choices for key in choice.when)]
    return list(dict.fromkeys([*keys, metric.coefficient] if metric.coefficient else keys))


def settle(metric: Metric, flat: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that decide a number, by the names that the dictionary has for them.

    A setting may stand deeper in the file, and its parts may be joined by ``_`` or ``-``:
    ``actor_rollout_ref.actor.kl_loss_type`` is ``actor.kl_loss_type``. If several do, the one that
    stands highest counts. A file that has but a part of the settings may leave ``actor`` out, if
    what is left is more than a word.

    Raises:
        ValueError: Two that stand equally high disagree.

    Example:
        >>> from kullback.dictionary import find
        >>> kl = find("kl", "openrlhf")[0]
        >>> settle(kl, {"algo.kl.estimator": "k3", "optimizer.beta": 0.9})
        {'kl.estimator': 'k3'}
    """
    found = {}
    for key in deciding(metric):
        last = key.rpartition(".")[2]
        there = [name for name in flat if _is_called(name, key)]
        there = there or [name for name in flat if "_" in last and _plain(name) == last]
        if not there:
            continue
        depth = min(name.count(".") for name in there)
        highest = [name for name in there if name.count(".") == depth]
        if any(flat[name] != flat[highest[0]] for name in highest):
            raise ValueError(
                f"{' and '.join(highest)} disagree: which of them sets {metric.name} is not known"
            )
        found[key] = flat[highest[0]]
    return found


def _is_called(name: str, key: str) -> bool:
    parts = _plain(name).split(".")
    wanted = key.lower().replace(".", "_")
    return any("_".join(parts[start:]) == wanted for start in range(len(parts)))


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").strip("_")
