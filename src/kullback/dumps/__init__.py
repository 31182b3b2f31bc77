"""Files to columns and back: rollout dumps, ours and other projects'.

The way of a row, file by file:

- ``dump`` opens the files, and ``formats`` tells each one's format by its first bytes;
- ``parquet``, ``arrow_ipc`` (both by ``arrow_lists``), ``jsonl`` (by ``compression``) and ``npz``
  each say with ``columns`` what a file holds, and with ``batches`` hand over its rows;
- ``grain`` says what a row is, and ``recognize`` takes each column for a part of ``layout``, by its
  name or by one of ``aliases``;
- the rows come in a ``batch`` of ``ragged`` lists; where a row is no sequence, ``packed`` cuts it
  or ``long_form`` joins it to its neighbors, which ``ids`` tell apart;
- ``chunks`` are cut, ``checks`` leaves out damaged sequences, and ``assemble``, with ``heads`` for
  top-k lists, makes ``Columns`` of the rest.

``write`` goes the other way, and ``errors`` says what was wrong.
"""

from __future__ import annotations

from pathlib import Path

from kullback.dumps.dump import Dump, read
from kullback.dumps.errors import Damaged, DumpError
from kullback.dumps.recognize import Guess
from kullback.dumps.write import write

__all__ = ["Damaged", "Dump", "DumpError", "Guess", "demo_path", "read", "write"]


def demo_path() -> Path:
    """The bundled rollouts of SmolLM2-135M: 128 completions, 7,632 tokens, six policies.

    Example:
        >>> demo_path().name
        'demo.parquet'
    """
    return Path(__file__).with_name("demo.parquet")
