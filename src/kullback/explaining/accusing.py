"""What is written of the codes that accuse: thresholds are those of the code that accuses."""

from __future__ import annotations

from kullback.columns import SENTINEL
from kullback.diagnosis import (
    boundaries,
    column_faults,
    doubt,
    environment,
    openings,
    padding,
    processed,
    reshaped,
    unscored,
)
from kullback.diagnosis.alignment import (
    FEWEST_EACH,
    FEWEST_INNER,
    SQUARES_LEFT,
    UNRELATED,
    VARIANCE_LEFT,
)
from kullback.diagnosis.sampler_tests import (
    ALPHA,
    FEWEST_APART,
    FEWEST_CLUSTERS,
    FEWEST_MISSES,
    FEWEST_PREFIXES,
    FITTED,
    FLOAT32_FLOOR,
    NEARLY_ALL,
    PROMPT,
)
from kullback.diagnosis.temperatures import EXPLAINED
from kullback.estimation import distribution_state, recall_state, related_rows, stretch_state
from kullback.estimation.cut_state import PLACES
from kullback.estimation.sampler_state import ENTROPY_FLOOR
from kullback.estimation.tempered_state import EXPONENTS
from kullback.estimation.terms import STAKE
from kullback.explaining.codes import Lesson

ACCUSING = {
    "negative-beyond-chance": Lesson(
        means="A KL is never negative, but its estimate from sampled tokens can be, a little. This "
        "one is so negative over so many tokens that luck does not explain it: p, said to have "
        "sampled them, did not, or q was fitted to them.",
        test=f"P(Σ k1 ≤ −c) ≤ e^−c if p sampled and q was fixed before: the product of q/p over "
        f"all tokens has mean 1 at most, whatever depends on what. Told if e^−c is below "
        f"{ALPHA:.0%}, shared among all tests of a report, after {FLOAT32_FLOOR:g} nats per token "
        "for rounding. Two numbers of a log suffice: kullback explain kl --value V --tokens N.",
        harmless="Noise is no excuse here. But the policy may be fine and the number wrong: "
        "log-probs recomputed from the sampler's own weights do this too, and so does a q that was "
        "trained on these very tokens.",
    ),
    "sampler-mismatch": Lesson(
        means="The tokens do not look drawn from the log-probs logged for them: most often these "
        "were taken before temperature or top-p.",
        test=f"entropy: −log p − H has mean 0 over prefixes with H ≥ {ENTROPY_FLOOR:g} "
        f"({FEWEST_PREFIXES} at least, of {FEWEST_CLUSTERS} effective prompts).\n"
        "heads: hits in the logged head less its mass have mean 0 (where "
        f"{FEWEST_MISSES:g} misses are expected).\n"
        "openings: what N pairs of completions share at their start costs, in law, at most N "
        "exponential variables.\n"
        f"bet: the product of 1 + {STAKE:g} (q/p − 1) has mean 1 at most; so has that of bets that "
        "words are said again (recall).\n"
        f"All tests of a report share {ALPHA:.0%}.",
        harmless="One clean report of a hundred has it at most: if the probability is not tiny, "
        "look at a second batch. If completions open alike, one seed for several is the usual "
        "cause, and the log-probs are right.",
    ),
    "tokens-do-not-match-text": Lesson(
        means="The token ids of a sequence, turned into bytes, are not its text: an id was lost, "
        "added or changed, or the text was encoded anew. All log-probs behind that place were "
        "computed for another prefix than the sampled one.",
        test="Bytes of whole sequences are compared, since one token may be part of a character. "
        "What honest logs do is allowed: a stop string or a special id that is not shown, a "
        "character cut short, white space, Unicode forms.",
        harmless="If your text was cleaned after sampling (stripped tags, a parsed answer), the "
        "ids may be right and the text wrong; compare with the engine's raw text. The cost says "
        "whether a number moves at all.",
    ),
    "shifted-by-one": Lesson(
        means="At each token, one role's log-prob is that of its neighbor: logits were not shifted "
        "when the log-probs were gathered, or shifted twice.",
        test="With one side moved by one token, Var(log p − log q) is below "
        f"{VARIANCE_LEFT:g} of that as logged, and the mean of the squares, cut at 4, below "
        f"{SQUARES_LEFT:g}; whichever side is moved. {FEWEST_INNER} tokens, and {FEWEST_EACH} per "
        "sequence, need neighbors.",
        harmless="Hardly ever. Two policies with nothing in common fit badly at every lag, and "
        "nothing is told. Correlations are not used: honest peaked policies have them.",
    ),
    "misaligned": Lesson(
        means="Two columns are not of the same tokens: rows were shuffled, filtered or sorted "
        "between two passes and joined by their place. The mean of k1 hardly moves, and so a log "
        "does not show it.",
        test=f"A bet of {STAKE:g} of the stake on q at each token gains more than it can if p "
        f"sampled (probability below {ALPHA:.0%}, shared among all tests), and the log-probs "
        f"correlate by less than {UNRELATED:g}; or they do so in {FEWEST_APART} sequences or more, "
        f"while in most they correlate by {related_rows.NEAR:g} at least. Or nearly all sequences "
        "begin or end with zeros, and the rest fits no role.",
        harmless="Unlike policies are no fault: low correlation alone accuses nobody. If the "
        "columns are of the same tokens after all, the bet still holds: then p did not sample.",
    ),
    "not-log-probs": Lesson(
        means="A log-prob of a token is never above 0, and these are: probabilities, losses "
        "(−log p) whose sign was lost, logits, or another column. Or they only fall along each "
        "sequence, as sums of log-probs do, or stay what they are, as its mean does.",
        test=f"A value above {column_faults.ROUNDING:g} nats. Where ids are logged that is "
        "certain; without ids values may be densities, and only values that all lie between 0 and "
        f"1, and not at one, are accused. Or none of {reshaped.FEWEST} and more is above the one "
        "before it, or none below, while another role's are; or each sequence has one value.",
        harmless="A log-density of a continuous action may be above 0. Without ids the report says "
        "that it cannot tell; if you logged ids for such actions, leave them out.",
    ),
    "not-normalized": Lesson(
        means="What was logged of one distribution contradicts itself: the head weighs more than "
        "1, or gives the sampled token another log-prob, or an entropy is below 0. Usually logits "
        "were logged, or values before temperature stand beside values after.",
        test="Counted at each prefix: mass above 1; the sampled token's log-prob against the same "
        f"id in the head; entropy below −{-distribution_state.LEAST_ENTROPY:g}. Each log-prob may "
        f"be off by {distribution_state.ROUNDING:g} nats, and by the rounding of bfloat16.",
        harmless="If only the heads are raw and the sampled log-probs right, k1, k2 and k3 are "
        "right too, and only what is made of the heads is wrong.",
    ),
    "sentinel-inside-mask": Lesson(
        means=f"−{-SENTINEL:.0f} is what an engine writes where it has no log-prob, or had −inf. "
        "And the mask says that these tokens count.",
        test=f"Values of −{-SENTINEL:.0f} in the mask are counted, and what half precision makes "
        "of it; one suffices.",
        harmless="Outside the mask they are as they should be, and are not counted. Here they are "
        "left out of every number; your trainer may not do so.",
    ),
    "missing-values": Lesson(
        means="Tokens that count have no log-prob of one role (NaN or null). Often a row was "
        "scored to a shorter length than its mask. Or a 0 stands where none was computed: in the "
        "whole column, in whole sequences, at the end of sequences, or here and there.",
        test="Gaps in the mask are counted; one suffices. Zeros: all of a column, where another "
        f"role is in doubt, or all of {unscored.FEWEST_ROWS} sequences where the sampler is; or "
        f"{unscored.NEARLY_ALL:.0%} of the last tokens, which the others "
        f"doubt, and under {unscored.SELDOM:.0%} elsewhere, or {unscored.FEWEST} that a copy of "
        f"the weights doubts; or {unscored.FEWEST_ZEROS} anywhere that all others doubt, where "
        "certainty would have missed as often, and did not.",
        harmless="If the rule of the gaps does not look at what was sampled (every tenth "
        "position), the rest is a fair sample: mask them and say so.",
    ),
    "mask-covers-padding": Lesson(
        means="The tokens with which rows were filled to a common width are counted. Each adds 0, "
        "or garbage, to the sum, and one to the count: the KL per token comes out too small.",
        test=f"Runs of one constant at one end of {padding.FEW_PADDED:.0%} of the rows or "
        f"more, and {padding.FILLED:.0%} of all rows have one of the few widths to which the "
        "padded ones were filled. They must go on as no policy could: within sequences runs of the "
        f"same kind stop in {padding.STOPPED:.0%} of the cases at most, and a bet on them "
        f"wins e^{padding.WON:g} where the sampler itself was in doubt. Or all of them are one id, "
        f"each scored otherwise, and the bet wins e^{padding.WON_SCORED:g}.",
        harmless="A policy that repeats one token with certainty to the length limit looks alike; "
        "without the widths the report says that it cannot tell.",
    ),
    "mask-covers-environment": Lesson(
        means="Tokens between the turns of a policy, written by a tool, an environment or a user, "
        "are counted. Nobody sampled them, and their KL is none of the policies'.",
        test=f"{environment.FEWEST_STRETCHES} stretches or more of {stretch_state.SHORTEST} tokens "
        "between scored ones, on which one role has 0, −9999, nothing or a constant of whole "
        f"nats, and others less than {doubt.DOUBTED:g} nats; of differing tokens, or doubted "
        "by another copy of its weights, while such values stand elsewhere at under "
        f"{environment.SELDOM:.0%} of the tokens. Or all roles have 0 or nothing there, at "
        f"differing tokens; or all scored the same words, below e^−{recall_state.DEAR:g} each, "
        "beyond chance.",
        harmless="A format that the policy is certain of is the same each time, and nothing is "
        "told. Where the mask leaves them out, all is well.",
    ),
    "packed-boundary": Lesson(
        means="Several sequences stand in one row, and the log-prob of the first token of each was "
        "taken from the last position of the sequence before it. It belongs to nobody.",
        test=f"The mean of (log p − log q)², cut at 4, over {boundaries.FEWEST_PACKED} such first "
        f"tokens or more is {boundaries.TIMES:g} times that of the first tokens of rows "
        f"({boundaries.FEWEST_ROWS} at least) and {boundaries.BEYOND:g} standard errors above it. "
        "Both have one distribution if each sequence was scored by itself.",
        harmless="Where the file does not tell sequences apart, an id that ends most rows and also "
        "stands within them is taken for the border: in a dialogue it ends a turn, and what comes "
        "behind is another's.",
    ),
    "mask-covers-prompt": Lesson(
        means="Tokens at the start of the sequences, which nobody sampled, are counted: a prompt, "
        "a template, a forced beginning. No policy chose them.",
        test="Either one role alone, or every role, has 0 or nothing there, in "
        f"{openings.NEARLY_ALL:.0%} of the sequences ({openings.FEWEST_OPENED} at least), of "
        f"differing tokens, and hardly elsewhere (under {openings.SELDOM:.0%}); a copy of its "
        "weights that doubts them is enough, in any share of the sequences. Or "
        f"{NEARLY_ALL:.0%} of the pairs of one prompt begin alike, at {PROMPT:g} nats or "
        "more each, beyond chance.",
        harmless="If every completion begins with the same words because the policy is certain of "
        "them, that costs few nats, and nothing is told. One seed for all completions of a prompt "
        "looks like a prompt.",
    ),
    "infinite-ratio": Lesson(
        means="A policy gives no probability (−inf) to a token that was sampled, so this KL is "
        "infinite. Mostly top-k, top-p or a logit mask was applied on one side only.",
        test="Tokens at which one side is −inf, or a log-prob is +inf, are counted; one suffices. "
        "So are numbers that programs write for −inf: the least of a format (−65504), −1e9.",
        harmless="A token that really is impossible for q makes the KL infinite in truth: then the "
        "question is at fault. If you meant the KL of two truncated policies, truncate both.",
    ),
    "temperature-mismatch": Lesson(
        means="The engine drew at T and logged the log-probs of before T; or it logged those of "
        "after T, and the trainer scores at 1.",
        test=f"Of the draws: p^β / Σ p^β within a head, mixed over {len(EXPONENTS) - 1} other β "
        f"than 1, is a bet that shares {ALPHA:.0%} with all tests; the best β must explain how "
        "often the likeliest token is drawn.\n"
        "Of rollout, old, current: log p_a = (T_b/T_a) log p_b + c in each prefix explains "
        f"{EXPLAINED:.0%} of what differs in their heads.",
        harmless="If two temperatures are meant, the KL is right. A reference or a teacher at "
        "another one is told among the checks and not accused.",
    ),
    "sampler-truncated": Lesson(
        means="The engine drew after a top-k, top-p or min-p. Its log-probs are of before (raw); "
        "or they are of after (processed), and the trainer's are of before.",
        test="Raw: with kept mass m at each prefix, an honest sampler never leaves a cut of its "
        f"head with ∏ m at most; mixed over {len(PLACES)} cuts, it shares {ALPHA:.0%} with the "
        "other tests.\n"
        "Processed: old/rollout has a mean below 1 by "
        f"{processed.ERRORS:g} standard errors and {processed.LEAST:.1%}, and above 1 "
        f"{processed.ABOVE:.0%} at most of what it has below, without a tail.",
        harmless="If the cut policy is the one you ask about, its processed log-probs are right, "
        "and so is KL(rollout‖reference) from them.",
    ),
    "in-sample": Lesson(
        means="A policy in training finds the tokens likelier than one fixed before could: it was "
        "trained on them. Its k1 is too low, even with an honest sampler. An estimate is marked so "
        "if the caller says it: kb.estimate(…, in_sample=True).",
        test="The bound or the bet of q against the sampler fails, the sampler's entropy test "
        f"passes, and log q/p is above ½ (log q/p)² on average by {FITTED:g} standard errors: of "
        "q's own samples the two are about equal. No reference is suspected.",
        harmless="A third policy, further from p than q, may have sampled. Where no entropy is "
        "logged the same sum is told as negative-beyond-chance.",
    ),
}
