"""What is written of the codes that accuse nobody: what a number rests on, and what was lost."""

from __future__ import annotations

from kullback.diagnosis import (
    clamped,
    endings,
    engines,
    first_step,
    log_events,
    precision,
    rejected,
    rescored,
    reshaped,
    selection,
)
from kullback.diagnosis.drifting import LARGE, MANY
from kullback.diagnosis.limits import MANY_TOKENS, OWNED
from kullback.diagnosis.reading_faults import TOLERATED
from kullback.diagnosis.sampler_tests import ALPHA, FLOAT32_FLOOR
from kullback.estimation import contributors, repeat_state
from kullback.estimation.conditions import FEW_CLUSTERS, FEW_LEFT
from kullback.explaining.codes import Lesson

_LIMITS, _READING = "tests/diagnosis/test_limits.py", "tests/diagnosis/test_reading_faults.py"

TELLING = {
    "rows-left-out": Lesson(
        means="Some rows could not be read right (lists of different lengths, no JSON, wrong "
        "kinds) and were left out, each by name. The numbers are of the rest.",
        test=f"Damaged rows are counted; above {TOLERATED:.0%} of all it is a warning, and no "
        "number is trusted; below, a note.",
        harmless="If the damage has nothing to do with what was sampled (a file cut at its end), "
        "the rest is a fair sample, only smaller.",
        held_by=_READING,
    ),
    "rows-repeated": Lesson(
        means="Rows equal others token by token and log-prob by log-prob, though no sampler draws "
        "them twice. A copy is no further evidence.",
        test=f"Rows that cost {repeat_state.LEAST:g} nats or more are compared by their length, "
        f"their first {repeat_state.COMPARED} tokens and the log-probs of these.",
        harmless="The mean hardly moves if copies go with nothing. Where prompts are the clusters, "
        "copies of a prompt's rows do not narrow the interval either. A replay buffer repeats rows "
        "on purpose.",
        held_by=_LIMITS,
    ),
    "column-not-read": Lesson(
        means="A column of the dump looks like log-probs or a mask by its name, and was not read, "
        "since its name says no more or its values do not fit.",
        test="Unread columns are told if log-prob, logp, lp or mask is in their name.",
        harmless="If the column is for something else (a mask of the loss that is the same, "
        "log-probs of a model that is not asked for), nothing is lost.",
        held_by=_READING,
    ),
    "weight-missing": Lesson(
        means="You ask for a KL as if p had sampled, and the dump has the log-probs of the engine "
        "that did. With the importance weight w = p/s the answer is another one; the plain mean "
        "can even be negative.",
        test="The plain mean of log p − log q is off the mean of w (log p − log q) by more than "
        "the standard error of the latter.",
        harmless="If the difference is below the error, nothing is told: engine and trainer are "
        "close. The first update after sampling is often so.",
        held_by=_LIMITS,
    ),
    "weights-degenerate": Lesson(
        means="The tokens were sampled by s and are weighed by w = p/s to stand for p. Here p is "
        "so far from s that a few large weights decide, and the rest hardly counts.",
        test="Weights left = (Σ w)² / (n Σ w²), the share of n tokens that is worth as much "
        f"without weights. Told below {FEW_LEFT:.0%}; of p's own prefixes also where few sequences "
        "carry the sum, or the weights of whole ones lack too much of 1: kullback explain "
        "prefixes-unseen.",
        harmless="If one can live with the KL of s's own tokens, ask for that: it needs no "
        "weight. More tokens help little here: the weights of what s never samples do not come.",
        held_by=_LIMITS,
    ),
    "mean-owned-by-few": Lesson(
        means="Ten tokens make most of a sum over thousands. The mean says little of a usual "
        "token, and another batch would have other such tokens.",
        test=f"The {contributors.KEPT} largest |k1| or k3 own {OWNED:.0%} of their sum or more, of "
        f"{MANY_TOKENS} tokens at least.",
        harmless="It is the rule for close or peaked policies, whose KL sits at few tokens, and "
        "for k3 with holes (tokens that p dropped and q did not). It is a note: look at the tokens "
        "before anything else.",
        held_by=_LIMITS,
    ),
    "selected-on-outcome": Lesson(
        means="Rows are missing where others are whole, or what is masked has the large "
        "log-ratios. If they were left out for what was sampled, no estimate from the rest is that "
        "of the policies. Estimates are marked so at sequence_mean, if lengths differ, and in "
        "splits (--by) by an outcome; only the exact KL answers there.",
        test=f"{selection.FEWEST} prompts and {selection.SHARE:.0%} of all have no multiple of the "
        f"rows that {selection.USUAL:.0%} of them have; or no prompt has equal rewards, of two "
        f"values (chance below {ALPHA:.0%}); or {rejected.NEARLY_ALL:.0%} of what is masked has a "
        "log-ratio outside the range of all that is kept.",
        harmless="A worker died, or a file was cut at its end. A cut mask may be right for the "
        "loss; for the KL take that of the lengths and roles.",
        held_by="tests/diagnosis/test_selection.py",
    ),
    "stale": Lesson(
        means="The log itself says that older weights sampled some tokens, or several versions one "
        "sequence. Then rollout is not old, and the KL between them is drift and engine together.",
        test="step − version above 0 at any token, or two versions inside one sequence.",
        harmless="Asynchronous training does this on purpose, and with weights from the log-probs "
        "that the engine wrote nothing is wrong. One age everywhere may be a way of counting.",
        held_by="tests/diagnosis/test_staleness.py",
    ),
    "precision-floor": Lesson(
        means="The log-probs stand on the grid of a narrow format or of a few decimals, or differ "
        "by no more than two kernels. Rounding gives k1 noise of mean 0; k2 and k3, squares at "
        "heart, get half its variance. A KL of that size is the format's, not drift's.",
        test="All values stand on one grid (bfloat16, float16, 1 to 4 decimals): then the floor of "
        f"k3 is step²/24 from each rounded side, a warning from {precision.OWNS:.0%} of k3. Or "
        f"log-probs differ by {FLOAT32_FLOOR:g} nats (root mean square) or less. "
        f"Of decimals {precision.FEWEST} tokens are needed. Or two columns are equal throughout, "
        "or a logged KL is 0 at every step.",
        harmless="Where k3 is many times the floor, the grid does no harm to it. A k3 below 0 is "
        "rounding too: exp(x) − 1 − x in float32 loses all of a small x.",
        held_by="tests/diagnosis/test_precision.py",
    ),
    "stochastic-forward": Lesson(
        means="Two evaluations of the same tokens by the same role differ: dropout was left on, or "
        "kernels depend on the batch. That noise looks like a small KL, and k1 = k2 = k3 holds for "
        "it as for any small drift: only tokens scored twice tell the two apart.",
        test="Sequences of one prompt (and step) that begin alike have one log-prob at each shared "
        f"token. {rescored.FEWEST} such tokens, {rescored.MANY:.0%} of them off by more than "
        "rounding, hardly correlated between roles. Or rollout and old differ by "
        f"{engines.TELLS:.0%} of the k3 of an update, or by more than {engines.LARGEST:g} nats "
        "(root mean square), or in a direction: the mean of old/rollout, or the slope of their "
        "log-probs, is not 1. Then it is no noise.",
        harmless="An engine that logs exactly what it drew from may differ between two batches and "
        "be right each time. If weights changed between the rows, log step.",
        held_by="tests/diagnosis/test_rescored.py",
    ),
    "reference-not-start": Lesson(
        means="At the first step no update has happened, so the policy should be its reference. "
        "Here it is not: the reference was loaded from elsewhere, and the KL starts above 0.",
        test="k3 of old (else rollout, else current) against the reference at step 0, or 1 if "
        f"there is no 0, above {first_step.MOST['old']:g} ({first_step.MOST['rollout']:g} for "
        f"rollout) and above {first_step.ABOVE:g} times what engine and trainer differ by, and "
        "what rounding and two evaluations make. "
        f"In a step log: a first value, at step 0 or 1, of {log_events.FROM_START:g} nats a token "
        f"({log_events.PER_SEQUENCE:g} a sequence) or more, and above three times its noise.",
        harmless="That a step is the first is a convention of its label. A run that was resumed, "
        "or whose reference is another model on purpose, shows this too.",
        held_by="tests/diagnosis/test_first_step.py",
    ),
    "clamp-active": Lesson(
        means="Log-ratios were clamped, or the log-probs of a role cut off from below, before they "
        "were logged; or (a note) a clamp that trainers use by default would change the mean of "
        "these tokens. What a clamp cuts off are the tokens that one policy has given up, and they "
        "lose their gradient as well.",
        test=f"{clamped.FEWEST_TIES} log-ratios or more at the smallest or the largest value, "
        f"{clamped.PILED:g} times as many as in the bins beside it; at both ends alike, or at a "
        f"limit that is a round number. Or {reshaped.FEWEST_TIES} log-probs at a smallest value "
        f"that is a multiple of {reshaped.STEP:g} or the log of a power of ten, which another role "
        "goes below. A note, where a default clamp changes the mean of its formula by more than "
        "its standard error.",
        harmless="If your trainer has another clamp, or none, the note is only a comparison.",
        held_by="tests/diagnosis/test_clamps.py",
    ),
    "end-not-counted": Lesson(
        means="The token with which a policy ends a sequence is one of its choices. Here it is "
        "outside the mask, in some sequences or in all.",
        test=f"An id that ends sequences, and stands before in {endings.WITHIN:.0%} of them at "
        "most, stands right behind "
        f"the last counted token of {endings.SEVERAL:.0%} of the others; or no id ends them, and "
        "one stands behind; or many end sooner than the limit without it.",
        harmless="A stop string, a limit of time or a tool call ends sequences without such a "
        "token. If the padding has the same id, it looks alike.",
        held_by="tests/diagnosis/test_endings.py",
    ),
    "too-few-clusters": Lesson(
        means="Sequences of one prompt are alike, so what counts for the error are prompts (or, "
        "where prompts are not logged, sequences). With few of them Student's interval is too "
        "narrow.",
        test="(Σ n)² / Σ n², with n the tokens of a prompt, is the number of prompts of equal size "
        f"that are worth as much. Told below {FEW_CLUSTERS}.",
        harmless="If you only ask about these very prompts, the interval for new ones is not what "
        "you need; and where prompts hardly differ, it holds nearly as said.",
        held_by=_LIMITS,
    ),
    "drift-behind-small-steps": Lesson(
        means="No step of the policy was large, and it is far from the reference. KL is about the "
        "square of a distance and does not add up: n steps of KL δ in one direction are n² δ away, "
        "in random directions n δ. A limit on the step bounds neither.",
        test=f"The low end of the KL from the reference after the last step, less its high end "
        f"after the first, is above {MANY:g} times the largest upper end of a step. A warning "
        f"above {LARGE:g} nats per token, else a note.",
        harmless="To leave the reference is what training is for. It matters if a limit on the "
        "step (a target KL, a trust region) was to keep the policy near it: then it does not.",
        held_by="tests/diagnosis/test_drifting.py",
    ),
}
