"""Whether k1 is the estimator for language models: eight pairs of one, exactly and by batches."""

from __future__ import annotations

import numpy as np

from kullback.experiments.real_lm.batches import REPEATS, SIZES, Batches, batches, negative, seen
from kullback.experiments.real_lm.holed import table_of_p, table_of_q
from kullback.experiments.real_lm.measure import (
    DRAWN,
    PAIRS,
    Pair,
    other_direction,
    pair,
)
from kullback.experiments.real_lm.pictures import cloud, errors, ridges
from kullback.reporting.experiment import Experiment, Part, Table

BIN = 0.05  # of the histograms of S, in powers of ten; 1 is an edge
PROMPTS = tuple(2**n for n in range(2, 10))
SHOWN = 64  # prompts of a batch in tables
EVERY = 40  # of the prefixes in the cloud
FLOOR = 1e-5  # nats, below which a KL of float32 models is not told from rounding
Drawn = dict[tuple[str, int], Batches]


def run(seed: int) -> Experiment:
    """The experiment."""
    pairs = [pair(name) for name in PAIRS]
    by_name = {one.name: one for one in pairs}
    drawn = {(name, size): batches(name, size, seed) for name in DRAWN for size in SIZES}
    engine, bf16, light, strong = (by_name[one] for one in ("engine", "bf16", "light", "strong"))
    return Experiment(
        name="real-lm",
        source="The Structure Behind KL Estimation",
        question="Pairs of a real language model: smooth or holed, and is k1 the one to use?",
        claim="k1 seems to be the better one for language models, k3 for classical control, likely "
        "because language models have holes; to use k1 for the former is not a bad rule.",
        answer="It depends on which language models: between a model and its engine and after a "
        f"short LoRA k3 errs {_times(light):.1f} to {_times(bf16):.0f} times less than k1, after a "
        f"long one k1 does by far ({_share(strong.holed.mean())} of prefixes have S > 1); S says "
        "which, the KL does not.",
        method="SmolLM2-135M-Instruct on the 64 prompts of the bundled demo, "
        f"{len(engine.kl):,} prefixes. KL, χ² and all variances are exact sums over the vocabulary "
        "at each prefix, recorded by scripts/real_lm_data.py; the error of a batch follows from "
        f"them. kb.estimate is watched on {REPEATS} batches a size, of prompts with replacement "
        "and fresh draws.",
        parts=(
            _shapes(pairs),
            _tokens(pairs),
            _batch(pairs, drawn),
            _auto(by_name, drawn),
            _other(by_name),
            _holes(by_name),
            _verdict(by_name),
        ),
        printed=(),
        limits=(
            "One model of 135 million parameters, one sampling run, one LoRA of each kind: that "
            "pairs of both kinds exist is shown, not how frequent either is.",
            "The other policies are perturbations made for this, not trained by RL. The document's "
            "training runs (Qwen3-32B and Qwen3-4B) are not rerun, and it prints no number of "
            "theirs.",
            "p is the base model but in one pair, as in KL(old‖current). A policy and its "
            "reference are the other direction, known in part only (the table above), and at "
            "prefixes of the base model.",
            "The exact error of k3 at the pair strong hangs on two prefixes. It is an expectation "
            "that no batch shows.",
            "The engine's log-probs are of tokens read at once. Those that it logs as it writes "
            "differ from these by as much again, and have no exact KL.",
            "Batches of draws come from 16 draws at each prefix; what none of these hit is in no "
            "batch. Their prompts are the 64 that are there.",
            "In bfloat16 q sums to 1 + 1.25e-5: the means of k1 and k3 differ by that, which is 1% "
            "of that KL.",
            "Values only. In the document the estimate is the advantage, and there k3 has another "
            "gradient than k1 whatever its variance: see the experiment gradients.",
        ),
        seed=seed,
    )


def _times(one: Pair) -> float:
    """How many times the error of k3 that of k1 is; the same for any number of prompts."""
    return one.error("k1", 1) / one.error("k3", 1)


def _share(value: float) -> str:
    return f"{value:.0%}" if value == 0 or value >= 0.02 else f"{value:.1%}"


