"""One sample, or one pair of distributions, to one number: no mask, no mean, no policy, no file.

Everywhere x ~ p, r = q(x)/p(x), natural logarithms (nats), 0 log 0 = 0, and mass outside the
support is infinite rather than clamped.

`k_family` and `weights` take one sample (the log-probabilities of the token that was drawn);
`categorical`, `divergences`, `gaussian` and `multivariate_gaussian` take whole distributions and
are exact, as are `shape` and `gaussian_shape`; `distributions` reads objects of torch and SciPy.
All but the shapes take NumPy, torch or JAX and can be traced and differentiated.
What the sample formulas promise stands as a `Claim` beside each of them.
"""
