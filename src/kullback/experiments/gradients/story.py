"""What each KL term descends, near and far, on and off policy, and where a policy goes by it."""

from __future__ import annotations

import numpy as np

from kullback.experiments.gradients import descent
from kullback.experiments.gradients.arrows import arrows, panels
from kullback.experiments.gradients.measure import STEPS, WORLD, Term, arrow, at, kl
from kullback.reporting.curves import dial, groups
from kullback.reporting.experiment import Experiment, Part, Table
from kullback.reporting.figures import Figure

# In this order everywhere, so that each keeps its color.
TERMS = {
    "k1 in the loss": Term("k1"),
    "k3 in the loss": Term("k3"),
    "k3 in the reward": Term("k3", "reward"),
    "k2 in the loss": Term("k2"),
}
COLORS = {
    "reference": "var(--dim)",
    **dict(zip(TERMS, ("var(--blue)", "var(--orange)", "var(--green)", "var(--purple)"),
               strict=True)),
}  # fmt: skip
NEAR, FAR = 0.1, 1.0  # of the way to the reference
SHOWN = 100  # steps that the dials turn through
LONG = 200  # steps from each start of the grid
HEADS = ("cosine", "length", "error")


def run(seed: int) -> Experiment:
    """The experiment; nothing in it is random."""
    pulled = {name: descent.from_grid(term, LONG) for name, term in TERMS.items()}
    starts = len(descent.grid())
    nearer, _ = pulled["k3 in the reward"]
    return Experiment(
        name="gradients",
        source="The Four Faces of KL Divergence (“Estimator bias in the gradient, not just the "
        "value”)",
        question="A KL term is differentiated or paid as a reward: where does it drive the policy?",
        claim="The gradient of an unbiased estimator is not automatically an unbiased gradient: "
        "another estimator in the logging changes the dashboard and not the training.",
        answer="k1 in the loss drives nowhere, k3 in the loss down the other direction, and k3 in "
        f"the reward away from the reference, from {starts - nearer} of {starts} starts; k2 in the "
        "loss, which holds prefixes fixed, and k1 in the reward are right.",
        method="p is the policy, q its reference. Expected gradients are sums over all 27 "
        "sequences of a language of three tokens (kb.worlds.three_tokens), in its 39 logits. "
        "“True” is the gradient of KL(p‖q) of whole sequences. Policies descend expected "
        "gradients, so nothing here is noise and the seed changes nothing.",
        parts=(_forms(), _stale(), _alone(pulled), _rewarded()),
        printed=(),
        limits=(
            "Expected gradients: how noisy each is, and so which of the right ones to take, is "
            "another question (results/gradients.json).",
            "Plain gradient steps in logits. Another optimizer takes another path; a gradient that "
            "is zero or points elsewhere stays so.",
            "A policy with shared parameters cannot move each prefix alone, as this table can.",
            "What is said of so many starts is said of one reference over four tokens and of a "
            "grid, not proved of all.",
        ),
        seed=seed,
    )  # fmt: skip


