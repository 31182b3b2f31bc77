"""The same on a GPU: correctness, time against the byte limit, memory, and the usual ways.

    python benchmarks/vocabulary/gpu.py [--device cuda] [--small] [--out FILE]

This script has not been run on a GPU yet: there are no results of it, and the sizes of pieces that
kullback.vocabulary takes outside of CPUs are reasoned and not measured. With --device cpu --small
it runs anywhere in half a minute, which is how it is tested.

Correctness is held against float64 on the CPU, on a slice. Time is the median of rounds after a
warm-up, with the device idle before and after. The byte limit is what has to be read (both logits,
or both heads and what comes of them) by the bandwidth of a copy on this device; for heads the two
bare products stand beside it. Memory is the allocator's peak above the level before.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import baselines
import torch

import kullback as kb

SEED, VOCABULARY = 0, 151_936
Methods = dict[str, Callable[[], Any]]


class Device:
    """Where everything runs: how to wait for it, what it moves, what it holds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._gpu = getattr(torch, name.partition(":")[0]) if name != "cpu" else None

    def wait(self) -> None:
        """Until all that was asked for is done."""
        if self._gpu is not None:
            self._gpu.synchronize()

    def seconds(self, method: Callable[[], Any], rounds: int) -> float:
        """The median of rounds, after one to warm up."""
        spent = []
        for _ in range(rounds + 1):
            self.wait()
            start = time.perf_counter()
            method()
            self.wait()
            spent.append(time.perf_counter() - start)
        return median(spent[1:])

    def extra_mib(self, method: Callable[[], Any]) -> float | None:
        """Peak of the allocator above its level before; not known on a CPU."""
        if self._gpu is None or not hasattr(self._gpu, "max_memory_allocated"):
            return None
        self._gpu.empty_cache()
        self._gpu.reset_peak_memory_stats()
        level = self._gpu.memory_allocated()
        method()
        self.wait()
        return round((self._gpu.max_memory_allocated() - level) / 2**20, 1)

    def bytes_per_second(self, size: int) -> float:
        """Of a copy, which reads and writes each byte."""
        one = torch.empty(size, dtype=torch.uint8, device=self.name)
        other = torch.empty_like(one)
        return 2 * size / self.seconds(lambda: other.copy_(one), 10)

    def named(self) -> str:
        """What the device calls itself."""
        if self._gpu is None or not hasattr(self._gpu, "get_device_name"):
            return platform.processor() or self.name
        return self._gpu.get_device_name()


def measured(device: Device, methods: Methods, rounds: int, least: float) -> dict[str, Any]:
    """Milliseconds, share of the byte limit and memory of each method."""
    told: dict[str, Any] = {"byte_limit_ms": round(1e3 * least, 3)}
    for name, method in methods.items():
        try:
            seconds, mib = device.seconds(method, rounds), device.extra_mib(method)
        except torch.OutOfMemoryError:
            told[name] = "out of memory"
            continue
        told[name] = {
            "ms": round(1e3 * seconds, 3),
            "times_byte_limit": round(seconds / least, 2),
            "extra_mib": mib,
        }
    return told


def states(tokens: int, width: int, vocabulary: int, **how: Any) -> dict[str, torch.Tensor]:
    """Hidden states and heads of two close policies."""
    hidden, head = torch.randn(tokens, width), 3 / width**0.5 * torch.randn(vocabulary, width)
    made = {
        "hidden_p": hidden,
        "head_p": head,
        "hidden_q": hidden + 0.03 * torch.randn(tokens, width),
        "head_q": head + 0.1 / width**0.5 * torch.randn(vocabulary, width),
    }
    return {name: one.to(**how) for name, one in made.items()}


def error(found: Any, truth: Any) -> float:
    """The largest, relative, of all that both know."""
    pairs = [(a, b) for a, b in zip(found, truth, strict=True) if a is not None]
    return max(float(((a.cpu().double() - b) / b).abs().max()) for a, b in pairs)


def correctness(device: Device, vocabulary: int) -> dict[str, float]:
    """Largest relative errors against float64 on the CPU."""
    torch.manual_seed(SEED)
    p = 3 * torch.randn(4, vocabulary)
    q = p + 0.1 * torch.randn(4, vocabulary)
    told = {}
    for dtype in (torch.float32, torch.bfloat16):
        here = [one.to(device.name, dtype) for one in (p, q)]
        truth = kb.whole_vocabulary(
            logits_p=here[0].cpu().double(), logits_q=here[1].cpu().double()
        )
        found = kb.whole_vocabulary(logits_p=here[0], logits_q=here[1])
        told[f"logits, {dtype}"] = error(found, truth)
    made = states(5, 64, vocabulary)
    wide = {name: one.double() for name, one in made.items()}
    here = {name: one.to(device.name) for name, one in made.items()}
    truth = kb.head_divergences(**wide, js=True)
    told["heads"] = error(kb.head_divergences(**here), truth)
    told["heads, with JS"] = error(kb.head_divergences(**here, js=True), truth)
    told["gradient of the head"] = gradient_error(here, wide)
    return told


