"""What the four outcomes show, the same with densities, and what the logged −0.031 means."""

from __future__ import annotations

import numpy as np

from kullback.experiments.four_faces import dial as turning
from kullback.experiments.four_faces.measure import (
    BROAD,
    DRAWS,
    K1,
    K3,
    LOGGED,
    NARROW,
    NEGATIVE,
    P,
    bound,
    chance_between_normals,
    chance_of_mean,
    cross_entropy,
    draw,
    evidence,
    first_below,
    kl,
    variance,
)
from kullback.experiments.four_faces.panels import panels, written
from kullback.reporting.curves import areas, curves, dial, groups, profiles
from kullback.reporting.experiment import Experiment, Part, Printed, Table

CANDIDATES = {"broad": BROAD, "narrow": NARROW}
SMALL = 0.005  # nats: a step of a policy, as in the experiment gaussian
COLORS = {
    "target p": "var(--dim)",
    "KL(q‖p) fit": "var(--orange)",
    "KL(p‖q) fit": "var(--green)",
    "chosen fit": "var(--blue)",
}
TENS = tuple(0.25 * i for i in range(49))  # powers of ten taken from an outcome
RULED_OUT = {"q, outer ruled out": 0, "q, inner ruled out": 1}
RULED = {"target p": "var(--dim)", "q, outer ruled out": "var(--blue)",
         "q, inner ruled out": "var(--orange)"}  # fmt: skip
FIVE = (0.0, 0.2, 0.22, 0.5, 1.0)  # orders of the dial, two of them about the leap


def run(seed: int) -> Experiment:
    """The experiment."""
    tokens = first_below(0.01)
    return Experiment(
        name="four-faces",
        source="The Four Faces of KL Divergence",
        question="One formula, two directions: which candidate wins, and is a KL below 0 a bug?",
        claim="KL(p‖q) prefers the broad candidate and KL(q‖p) the narrow one; k1 is below 0 in "
        "51 % of samples, so a logged −0.031 is no bug.",
        answer=f"All figures of the example hold; but a mean of −0.031 over {tokens} tokens or "
        "more is no noise of an honest sampler: its probability is below 1 %.",
        method="Sums over four outcomes, no draws needed; the distributions are recovered from "
        f"the terms that the document prints. {DRAWS:,} draws stand beside them with their "
        "distance in exact standard errors (z). Densities are summed over a grid, and fits found "
        "from both ends.",
        parts=(
            _directions(),
            _estimators(seed),
            _correction(tokens),
            _price(),
            _continuous(),
            _decompositions(),
        ),
        printed=_printed(),
        limits=(
            "p, q1 and q2 are recovered: the tables of the document were not at hand, and other "
            "tables with the same figures cannot be excluded.",
            "The bound holds if p sampled and q was fixed before; where q was trained on these "
            "tokens a negative mean has a third cause.",
            "Where the best fit leaps depends on the target; that it leaps, on its modes lying "
            "apart.",
        ),
        seed=seed,
    )


def _printed() -> tuple[Printed, ...]:
    share = 100 * variance(K3) / variance(K1)
    return (
        Printed("KL(p‖q1), broad", "0.595", kl(P, BROAD)),
        Printed("KL(p‖q2), narrow", "1.234", kl(P, NARROW)),
        Printed("KL(q1‖p), broad", "1.273", kl(BROAD, P)),
        Printed("KL(q2‖p), narrow", "0.576", kl(NARROW, P)),
        Printed("0.49 log(0.49/0.02)", "1.567", 0.49 * float(np.log(0.49 / 0.02))),
        Printed("2 (0.25) log 25", "1.609", 0.5 * float(np.log(25))),
        Printed("P(k1 < 0)", "0.51", NEGATIVE),
        Printed("KL(p‖q2) squared", "1.523", kl(P, NARROW) ** 2),
        Printed("Var(k3) / Var(k1), %", "26", share),
    )


def _directions() -> Part:
    rows = [
        (f"{name}: {_spelled(q)}", kl(P, q), kl(q, P), variance(np.log(P / q)),
         variance(q / P - 1 - np.log(q / P)))
        for name, q in CANDIDATES.items()
    ]  # fmt: skip
    heads = ("candidate q", "KL(p‖q)", "KL(q‖p)", "Var(k1)", "Var(k3)")
    return Part(
        "Two directions, opposite answers",
        f"Recovered: p = {_spelled(P)}. The rankings are exactly reversed, as printed. Not "
        "printed: for the broad candidate k3 is 28 times noisier than k1, since it has mass that "
        "p rarely samples. k3's gain at the narrow one is no rule.",
        (Table("Variances are of one sample, x ~ p.", heads, rows),),
    )


def _spelled(q: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:g}" for value in q) + ")"


