"""One sample, or one pair of distributions, to one number: no mask, no mean, no policy, no file.

Everywhere x ~ p, r = q(x)/p(x), natural logarithms (nats), 0 log 0 = 0, and mass outside the
support is infinite rather than clamped.

`k_family` and `weights` take one sample (the log-probabilities of the token that was drawn);
`categorical`, `divergences`, `gaussian` and `shape` take whole distributions and are exact.
What the sample formulas promise stands as a `Claim` beside each of them.
"""
