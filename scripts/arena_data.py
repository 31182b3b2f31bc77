"""Make benchmarks/arena/smollm2.npz: draws of log r of real pairs, with exact moments.

    python scripts/arena_data.py FOLDER

FOLDER holds smollm2_draws.parquet (64 fresh draws from the float32 model at each of 7,632 prefixes,
with its log-probs and those of three others), smollm2_moments.parquet (exact moments over the
vocabulary at the same prefixes) and smollm2_sequences.parquet (one row per completion). log r is
kept in half precision: 0.05 % of itself, which no error or coverage here can tell from exact.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
