"""Divergences over 151,936 categories: time and memory against what people write today.

    python benchmarks/vocabulary [--rounds 7] [--small] [--accuracy]

CPU time of the process on one thread, in interleaved rounds; a ratio is that of the medians, and
beside it stands its worst round. Memory is the peak of a process of its own above the level with
the inputs loaded (VmHWM, reset before). Inputs are drawn: logits of spread 3, those of q a tenth
off and lower by 15 in one category of a thousand. liger is measured where it lies in build/liger
(`pip install --no-deps --target build/liger liger-kernel==0.8.5`). Results go to
results/vocabulary.json, with the goals each of them was measured against.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import baselines
import torch

import kullback as kb

HERE = Path(__file__).parent
RESULT = HERE.parents[1] / "results" / "vocabulary.json"
SEED = 0
VOCABULARY = 151_936
Methods = dict[str, Callable[[], Any]]


def logits(tokens: int, vocabulary: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Two close policies with holes."""
    p = 3 * torch.randn(tokens, vocabulary)
    q = p + 0.1 * torch.randn(tokens, vocabulary)
    q[:, ::1000] -= 15
    return {"logits_p": p.to(dtype), "logits_q": q.to(dtype)}


def states(tokens: int, width: int, vocabulary: int) -> tuple[torch.Tensor, ...]:
    """Hidden states and heads of two close policies."""
    hidden, head = torch.randn(tokens, width), 3 / width**0.5 * torch.randn(vocabulary, width)
    return (
        hidden,
        head,
        hidden + 0.03 * torch.randn(tokens, width),
        head + 0.1 / width**0.5 * torch.randn(vocabulary, width),
    )


def from_logits(tokens: int, vocabulary: int, dtype: torch.dtype) -> Methods:
    """Everything in one pass, from logits."""
    given = logits(tokens, vocabulary, dtype)
    p, q = given.values()
    compiled = baselines.compiled(baselines.six)
    return {
        "naive": lambda: baselines.six(p, q),
        "naive, KL(p||q) only": lambda: baselines.kl_only(p, q),
        "torch's kl_div": lambda: baselines.torch_kl_div(p, q),
        "torch.compile of naive": lambda: compiled(p, q),
        "one read of both": lambda: (p.sum(), q.sum()),
        "plain": lambda: kb.whole_vocabulary(**given, compiled=False),
        "compiled": lambda: kb.whole_vocabulary(**given, compiled=True),
    }


def from_hidden(tokens: int, vocabulary: int, width: int) -> Methods:
    """The same from hidden states."""
    made = states(tokens, width, vocabulary)
    given = dict(zip(("hidden_p", "head_p", "hidden_q", "head_q"), made, strict=True))
    one_head = {**given, "head_q": given["head_p"]}
    return {
        "two bare products": lambda: baselines.products(*made),
        "naive": lambda: baselines.six_from_hidden(*made),
        "naive, KL(p||q) only": lambda: baselines.kl_only_from_hidden(*made),
        "plain": lambda: kb.head_divergences(**given, compiled=False),
        "compiled": lambda: kb.head_divergences(**given, compiled=True),
        "compiled, one head": lambda: kb.head_divergences(**one_head, compiled=True),
        "compiled, with JS": lambda: kb.head_divergences(**given, js=True, compiled=True),
    }


def loss(tokens: int, vocabulary: int, width: int) -> Methods:
    """Forward and backward."""
    hidden, head, *teacher = states(tokens, width, vocabulary)
    hidden.requires_grad_()
    head.requires_grad_()

    def written_down(direction: str) -> torch.Tensor:
        found = kb.head_kl(
            hidden_student=hidden,
            head_student=head,
            hidden_teacher=teacher[0],
            head_teacher=teacher[1],
            direction=direction,
        )
        found.loss.backward()
        return found.loss.detach()

    def fresh(method: Callable[..., Any], *given: Any) -> Callable[[], Any]:
        def run() -> Any:
            hidden.grad = head.grad = None
            return method(*given)

        return run

    both = hidden, head, *teacher
    methods: Methods = {
        "naive": fresh(baselines.loss_by_autograd, *both),
        "written down": fresh(written_down, "KL(student||teacher)"),
        "written down, KL(teacher||student)": fresh(written_down, "KL(teacher||student)"),
    }
    for chunk in (128, 1024):
        if (liger := baselines.liger_loss(chunk)) is not None:
            methods[f"liger, chunks of {chunk}"] = fresh(liger, *both)
    return methods