def _histogram(one: Pair) -> list[dict[str, float | str]]:
    places = np.floor(np.log10(one.shape) / BIN).astype(int)
    found, counts = np.unique(places, return_counts=True)
    return [
        {"name": one.name, "low": float(10 ** (BIN * place)),
         "high": float(10 ** (BIN * (place + 1))), "share": float(count / len(places))}
        for place, count in zip(found, counts, strict=True)
    ]  # fmt: skip


def _shapes(pairs: list[Pair]) -> Part:
    figure = ridges(
        "Small differences are smooth, S = 1/2; a long LoRA has S > 1 at three of four prefixes.",
        [row for one in pairs for row in _histogram(one)],
        [{"name": one.name, "value": one.pooled} for one in pairs],
        "S = χ²(q‖p) / (2J) of a prefix",
        "Ridges are drawn to one height. Blue: k3 is less noisy; orange: k1. Diamond: S of all "
        "prefixes together, which decides for a mean over tokens.",
    )
    rows = [
        (one.name, one.mean, float(one.jeffreys.mean()), one.pooled, float(np.median(one.shape)),
         _share(one.holed.mean()), _share(one.kl[one.holed].sum() / one.kl.sum()),
         1 / (2 * one.pooled))
        for one in pairs
    ]  # fmt: skip
    heads = ("pair", "KL(p‖q)", "J", "S", "median S", "S > 1 at", "of the KL", "λ*")
    cold, hot = (next(one for one in pairs if one.name == name) for name in ("T 0.7", "T 1.4"))
    return Part(
        "How smooth, how holed",
        "J is KL(p‖q) + KL(q‖p), and k3 is less noisy than k1 exactly where S < 1. What differs by "
        "rounding or by an engine has S of 0.50 or 0.51, as all small smooth differences have "
        "(1/2): no prefix is above 1. Temperature shows that neither the KL nor a hole decides: "
        f"T 0.7 and T 1.4 have KLs of {cold.mean:.2f} and {hot.mean:.2f}, S of {cold.pooled:.2f} "
        f"and {hot.pooled:.2f}, and no prefix stands out: none has 0.1% of k3's variance.",
        (
            Table("The pairs, p ‖ q; p samples. The engine's own weights have 4 bits; float32 has "
                  "the same, unpacked.", ("pair", "p ‖ q"), list(PAIRS.items())),
            figure,
            Table("Means over prefixes, nats. S and λ* = 1/(2S) are of all prefixes together.",
                  heads, rows),
        ),
    )  # fmt: skip


def _tokens(pairs: list[Pair]) -> Part:
    points = [
        {"name": one.name, "at": _digits(one.kl[i]),
         "value": _digits(np.sqrt(one.variances["k3"][i] / one.variances["k1"][i]))}
        for one in pairs
        for i in range(0, len(one.kl), EVERY)
        if one.kl[i] > FLOOR
    ]  # fmt: skip
    figure = cloud(
        "The KL of a prefix does not say which is less noisy: under noise half of those below 0.01 "
        "nats have S > 1, and a sixth of those above 0.1.",
        points, "KL(p‖q) at a prefix, nats", "sd of k3 / sd of k1", start="noise",
        note=f"Every {EVERY}th prefix with a KL above 1e-5. The pair that is chosen is in color, "
        "the others gray.",
    )  # fmt: skip
    rows = []
    for one in pairs:
        spread = [float(np.sqrt(one.within(k).mean())) for k in ("k1", "k2", "k3", "best λ")]
        rows.append((one.name, one.mean, *spread, _signed(one.bias("k2") / one.mean)))
    heads = ("pair", "KL", "k1", "k2", "k3", "best λ", "bias of k2")
    return Part(
        "One token",
        "The noise of one draw at a prefix, and the price of k2, which is biased: by 1% of "
        "the KL or less between a model and its engine, 9% after a short LoRA, 176% after a long "
        "one. With the λ* of the table above for all prefixes (best λ) k1 + λ(r − 1), r = q/p, is "
        "never worse than either, and at noise 29% less noisy than the better.",
        (figure, Table("Standard deviation of a draw within prefixes, exact, nats.", heads, rows)),
    )


def _digits(value: float) -> float:
    """As many as a picture shows."""
    return float(f"{value:.4g}")


def _signed(share: float) -> str:
    return f"{share:+.1%}".replace("-", "−")