def _forms() -> Part:
    points, turned = [], []
    for part in STEPS:
        for name, term in TERMS.items():
            one = arrow(term, at(part))
            points.append({"at": part, "series": name, "value": one.error})
            turned.append({"at": part, "series": name, "along": one.along, "across": one.across})
    figure = dial(
        "Near the reference k2 or k3 in the loss is nearly right, k3 in the reward nearly nothing.",
        points, arrows(turned, (-0.1, 1.2)), "part of the way from the policy to the reference",
        "length of the error / length of the true one", named="distance", start=FAR,
        note="An arrow's length and angle are those in all 39 dimensions; an arrow that ends in "
        "the circle is right. k1 in the loss is the dot at the origin. On policy, forms of tokens, "
        "added up, as trainers write them.",
    )  # fmt: skip
    rows = [
        (name, of, *_told(term, NEAR), *_told(term, FAR))
        for name, of, term in (
            ("k1 in the loss", "nothing", Term("k1")),
            ("k2 in the loss", "KL(p‖q), prefixes fixed", Term("k2")),
            ("k2 of the sequence, in the loss", "KL(p‖q)", Term("k2", of="sequence")),
            ("k3 in the loss", "KL(q‖p), prefixes fixed", Term("k3")),
            ("k3 of the sequence, in the loss", "KL(q‖p)", Term("k3", of="sequence")),
            ("k1 in the reward", "KL(p‖q)", Term("k1", "reward")),
            ("k2 in the reward", "no KL", Term("k2", "reward")),
            ("k3 in the reward", "KL(p‖q) less k3 in the loss", Term("k3", "reward")),
        )
    ]
    near, far = kl(at(NEAR)), kl(at(FAR))
    heads = ("term", "gradient of", *(f"{head}, near" for head in HEADS), *HEADS)
    left = arrow(TERMS["k3 in the reward"], at(NEAR)).length
    return Part(
        "What each form descends",
        "A term in the loss is differentiated at fixed samples, and a term in the reward moves "
        "samples at fixed values: of an unbiased form both together are the true gradient. k1 has "
        "nothing of it in the loss and all of it in the reward. k3 has nearly all in the loss "
        f"while the policies are close, and so only {left:.1%} in the reward at a KL of "
        f"{near:.4f} nats, though the value that is paid is right. “Prefixes fixed”: a token "
        "answers for its own KL and not for that of the tokens that follow it.",
        (figure, Table(f"Near: KL {near:.4f} nats. The last three columns: KL {far:.4f} nats. "
                       "Length and error over the length of the true one.", heads, rows)),
    )  # fmt: skip


def _told(term: Term, part: float, sampler: str = "current") -> tuple[float | None, float, float]:
    one = arrow(term, at(part), sampler)
    return one.cosine, one.length, one.error


def _stale() -> Part:
    drawn, rows = [], []
    panel = {
        "no weight": {},
        "weight held constant": {"weight": "sequence"},
        "weight in the graph": {"weight": "sequence", "attached": True},
    }
    for name, weighed in panel.items():
        for form in ("k1", "k3", "k2"):
            one = arrow(Term(form, of="sequence", **weighed), WORLD, "old")
            told = {"cosine": one.cosine, "length": one.length, "error": one.error}
            drawn.append({"name": name, "series": form, "along": one.along, "across": one.across,
                          **told})  # fmt: skip
            near = _told(Term(form, of="sequence", **weighed), NEAR, "old")
            rows.append((f"{form}, {name}", *near, *told.values()))
    for form in ("k1", "k3"):
        term = Term(form, weight="token", attached=True)
        words = f"{form} of tokens, each token's weight in the graph"
        rows.append((words, *_told(term, NEAR, "old"), *_told(term, FAR, "old")))
    figure = panels(
        "With the weight held constant k2 alone is right; with it in the graph, k1 and k3.",
        drawn, (-0.4, 2.4),
        note="Forms and weights of the whole sequence, in the loss. Right is what ends in the "
        "circle; a form on top of another is in the table.",
    )  # fmt: skip
    back = arrow(Term("k1"), WORLD, "old").cosine or 0.0
    close = arrow(Term("k1"), at(NEAR), "old").length
    return Part(
        "When an older policy sampled",
        f"The sampler is KL(old‖p) = {kl(WORLD, 'old', 'current'):.4f} nats away. Without a weight "
        f"all three are wrong, and k1 points backwards (cosine {back:.2f}): it raises KL(old‖p), "
        f"and the reference is not in it, so that near the reference it is {close:.1f} times as "
        "long as the true gradient. The weight p/old puts them right or not, depending on "
        "whether it is held constant or differentiated (“in the graph”). A weight of each token "
        "alone leaves the prefixes to the sampler.",
        (
            figure,
            Table(
                f"Of a stale sampler's sequences. Near: KL(p‖q) {kl(at(NEAR)):.4f} nats; the "
                f"picture and the last three columns: {kl(WORLD):.4f} nats.",
                ("term in the loss", *(f"{head}, near" for head in HEADS), *HEADS),
                rows,
            ),
        ),
    )


def _bars(name: str, path: np.ndarray) -> list[dict]:
    return [
        {"at": step, "name": f"{place + 1}", "series": name, "value": float(value)}
        for step, p in enumerate(path)
        for place, value in enumerate(p)
    ]