def cases(small: bool) -> dict[str, tuple[Callable[..., Methods], tuple[Any, ...]]]:
    """What is measured: a name, what makes its methods, and of what size."""
    v = 4_000 if small else VOCABULARY
    few, tokens, wide, narrow = (8, 16, 32, 16) if small else (256, 512, 1024, 512)
    return {
        f"logits, float32, {tokens} tokens": (from_logits, (tokens, v, torch.float32)),
        f"logits, bfloat16, {tokens} tokens": (from_logits, (tokens, v, torch.bfloat16)),
        f"hidden, {few} tokens, width {wide}": (from_hidden, (few, v, wide)),
        f"loss, {few} tokens, width {narrow}": (loss, (few, v, narrow)),
        f"loss, {4 * few} tokens, width {narrow}": (loss, (4 * few, v, narrow)),
    }


def timed(methods: Methods, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each method in each round, after one of its own to warm up."""
    spent: dict[str, list[float]] = {name: [] for name in methods}
    for i in range(rounds + 1):
        for name, method in methods.items():
            start = time.process_time()
            method()
            if i:
                spent[name].append(time.process_time() - start)
    return spent


def memory(field: str) -> int:
    """A line of this process's status, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", status)[1])  # type: ignore[index]


def peak(case: str, method: str, *, small: bool) -> None:
    """Print the peak of one method above the level with its inputs, in a process of its own."""
    make, size = cases(small)[case]
    tiny = make(2, 100, *size[2:])
    tiny[method]()  # loads what it needs
    torch.manual_seed(SEED)
    work = make(*size)[method]
    Path("/proc/self/clear_refs").write_text("5")
    level = memory("VmRSS")
    kept = work()
    print(memory("VmHWM") - level)
    del kept


def peaks(case: str, names: list[str], *, small: bool) -> dict[str, int]:
    """Of each method, in a process of its own."""
    found = {}
    for name in names:
        command = [sys.executable, str(HERE), "--peak", case, name, *(["--small"] if small else [])]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = int(run.stdout)
    return found


def goal(
    said: str, limit: float, ratio: float, worst: float | None, *, most: bool
) -> dict[str, Any]:
    """One goal, whether it is met, and by how much."""
    met = ratio <= limit if most else ratio >= limit
    return {
        "goal": f"{said} {'<=' if most else '>='} {limit}",
        "measured": round(ratio, 4),
        "worst_round": None if worst is None else round(worst, 4),
        "met": bool(met),
    }


def faster(said: str, spent: dict[str, Any], one: str, than: str, limit: float) -> dict[str, Any]:
    """How many times less CPU time one method takes than another."""
    ratios = [a / b for a, b in zip(spent[than], spent[one], strict=True)]
    ratio = median(spent[than]) / median(spent[one])
    return goal(said, limit, ratio, min(ratios), most=False)


def goals(
    case: str, spent: dict[str, Any], extra: dict[str, int], head: int
) -> list[dict[str, Any]]:
    """What was aimed at in this case."""

    def share(said: str, one: str, limit: float, less: int = 0) -> dict[str, Any]:
        ratio = (extra[one] - less) / (extra["naive"] - less)
        return goal(f"memory of {said} / naive's", limit, ratio, None, most=True)

    if case.startswith("logits"):
        return [
            faster("naive / plain", spent, "plain", "naive", 5),
            faster("naive / compiled", spent, "compiled", "naive", 15),
            share("plain", "plain", 0.01),
            share("compiled", "compiled", 0.01),
        ]
    if case.startswith("hidden"):
        bare = "two bare products"
        told = []
        for way in ("plain", "compiled"):
            ratios = [a / b for a, b in zip(spent[way], spent[bare], strict=True)]
            ratio = median(spent[way]) / median(spent[bare])
            told.append(goal(f"{way} / {bare}", 1.1, ratio, max(ratios), most=True))
            told.append(share(way, way, 0.05))
        return told
    told = [
        faster("naive / written down", spent, "written down", "naive", 1),
        share("written down, less the head's gradient,", "written down", 0.15, head),
    ]
    for name in spent:
        if name.startswith("liger"):
            told.append(faster(f"{name} / written down", spent, "written down", name, 1.15))
    return told


def accuracy(small: bool) -> dict[str, Any]:
    """The largest error of float32 against the same logits in float64, over spreads and distances.

    Relative where the value is 1e-9 or more, else absolute; entropies in nats.
    """
    torch.manual_seed(SEED)
    vocabulary = 3_000 if small else VOCABULARY
    worst: dict[str, dict[str, float]] = {}
    for spread in (1.0, 3.0, 8.0, 30.0):
        for apart in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 3.0, 10.0):
            for offset in (0.0, 100.0):
                p = spread * torch.randn(2, vocabulary)
                q = p + apart * torch.randn(2, vocabulary) + offset
                truth = kb.whole_vocabulary(logits_p=p.double(), logits_q=q.double())
                for way in (False, True):
                    found = kb.whole_vocabulary(logits_p=p, logits_q=q, compiled=way)
                    errors = worst.setdefault("compiled" if way else "plain", {})
                    for name, one, other in zip(truth._fields, found, truth, strict=True):
                        _note(errors, name, one, other)
    return worst