def _batch(pairs: list[Pair], drawn: Drawn) -> Part:
    named = {"k1": "k1", "k2": "k2", "k3": "k3", "exact": "Rao-Blackwell"}
    points = [
        {
            "name": one.name,
            "at": size,
            "series": series,
            "value": one.error(method, size) / one.mean,
        }
        for one in pairs
        for method, series in named.items()
        for size in PROMPTS
    ]
    points += [
        {"name": name, "at": size, "series": "auto (dots)", "value": it.error("auto") / it.kl}
        for (name, size), it in drawn.items()
    ]
    figure = errors(
        "The less noisy one is near the floor that differing prompts set: k3 at close pairs, k1 at "
        "the far one.",
        points, "prompts in a batch (of 119 tokens each)",
        "root mean squared error / KL", start="light",
        note="The floor is Rao-Blackwell, which draws no token and still has other prompts. "
        "auto is drawn for light, noise and strong.",
    )  # fmt: skip
    rows = [
        (one.name, *_errors(one, anew=True), _times(one), "k3" if one.pooled < 1 else "k1")
        for one in pairs
    ]
    fixed = [(one.name, *_errors(one, anew=False)) for one in pairs]
    methods = ("k1", "k2", "k3", "best λ")
    return Part(
        "A batch of prompts",
        "Another batch has other prompts, whose KLs differ; no estimate takes that away. It is "
        "little of k1's error at close pairs and most of it at strong: there even the exact KL at "
        "each prefix, by the log-probs of all tokens (Rao-Blackwell), would err only 9% less. How "
        "many times k1 errs as much as k3 is the same for any number of prompts.",
        (
            figure,
            Table(f"{SHOWN} prompts drawn anew: root mean squared error over the KL, exact.",
                  ("pair", *methods, "Rao-Blackwell", "k1 / k3", "less noisy"), rows),
            Table("The same 64 prompts and prefixes, other draws: what the estimates add.",
                  ("pair", *methods), fixed),
        ),
    )  # fmt: skip


def _errors(one: Pair, *, anew: bool) -> list[float]:
    methods = ("k1", "k2", "k3", "best λ", *(("exact",) if anew else ()))
    return [one.error(method, SHOWN, anew=anew) / one.mean for method in methods]


def _auto(by_name: dict[str, Pair], drawn: Drawn) -> Part:
    rows, usual = [], []
    more = {at: it.error("auto") / it.better() - 1 for at, it in drawn.items()}
    worst = max(share for (_, size), share in more.items() if size >= 16)
    held = min(float(it.held.mean()) for it in drawn.values())
    wide = drawn["strong", SHOWN]
    for (name, size), it in drawn.items():
        one = by_name[name]
        exact = [one.error(method, size) / it.kl for method in ("k1", "k3")]
        watched = [it.error(method) / it.kl for method in ("k1", "k3", "auto")]
        rows.append((f"{name}, {size}", *exact, *watched, _share(float(it.held.mean()))))
        if size == SHOWN:
            half = [it.usual(method) / it.kl for method in ("k1", "k3", "auto")]
            missing = float(np.median(it.missing))
            draws, variance = seen(name)
            usual.append((name, *half, missing, float(one.variances["k3"].mean()), variance, draws))
    heads = ("pair, prompts", "k1, exact", "k3, exact", "k1", "k3", "auto", "interval held")
    return Part(
        "Not knowing S",
        "S is of the whole vocabulary; a log of sampled tokens does not have it. kb.estimate finds "
        f"its λ in the batch: from 16 prompts on it errs at most {_share(worst)} more than the "
        "better of k1 and k3 on the same batches, at noise with 64 prompts "
        f"{_share(-more['noise', SHOWN])} less, and its 95% interval held in {_share(held)} of "
        f"batches or more. With 8 prompts it errs {_share(more['strong', 8])} more than k1 at "
        "strong. The exact error of k3 at "
        f"strong shows in no batch: the usual one is off {wide.usual('k3') / wide.usual('k1'):.1f} "
        "times as far as by k1.",
        (
            Table(f"Root mean squared error over the KL: exact, and of {REPEATS} drawn batches.",
                  heads, rows),
            Table(f"{SHOWN} prompts: the error over the KL that half of the batches stay below, "
                  "the missing mass of the median batch, and the variance of k3 within prefixes, "
                  "exact and as all draws show it.",
                  ("pair", "k1", "k3", "auto", "missing mass", "Var(k3)", "seen", "draws"), usual),
        ),
    )  # fmt: skip


