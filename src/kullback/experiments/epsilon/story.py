"""What ε does to a number, to a ranking and to a gradient, and what tells more than infinity."""

from __future__ import annotations

import numpy as np

import kullback as kb
from kullback.experiments.epsilon import apart, measure
from kullback.experiments.epsilon.measure import ADDED, CANDIDATES, REPAIRS, P
from kullback.reporting.curves import curves, dial, profiles
from kullback.reporting.experiment import Experiment, Part, Table

SHARE = 0.1  # of p in the skew KL
COLORS = {"p, stays": "var(--dim)", "q, moves": "var(--blue)", "first disjoint q": "var(--orange)"}
FORCES = {
    "log-probs as they are": (None, 0.0),
    "q + ε, ε = 1e-6": (ADDED, 1e-6),
    "log q cut at log 1e-6": ("max(q, ε), log q cut at log ε", 1e-6),
    "q mixed with 1 % uniform": ("(1 − ε) q + ε · uniform", 0.01),
}


def run(seed: int) -> Experiment:
    """The experiment."""
    first, second = measure.turns(ADDED, "A", "B"), measure.turns(ADDED, "B", "C")
    return Experiment(
        name="epsilon",
        source="The Four Faces of KL Divergence",
        question="A KL is infinite and ε makes it finite: whose number is it then?",
        claim="Where q has no mass and p does, KL(p‖q) is infinite, and every implementation "
        "clamps, adds ε or smooths, which silently shapes the loss near the boundary. Between "
        "disjoint supports KL does not tell how far they are apart.",
        answer=f"It is ε's: the least number is A's above ε = {first * 1e4:.1f}e-4, B's down to "
        f"{second * 1e12:.1f}e-12, then C's, the only KL that is finite; and where q falls below ε "
        "a repair loses the gradient that log-probs have.",
        method="Exact sums over five outcomes and, for the supports, over a grid of 129 places. "
        "Nothing is estimated from draws; the seed deals out the numbers of places once.",
        parts=(_ranking(), _repairs(), _force(), _samples(), _apart(seed), _instead(), _no_zero()),
        printed=(),
        limits=(
            "The candidates are made so that each wins somewhere. What holds for any: the slope is "
            "the mass that is ruled out, so that as ε falls who rules out most comes last.",
            "A softmax has no zero. Zeros come from top-k and top-p, masks, counts, and float32.",
            "Wasserstein needs a distance between outcomes. Positions have one; tokens do not, "
            "unless one is chosen for them.",
            "The gradients are of one logit at one policy; no training is run.",
        ),
        seed=seed,
    )


def _ranking() -> Part:
    labels = {
        "A, rules out 8 %": "A",
        "B, rules out 2 %": "B",
        "C, rules out nothing": "C",
    }
    points = [
        {"at": float(epsilon), "series": label, "value": measure.repaired(name, ADDED, epsilon)}
        for epsilon in np.geomspace(1e-16, 1e-2, 57)
        for label, name in labels.items()
    ]
    low, high = measure.turns(ADDED, "B", "C"), measure.turns(ADDED, "A", "B")
    figure = curves(
        "Three candidates, three winners: who has the least KL is decided by ε.",
        points, "ε that is added to q", "p log(p/(q + ε)), summed, nats", log="x",
        marks={low: "B wins", high: "A wins"},
        note="Left of both lines C wins. KL(p‖A) and KL(p‖B) are infinite: their curves show ε.",
    )  # fmt: skip
    rows = []
    for exponent in (2, 4, 6, 8, 10, 12, 16):
        epsilon = 10.0**-exponent
        values = [measure.repaired(name, ADDED, epsilon) for name in CANDIDATES]
        share = 0.08 * float(np.log(1 / epsilon))
        rows.append((f"1e-{exponent}", *values, share, measure.winner(ADDED, epsilon)))
    heads = ("ε", "A", "B", "C", "0.08 log(1/ε)", "least")
    spelled = ", ".join(f"{name} = {_spelled(q)}" for name, q in CANDIDATES.items())
    return Part(
        "The number is ε",
        f"p = {_spelled(P)}; {spelled}. The number of A is 0.08 log(1/ε) − 0.279: each decade of "
        "ε adds 0.184 nats, for ever. All that it says of A is the factor: 8 % of p is ruled out.",
        (figure, Table("Sum of p log(p/(q + ε)), nats.", heads, rows)),
    )


def _spelled(q: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in q) + ")"


