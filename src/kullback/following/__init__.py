"""A run that grows: which rows were counted, which wait, and how to go on after a restart.

- ``progress`` is what is kept: the summary so far and, file by file, how far it was read;
- ``stamps`` tell whether a file is the one that it was;
- ``follower`` looks, reads what is new and adds it;
- ``kept`` writes the progress to a file and reads it back.
"""
