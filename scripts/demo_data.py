"""Make the bundled demo, src/kullback/dumps/demo.parquet, from the SmolLM2-135M rollouts.

    python scripts/demo_data.py FOLDER

FOLDER holds smollm2_rollouts.parquet (one row per token), smollm2_sequences.parquet (one row per
completion) and smollm2_token_bytes.parquet (id to bytes). The same files and the same pyarrow
give the same bytes. Where the data come from: docs/format.md, "The bundled demo".
"""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from kullback.columns import Columns, TopK, cluster_keys
from kullback.dumps import demo_path, write
from kullback.question import Question

# The role in the demo -> what the source calls the same policy. The engine appears twice: as it
# logged while it decoded, and rescored afterwards; the two differ, and only the second has an
# exact KL and an entropy.
ROLES = {
    "rollout": "sampler",
    "old": "bf16",
    "current": "lora_light",
    "reference": "f32",
    "strong": "lora_strong",
    "rescored": "eng",
}
SETTINGS = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}


def demo(folder: Path) -> Columns:
    """The demo as one batch."""
    import pyarrow.parquet as pq

    tokens = pq.read_table(folder / "smollm2_rollouts.parquet")
    sequences = pq.read_table(folder / "smollm2_sequences.parquet")
    table = pq.read_table(folder / "smollm2_token_bytes.parquet")
    spelled = dict(zip(table["token_id"].to_pylist(), table["bytes"].to_pylist(), strict=True))
    ids = tokens["token_id"].to_numpy()
    prompts = sequences["prompt_id"].to_numpy()
    head = [np.array(tokens[f"sampler_top20_{what}"].to_pylist()) for what in ("ids", "lps")]
    labels: dict[str, Any] = {"step": np.zeros(len(prompts), dtype=np.int64), "prompt_id": prompts}
    labels |= {f"sampling.{k}": np.full(len(prompts), v) for k, v in SETTINGS.items()}
    labels["sampling.log_probs"] = np.full(len(prompts), "raw", dtype=object)
    return Columns(
        lengths=sequences["n_tokens"].to_numpy(),
        mask=np.ones(len(ids), dtype=np.bool_),
        log_probs={role: tokens[f"lp_{name}"].to_numpy() for role, name in ROLES.items()},
        clusters=cluster_keys(prompts),
        cluster_kind="prompt",
        entropy={
            role: tokens[f"entropy_{ROLES[role]}"].to_numpy() for role in ("reference", "rescored")
        },
        top_k={"rollout": TopK(head[0], head[1].astype(np.float32))},
        exact=exact(tokens),
        tokens=ids,
        token_bytes=[spelled[one] for one in ids.tolist()],
        text=sequences["completion"].to_pylist(),
        labels=labels,
    )


def exact(tokens: Any) -> dict[str, Any]:
    """The exact KLs between the roles of the demo; ``kl_A_B`` of the source is KL(A||B)."""
    pairs = permutations(ROLES, 2)
    named = {str(Question(p, q)): f"kl_{ROLES[p]}_{ROLES[q]}" for p, q in pairs}
    return {
        name: tokens[column].to_numpy()
        for name, column in named.items()
        if column in tokens.column_names
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(demo(Path(sys.argv[1])), demo_path())