def _repairs() -> Part:
    rows = []
    for repair, function in REPAIRS.items():
        at = measure.repaired("A", repair, 1e-8)
        slope = measure.repaired("A", repair, 1e-9) - at
        rows.append(
            (repair, at, slope, measure.turns(repair, "A", "B"), measure.turns(repair, "B", "C"),
             _rounded(measure.shown(P, function(P, 0.01))),
             _rounded(measure.from_itself(1e-6, repair)))
        )  # fmt: skip
    heads = ("repair", "A at ε = 1e-8", "per decade", "A = B at ε", "B = C at ε",
             "p from itself, ε = 0.01", "vocabulary from itself, ε = 1e-6")  # fmt: skip
    return Part(
        "No repair is better, two are worse",
        "All have the same slope, the mass that is ruled out, and turn the order. Mixing adds "
        "ε/K to each of K outcomes, so that one ε is two repairs: at ε = 3e-4 adding prefers A and "
        "mixing B. Without renormalizing the sum is no KL: a policy is below 0 from itself, "
        "−log(1 + Kε) for a uniform one, which is −0.141 nats over 151,936 tokens at ε = 1e-6; "
        "and a cut does it where probabilities lie below ε, −0.418 nats at 1e-5. "
        "scipy.special.kl_div adds the missing Kε and stays at or above 0. Label smoothing "
        "smooths p instead, which leaves the KL infinite, at more outcomes than before.",
        (Table("nats; the last two columns should be 0.", heads, rows),),
    )


def _rounded(value: float) -> float:
    """Without the rounding of a sum, and without the sign of −0."""
    return round(value, 12) + 0.0


def _force() -> Part:
    points = [
        {"at": float(left), "series": name, "value": measure.force(repair, left, epsilon)}
        for left in np.geomspace(1e-12, 0.07, 80)
        for name, (repair, epsilon) in FORCES.items()
    ]
    figure = curves(
        "As q forgets an outcome the KL pulls it back with 0.08, until a repair lets go of it.",
        points, "probability that q still gives the outcome", "pull on its logit, −∂/∂logit",
        log="x", note="q is trained by KL(p‖q); p gives the outcome 0.08.",
    )  # fmt: skip
    rows = [
        (f"1e-{exponent}",
         *(measure.force(*_at(how, 10.0**-exponent)) for how in FORCES.values()))
        for exponent in (2, 4, 5, 6, 7, 9, 12)
    ]  # fmt: skip
    return Part(
        "What it does to the gradient of q",
        "The gradient of KL(p‖q) on a logit is q − p: however small q is, it is not lost. An "
        "added ε multiplies the pull by q/(q + ε); a cut makes it 0 at ε and turns its sign, since "
        "the outcomes that are left still push: what q has forgotten stays forgotten. 1 % of "
        "uniform is an ε of 0.002. That KL gives no gradient, as the document says of disjoint "
        "supports, is true of what a repair leaves of it, not of a softmax in log space.",
        (figure, Table("Pull on the logit.", ("q", *FORCES), rows)),
    )


def _at(how: tuple[str | None, float], left: float) -> tuple[str | None, float, float]:
    return how[0], left, how[1]


def _samples() -> Part:
    rows = []
    for exponent in (2, 4, 6, 8, 12, 16):
        epsilon = 10.0**-exponent
        logs = measure.log_ratio(epsilon)
        (mean, sd), (_, other) = measure.moments(kb.k1(logs)), measure.moments(kb.k3(logs))
        pull, of_k3 = measure.pull_of_kl(epsilon), measure.pull_of_k3(epsilon)
        rows.append((f"1e-{exponent}", mean, sd, other, pull, of_k3))
    chance, k1, k3 = measure.unseen(32)
    back, back_k1, back_k3 = measure.off_support()
    heads = ("ε", "mean of k1 and k3", "sd of k1", "sd of k3", "gradient of KL", "k3 as a loss")
    return Part(
        "What samples say",
        "p is trained now, samples are its own, and A, repaired, is the reference. Mean and "
        "noise of k1 and k3 grow with log(1/ε), and so does the gradient of the KL, which k1 in "
        "the reward has too. k3 differentiated as a loss hardly feels ε: it has p0 − q0, which is "
        f"another gradient. {chance:.1%} of batches of 32 have no sample of the outcome: they say "
        f"{_minus(k1)} by k1 and {k3:.4f} by k3 on average, and nothing of infinity. Turned around "
        f"no ε is needed, KL(A‖p) is {back:.4f}, but k3 is not unbiased: samples of A never are "
        f"where p alone has mass, so that its mean is {back_k3:.4f}, 0.08 too small; that of k1 "
        f"is {back_k1:.4f}.",
        (
            Table("A, ε added and renormalized; gradients on the logit of the outcome.", heads,
                  rows),
        ),
    )  # fmt: skip


