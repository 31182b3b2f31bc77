"""How the KL of a sequence behaves as it grows, as its length is random, and as it is selected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import kullback as kb
from kullback.experiments.sequences.lengths import FORMULAS, Ends, drawn, selected, share
from kullback.experiments.sequences.measure import (
    SHARE,
    Spread,
    batch,
    longest,
    normal,
    prompts,
    three,
)
from kullback.reporting.curves import curves, dial, profiles
from kullback.reporting.experiment import Experiment, Part, Table

LENGTHS = tuple(int(n) for n in np.unique(np.geomspace(1, 512, 41).round()))
WORLDS = (("alike", 1), ("differ", 32))  # prompts, and how many kinds of them
FEW = (16, 64, 256, 1024)
DRIFTS = (0.1, 0.2)
LONG = 1000
SEQUENCES = 512  # of a drawn batch
DRAWS = 100_000  # lengths
EOS = Ends(0.02, 0.01)
OTHER_ENDS = tuple(round(0.001 * i, 3) for i in range(4, 61))  # of the reference
NAMES = {
    "k1": "k1",
    "sums": "k3 of the sum",
    "tokens": "k3 of each token",
    "exact": "Rao-Blackwell",
    "subset": "exact at 1 of 16",
    "corrected": "the same, with k3 at all",
}
COLORS = {"policy, ends at 0.02": "var(--dim)", "reference": "var(--orange)"}
BUCKETS = ((1, 8), (9, 32), (33, 128), (129, 512))


def run(seed: int) -> Experiment:
    """The experiment."""
    near = normal(DRIFTS[0], LONG)
    k1, k3 = (EOS.sequence_mean(one) / EOS.kl for one in FORMULAS.values())
    return Experiment(
        name="sequences",
        source="The Four Faces of KL Divergence",
        question="A KL of whole sequences from their tokens: what does length do to each estimate?",
        claim="An open question of the document: the divergence of sequences is what we want, "
        "estimates per token are what we compute, and how they add up depends on length.",
        answer=f"Add k3 up, do not take it of the sum: over {LONG:,} tokens of {near.kl / LONG:g} "
        f"nats the sd of one sequence is {near.tokens:.3f} of its KL with k3 of each token, "
        f"{near.k1:.2f} with k1, {near.sums:.1f} with k3 of the sum. And where lengths are random, "
        f"a mean per sequence of k1 or k3 is another number: {k1:.0f} and {k3:.0f} times the KL "
        "where the policies differ in their ends alone.",
        method="All standard deviations (sd) and means are sums over outcomes of kb.k1 and kb.k3: "
        "for normal log-ratios by the divergences of normal policies, for 256 prefixes from their "
        "tables, for three tokens over every sequence, for random lengths as closed sums over the "
        "length. Draws stand beside them with their distance in exact standard errors (z).",
        parts=(
            _growing(),
            _batches(seed),
            _between(),
            _ends(seed),
            _infinite(),
            _by_length(),
            _selected(),
        ),
        printed=(),
        limits=(
            "On-policy, and with the log-probs of what sampled. Weights of another sampler "
            "multiply over a sequence as the ratio of the sum does.",
            "Tokens are independent given the prompt, except among the three. Real prefixes "
            "remember; how much, an interval over prompts tells and these worlds do not.",
            "Values of a KL. As a loss, k3 of each token and k3 of the sum have other gradients "
            "(the experiment gradients).",
        ),
        seed=seed,
    )


def _points(length: int, it: Spread, names: tuple[str, ...]) -> Iterator[dict]:
    for name in names:
        yield {"at": length, "series": NAMES[name], "value": getattr(it, name)}


def _growing() -> Part:
    shown = ("k1", "sums", "tokens", "exact", "subset")
    points = [row for n in LENGTHS for row in _points(n, prompts(1, n), shown)]
    for row in points:  # a shorter sequence has no prefix to score
        if row["series"] == NAMES["subset"] and row["at"] < 1 / SHARE:
            row["value"] = None
    turn = longest(1)
    figure = curves(
        "Every sum over tokens gains by length; k3 of the summed log-probs explodes.",
        points, "tokens of the sequence", "sd of one sequence / its KL", log="xy",
        marks={float(turn): f"{turn} tokens"},
        note=f"Independent tokens, {prompts(1, 1).kl:.4f} nats each on average, at 256 prefixes "
        "whose KLs differ. Rao-Blackwell: the exact KL at every prefix, added up; exact at 1 of "
        "16: at prefixes chosen at random, times 16.",
    )  # fmt: skip
    rows = [
        (f"{shift:g}", n, it.kl, it.k1, it.tokens, it.sums)
        for shift in DRIFTS for n in (1, 10, 100, LONG) for it in (normal(shift, n),)
    ]  # fmt: skip
    heads = ("shift", "tokens", "KL", *(NAMES[name] for name in ("k1", "tokens", "sums")))
    return Part(
        "Longer sequences",
        "k3 of the sum takes R − 1 as its control, where R is the ratio q/p of the whole sequence. "
        "E[R²] is a product over tokens, so it grows exponentially, and the sum's noise with it: "
        f"up to {turn} tokens it is no noisier than k1, at 256 tokens "
        f"{prompts(1, 256).sums / prompts(1, 256).k1:.0f} times as noisy. k3 of each token has the "
        "same mean, and its noise falls with the root of the length like that of k1.",
        (figure, Table("Normal log-ratios, independent tokens: p = N(0, 1), q = N(shift, 1). Sd of "
                       "one sequence over its KL; Rao-Blackwell has none, since all prefixes have "
                       "one KL.", heads, rows)),
    )  # fmt: skip


def _batches(seed: int) -> Part:
    rows = [
        (f"{one.exact:.0f} nats: {name}", one.mean, one.z, one.seen, one.error)
        for shift in DRIFTS
        for name, one in batch(shift, LONG, SEQUENCES, seed).items()
    ]
    return Part(
        "What one batch shows of it",
        "Little. At 20 nats hardly a batch holds a sequence with a large R. R is next to 0 nearly "
        "everywhere, so that k3 of the sum reads about k1 − 1: a nat too low, with the small "
        "spread of k1 and nothing to show for its true error. kb.estimate refuses this estimator "
        "and tells the error to expect.",
        (Table(f"Means of {SEQUENCES} drawn sequences of {LONG:,} tokens with shift "
               f"{DRIFTS[0]:g} (5 nats) and {DRIFTS[1]:g} (20 nats).",
               ("KL and estimator", "drawn", "z", "its standard error",
                "the true one"), rows),),
    )  # fmt: skip


def _between() -> Part:
    points = [
        {"at": n, "series": f"{NAMES[name]}, {what}", "value": getattr(prompts(kinds, n), name)}
        for n in LENGTHS for name in ("k1", "exact") for what, kinds in WORLDS
    ]  # fmt: skip
    floor = prompts(32, 10**9).exact
    figure = curves(
        "Where prompts differ, longer sequences soon stop helping, whatever the estimator.",
        points, "tokens of the sequence", "sd of one sequence / its KL", log="xy",
        level=(floor, ""),
        note="Alike: every prompt meets the same 256 prefixes. Differ: 8 of them for each of 32 "
        f"kinds of prompts, whose KLs spread by {floor:.2f} of their mean (dotted).",
    )  # fmt: skip
    names = ("k1", "tokens", "exact", "subset", "corrected", "sums")
    rows = [
        (f"prompts {what}, {n:,} tokens", *(getattr(prompts(kinds, n), name) for name in names))
        for what, kinds in WORLDS for n in FEW
    ]  # fmt: skip
    small = [
        (f"{what}: {name}", mean, variance, float(np.sqrt(variance)) / mean)
        for what, ends in (("27 sequences of 3 tokens", False), ("15 of 1 to 3 tokens", True))
        for name, (mean, variance) in three(ends).items()
    ]
    alike, differ = prompts(1, 256), prompts(32, 256)
    return Part(
        "Tokens that share a prompt",
        f"The prompts' own KLs spread by {floor:.2f} of their mean, and that is in every sequence. "
        f"At 256 tokens Rao-Blackwell is {alike.k1 / alike.exact:.1f} times better than k1 where "
        f"prompts are alike and {differ.k1 / differ.exact:.2f} times where they differ: then more "
        "prompts help, not more tokens. The exact KL at one prefix of 16 still beats k1. "
        "Corrected by k3 at every token it is worse here: k3 scatters around a prefix's KL by more "
        "than prefixes differ, and the correction carries 15 times its variance.",
        (figure,
         Table("Sd of one sequence over its KL. One of 16: prefixes chosen at random are scored "
               "over the whole vocabulary.",
               ("prompts and length", *(NAMES[name] for name in names)), rows),
         Table("Tokens that depend on all before them: every sequence of a language of three "
               "tokens, enumerated (kb.worlds.three_tokens). All means are the KL.",
               ("estimator", "mean", "variance", "sd / KL"), small)),
    )  # fmt: skip


def _ends(seed: int) -> Part:
    points, turned = [], []
    lengths = np.arange(1, 162, 4)
    for end in OTHER_ENDS:
        it = Ends(EOS.p, end)
        for series, value in (
            ("mean of k1", it.sequence_mean(kb.k1)),
            ("mean of k3", it.sequence_mean(kb.k3)),
            ("Rao-Blackwell: the KL", it.kl),
        ):
            points.append({"at": end, "series": series, "value": value})
        turned += [row | {"at": end} for row in _shares(end, "reference", lengths)]
    fixed = _shares(EOS.p, "policy, ends at 0.02", lengths)
    figure = dial(
        "Averaged per sequence, k1 and k3 tell of the ends and not of the KL.",
        points, profiles(fixed, turned, "tokens of a sequence", "share of sequences", COLORS),
        "probability of the end under the reference", "nats, mean over sequences",
        named="reference ends at", start=EOS.q, marks={EOS.p: "same policy"},
        note="Each sequence counts once, by the mean of its tokens (sequence_mean).",
    )  # fmt: skip
    found = drawn(EOS, DRAWS, seed)
    rows = [
        *(
            (name, EOS.token_mean(one), EOS.sequence_mean(one), *found[name])
            for name, one in FORMULAS.items()
        ),
        ("Rao-Blackwell", EOS.kl, EOS.kl, None, None),
    ]
    ratio = EOS.sequence_mean(kb.k1) - EOS.sequence_mean(kb.k3)
    return Part(
        "Random lengths",
        f"The policy ends a sequence with probability {EOS.p:g} at each token, the reference with "
        f"{EOS.q:g}; nothing else differs, and the KL is {EOS.kl:.4f} nats at every prefix. Summed "
        "over all tokens and divided once, all three agree. As a mean of each sequence's mean, the "
        "log 2 of the last token weighs most where the sequence is short: k1 and k3 are biased, "
        f"and their difference, the missing mass 1 − mean(q/p), is {ratio:+.3f} with an honest "
        "sampler, so that it may accuse nobody.",
        (figure,
         Table(f"Nats per token, exactly, and the mean of {DRAWS:,} drawn sequences. Both z "
               "are one: k1 and k3 are linear in 1/length.",
               ("estimator", "all tokens / their number", "mean of sequence means", "drawn", "z"),
               rows)),
    )  # fmt: skip


def _shares(end: float, series: str, lengths: np.ndarray) -> list[dict]:
    return [
        {"x": int(n), "series": series, "value": float(of)}
        for n, of in zip(lengths, share(end, lengths), strict=True)
    ]


def _infinite() -> Part:
    rows = []
    for end in (0.005, 0.01, 0.0101, 0.012, 0.015, 0.03, 0.04):
        it = Ends(EOS.p, end)
        k1, k3 = (it.total_sd(one) for one in FORMULAS.values())
        rows.append((f"{end:g}", it.kl / it.p, k1, k3, it.exact_sd, it.sums_sd()))
    heads = ("reference ends at", "KL", "k1", "k3 of each token", "Rao-Blackwell", "k3 of the sum")
    better = EOS.exact_sd / EOS.total_sd(kb.k3)
    return Part(
        "Where each breaks",
        "Summed over a sequence of random length, k3 of the sum has no variance at all where the "
        f"reference ends at 1 − √(1 − {EOS.p:g}) = {EOS.edge:.5f} or less: long sequences get "
        "rarer more slowly than R² grows. k1 is noisy where the policies are close. And "
        "Rao-Blackwell is not the least noisy sum: it adds one KL per token and so carries the "
        f"noise of the length, while k3 pays most at the one end that every sequence has: "
        f"{better:.0f} times less noise at {EOS.q:g}. Divided by the number of tokens, "
        "Rao-Blackwell has none.",
        (Table(f"Sd of one sequence over its KL; the policy ends at {EOS.p:g}. inf: the sum over "
               "lengths of R² does not converge.", heads, rows),),
    )  # fmt: skip


def _by_length() -> Part:
    points = []
    for n in np.unique(np.geomspace(8, 512, 60).round().astype(int)):
        for name, one in FORMULAS.items():
            value = EOS.between(one, int(n), int(n))
            points.append({"at": int(n), "series": f"mean of {name}", "value": value})
        points.append({"at": int(n), "series": "Rao-Blackwell: the KL", "value": EOS.kl})
    crossing = 1 - EOS.values(kb.k1)[1] / EOS.values(kb.k1)[0]
    figure = curves(
        "Split by length, k1 falls from above the KL to below 0, and no more data mends it.",
        points, "tokens of the sequence", "nats per token", log="x",
        marks={crossing: "k1 is 0"},
        note="Policies that end at 0.02 and at 0.01. At one token, left of the picture, k1 is "
        "log 2 = 0.69 nats.",
    )  # fmt: skip
    rows = [
        (f"{low} to {high}", *(EOS.between(one, low, high) for one in FORMULAS.values()), EOS.kl)
        for low, high in BUCKETS
    ]
    return Part(
        "Selected by length",
        "A length is known after the last token only: who picks by it picks by what was sampled. "
        "The exact KL at a prefix does not depend on what came after.",
        (figure, Table("Nats per token of the sequences in a bucket of lengths.",
                       ("tokens", "k1", "k3", "Rao-Blackwell"), rows)),
    )  # fmt: skip


def _selected() -> Part:
    rows = [(name, *found) for name, found in selected().items()]
    return Part(
        "Selected by outcome",
        "By enumeration, where tokens depend on each other. What is chosen by the past (a "
        "position, a first token) leaves k1 and k3 unbiased for the tokens that follow. What is "
        "chosen by the outcome, such as an answer that finished, a reward, or a sign of the "
        "advantage, does not: k1 goes below 0 where nothing is wrong. Rao-Blackwell stays the mean "
        "of the KLs at the prefixes that were kept, which is the answer for those prefixes and not "
        "for all.",
        (Table("Nats per token, exactly: a language of three tokens, the third of which ends a "
               "sequence of at most three. Rao-Blackwell is the true mean over the kept prefixes.",
               ("kept", "share of sequences", "k1", "k3", "Rao-Blackwell"), rows),),
    )  # fmt: skip
