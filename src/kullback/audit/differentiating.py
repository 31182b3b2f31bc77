"""One call in torch, JAX or NumPy: what a function returns, and the gradient of its sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Call = Callable[[Mapping[str, Any]], Any]  # the function, on what is given by its key


class Outcome(NamedTuple):
    """What a call gave.

    ``values`` are as returned: of shape [], [sequences] or [sequences, tokens]. ``gradient`` is
    that of their sum over the tokens that count, by what was given.
    """

    values: NDArray[np.float64]
    gradient: dict[str, NDArray[np.float64]]


class UnreadableError(ValueError):
    """A function ran, and what it returned is no KL term, in whatever library."""


def is_differentiated(key: str) -> bool:
    """Whether what is given under this key has a gradient: log-probs and logits do."""
    return key not in ("mask", "tokens")


def in_numpy(call: Call, arrays: Arrays, mask: NDArray[np.bool_]) -> Outcome:
    """Values alone; NumPy has no gradient."""
    with np.errstate(all="ignore"):  # infinities are meant where they are given
        values = term(call({key: array.copy() for key, array in arrays.items()}))
    return _checked(np.asarray(values, dtype=np.float64), {}, mask)


def in_torch(call: Call, arrays: Arrays, mask: NDArray[np.bool_]) -> Outcome:
    """Values and the gradient that autograd finds; nothing is asked of a detached one."""
    import torch

    with torch.inference_mode(mode=False), torch.enable_grad():
        given = {key: torch.tensor(one, device="cpu") for key, one in arrays.items()}
        leaves = {key: one.requires_grad_() for key, one in given.items() if is_differentiated(key)}
        # Copies: a function may write into what it is given, and into a leaf it could not.
        returned = term(call({key: one.clone() for key, one in given.items()}))
        values = torch.as_tensor(returned).to(device="cpu", dtype=torch.float64)
        counted = values[torch.tensor(mask)] if values.shape == mask.shape else values
        found: Any = [None] * len(leaves)
        if counted.requires_grad:
            found = torch.autograd.grad(counted.sum(), list(leaves.values()), allow_unused=True)
    gradient = {
        key: np.asarray(one) for key, one in zip(leaves, found, strict=True) if one is not None
    }
    return _checked(np.asarray(values.detach()), gradient, mask)


class InJax:
    """The same in JAX, compiled once for each shape if the function can be traced.

    A function that cannot be traced at all (it makes NumPy's numbers, say) has no gradient; then
    ``untraced`` says why.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._run: Callable[..., Any] | None = None
        self.untraced = ""

    def __call__(self, arrays: Arrays, mask: NDArray[np.bool_]) -> Outcome:
        """Values and gradient."""
        import jax

        with jax.enable_x64(True):
            given = {key: jax.numpy.asarray(one) for key, one in arrays.items()}
            leaves = {key: one for key, one in given.items() if is_differentiated(key)}
            rest = {key: one for key, one in given.items() if key not in leaves}
            self._run = self._run or self._fastest(leaves, rest, mask)
            (_, values), found = self._run(leaves, rest, mask)
        gradient = {key: np.asarray(one, dtype=np.float64) for key, one in found.items()}
        gradient = {key: one for key, one in gradient.items() if np.any(one != 0)}
        return _checked(np.asarray(values, dtype=np.float64), gradient, mask)

    def _fastest(self, *given: Any) -> Callable[..., Any]:
        import jax

        differentiated = jax.value_and_grad(self._total, has_aux=True)
        for run in (jax.jit(differentiated), differentiated):
            try:
                run(*given)
            except UnreadableError:
                raise
            except Exception as error:  # noqa: BLE001 what cannot be traced may raise anything
                why = f"{type(error).__name__}"
            else:
                return run
        self._plain(*given)  # what it raises, it raises without JAX's transforms too
        self.untraced = why
        return self._plain

    def _total(self, leaves: Any, rest: Any, mask: Any) -> Any:
        import jax.numpy as jnp

        values = jnp.asarray(term(self._call({**leaves, **rest})))
        counted = jnp.where(mask, values, 0.0) if values.shape == mask.shape else values
        return jnp.sum(counted), values

    def _plain(self, leaves: Any, rest: Any, mask: Any) -> Any:  # noqa: ARG002 as _total has it
        return (None, term(self._call({**leaves, **rest}))), {}


def term(returned: Any) -> Any:
    """The term itself, of a function that returns metrics beside it.

    Example:
        >>> term((0.5, {"kl": 0.5})), term({"loss": 0.5}), term(0.5)
        (0.5, 0.5, 0.5)
    """
    if isinstance(returned, Mapping):
        if "loss" not in returned:
            keys = ", ".join(map(str, returned))
            raise UnreadableError(f"it returned a dictionary without 'loss': {keys}")
        return returned["loss"]
    if isinstance(returned, tuple | list) and returned:
        returned = returned[0]
    if returned is None:
        raise UnreadableError("it returned None")
    return returned


def _checked(
    values: NDArray[np.float64],
    gradient: dict[str, NDArray[np.float64]],
    mask: NDArray[np.bool_],
) -> Outcome:
    """Values as [], [sequences] or [sequences, tokens]."""
    sequences, tokens = mask.shape
    if values.shape in ((sequences, 1), (1,)) and values.shape != mask.shape:
        values = values.reshape((sequences,) if values.shape == (sequences, 1) else ())
    if values.shape not in ((), (sequences,), (sequences, tokens)):
        raise UnreadableError(
            f"it returned the shape {list(values.shape)}; a scalar, [{sequences}] or "
            f"[{sequences}, {tokens}] can be read, that is, per sequence or per token"
        )
    return Outcome(values, gradient)
