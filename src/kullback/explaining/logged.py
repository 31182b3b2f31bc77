"""What is written of the codes of step logs: thresholds are those of the code that tells them."""

from __future__ import annotations

from kullback.diagnosis import (
    log_coefficients,
    log_distance,
    log_events,
    log_labels,
    log_pairs,
    log_profile,
    scaled,
)
from kullback.explaining.codes import Lesson

_EVENTS = "tests/diagnosis/test_log_events.py"

LOGGED = {
    "sign-impossible": Lesson(
        means="Each term of k2, k3, of an absolute value or of a KL over the vocabulary is 0 or "
        "more, and so is every mean of them. This series goes below 0: it is not what its name "
        "says, or not its mean.",
        test=f"A value below −{log_labels.ROUNDED:.2g} (what float32 makes of exp(x) − 1 − x near "
        "0) in a series whose name says k2, k3, low_var or abs, or whose every entry in the "
        "dictionary for the named framework (--framework) has such terms.",
        harmless=f"Down to −{log_labels.COARSE:.2g} it can be bfloat16, and the KL is about 0. Log "
        "k1 and nobody minds the sign of a step.",
    ),
    "unit-or-scale": Lesson(
        means="Two series of one run are said to be the same KL, and one is a fixed multiple of "
        "the other: counted twice, divided by the micro-batches twice, per sequence, in bits, or "
        "with the sign turned. In a dump one role's log-probs are a "
        "multiple of another's: bits (1.4427), log10 (0.4343), or divided behind the log-softmax.",
        test=f"The ratio is constant over {log_pairs.FEWEST} steps or more (its logarithm spreads "
        f"by less than {log_pairs.STUCK:g}) and a whole number up to {log_pairs.LARGEST} or one "
        f"over it to {log_pairs.ROUND:.0%}, log 2, or −1; or it is constant after division by the "
        "mean length of the responses. Of log-probs: a line through 0 explains "
        f"{scaled.EXPLAINED:.0%} of the squared differences ({scaled.LIKELIER:.0%} if q is the "
        f"likelier), and q/p or k1 has a mean that two policies cannot have.",
        harmless="If the names say that the units differ (sum, seq, per_token, coef, penalty), or "
        "the dictionary does, nothing is told. A ratio that is the logged coefficient is a "
        "penalty beside its KL.",
    ),
    "holes-suspected": Lesson(
        means="k1 and k3 of the same tokens are two estimates of one KL, and over the run their "
        "sums differ by more than noise. Their difference is the missing mass: of q where p never "
        "samples, or of a sampler that is not p.",
        test=f"The sums over the steps differ by {log_pairs.ALIKE:.0%} or more, and the mean "
        f"difference by {log_pairs.ERRORS:g} standard errors.",
        harmless="With holes on either side an honest sampler shows it for ever. Trust k1 then: "
        "k3 does not see what was not sampled.",
        held_by="tests/diagnosis/test_log_pairs.py",
    ),
    "not-finite": Lesson(
        means="At some steps the logged KL is NaN or infinite. A single token does that: a "
        "log-ratio that overflows in k3, a padded token whose term was computed and then "
        "multiplied by 0, a token that one side forbids.",
        test="Values that are no finite number are counted; one suffices.",
        harmless="If it is infinite because a token really is impossible for q, the question is "
        "at fault and the number right.",
        held_by=_EVENTS,
    ),
    "controller-saturated": Lesson(
        means="The coefficient of the penalty grows or shrinks at nearly every step: the KL stays "
        "on one side of its target whatever the penalty does.",
        test=f"The last value is {log_coefficients.FOLD:g} times the first, or that part of it, "
        f"and {log_coefficients.ONE_WAY:.0%} of the moves of the last half of the run go that way.",
        harmless="A coefficient that starts far from where it belongs goes one way at first. It "
        "is told when it still does at the end.",
        held_by="tests/diagnosis/test_log_coefficients.py",
    ),
    "penalty-not-used": Lesson(
        means="A KL is logged beside a coefficient that is 0 at every step: nothing is trained on "
        "it, and the policy is free.",
        test="Every value of a series that is called a coefficient is 0.",
        harmless="If there shall be no leash, this is as it should be. It is a note.",
        held_by="tests/diagnosis/test_log_coefficients.py",
    ),
    "noise-above-signal": Lesson(
        means="From one step to the next the logged KL moves by more than it drifts. A stop rule "
        "or a controller that looks at single steps decides by chance.",
        test="A stop rule reads a series of its name, or a coefficient moves that may follow it. "
        f"More than {log_events.WRONG:.0%} of the steps are above twice, or below half of "
        f"the running median of {log_profile.NEIGHBORS} steps. The noise is 1.48 median absolute "
        "first differences, over √2.",
        harmless="If nobody decides by single steps, nothing is lost: the mean over steps holds. "
        "k1 of a small batch is always so, and is told only where something may act on it.",
        held_by=_EVENTS,
    ),
    "level-changed": Lesson(
        means="Between two steps the level of the KL jumps and stays. Gradient steps drift; a jump "
        "is a change of something else: a restart, a reference, a batch size, a version.",
        test=f"One difference is {log_profile.CHANGE:g} times the usual, and the medians of "
        f"{log_profile.SIDE} steps on either side keep {log_profile.HELD:.0%} of it, differ by a "
        f"factor of {log_profile.GROWN:g} and are held on either side.",
        harmless="A new learning rate or new data can move a policy this fast. Look at the step "
        "in the other series.",
        held_by=_EVENTS,
    ),
    "far-apart": Lesson(
        means="The logged KL is so large that the two policies have little in common: samples of "
        "the one say little of the other. An update with too large a learning rate does it, a "
        "policy that leaves its reference for good, or an engine with other weights.",
        test=f"More than {log_distance.FAR:g} nat per token (a sum over a sequence is divided by "
        f"the mean length) at {log_distance.SHARE:.0%} of the steps, and at "
        f"{log_distance.FEWEST} of them at least.",
        harmless="If the number is a sum, or in another unit, that its name does not say. A KL to "
        "a teacher may start this large, and is not told.",
        held_by="tests/diagnosis/test_log_distance.py",
    ),
}