def _minus(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def _apart(seed: int) -> Part:
    places = [i for i in range(len(apart.X)) if -1.2 <= apart.X[i] <= 5.1]

    def heights(shift: float, series: str, **at: float) -> list[dict]:
        return [
            {"x": float(apart.X[i]), "series": series, **at,
             "value": round(float(apart.bump(shift)[i]) / apart.STEP, 4)}
            for i in places
        ]  # fmt: skip

    turned, points = [], []
    for shift in apart.SHIFTS:
        turned += heights(shift, "q, moves", at=shift)
        points += [
            {"at": shift, "series": name, "value": value}
            for name, value in apart.distances(shift).items()
        ]
    fixed = heights(0.0, "p, stays") + heights(apart.WIDTH, "first disjoint q")
    figure = dial(
        "From a distance of 2 on the supports are disjoint, and only Wasserstein sees them move.",
        points, profiles(fixed, turned, "place", "density", COLORS),
        "distance", "share of its largest value", named="distance", start=1.2,
        marks={0.1: "KL infinite", apart.WIDTH: "disjoint"},
        note="KL has no curve: it is 0 at distance 0 and infinite from the first step on.",
    )  # fmt: skip
    rows = []
    for shift in (0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
        js, tv, hellinger, carried = apart.distances(shift).values()
        kl = float(kb.divergence(apart.bump(0.0), apart.bump(shift)))
        rows.append((f"{shift:g}", kl, apart.smoothed(shift, 1e-6), apart.smoothed(shift, 1e-12),
                     js * float(np.log(2)), tv, hellinger, carried * apart.FAR,
                     apart.renumbered(shift, seed)))  # fmt: skip
    heads = ("distance", "KL", "ε = 1e-6", "ε = 1e-12", "JSD", "TV", "Hellinger", "Wasserstein",
             "renumbered")  # fmt: skip
    return Part(
        "Supports that move apart",
        "The document says that KL tells nothing of how far. Once supports are disjoint nor do JSD "
        "(log 2 at most), TV and Hellinger: they are finite but stand still, with no gradient. "
        "KL with ε stands still at a height that ε chooses. Wasserstein is the "
        "distance, because the places have one. Number the places at random, as tokens are, and "
        "it is no longer; where all outcomes are equally far from each other it is TV.",
        (figure, Table("ε added to both and renormalized; KL and JSD in nats.", heads, rows)),
    )


def _instead() -> Part:
    rows = []
    for name, q in CANDIDATES.items():
        rows.append(
            (name, measure.missing(q), *(float(kb.divergence(*pair)) for pair in ((P, q), (q, P))),
             float(kb.divergence(P, q, "js")), measure.skewed(q, SHARE),
             float(kb.divergence(P, q, "tv")))
        )  # fmt: skip
    heads = ("q", "mass of p ruled out", "KL(p‖q)", "KL(q‖p)", "JSD", "skew KL", "TV")
    return Part(
        "What to do instead",
        "Check the support first, and report the infinity with the mass behind it: two numbers "
        "without an ε (kb.divergence gives inf; kb.estimate gives no number and says how many "
        "tokens lie outside). To rank, take what is bounded by its definition: JSD, or the skew "
        "KL(p‖0.9 q + 0.1 p), at most log 10. Here both say A, B, C, since they charge a lost "
        "outcome little; an infinite KL says C. That is a choice between questions, to be made in "
        "words and not by ε. To train, compute log q in log space, unclamped, and give both sides "
        "the same mask.",
        (Table("nats but for masses and TV.", heads, rows),),
    )


def _no_zero() -> Part:
    old, new = np.array([0.0, -90.0, -3.0]), np.array([0.0, -120.0, -2.5])
    exact = float(kb.exact(logits_p=old, logits_q=new))
    single = [(np.exp(x) / np.sum(np.exp(x))).astype(np.float32) for x in (old, new)]
    gone = float(single[1][1])
    with np.errstate(divide="ignore"):
        broken = float(np.sum(single[0] * np.log(single[0] / single[1])))
    rows = [
        ("in log space", exact),
        ("from float32 probabilities", broken),
        ("ε = 1e-8 added to q", measure.shown(single[0].astype(float), single[1] + 1e-8)),
        ("the probability, in float32", gone),
    ]
    return Part(
        "A zero that is none",
        "Logits (0, −90, −3) and (0, −120, −2.5): the second probability is e^−120 and 0 in "
        "float32, and the KL becomes infinite there; times a coefficient of 0 it is NaN. In log "
        "space the outcome adds 2e-38 nats. Here ε does little harm, since p has next to no mass "
        "there either, but log-probs need none.",
        (Table("KL(p‖q), nats.", ("how", "value"), rows),),
    )
