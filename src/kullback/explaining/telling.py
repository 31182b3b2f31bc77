"""What is written of the codes that accuse nobody: what a number rests on, and what was lost."""

from __future__ import annotations

from kullback.diagnosis import log_events
from kullback.diagnosis.limits import MANY_TOKENS, OWNED
from kullback.diagnosis.reading_faults import TOLERATED
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
        f"without weights. Told below {FEW_LEFT:.0%}.",
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
    "reference-not-start": Lesson(
        means="At the first step no update has happened, so the policy should be its reference. "
        "Here it is not: the reference was loaded from elsewhere, and the KL starts above 0.",
        test=f"The first value of a logged KL to the reference, at step 0 or 1, is above "
        f"{log_events.FROM_START:g} nats per token ({log_events.PER_SEQUENCE:g} per sequence) and "
        "three times its noise.",
        harmless="That a step is the first is a convention of its label. A run that was resumed, "
        "or whose reference is another model on purpose, shows this too.",
        held_by="tests/diagnosis/test_log_events.py",
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
}
