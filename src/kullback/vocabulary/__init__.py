"""Exact divergences over a whole vocabulary, 150 thousand categories a token, without the memory.

`whole` takes logits of both sides, `heads` makes them a tile of the vocabulary at a time and adds
tiles by the chain rule, `head_kl` is a loss whose gradient is written down rather than taped. All
three cut the work so that it stays in the cache, and sum a piece with torch (`sums`) or with a
compiled kernel (`kernel`). torch only, and imported when first used.
"""