def _estimators(seed: int) -> Part:
    ends = np.concatenate([[0.0], np.cumsum(P)])
    shown = []
    span = (-1.2, 3.6)
    same, less = f"{P @ K1:.3f}", f"{variance(K3) / variance(K1):.0%}"
    titles = (
        (K1, "k1", f"k1 is below 0 in {NEGATIVE:.0%} of samples; the area is {same} all the same."),
        (K3, "k3", f"k3 has the same area, no value below 0, and {less} of the variance."),
    )
    for values, name, title in titles:
        rows = [
            {"name": f"{place + 1}", "low": float(ends[place]), "high": float(ends[place + 1]),
             "value": float(value), "label": _label(float(value))}
            for place, value in enumerate(values)
        ]  # fmt: skip
        note = "As wide as an outcome is likely, as high as it counts. Red: below 0."
        shown.append(areas(title, rows, f"{name} of one sample, nats", span, note))
    rows = []
    for name, values in (("k1", K1), ("k3", K3), ("k1 < 0", (K1 < 0).astype(float))):
        one = draw(values, seed)
        rows.append((name, one.exact, one.mean, one.z, variance(values)))
    heads = ("of", "mean", "drawn", "z", "variance")
    return Part(
        "What one sample says",
        "The document has two bar charts of equal width. Drawn as wide as outcomes are likely, "
        "the bars show all of it: where samples land, and the mean as an area.",
        (*shown, Table(f"Exact, and {DRAWS:,} draws.", heads, rows)),
    )


def _label(value: float) -> str:
    """Over or below a bar; the widest that is below 0 speaks for all that are."""
    said = f"{value:.2f}".replace("-", "−")
    return said if value > 0 else f"{said}; {NEGATIVE:.0%} lie below 0"


def _correction(tokens: int) -> Part:
    counts = (1, 2, 4, 8, 16, 32, 64, tokens, 256, 512)
    names = ("bound", "normal policies, KL 0.005", "the worked example")

    def chances(count: int) -> tuple[float, float, float]:
        return (
            bound(LOGGED, count),
            chance_between_normals(LOGGED, count, SMALL),
            chance_of_mean(LOGGED, count),
        )

    points = [
        {"at": count, "series": name, "value": value if value > 1e-12 else None}
        for count in np.unique(np.geomspace(1, 512, 50).astype(int)).tolist()
        for name, value in zip(names, chances(count), strict=True)
    ]
    figure = curves(
        f"Over {tokens} tokens or more an honest sampler gives −0.031 in fewer than 1 % of steps.",
        points, "tokens in the mean", "P(mean of k1 ≤ −0.031)", log="xy", level=(0.01, "1 %"),
        marks={float(tokens): f"{tokens}"},
        note="The bound, e^(−0.031 · tokens), holds for any policies and any dependence of the "
        "tokens.",
    )  # fmt: skip
    rows = [(f"{count}", *chances(count)) for count in counts]
    last = bound(LOGGED, 8192)
    return Part(
        "The correction: −0.031 is no noise, unless the batch is tiny",
        "51 % is the chance of one sample. Under an honest sampler the product of q/p over all "
        "tokens has mean 1 at most, so that P(Σ k1 ≤ −c) ≤ e^−c. Over 8,192 tokens −0.031 has a "
        f"chance of {last:.0e} at most. Look at the sampler, the direction and whether q was "
        "trained on these tokens: kullback explain kl --value -0.031 --tokens 8192.",
        (figure, Table("Chance of a mean of k1 at or below −0.031.", ("tokens", *names), rows)),
    )


def _ruled_out(outcome: int, tens: float) -> np.ndarray:
    """The uniform candidate after so many powers of ten were taken from one of its outcomes."""
    left = 0.25 * 10.0**-tens
    q = np.full(4, (1 - left) / 3)
    q[outcome] = left
    return q


