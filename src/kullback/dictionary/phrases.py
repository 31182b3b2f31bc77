"""What several entries say in the same words: gradients, means, clamps and faults."""

from __future__ import annotations

# What training on a number descends.
TOKENS = "KL(current||reference), token by token"
TURNED = "KL(reference||current), token by token"
SEQUENCES = "KL(current||reference), whole sequences"
DIFFERENCE = "KL(current||reference) - KL(reference||current), the latter token by token"
AT_ONE_LENGTH = "no divergence; KL(current||reference) at one length"
TURNED_AT_ONE_LENGTH = "no divergence; KL(reference||current) at one length"
# How it is averaged, and what is held constant.
BY_LENGTH = "mean over the tokens of a sequence, then over sequences"
AT_TEN = "the value at 10, which is a ratio of 13.6"
HELD = f"the log-ratio at ±20, {AT_TEN}"
# What is wrong with it.
LETS_GO = "The clamp lets go of tokens that the reference finds 13.6 times likelier."
NO_LEASH = "k1 as a loss is no leash: its expected gradient has no reference in it."
NO_WEIGHT = "No weight: a KL while current is still the policy that sampled."
NEVER_CANCELS = "It is no KL: it is about the square root of one, and never cancels."
FADES = "In the reward k3 fades near the reference."