def _note(errors: dict[str, float], name: str, found: torch.Tensor, truth: torch.Tensor) -> None:
    off = (found - truth).abs()
    kind = "entropies, nats" if "entropy" in name else "others, relative"
    small = (truth < 1e-9) & ("entropy" not in name)
    if kind.endswith("relative"):
        off = torch.where(small, off, off / truth.clamp(min=1e-300))
    for where, label in ((~small, kind), (small, "others below 1e-9, absolute")):
        if where.any():
            errors[label] = max(errors.get(label, 0.0), float(off[where].max()))
    errors["least"] = min(errors.get("least", 0.0), float(found.min()))


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--small", action="store_true", help="a minute's trial; nothing is recorded"
    )
    parser.add_argument("--accuracy", action="store_true", help="renew this part alone")
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "METHOD"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.peak:
        peak(*given.peak, small=given.small)
        return
    if given.accuracy:
        told = json.loads(RESULT.read_text(encoding="utf-8"))
        record(told | {"accuracy": accuracy(given.small)})
        return
    told: dict[str, Any] = {"cases": {}}
    for case, (make, size) in cases(given.small).items():
        torch.manual_seed(SEED)
        methods = make(*size)
        names = [name for name in methods if "compile of" not in name and "read" not in name]
        spent = timed(
            methods, given.rounds if "1024 tokens" not in case else max(5, given.rounds - 2)
        )
        del methods
        extra = peaks(case, names, small=given.small)
        head = 4 * size[1] * size[2] if case.startswith("loss") else 0
        told["cases"][case] = {
            "cpu_seconds": {name: round(median(one), 4) for name, one in spent.items()},
            "worst_cpu_seconds": {name: round(max(one), 4) for name, one in spent.items()},
            "extra_peak_mib": {name: round(one / 2**20, 1) for name, one in extra.items()},
            "goals": goals(case, spent, extra, head),
        }
        print(case)
        for name, one in spent.items():
            mib = f"{extra[name] / 2**20:9.1f} MiB" if name in extra else ""
            print(f"  {name:36} {median(one):8.3f} s, worst {max(one):8.3f} {mib}")
        for one in told["cases"][case]["goals"]:
            print(f"  {'met   ' if one['met'] else 'MISSED'} {one['goal']}: {one['measured']}")
    told["accuracy"] = accuracy(given.small)
    print(json.dumps(told["accuracy"], indent=1))
    if given.small:
        return
    told |= {
        "command": f"python benchmarks/vocabulary --rounds {given.rounds}",
        "seed": SEED,
        "vocabulary": VOCABULARY,
        "threads": 1,
        "processor": _processor(),
        "versions": {
            "kullback": kb.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numba": version("numba"),
            "liger-kernel": "0.8.5" if baselines.liger_loss() is not None else None,
        },
    }
    record(told)


def record(told: dict[str, Any]) -> None:
    """Keep what was found."""
    RESULT.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _processor() -> str:
    """Its kind and its vector instructions: what these ratios depend on."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = set(re.search(r"flags\s*:(.*)", text)[1].split())  # type: ignore[index]
    widest = next((one for one in ("avx512f", "avx2") if one in flags), "neither avx2 nor avx512f")
    name = re.search(r"model name\s*:\s*(.*)", text)[1]  # type: ignore[index]
    return f"{name}, {widest}"


if __name__ == "__main__":
    main()
