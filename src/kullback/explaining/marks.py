"""The words with which an estimate is marked, and because of which it is read with care."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kullback.columns import pack
from kullback.diagnosis.diagnose import diagnose
from kullback.diagnosis.sampler import sampler_check
from kullback.diagnosis.sampler_tests import FEWEST_CLUSTERS, FEWEST_PREFIXES
from kullback.estimation.conditions import FEW_CARRY, FEW_CLUSTERS, LEAST_LACK, SURE, path_weight
from kullback.estimation.estimate import from_state
from kullback.estimation.question_state import QuestionState
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.estimation.summary import summarize
from kullback.explaining.estimators import ESTIMATORS
from kullback.explaining.examples import PROMPTS, SEED, example
from kullback.explaining.explanation import Explanation, Section
from kullback.formulas.divergences import divergence
from kullback.question import Question
from kullback.worlds import CLEAN_WORLDS, FAULTS, Mixture

Shown = tuple[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Mark:
    """What is written of a mark.

    Args:
        caption: It in one line.
        means: What it says, in plain words.
        set_when: When it stands there.
        harmless: When it is wrong to worry.
        do: What to do.
        shown: The example, and its numbers; computed when called.
    """

    caption: str
    means: str
    set_when: str
    harmless: str
    do: str
    shown: Callable[[], Shown]


def explain_mark(name: str) -> Explanation:
    """The explanation of a mark.

    Example:
        >>> it = explain_mark("biased")
        >>> it.numbers["mean"] > it.numbers["kl"]
        True
    """
    mark = MARKS[name]
    said, numbers = mark.shown()
    sections = (
        Section("Means", mark.means),
        Section("Set when", mark.set_when),
        Section("Example", said),
        Section("No worry", mark.harmless),
        Section("Do", mark.do),
    )
    return Explanation(name, "mark", mark.caption, sections, numbers)


def _biased() -> Shown:
    numbers = ESTIMATORS["k2"].worked()[1]
    return (
        f"In the small world of kullback explain k2 the mean of k2 is {numbers['mean']:.4f}, and "
        f"the KL {numbers['kl']:.4f}.",
        {"mean": numbers["mean"], "kl": numbers["kl"]},
    )


def _lower_bound() -> Shown:
    numbers = ESTIMATORS["bound"].worked()[1]
    return (
        f"In the small world of kullback explain bound it is {numbers['mean']:.4f}, and the KL "
        f"{numbers['kl']:.4f}.",
        numbers,
    )


def _faulty(name: str) -> tuple[str, Mixture]:
    world = CLEAN_WORLDS["smooth"](PROMPTS)
    assert isinstance(world, Mixture)
    return (
        f"Simulated (world smooth, {PROMPTS} prompts, seed {SEED}): {FAULTS[name].caption}.",
        world,
    )


def _not_verifiable() -> Shown:
    told, world = _faulty("temperature")
    logged = FAULTS["temperature"].inject(world, np.random.default_rng(SEED))
    logged = replace(logged, top_k={})  # heads would do, too
    verdicts, accused = [], []
    for columns in (replace(logged, entropy={}), logged):
        summary = summarize([columns])
        (question,) = summary.questions
        verdicts.append(sampler_check(summary, question).verdict)
        accused.append(float(diagnose(summary).accused))
    return (
        f"{told} Without the entropy column the sampler is {verdicts[0]}; with it, {verdicts[1]}.",
        {"accused_without": accused[0], "accused_with": accused[1]},
    )


def _as_if() -> Shown:
    shown = example("weight-missing")
    finding = shown.finding("weight-missing")
    return f"{shown.told}\n» {finding.claim}", finding.numbers


WALKS, STEPS, FAR, STAYS = 400, 60, 5, 0.95


def _prefixes_unseen() -> Shown:
    """Walks of a policy that seldom goes where the other one stays."""
    rng = np.random.default_rng(SEED)
    on, there, roles = np.zeros(WALKS, dtype=np.int64), np.zeros(FAR + 1), {"p": [], "s": []}
    there[0], visits = 1.0, 0.0  # where p is, and how often it stood far out, exactly
    for _ in range(STEPS):
        goes, far = rng.random(WALKS) < 0.5, on == FAR
        roles["s"].append(np.full(WALKS, np.log(0.5)))
        roles["p"].append(np.log(np.where(far, np.where(goes, STAYS, 1 - STAYS), 0.5)))
        on = np.where(goes, np.minimum(on + 1, FAR), 0)
        visits += there[FAR]
        chance = np.where(np.arange(FAR + 1) == FAR, STAYS, 0.5) * there
        there = np.concatenate([[1 - chance.sum()], chance[:-1]])
        there[FAR] += chance[FAR]
    kl = float(visits * divergence([STAYS, 1 - STAYS], [0.5, 0.5]))
    question = Question("p", "s", "s", "p", "sequence_sum")
    columns = pack({role: np.stack(values, axis=1) for role, values in roles.items()})
    state = QuestionState.of(columns, question)
    found, whole = from_state(state, "k1"), path_weight(state)
    numbers = {"low": found.low, "high": found.high, "kl": kl, "weight": whole.mean}
    return (
        f"Simulated ({WALKS} walks of {STEPS} steps, seed {SEED}): s goes on or back to the start "
        f"with equal chance, and so does p, which after {FAR} steps on goes on with {STAYS:g}. "
        f"From the walks of s the KL(p‖s) at p's prefixes comes out at {found.mean:.3g} nats per "
        f"walk, {found.low:.3g} to {found.high:.3g}, where {kl:.3g} is right; the weights of whole "
        f"walks have mean {whole.mean:.2f} ± {whole.standard_error:.2f}.",
        numbers,
    )


MARKS = {
    "sampler-not-verifiable": Mark(
        caption="nothing that is logged can show a temperature or top-p",
        means="The dump has nothing that would tell whether the tokens were drawn from the "
        "log-probs that stand there. The sampler passed what could be looked at, and that is not "
        "much.",
        set_when="No entropy test could be made: it needs the sampler's entropy at "
        f"{FEWEST_PREFIXES} prefixes with {ENTROPY_FLOOR:g} nats or more, of {FEWEST_CLUSTERS} "
        "effective clusters, none of them missing. Heads alone do not vouch.",
        harmless="If you know that the engine drew at temperature 1, without top-p and top-k, or "
        "that its log-probs are those after them, the number stands.",
        do="Log entropy.ROLE of the sampler, one number per token.",
        shown=_not_verifiable,
    ),
    "as-if-sampled-by": Mark(
        caption="the question takes a role as the sampler that did not sample",
        means="The tokens were sampled by the engine, and the question is asked as if one of its "
        "own policies had. The number answers that question only if the two are the same.",
        set_when="The sampler of the question is not that of the dump. If the weight changes the "
        "number by more than its error, it is a finding: weight-missing.",
        harmless="If engine and trainer differ by rounding only, as at the first step.",
        do="Ask with the sampler: KL(P||Q) ~ SAMPLER.",
        shown=_as_if,
    ),
    "biased": Mark(
        caption="the mean is that of another number, near the KL for close policies",
        means="k2 is not the KL on average, but half the mean square of log q/p. What begins with "
        "biased_ leaves out the tokens that two lists do not hold, and is no KL of these policies.",
        set_when="The method is k2, biased_head or biased_head_renormalized.",
        harmless="k2, if p and q are close: the two agree up to the third order of log q/p.",
        do="Use k1 or k3, whose means are the KL: kullback explain k1. From lists, use partial.",
        shown=_biased,
    ),
    "lower-bound": Mark(
        caption="the number is below the KL, by what the lists do not hold",
        means="The KL is this or more. It is no estimate: more data do not bring it nearer, longer "
        "lists do. The low end of its interval is one of the KL, the high end is none.",
        set_when="The method is bound.",
        harmless="Never as a bound.",
        do="Use partial for the KL itself; the bound says that it is not smaller.",
        shown=_lower_bound,
    ),
    "prefixes-unseen": Mark(
        caption="s hardly went where p goes, and no weight shows what p does there",
        means="The question is of p's own prefixes, and another policy drew them. Few of its "
        "sequences carry the sum, or weights are missing that would make up p. The number is then "
        "mostly too low, and its interval does not know.",
        set_when="The prefixes are p's and another policy sampled. The weights of whole sequences, "
        f"whose mean is 1 if it did, have a mean below 1 by {LEAST_LACK:g} or more, and their "
        f"interval at {SURE:.1%} does not reach 1; or fewer than {FEW_CLUSTERS} clusters, and less "
        f"than {FEW_CARRY:.0%} of all, carry the sum: (Σ |x|)² / Σ x².",
        harmless="If the KL at the sampler's prefixes will do: leave out prefixes P.",
        do="Sample from p. More tokens of s help only if some of them go there.",
        shown=_prefixes_unseen,
    ),
}
