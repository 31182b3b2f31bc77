"""The cells of the arena: pairs of policies with exactly known KL, and how much is drawn of them.

Cells are added in commits of their own, and never removed or renamed: their names are their seeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from recorded import ROLLOUT, Recorded

import kullback as kb
from kullback.clusters import cluster_keys
from kullback.worlds.gaussian import Gaussian
from kullback.worlds.mixture import Mixture
from kullback.worlds.tables import Table, drifted, ending, holed, peaked, tempered, zipf

World = Mixture | Gaussian | Recorded
Pair = Callable[[np.random.Generator], tuple[Table, Table]]
CONTEXTS, ALPHABET = 200, 2000


@dataclass(frozen=True)
class Cell:
    """One pair of policies, one size of sample.

    Args:
        family: What the pair stands for.
        name: Unique; the draws follow from it.
        build: Makes the world.
        question: What is asked of it.
    """

    family: str
    name: str
    build: Callable[[], World]
    question: kb.Question = ROLLOUT

    @property
    def seed(self) -> int:
        """The first part of the seed of each draw."""
        return zlib.crc32(self.name.encode())


def drawn(world: World, rng: np.random.Generator) -> kb.Columns:
    """A sample with nothing but what an estimate needs."""
    if isinstance(world, Recorded):
        return world.sample(rng, keys(world.prompts))
    if isinstance(world, Gaussian):
        x = rng.normal(*world.normals[world.sampler], size=world.sequences)
        lengths, clusters = np.ones(len(x), dtype=np.int64), keys(len(x))
        log_probs = {  # up to one constant
            role: -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation)
            for role, (mean, deviation) in world.normals.items()
        }
    else:
        lengths, contexts, tokens = world.draw(rng, world.log_probs[world.sampler])
        place = contexts * world.shape[1] + tokens
        clusters = np.repeat(keys(world.prompts), world.sequences_per_prompt)
        log_probs = {role: table.ravel()[place] for role, table in world.log_probs.items()}
    mask = np.ones(int(lengths.sum()), dtype=np.bool_)
    return kb.Columns(lengths, mask, log_probs, clusters, cluster_kind="prompt")


@cache
def keys(count: int) -> NDArray[np.uint64]:
    """Keys of so many clusters."""
    return cluster_keys(np.arange(count))


def normals(mean: float, deviation: float, count: int) -> Callable[[], World]:
    """Independent actions: the other policy is another normal than N(0, 1)."""
    pair = {"rollout": (0.0, 1.0), "reference": (mean, deviation)}
    return lambda: Gaussian(pair, sequences=count)


def independent(p: NDArray[np.float64], q: NDArray[np.float64], count: int) -> Mixture:
    """Independent draws of one pair of categorical distributions."""
    tables = {"rollout": np.log(p)[None], "reference": np.log(q)[None]}
    return Mixture(tables, prompts=count, sequences_per_prompt=1, max_length=1)


def hole(depth: float, count: int) -> Callable[[], World]:
    """The first document's sweep with its published numbers: p1 = (0.1 · 10^−(h − 1), …)."""
    q, a = np.array([0.1, 0.45, 0.45]), 10.0**-depth
    return lambda: independent(np.array([a, (1 - a) / 2, (1 - a) / 2]), q, count)


def twin(depth: float, count: int) -> Callable[[], World]:
    """Its smooth twin: p2 = (0.1, 0.45 + δ, 0.45 − δ) with the KL of the hole."""

    def build() -> World:
        q, a = np.array([0.1, 0.45, 0.45]), 10.0**-depth
        aim = float((p1 := np.array([a, (1 - a) / 2, (1 - a) / 2])) @ np.log(p1 / q))
        low, high = 0.0, 0.45
        for _ in range(80):
            middle = (low + high) / 2
            p2 = np.array([0.1, 0.45 + middle, 0.45 - middle])
            low, high = (middle, high) if p2 @ np.log(p2 / q) < aim else (low, middle)
        return independent(p2, q, count)

    return build