def _price() -> Part:
    names = {"outer, p = 0.49": 0.49, "inner, p = 0.01": 0.01}
    points, bars, costs = [], [], []
    for tens in TENS:
        drawn = {"target p": P, **{name: _ruled_out(i, tens) for name, i in RULED_OUT.items()}}
        bars += [
            {"at": tens, "name": f"{i + 1}", "series": series, "value": float(masses[i])}
            for series, masses in drawn.items()
            for i in range(4)
        ]
        for name, i in RULED_OUT.items():
            q = drawn[name]
            cost = float(P[i] * np.log(P[i] / q[i]))
            said = f"{cost:.2g} nats".replace("-", "−")
            top = max(float(masses[i]) for masses in drawn.values())
            costs.append({"at": tens, "name": f"{i + 1}", "top": top, "said": said,
                          "color": RULED[name]})  # fmt: skip
            points.append({"at": tens, "series": f"KL(p‖q), {name[3:]}", "value": kl(P, q)})
        back = kl(drawn["q, outer ruled out"], P)
        points.append({"at": tens, "series": "KL(q‖p), outer ruled out", "value": back})
    beside = groups(bars, "probability", RULED)
    beside["layer"].append(written(costs))
    figure = dial(
        "What happens must not be ruled out: KL(p‖q) charges for it without end, KL(q‖p) nothing.",
        points, beside, "powers of ten taken from one outcome", "nats",
        named="powers of ten", start=3.0,
        note="q is uniform before. Over a bar: p log(p/q), what KL(p‖q) charges for that outcome, "
        "of the candidate that rules it out. A term can be below 0; their sum cannot.",
    )  # fmt: skip
    rows = [
        (f"outcome with p = {p:g}", *(p * float(np.log(p / q)) for q in (1e-2, 1e-4, 1e-8, 1e-16)),
         f"1e{np.log10(p) - 10 / p / np.log(10):.0f}")
        for p in names.values()
    ]  # fmt: skip
    heads = ("term of", "q = 0.01", "1e-4", "1e-8", "1e-16", "q that costs 10 nats")
    return Part(
        "The price of a probability near 0",
        "It has no bound, but it is a logarithm. At an outcome that happens in half of all "
        "samples q has to fall to 1e-9 before 10 nats are charged, and at one that happens in 1 "
        "% to 1e-436, which no float64 holds. The cost that the document's figure shows "
        "exploding over the inner outcomes is 0.09 nats at q = 1e-6; what explodes there is "
        "KL(q‖p) as q grows.",
        (figure, Table("p log(p/q), nats.", heads, rows)),
    )


def _continuous() -> Part:
    leap = turning.jump()
    seen = [place for place in range(0, len(turning.X), 4) if abs(turning.X[place]) <= 6]

    def density(masses: np.ndarray, series: str, **at: float) -> list[dict]:
        return [
            {"x": round(float(turning.X[i]), 2), "series": series,
             "value": round(float(masses[i]) / turning.STEP, 4), **at}
            for i in seen
        ]  # fmt: skip

    turned, points = [], []
    for order in turning.ORDERS:
        fit = turning.best(order)
        turned += density(turning.masses(fit.mean, fit.sd), "chosen fit", at=order)
        points += [{"at": order, "series": "mean of the fit", "value": fit.mean},
                   {"at": order, "series": "its standard deviation", "value": fit.sd}]  # fmt: skip
    ends = {"KL(q‖p) fit": turning.best(0.0), "KL(p‖q) fit": turning.best(1.0)}
    fixed = density(turning.target(), "target p")
    for series, fit in ends.items():
        fixed += density(turning.masses(fit.mean, fit.sd), series)
    figure = dial(
        f"The two directions are ends of one dial, but the best fit leaps, at α = {leap:.3f}.",
        points, profiles(fixed, turned, "x", "density", COLORS), "α", "mean and sd of the fit",
        named="α: 0 is KL(q‖p), 1 is KL(p‖q)", start=0.5, marks={leap: "leap"},
        note="α-divergence (∫ p^α q^(1−α) − 1) / (α (α − 1)) of a normal q from the target; 0 "
        "and 1 are its limits.",
    )  # fmt: skip
    ends_of = {0.0: "α = 0, KL(q‖p)", 1.0: "α = 1, KL(p‖q)"}
    five = panels(
        "Between 0.2 and 0.22 one mode becomes both at once: a leap, not a morph.",
        [row for row in fixed if row["series"] == "target p"],
        {ends_of.get(order, f"α = {order:g}"): [row for row in turned if row["at"] == order]
         for order in FIVE},
        "Grey: the target. The best normal fit at five orders of the dial.",
    )  # fmt: skip
    narrow, broad = ends.values()
    last = max(order for order, fit in turning.branches()[0].items() if fit.sd < 1)
    return Part(
        "With densities",
        f"Target: 60 % N(−2, 0.7²) and 40 % N(2, 0.7²). KL(q‖p) fits N({_minus(narrow.mean)}, "
        f"{narrow.sd:.3f}²), the taller mode; KL(p‖q) fits N({_minus(broad.mean)}, "
        f"{broad.sd:.3f}²), the mean and variance of the target, over the valley. The document "
        "draws a smooth morph between them. There is none: the fit on one mode stays what it is, "
        f"is overtaken at α = {leap:.3f}, and ceases to be an optimum after α = {last:g}.",
        (figure, five),
    )


def _minus(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _decompositions() -> Part:
    rows = []
    for name, q in CANDIDATES.items():
        for said, one in (
            ("H(p, q) = H(p) + KL(p‖q)", cross_entropy(q)),
            ("log p(x) = ELBO(q) + KL(q‖posterior)", evidence(q)),
        ):
            rows.append((f"{said}, {name}", one.whole, one.part, one.divergence))
    heads = ("of", "whole", "part", "KL")
    return Part(
        "The two decompositions",
        "Both are identities. The cross-entropy by which a model is trained differs from KL(p‖q) "
        "by the entropy of the data, and the ELBO from the log evidence by KL(q‖posterior): here "
        "a latent variable of four values, with p as its posterior.",
        (Table("nats; both sums are right to 1e-15.", heads, rows),),
    )
