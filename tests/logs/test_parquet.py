from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from kullback.logs.parquet import columns
from kullback.logs.read import is_step_log


def test_lists_make_a_dump_and_numbers_a_log(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"step": [1], "kl": [0.5]}), path)
    assert columns(path) == {"step": False, "kl": False}
    assert is_step_log(path)
    pq.write_table(pa.table({"step": [1], "mine": [[0.5]]}), path)
    assert columns(path) == {"step": False, "mine": True}
    assert not is_step_log(path)