def language(make: Pair, tokens: int, seed: int = 0) -> Callable[[], World]:
    """Prompts of 64 tokens, each a sequence of its own, until there are as many tokens."""

    def build() -> World:
        p, q = make(np.random.default_rng(seed))
        length = min(64, tokens // 16)
        tables = {"rollout": p, "reference": q}
        return Mixture(tables, prompts=tokens // length, sequences_per_prompt=1, max_length=length)

    return build


def base(rng: np.random.Generator) -> Table:
    """The language that all pairs start from."""
    return zipf(rng, contexts=CONTEXTS, alphabet=ALPHABET)


def drift(size: float) -> Pair:
    """The policy moved smoothly; the KL is about size²/2."""

    def make(rng: np.random.Generator) -> tuple[Table, Table]:
        p = base(rng)
        return p, drifted(rng, p, size)

    return make


def diffuse(share: float, depths: tuple[float, float], size: float = 0.05) -> Pair:
    """The policy dropped a share of the reference's tokens."""

    def make(rng: np.random.Generator) -> tuple[Table, Table]:
        q = base(rng)
        return drifted(rng, holed(rng, q, share=share, depths=depths), size), q

    return make


def three_valued(rng: np.random.Generator) -> tuple[Table, Table]:
    """Tokens that fall by one of three depths: 2 % by e^−3, 1 % by e^−6, 0.5 % by e^−12."""
    q = base(rng)
    p = q
    for share, depth in ((0.02, 3.0), (0.01, 6.0), (0.005, 12.0)):
        p = holed(rng, p, share=share, depths=(depth, depth))
    return p, q


def other_side(share: float, depths: tuple[float, float]) -> Pair:
    """The policy uses what the reference nearly forbids."""

    def make(rng: np.random.Generator) -> tuple[Table, Table]:
        p = base(rng)
        return p, holed(rng, p, share=share, depths=depths, below=0.01)

    return make


def sharp(low: float, high: float, holes: bool) -> Pair:
    """Peaked policies, with and without tokens that were dropped."""

    def make(rng: np.random.Generator) -> tuple[Table, Table]:
        q = peaked(base(rng), rng.uniform(low, high, size=(CONTEXTS, 1)))
        return (holed(rng, tempered(q, 0.8), share=0.02), q) if holes else (drifted(rng, q, 0.3), q)

    return make


def few_holes(tokens: int) -> Pair:
    """A small drift with as much dropped as noise just hides: 3.5 standard errors of k1."""
    return diffuse(3.5 * 0.05 / tokens**0.5, (9.0, 12.0))


def effects(
    prompts: int,
    deviation: float,
    *,
    ends: tuple[float, float] = (0.02, 0.02),
    heavy: bool = False,
    dropped: float = 0.0,
) -> Callable[[], World]:
    """Prompts whose KL is log-normal; lengths are geometric, or heavy-tailed over the kinds."""

    def build() -> World:
        rng = np.random.default_rng(17)
        p = zipf(rng, contexts=192, alphabet=ALPHABET)
        levels = (np.arange(24) + 0.5) / 24
        quantiles = np.sqrt(2) * _erfinv(2 * levels - 1)
        size = 0.2 * np.exp(deviation / 2 * rng.permutation(quantiles)).repeat(8)[:, None]
        q = drifted(rng, p, size)
        # Mean lengths of kinds are Pareto with index 1.2: a few prompts have most of the tokens.
        mean = 8.0 * (1 - levels) ** (-1 / 1.2) if heavy else np.full(24, 1 / ends[0])
        stop = (1 / rng.permutation(mean)).repeat(8)
        if dropped:
            p = holed(rng, p, share=dropped)
        tables = {
            "rollout": _ending(p, stop),
            "reference": _ending(q, stop * ends[1] / ends[0]),
        }
        return Mixture(
            tables, prompts=prompts, sequences_per_prompt=4, max_length=400, ends=True, kinds=24
        )

    return build


def _ending(table: Table, probability: NDArray[np.float64]) -> Table:
    return np.concatenate([ending(row[None], p) for row, p in zip(table, probability, strict=True)])


def _erfinv(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import erfinv

    return erfinv(x)


def third(temperature: float, size: float, tokens: int) -> Callable[[], World]:
    """A third policy sampled: p at another temperature, a little drifted."""

    def build() -> World:
        rng = np.random.default_rng(23)
        p = base(rng)
        tables = {
            "rollout": drifted(rng, tempered(p, temperature), 0.05),
            "current": p,
            "reference": drifted(rng, p, size),
        }
        return Mixture(tables, prompts=tokens // 64, sequences_per_prompt=1, max_length=64)

    return build


WEIGHED = kb.Question("current", "reference", "rollout")


def cells() -> Iterator[Cell]:
    """Every cell, family by family."""
    yield from _normals()
    yield from _three_categories()
    for tokens in (256, 4096, 65536):
        yield from _languages(tokens)
        yield from _third_samplers(tokens)
    for prompts in (16, 32, 64, 128, 256, 1000):
        yield from _prompts(prompts)
    for pair in ("light", "noise", "strong"):
        for prompts in (16, 64, 256):
            yield Cell(
                "real", f"smollm2 {pair} prompts {prompts}", partial(Recorded, pair, prompts)
            )


def _normals() -> Iterator[Cell]:
    for n in (64, 1024, 16384):
        for mean in (0.1, 0.5, 1.0, 1.5, 2.4):
            yield Cell("gaussian shift", f"shift {mean} n {n}", normals(mean, 1.0, n))
        for mean, deviation in ((0.0, 0.7), (0.0, 1.3), (0.3, 1.6)):
            name = f"scale {deviation} shift {mean} n {n}"
            yield Cell("gaussian scale", name, normals(mean, deviation, n))


def _three_categories() -> Iterator[Cell]:
    for n in (64, 1024, 8192, 65536):
        for depth in (1.5, 2.0, 3.0, 3.5, 5.0):
            yield Cell("hole", f"hole {depth} n {n}", hole(depth, n))
            yield Cell("smooth twin", f"twin {depth} n {n}", twin(depth, n))


def _languages(n: int) -> Iterator[Cell]:
    for size in (0.014, 0.05, 0.2, 0.5, 1.0, 2.4):
        yield Cell("drift", f"drift {size} n {n}", language(drift(size), n))
    for share, depths in ((0.01, (3.0, 12.0)), (0.03, (3.0, 12.0)), (0.05, (9.0, 12.0))):
        name = f"diffuse {share} {depths[0]}-{depths[1]} n {n}"
        yield Cell("diffuse holes", name, language(diffuse(share, depths), n))
    yield Cell("three-valued holes", f"three-valued n {n}", language(three_valued, n))
    yield Cell("drift with few holes", f"few holes n {n}", language(few_holes(n), n))
    for share, depths in ((0.01, (6.0, 15.0)), (0.001, (12.0, 15.0))):
        name = f"other side {share} {depths[0]}-{depths[1]} n {n}"
        yield Cell("holes in the reference", name, language(other_side(share, depths), n))
    for low, high in ((0.6, 0.99), (0.98, 0.9999)):
        yield Cell("peaked", f"peaked {low} n {n}", language(sharp(low, high, holes=False), n))
    name = f"peaked holes n {n}"
    yield Cell("peaked with holes", name, language(sharp(0.5, 0.95, holes=True), n))


def _third_samplers(n: int) -> Iterator[Cell]:
    for temperature, size in ((1.0, 0.2), (0.8, 0.2), (1.25, 0.5)):
        name = f"third {temperature} {size} n {n}"
        yield Cell("third sampler", name, third(temperature, size, max(n, 1024)), WEIGHED)


def _prompts(prompts: int) -> Iterator[Cell]:
    for deviation in (0.6, 1.2):
        name = f"prompts {prompts} sigma {deviation}"
        yield Cell("prompt effects", name, effects(prompts, deviation))
    name = f"prompts {prompts} dropped 0.02"
    yield Cell("prompts with holes", name, effects(prompts, 0.6, dropped=0.02))
    yield Cell("heavy lengths", f"heavy {prompts}", effects(prompts, 0.6, heavy=True))
    yield Cell("differing ends", f"ends {prompts}", effects(prompts, 0.6, ends=(0.02, 0.01)))
