"""Calls somebody's function, in the library that it is written for."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from kullback.audit.differentiating import (
    InJax,
    Outcome,
    UnreadableError,
    in_numpy,
    in_torch,
    is_differentiated,
)
from kullback.audit.roles import name_of
from kullback.audit.scenes import Batch

LIBRARIES = ("torch", "jax", "numpy")
_MASKS = (np.bool_, np.float64, np.int64)  # which kind of mask a function takes, it does not say


class Caller:
    """A function with what its parameters are given.

    Args:
        fn: The function.
        parameters: What each is given, by its name (``roles.parameters``).
        library: ``torch``, ``jax`` or ``numpy``; None to find out.
        trial: The batch on which that is tried.

    Raises:
        ValueError: It raises something with every library, or returns what cannot be read.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        parameters: Mapping[str, str],
        library: str | None,
        trial: Batch,
    ) -> None:
        self._fn, self.parameters, self.name = fn, dict(parameters), name_of(fn)
        self.given = frozenset(parameters.values())
        keys = filter(is_differentiated, parameters.values())
        self.roles = tuple(dict.fromkeys(key.removesuffix("_logits") for key in keys))
        self._in_jax = InJax(self._call)
        self.library, self._mask_kind = self._found(library, trial)

    @property
    def untraced(self) -> str:
        """Why JAX could not differentiate it, if so."""
        return self._in_jax.untraced

    def __call__(self, batch: Batch, *, dtype: Any = np.float64) -> Outcome:
        """What it gives for a batch.

        Args:
            batch: The batch.
            dtype: Of the log-probs and logits.

        Raises:
            ValueError: It raised something; said with the shapes that it was called with.
        """
        try:
            return self._run(self.library, self._mask_kind, batch, dtype)
        except Exception as error:
            raise ValueError(f"{self.name} {_told(error)}; {self._shapes(batch)}") from error

    def _found(self, library: str | None, trial: Batch) -> tuple[str, Any]:
        if library is not None and library not in LIBRARIES:
            raise ValueError(f"library {library!r} is none of {', '.join(LIBRARIES)}")
        tried: dict[str, None] = {}
        for name in (library,) if library else likely(self._fn):
            if importlib.util.find_spec(name) is None:
                tried[f"{name} is not installed"] = None
                continue
            for kind in _MASKS if "mask" in self.given else _MASKS[:1]:
                try:
                    self._run(name, kind, trial)
                except UnreadableError as error:
                    raise ValueError(f"{self.name}: {error}; {self._shapes(trial)}") from error
                except Exception as error:  # noqa: BLE001 a function may raise anything
                    tried[f"with {name} it {_told(error)}"] = None
                else:
                    return name, kind
        raise ValueError(
            f"{self.name} could not be called: {'; '.join(tried)}; {self._shapes(trial)}"
        )

    def _run(self, library: str, mask_kind: Any, batch: Batch, dtype: Any = np.float64) -> Outcome:
        kinds = {"mask": mask_kind, "tokens": np.int64}
        arrays = {key: batch.given(key).astype(kinds.get(key, dtype)) for key in self.given}
        run = {
            "torch": partial(in_torch, self._call),
            "jax": self._in_jax,
            "numpy": partial(in_numpy, self._call),
        }[library]
        return run(arrays, batch.mask)

    def _call(self, arrays: Mapping[str, Any]) -> Any:
        return self._fn(**{name: arrays[key] for name, key in self.parameters.items()})

    def _shapes(self, batch: Batch) -> str:
        told = ", ".join(
            f"{name} = {key} {list(batch.given(key).shape)}"
            for name, key in self.parameters.items()
        )
        return f"it was called with {told}"


def likely(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The libraries to try: those that the function names, else those that its file imports first.

    NumPy's functions are named in code of all three, and take arrays of the others; so it is tried
    after torch at the earliest.

    Example:
        >>> likely(lambda current: np.abs(current)), likely(lambda current: torch.abs(current))
        (('torch', 'numpy', 'jax'), ('torch',))
    """
    inner = getattr(fn, "func", fn)
    home = vars(sys.modules.get(getattr(inner, "__module__", None) or "", object))
    names = getattr(inner, "__globals__", home)
    used = getattr(getattr(inner, "__code__", None), "co_names", ())
    said = {_package(names.get(name, name)) for name in used}
    if named := tuple(name for name in ("torch", "jax") if name in said):
        return named
    if "numpy" in said:
        return ("torch", "numpy", "jax")
    imported = {_package(one) for one in names.values()}
    return tuple(sorted(LIBRARIES, key=lambda one: (one == "numpy", one not in imported)))


def _package(named: Any) -> str:
    """The package of a module, or of what its usual name says."""
    name = named if isinstance(named, str) else getattr(named, "__name__", "")
    return {"jnp": "jax", "np": "numpy", "F": "torch"}.get(name, str(name).partition(".")[0])


def _told(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"raised {type(error).__name__}" + (f" ({lines[0]})" if lines else "")
