"""Samples to sums that merge; sums to a number with its error."""
