"""One environment per framework, under build/zoo: the release that is probed, with its torch."""

from __future__ import annotations

import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "zoo"
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Environment:
    """What pip installs.

    ``alone`` comes without the packages that it asks for: some of them need a GPU to be built, and
    ``beside`` is what its KL terms need. ``built`` comes from source, with the torch that is there.
    """

    beside: tuple[str, ...]
    alone: tuple[str, ...] = ()
    built: tuple[str, ...] = ()


ENVIRONMENTS = {
    "trl": Environment(("trl==1.16.0", "transformers==5.24.0")),
    "verl": Environment(
        (
            "verl==0.9.1",
            "tensordict==0.10.0",
            "transformers==5.10.4",
            "ray==2.60.0",
            # What verl.trainer.ppo.ray_trainer imports and verl does not ask for.
            *("cachetools", "fastapi", "orjson", "pillow", "torchdata", "uvicorn"),
        )
    ),
    "openrlhf": Environment(
        ("einops==0.8.2", "ninja", "setuptools<80", "wheel"),
        alone=("openrlhf==0.11.2",),
        built=("deepspeed==0.19.6",),
    ),
    "torchrl": Environment(("torchrl==0.14.1", "tensordict==0.14.3")),
    "liger": Environment(("triton==3.9.0", "transformers==5.24.0"), alone=("liger-kernel==0.8.5",)),
    "tinker": Environment(
        (
            *("tinker==0.38.0", "transformers==5.24.0"),
            *("blobfile", "chz", "datasets", "pillow", "termcolor"),
        ),
        alone=("tinker-cookbook==0.6.1",),
    ),
    "sb3": Environment(("stable-baselines3==2.9.2", "gymnasium==1.4.0")),
}


def python(name: str) -> Path:
    """The interpreter of an environment."""
    return BUILD / name / "bin" / "python"


def make(name: str) -> None:
    """Make an environment, unless it is there with just this in it."""
    wanted = ENVIRONMENTS[name]
    done = BUILD / name / "installed.txt"
    said = f"{TORCH} {wanted}\n"
    if done.is_file() and done.read_text(encoding="utf-8") == said:
        return
    print(f"{name}: an environment with {', '.join((*wanted.alone, *wanted.beside[:1]))}")
    venv.create(BUILD / name, with_pip=True)
    # torch first and by itself: what asks for it later finds it there.
    _pip(name, TORCH, "numpy")
    for package in wanted.alone:
        _pip(name, "--no-deps", package)
    _pip(name, *wanted.beside)
    for package in wanted.built:
        _pip(name, "--no-build-isolation", package)
    _pip(name, "--editable", str(ROOT))
    done.write_text(said, encoding="utf-8")


def _pip(name: str, *what: str) -> None:
    held = BUILD / "constraints.txt"
    held.write_text(TORCH + "\n", encoding="utf-8")
    install = [python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*install, "--constraint", held, *what],
        check=True,
        # deepspeed: without the kernels that a compiler for GPUs would build.
        env={**os.environ, "DS_BUILD_OPS": "0"},
    )
