"""The array libraries that a test can be run with, and what a skipped test is."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import pytest

# One thread for each process of the tests: those of torch wait for each other by spinning. Before
# torch is imported, which reads it then.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# Folders whose files share what takes long to make: all of such a folder runs in one process.
TOGETHER = ("tests/experiments/", "tests/explaining/")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped has failed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    if report.skipped and item.config.getoption("--no-skips"):
        report.outcome, report.longrepr = "failed", f"skipped, with --no-skips: {report.longrepr}"
    return report


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: the collector need not visit them each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)  # it is that of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` a file, or a folder of ``TOGETHER``, goes to one process."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((one for one in TOGETHER if nodeid.startswith(one)), nodeid.split("::")[0])

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None


class Library(NamedTuple):
    """NumPy, torch or jax.numpy, and how it spells what tests need."""

    name: str
    xp: Any

    def array(self, values: Any, dtype: str = "float64") -> Any:
        make = self.xp.tensor if self.name == "torch" else self.xp.array
        return make(np.asarray(values).tolist(), dtype=getattr(self.xp, dtype))

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as its compiler makes it from one graph."""
        if self.name == "torch":
            return self.xp.compile(function, fullgraph=True, backend="aot_eager", dynamic=False)
        return pytest.importorskip("jax").jit(function)

    def in_one_piece(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, faster to test: JAX compiles it once rather than each operation."""
        return self.traced(function) if self.name == "jax" else function

    def gradient(self, function: Callable[..., Any], argnums: tuple[int, ...] = (0,)) -> Any:
        """The function that gives the gradients of a scalar function in these arguments."""
        return self._transforms().grad(function, argnums)

    def batched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function over the first axis of each argument."""
        return self._transforms().vmap(function)

    def _transforms(self) -> Any:
        return self.xp.func if self.name == "torch" else pytest.importorskip("jax")


def load(name: str) -> Iterator[Library]:
    """The library; torch compiles anew for each test, JAX has float64."""
    module = pytest.importorskip("jax.numpy" if name == "jax" else name)
    double = nullcontext()
    if name == "torch":
        module.compiler.reset()
    elif name == "jax":
        double = pytest.importorskip("jax").enable_x64(True)
    with double:
        yield Library(name, module)


@pytest.fixture(params=["numpy", "torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    """Each of the three."""
    yield from load(request.param)


@pytest.fixture(params=["torch", "jax"])
def traceable(request: pytest.FixtureRequest) -> Iterator[Library]:
    """Those that trace and differentiate."""
    yield from load(request.param)
