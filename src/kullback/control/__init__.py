"""Decisions from a number, as pure functions of states: is the KL above a limit, and what then?

``prompt_sums`` makes of the log-probs of sampled tokens one pair of sums per prompt; ``evidence``
bets on these, one factor per prompt, and says how much has been won against "the KL is at most the
limit". ``stopping`` has the stop rules of released trainers, and ``coefficient`` the coefficients
that follow a target by one of the ``coefficient_rules``; ``reading`` says what either can be told.
"""
