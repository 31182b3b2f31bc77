"""Summaries to findings: what is wrong with these numbers, where, and what to do."""