def _walk(title: str, paths: dict[str, np.ndarray], start: int, note: str) -> Figure:
    points = [
        {"at": step, "series": name, "value": descent.kl(p, descent.Q)}
        for name, path in paths.items()
        for step, p in enumerate(path)
    ]
    bars = _bars("reference", np.tile(descent.Q, (SHOWN + 1, 1)))
    for name, path in paths.items():
        bars += _bars(name, path)
    return dial(
        title, points, groups(bars, "probability", COLORS), "step", "KL(p‖q), nats",
        named="step", start=start, note=note,
    )  # fmt: skip


def _alone(pulled: dict[str, tuple[int, int]]) -> Part:
    paths = {name: descent.alone(term, SHOWN) for name, term in TERMS.items()}
    figure = _walk(
        "Left to its KL term, k3 in the reward digs the hole that it should fill.",
        paths, 20, "Bars: the four tokens, at the step that is chosen. Left alone with its term, "
        "each policy should become the reference.",
    )  # fmt: skip
    steps = (0, 5, 10, 20, 100)
    rows = [
        (f"{name}: {way}", *(descent.kl(*pair(path[step])) for step in steps))
        for name, path in paths.items()
        for way, pair in (
            ("KL(p‖q)", lambda p: (p, descent.Q)),
            ("KL(q‖p)", lambda p: (descent.Q, p)),
        )
    ]
    starts = len(descent.grid())
    far = [(name, *pulled[name]) for name in TERMS]
    nearer, _ = pulled["k3 in the reward"]
    return Part(
        "Where the term alone leads",
        "One step of four tokens, where k2 in the loss and k1 in the reward are the same. From "
        "afar, with a hole at token 1. k1 in the loss stands still. k3 in the loss arrives, by the "
        "other direction. k3 in the reward does not: k3 is large wherever p and q differ, on "
        "either side, so that a token that is too rare is fined for it and becomes rarer still. "
        "What it descends is KL(p‖q) − KL(q‖p), which has no lower end. From a grid of starts it "
        "brings "
        f"{nearer} of {starts} nearer, and none to the reference.",
        (
            figure,
            Table("nats after so many steps.", ("descends", *map(str, steps)), rows),
            Table(f"Of {starts} starts in twentieths, after {LONG} steps.",
                  ("descends", "nearer than at first", "within 0.001 nats"), far),
        ),
    )  # fmt: skip


def _rewarded() -> Part:
    paths = {name: descent.rewarded(term, SHOWN) for name, term in TERMS.items()}
    best, other = descent.best_by_kl(), descent.best_by_other_kl()
    figure = _walk(
        "With a reward, k3 in the reward is no leash: the policy goes as without one, and farther.",
        paths, SHOWN, "Bars: the four tokens, at the step that is chosen. All start as the "
        "reference; token 3 is worth 0.5, token 4 is worth 1, and the KL term counts "
        f"{descent.BETA:g}-fold (β).",
    )  # fmt: skip
    ends = [(f"{name}, {LONG} steps", descent.rewarded(term, LONG)[-1])
            for name, term in TERMS.items()]  # fmt: skip
    ends += [("best by E[reward] − β KL(p‖q)", best), ("best by E[reward] − β KL(q‖p)", other)]
    rows = [
        (name, float(p @ descent.REWARD), descent.kl(p, descent.Q), descent.kl(descent.Q, p),
         *map(float, p))
        for name, p in ends
    ]  # fmt: skip
    heads = ("policy", "reward", "KL(p‖q)", "KL(q‖p)", *(f"token {i}" for i in range(1, 5)))
    return Part(
        "And with a reward",
        "What most runs are: the policy starts as its reference and a reward pulls. k2 in the loss "
        "goes to q exp(reward/β), what KL-regularized optimization promises. k3 in the loss goes "
        f"to β q/(λ − reward), with λ such that it sums to 1: token 3 has {other[2]:.2f} there "
        f"and {best[2]:.2f} at the promised policy. Without a pull from the KL (k1 in the loss, k3 "
        "in the reward) all mass goes to one token; k3 in the reward slows that at first and "
        "then drives it.",
        (figure, Table("Where they end, and both optima in closed form.", heads, rows)),
    )
