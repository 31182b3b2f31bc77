"""Make benchmarks/arena/smollm2.npz and smollm2_heads.npz: draws of real pairs, moments, heads.

    python scripts/arena_data.py FOLDER

FOLDER holds smollm2_draws.parquet (64 fresh draws from the float32 model at each of 7,632 prefixes,
with its log-probs and those of three others), smollm2_moments.parquet (exact moments over the
vocabulary at the same prefixes) and smollm2_sequences.parquet (one row per completion). log r is
kept in half precision: 0.05 % of itself, which no error or coverage here can tell from exact. The
heads are of the float32 model's 20 likeliest ids: its log-probs, and log r of the others there. Of
each draw it is kept which of the 20 it is; 20 stands for another id.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

TARGET = Path(__file__).parents[1] / "benchmarks" / "arena" / "smollm2.npz"
PAIRS = {"light": "lora_light", "strong": "lora_strong", "noise": "noise"}


def main(folder: Path) -> None:
    """Read, check that the rows are the same prefixes, write."""
    import pyarrow.parquet as pq

    draws, moments, sequences = (
        pq.read_table(folder / f"smollm2_{name}.parquet")
        for name in ("draws", "moments", "sequences")
    )
    if not all(draws[key].equals(moments[key]) for key in ("seq_id", "position")):
        sys.exit("draws and moments are not of the same prefixes")
    prompt_of = dict(
        zip(*(sequences[key].to_pylist() for key in ("seq_id", "prompt_id")), strict=True)
    )
    sequence = draws["seq_id"].to_numpy()
    kept = {"sequence": sequence.astype(np.int16)}
    kept["prompt"] = np.unique([prompt_of[one] for one in sequence], return_inverse=True)[1]
    kept["prompt"] = kept["prompt"].astype(np.int16)
    log_p = np.stack(draws["lp_f32"].to_pylist())
    for name, source in PAIRS.items():
        log_q = np.stack(draws[f"lp_{source}"].to_pylist())
        kept[f"{name}/log_r"] = (log_q - log_p).astype(np.float16)
        for moment in ("kl", "var_k1", "var_k3"):
            kept[f"{name}/{moment}"] = moments[f"{moment}/f32/{source}"].to_numpy()
    np.savez_compressed(TARGET, **kept)
    _write_heads(draws)


def _write_heads(draws: pa.Table) -> None:
    top, drawn = (np.stack(draws[key].to_pylist()) for key in ("top20_ids", "draw_ids"))
    same = drawn[:, :, None] == top[:, None, :]
    log_p = np.stack(draws["f32_at_top20"].to_pylist()).astype(np.float32)
    kept = {"rank": np.where(same.any(2), same.argmax(2), top.shape[1]).astype(np.uint8)}
    kept["log_p"] = log_p
    for name, source in PAIRS.items():
        log_q = np.stack(draws[f"{source}_at_top20"].to_pylist())
        kept[f"{name}/log_r"] = (log_q - log_p).astype(np.float32)
    np.savez_compressed(TARGET.with_name("smollm2_heads.npz"), **kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
