"""Samples to sums that merge; sums to a number with its error.

``summary`` goes over the batches once and adds their states. The main one is ``question_state``:
the ``terms`` of each token, summed by cluster in ``groups``, with a ``histogram`` and the largest
``contributors``; the other states say what columns, samplers and sequences look like.
``estimate`` makes the number from a question's state, by the ``interval`` of a ratio of sums.
"""