def gradient_error(here: dict[str, torch.Tensor], wide: dict[str, torch.Tensor]) -> float:
    """Of head_kl here, against the same in float64 on the CPU; the norm of the difference."""
    slopes = []
    for given in (here, wide):
        head = given["head_p"].clone().requires_grad_()
        kb.head_kl(
            hidden_student=given["hidden_p"],
            head_student=head,
            hidden_teacher=given["hidden_q"],
            head_teacher=given["head_q"],
        ).loss.backward()
        slopes.append(head.grad.cpu().double())  # type: ignore[union-attr]
    return float((slopes[0] - slopes[1]).norm() / slopes[1].norm())


def of_logits(given: argparse.Namespace, dtype: torch.dtype) -> tuple[Methods, int]:
    """Methods from logits, and the bytes that they have to read."""
    p = (3 * torch.randn(given.tokens, given.vocabulary, device=given.device)).to(dtype)
    q = (p.float() + 0.1 * torch.randn_like(p, dtype=torch.float32)).to(dtype)
    methods: Methods = {
        "kullback": lambda: kb.whole_vocabulary(logits_p=p, logits_q=q),
        "naive": lambda: baselines.six(p, q),
        "naive, KL(p||q) only": lambda: baselines.kl_only(p, q),
        "torch's kl_div": lambda: baselines.torch_kl_div(p, q),
    }
    if not given.small:
        compiled = baselines.compiled(baselines.six)
        methods["torch.compile of naive"] = lambda: compiled(p, q)
    return methods, 2 * p.numel() * p.element_size()


def of_heads(given: argparse.Namespace, dtype: torch.dtype) -> tuple[Methods, int]:
    """Methods from hidden states."""
    made = states(given.tokens, given.width, given.vocabulary, device=given.device, dtype=dtype)
    methods: Methods = {
        "two bare products": lambda: baselines.products(*made.values()),
        "kullback": lambda: kb.head_divergences(**made),
        "kullback, with JS": lambda: kb.head_divergences(**made, js=True),
        "naive": lambda: baselines.six_from_hidden(*made.values()),
    }
    if not given.small:
        compiled = baselines.compiled(baselines.six_from_hidden)
        methods["torch.compile of naive"] = lambda: compiled(*made.values())
    return methods, sum(one.numel() * one.element_size() for one in made.values())


def of_loss(given: argparse.Namespace, dtype: torch.dtype) -> tuple[Methods, int]:
    """Forward and backward; the gradient of the head is part of what has to be written."""
    made = states(given.tokens, given.width, given.vocabulary, device=given.device, dtype=dtype)
    hidden, head = (made[name].requires_grad_() for name in ("hidden_p", "head_p"))

    def ours(*both: torch.Tensor) -> None:
        names = ("hidden_student", "head_student", "hidden_teacher", "head_teacher")
        kb.head_kl(**dict(zip(names, both, strict=True))).loss.backward()

    ways = {"kullback": ours, "naive": baselines.loss_by_autograd}
    for compiled in (False,) if given.small else (False, True):
        if (liger := baselines.liger_loss(1024, compiled=compiled)) is not None:
            ways[f"liger{', compiled' if compiled else ''}"] = liger

    def fresh(way: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            hidden.grad = head.grad = None
            return way(*made.values())

        return run

    read = sum(one.numel() * one.element_size() for one in made.values())
    return {name: fresh(way) for name, way in ways.items()}, read + head.numel() * 4


def main() -> None:
    """Check, measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a trial of a few seconds")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="where to put the JSON; printed without")
    given = parser.parse_args()
    if given.small:
        given.tokens, given.width, given.vocabulary, given.rounds = 24, 32, 5_000, 1
    device = Device(given.device)
    told: dict[str, Any] = {
        "device": device.named(),
        "seed": SEED,
        "size": {name: getattr(given, name) for name in ("tokens", "width", "vocabulary")},
        "versions": {"torch": torch.__version__, "kullback": kb.__version__},
        "largest_relative_error": correctness(device, given.vocabulary),
    }
    speed = device.bytes_per_second(2**22 if given.small else 2**30)
    told["copy_gb_per_second"] = round(speed / 1e9, 1)
    for dtype in (torch.bfloat16, torch.float32):
        for make in (of_logits, of_heads, of_loss):
            torch.manual_seed(SEED)
            methods, read = make(given, dtype)
            found = measured(device, methods, given.rounds, read / speed)
            told[f"{make.__name__.replace('_', ' ')}, {dtype}"] = found
            del methods
    text = json.dumps(told, indent=1) + "\n"
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
