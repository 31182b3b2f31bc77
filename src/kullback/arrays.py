"""NumPy, torch or JAX? Whose array it is, and the operations that the three spell differently.

A formula asks for the `namespace` of its arguments and writes what all three call alike (where,
exp, expm1, log, sum, …) only once. torch and JAX are never imported here: an array of theirs can
exist only where somebody else imported them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Tuples and not unions of types: torch.compile traces this file, and cannot trace a union.
_HOST = (np.ndarray, float, int)


def namespace(*values: Any) -> Any:
    """The module whose functions take these values: numpy, torch or jax.numpy.

    Python numbers go with any of them, alone they are NumPy's, as are lists.

    Raises:
        TypeError: The values belong to different libraries.

    Example:
        >>> namespace(np.ones(2), 0.5).__name__
        'numpy'
    """
    found: ModuleType = np
    for value in values:
        own = _library(value)
        if own is None or own is found:
            continue
        if found is not np or any(isinstance(one, (np.ndarray, list)) for one in values):
            raise TypeError(
                "some values are NumPy's or lists and others of torch or JAX, or of both: give "
                "all as arrays of one library"
            )
        found = own
    return found


def _library(value: Any) -> ModuleType | None:
    """The other two libraries, if it is theirs."""
    if isinstance(value, _HOST):
        return None
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if isinstance(value, getattr(torch, "Tensor", ())):
        return torch
    if isinstance(value, getattr(jax, "Array", ())):
        return sys.modules["jax.numpy"]
    return None


def quiet(xp: Any) -> AbstractContextManager[Any]:
    """What keeps NumPy from warning of infinities that are meant; nothing for the others.

    Example:
        >>> with quiet(np):
        ...     float(np.log(np.zeros(1))[0])
        -inf
    """
    return np.errstate(all="ignore") if xp is np else nullcontext()


def at_least_float32(values: Any, xp: Any = None) -> Any:
    """The values as a floating array: half precision as float32, NumPy's integers as float64.

    A log-ratio of 0.01 has three correct digits in bfloat16 and its square none to spare; the
    formulas therefore never compute in half precision, nor round back to it.

    Args:
        values: Numbers of any shape and dtype, Python numbers included.
        xp: Their namespace, if it is known.

    Returns:
        An array of the same shape; float32, float64 and wider inputs keep their dtype.

    Raises:
        ValueError: It is a list of rows that no array can hold.

    Example:
        >>> at_least_float32(np.float16(0.5)).dtype, at_least_float32(1).dtype
        (dtype('float32'), dtype('float64'))
    """
    xp = namespace(values) if xp is None else xp
    if xp is np:
        array = _dense(values)
        return array.astype(np.result_type(array.dtype, np.float32), copy=False)
    values = own(values, xp)
    dtype = xp.promote_types(values.dtype, xp.float32)
    return values if values.dtype == dtype else cast(values, dtype, xp)


def _dense(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, RuntimeError, TypeError) as error:
        raise ValueError(
            "a list of tensors, or of rows of different lengths, is no array here: join the rows "
            "end to end (with lengths=, where a function takes them)"
        ) from error


def own(values: Any, xp: Any) -> Any:
    """The values as an array of their namespace; arrays as they are, with their gradients.

    torch.asarray has not always kept the graph of a tensor.

    Example:
        >>> own([1, 2], np)
        array([1, 2])
    """
    if xp is np:
        return _dense(values)
    return values if isinstance(values, getattr(xp, "Tensor", ())) else xp.asarray(values)


def cast(values: Any, dtype: Any, xp: Any) -> Any:
    """The values in another dtype; gradients flow through.

    Example:
        >>> cast(np.ones(1), np.float32, np).dtype
        dtype('float32')
    """
    return values.to(dtype) if xp.__name__ == "torch" else values.astype(dtype)


def like(values: Any, other: Any, xp: Any) -> Any:
    """The values (Python numbers, say) as an array of the dtype, and on the device, of another.

    Example:
        >>> like(1, np.ones(2, dtype=np.float32), np).dtype
        dtype('float32')
    """
    if xp.__name__ == "torch":
        return xp.as_tensor(values, dtype=other.dtype, device=other.device)
    return xp.asarray(values, dtype=other.dtype)


def sum_dtype(values: Any, xp: Any) -> Any:
    """The precision that sums of these values are taken in: float64, where the device has it.

    JAX has it in x64 mode only, and Apple's GPUs never: float32 is what they sum in.

    Example:
        >>> sum_dtype(np.ones(1, dtype=np.float32), np)
        dtype('float64')
    """
    if xp is np:
        return np.result_type(values.dtype, np.float64)
    if xp.__name__ == "torch":
        return xp.float32 if values.device.type == "mps" else xp.float64
    return xp.result_type(float)


def wide(values: Any, xp: Any) -> Any:
    """Numbers, lists or an array as an array in the precision of sums.

    Example:
        >>> wide([1, 2], np)
        array([1., 2.])
    """
    array = own(values, xp)
    return cast(array, sum_dtype(array, xp), xp)


def held(values: Any, xp: Any) -> Any:
    """The values as constants: no gradient flows through them.

    Example:
        >>> held(2.0, np)
        2.0
    """
    if xp is np:
        return values
    if xp.__name__ == "torch":
        return values.detach()
    return sys.modules["jax"].lax.stop_gradient(values)


def only_where(ok: Any, values: Any, xp: Any, complaint: Callable[[Any], ValueError]) -> Any:
    """The values, if they are all in order.

    NumPy arrays are looked at, and a fault is raised. Those of torch and JAX may be on another
    device or not exist yet (torch.compile, jit, vmap), so there a fault becomes NaN.

    Args:
        ok: What is in order, broadcast against the values.
        values: The values.
        xp: Their namespace.
        complaint: The error, made of ``ok``.

    Example:
        >>> only_where(np.array([True]), np.ones(1), np, lambda ok: ValueError("below 0"))
        array([1.])
    """
    if xp is not np:
        return xp.where(ok, values, xp.nan)
    if not np.all(ok):
        raise complaint(np.asarray(ok))
    return values


def sum_segments(values: Any, lengths: Any, xp: Any) -> Any:
    """The sums of consecutive segments of a flat array of torch or JAX, whose size is static.

    Args:
        values: [tokens], in the precision to sum in.
        lengths: The tokens of each segment, [segments].
        xp: Their namespace; NumPy has ``reduceat`` for this (`kullback.levels.segment_sums`).

    Returns:
        [segments]; NaN where the lengths do not add up to the tokens.
    """
    torch = xp.__name__ == "torch"
    cuts = xp.as_tensor(lengths, device=values.device) if torch else xp.asarray(lengths)
    ends, segments = xp.cumsum(cuts, 0), cuts.shape[0]
    place = xp.cumsum(xp.ones_like(values, dtype=bool), 0) - 1
    owner = xp.clip(xp.searchsorted(ends, place, side="right"), 0, max(segments - 1, 0))
    if torch:
        sums = values.new_zeros(segments).index_add(0, owner, values)
    else:
        sums = xp.zeros(segments, values.dtype).at[owner].add(values)
    return xp.where(ends[-1:] == values.shape[0], sums, xp.nan)


def are_integers(values: Any, xp: Any) -> bool:
    """Whether an array is one of integers, which its type says without a look at the values.

    Example:
        >>> are_integers(np.array([1, 2]), np), are_integers(np.array([1.0]), np)
        (True, False)
    """
    if xp.__name__ == "torch":
        return not (values.dtype.is_floating_point or values.dtype == xp.bool)
    return bool(xp.issubdtype(values.dtype, xp.integer))


def taken(rows: Any, places: Any, xp: Any) -> Any:
    """What stands at these places along the last axis.

    Args:
        rows: [..., size].
        places: [..., k], from 0 to size - 1.
        xp: Their namespace.

    Example:
        >>> taken(np.array([5, 6, 7]), np.array([2, 0]), np)
        array([7, 5])
    """
    if xp.__name__ == "torch":
        return xp.take_along_dim(rows, cast(places, xp.int64, xp), dim=-1)
    return xp.take_along_axis(rows, places, axis=-1)


def marked(places: Any, size: int, xp: Any) -> Any:
    """Which places from 0 to size - 1 are named in each row, [..., size], bool.

    Args:
        places: [..., k], from 0 to size - 1.
        size: How many places there are.
        xp: Their namespace.

    Example:
        >>> marked(np.array([2, 0]), 4, np)
        array([ True, False,  True, False])
    """
    shape = (*places.shape[:-1], size)
    if xp.__name__ == "torch":
        empty = xp.zeros(shape, dtype=xp.bool, device=places.device)
        return empty.scatter(-1, cast(places, xp.int64, xp), True)
    marks = xp.zeros(shape, dtype=bool)
    if xp is not np:
        return xp.put_along_axis(marks, places, True, axis=-1, inplace=False)
    xp.put_along_axis(marks, places, True, axis=-1)
    return marks


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """The values on the host, as NumPy's: detached, and bfloat16 as float32.

    Args:
        values: An array of any of the three libraries, on any device, or nested lists.
        name: What they are called in an error.

    Raises:
        TypeError: They are being traced (torch.compile, jit, vmap, grad) and have no value yet.
        ValueError: They are masked, ragged, sparse or cannot be fetched.

    Example:
        >>> to_numpy([1, 2], "lengths")
        array([1, 2])
    """
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} is a masked array: give its .data, and ~.mask as mask=")
    _refuse_tracers(values, name)
    try:
        if namespace(values).__name__ == "torch":
            values = values.detach().cpu()
            dtype = at_least_float32(values).dtype if values.dtype.is_floating_point else None
            array = np.asarray(values.to(dtype) if dtype else values)
        else:
            array = np.asarray(values)
    except (ValueError, RuntimeError, TypeError) as error:
        first = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(
            f"{name}: this is no dense array ({first}): give [sequences, tokens] and a mask, or "
            "flat values and lengths"
        ) from error
    # JAX's bfloat16, which NumPy sees as opaque bytes.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _refuse_tracers(values: Any, name: str) -> None:
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if isinstance(values, getattr(getattr(jax, "core", None), "Tracer", ())):
        raise _without_value(name, "jit, vmap or grad")
    if isinstance(values, getattr(torch, "Tensor", ())) and _is_traced(torch, values):
        raise _without_value(name, "torch.compile, vmap or grad")


def _is_traced(torch: Any, values: Any) -> bool:
    """Whether torch.compile, or a transform of torch.func, stands between us and the numbers.

    torch has no public name for what the latter wrap; of a functionalized tensor NumPy would read
    whatever lies in memory.
    """
    functorch = torch._C._functorch
    return torch.compiler.is_compiling() or functorch.is_functorch_wrapped_tensor(values)


def _without_value(name: str, transforms: str) -> TypeError:
    return TypeError(
        f"{name}: this is being traced ({transforms}) and has no value yet: return it and "
        "estimate outside, or use kb.k1 … kb.k3 and kb.totals, which can be traced"
    )