def _other(by_name: dict[str, Pair]) -> Part:
    engine, back = by_name["engine"], by_name["from engine"]
    rows: list[tuple[str | float | None, ...]] = [
        ("engine", engine.pooled, _share(engine.holed.mean()), back.pooled, None,
         _share(back.holed.mean()))
    ]  # fmt: skip
    for name in DRAWN:
        shape, pooled, error = other_direction(name)
        holed = _share(by_name[name].holed.mean())
        rows.append((name, by_name[name].pooled, holed, pooled, error, _share((shape > 1).mean())))
    heads = ("pair", "S, p samples", "S > 1 at", "S, q samples", "its error", "S > 1 at")
    return Part(
        "The direction of a policy and its reference",
        "There the changed model samples and the base model is the other one, and what hurts k3 is "
        "a token that the base model likes and the changed one has left, as training can do to "
        "it. The verdicts stay: S is 1.1 times as large at light, twice at noise, and a million "
        "and more at strong.",
        (
            Table("S of all prefixes. With q sampling: exact at engine; else exact over p's 20 "
                  "likeliest tokens and by 64 draws beyond, at prefixes that p wrote.",
                  heads, rows),
        ),
    )  # fmt: skip


def _holes(by_name: dict[str, Pair]) -> Part:
    worst = by_name["strong"].variances["k3"]
    return Part(
        "The holes by their words",
        "At strong two prefixes, the fourth tokens of two completions, make "
        f"{_share(np.sort(worst)[-2:].sum() / worst.sum())} of the variance of k3 over all "
        f"{len(worst):,}: p is sure, and q says what p has no place for. The other kind is a word "
        "that p uses and q has dropped. It adds much to the KL, k1 sees it, and it is harmless to "
        "k3 while p samples, but not when q does.",
        (table_of_p(), table_of_q()),
    )


def _verdict(by_name: dict[str, Pair]) -> Part:
    smooth = [one.name for one in by_name.values() if one.pooled < 1]
    holed = [one.name for one in by_name.values() if one.pooled >= 1]
    strong, light = by_name["strong"], by_name["light"]
    rows = [
        ("k1 is better for language models, k3 for classical control (Structure)",
         f"k1 at {', '.join(holed)}; k3 at {', '.join(smooth)}."),
        ("likely because language models have holes (Structure)",
         f"At strong, yes. T 1.4 has none, and k1 is better there too; where k3 is better at most "
         f"{_share(light.holed.mean())} of prefixes have S > 1."),
        ("k3 is better at lower KL, but explodes at higher KL (Structure)",
         "Between pairs it holds but for T 0.7 against noise: a KL of 0.18 with k3 ahead, 0.13 "
         "with k1. Between the prefixes of one pair it does not."),
        ("k3 is steadier as a monitor of drift between policies (notes on Approximating KL)",
         f"Between a model and its engine, yes: {_times(by_name['engine']):.0f} times less error "
         f"than k1; k2 serves as well there. After a long LoRA, no."),
        ("k3 reduces the variance at no cost (Four Faces)",
         f"No: at strong its exact variance is {_power(strong)} times that of k1, and at noise "
         "larger as well."),
        ("log r is above 0, k1 below, for a large fraction of samples (Four Faces)",
         f"{_share(negative('light'))} at light, {_share(negative('noise'))} at noise, "
         f"{_share(negative('strong'))} at strong."),
    ]  # fmt: skip
    return Part(
        "k1 for language models?",
        "As a rule, no; as a fallback where a policy has moved far, yes. The distance at which it "
        "turns lies between the short LoRA and the noise, 0.03 and 0.13 nats per token, for these "
        "pairs, but T 0.7 is beyond it and smooth. The pairs that stand for engine against trainer "
        "and for old against current are below it. Who has the log-probs of all tokens needs no "
        "rule; who has those of sampled tokens takes kb.estimate, which looks.",
        (
            Table(
                "What the documents say of it, and what these pairs say.", ("claim", "here"), rows
            ),
        ),
    )


def _power(one: Pair) -> str:
    return f"{one.variances['k3'].mean() / one.variances['k1'].mean():,.0f}"
