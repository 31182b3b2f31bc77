"""Make smollm2.npz and holes.json of src/kullback/experiments/real_lm.

    python scripts/real_lm_data.py FOLDER

FOLDER holds smollm2_moments.parquet (exact moments over the vocabulary at 7,632 prefixes, for each
pair), smollm2_draws.parquet (64 fresh draws from the float32 model at each of them, scored by three
others, and all four at its 20 likeliest ids), smollm2_sequences.parquet (one row per completion)
and smollm2_token_bytes.parquet (id to bytes). Kept are the moments to 12 bits (0.012 % of each),
16 of the 64 draws as log r in half precision (0.05 %), the chi-square of the other direction, which
is exact over the 20 ids and by draws beyond them, and the words where p or q has a hole.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "kullback" / "experiments" / "real_lm"
PAIRS = {
    "bf16": "f32/bf16",
    "engine": "f32/eng",
    "from engine": "eng/f32",
    "light": "f32/lora_light",
    "noise": "f32/noise",
    "strong": "f32/lora_strong",
    "T 0.7": "f32/temp07",
    "T 1.4": "f32/temp14",
}
MOMENTS = ("kl", "kl_other", "e_k2", "var_k1", "var_k2", "var_k3")
DRAWN = {"light": "lora_light", "noise": "noise", "strong": "lora_strong"}
DRAWS = 16
BITS = 12
WORST = {"strong": 5, "noise": 3, "light": 2}  # rows of each pair in the tables of holes
CONTEXT = 60  # letters of text before a hole


def rounded(values: np.ndarray) -> np.ndarray:
    """float32 of which the last bits of the fraction are 0, so that it packs well."""
    drop = 23 - BITS
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + (1 << (drop - 1))) >> drop << drop).view(np.float32)


def main(folder: Path) -> None:
    """Read, check that the rows are the same prefixes, write."""
    import pyarrow.parquet as pq

    moments, draws, sequences, spelled = (
        pq.read_table(folder / f"smollm2_{name}.parquet")
        for name in ("moments", "draws", "sequences", "token_bytes")
    )
    if not all(draws[key].equals(moments[key]) for key in ("seq_id", "position")):
        sys.exit("draws and moments are not of the same prefixes")
    sequence = draws["seq_id"].to_numpy()
    prompt_of = np.zeros(sequence.max() + 1, dtype=np.uint8)
    prompt_of[sequences["seq_id"].to_numpy()] = sequences["prompt_id"].to_numpy()
    kept = {"sequence": sequence.astype(np.uint8), "prompt": prompt_of[sequence]}
    for name, source in PAIRS.items():
        for moment in MOMENTS:
            kept[f"{name}/{moment}"] = rounded(moments[f"{moment}/{source}"].to_numpy())
    log_p = np.stack(draws["lp_f32"].to_pylist())
    for name, source in DRAWN.items():
        log_r = np.stack(draws[f"lp_{source}"].to_pylist()) - log_p
        kept[f"{name}/log_r"] = log_r[:, :DRAWS].astype(np.float16)
        kept[f"{name}/chi2_other"], kept[f"{name}/error"] = chi2_other(draws, source, log_r)
    np.savez_compressed(TARGET / "smollm2.npz", **kept)
    words = Words(sequences, spelled, sequence, draws["position"].to_numpy())
    holes = {"in p": holes_in_p(moments, draws, words), "in q": holes_in_q(draws, words)}
    text = json.dumps(holes, ensure_ascii=False, indent=1)
    (TARGET / "holes.json").write_text(text + "\n", encoding="utf-8")


def chi2_other(draws: Any, source: str, log_r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E_p[p/q] - 1 at each prefix, exact over p's head and by draws beyond; the mean's error."""
    top, drawn = (np.stack(draws[key].to_pylist()) for key in ("top20_ids", "draw_ids"))
    log_p, log_q = heads(draws, source)
    beyond = np.where((drawn[:, :, None] == top[:, None, :]).any(2), 0.0, np.exp(-log_r))
    values = np.exp(2 * log_p - log_q).sum(1) + beyond.mean(1) - 1
    error = np.sqrt((beyond.var(1, ddof=1) / beyond.shape[1]).sum()) / len(values)
    return rounded(values), np.array(error)


def heads(draws: Any, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Log-probs of p and of another at p's 20 likeliest ids."""
    log_p, log_q = (
        np.stack(draws[f"{of}_at_top20"].to_pylist()).astype(np.float64) for of in ("f32", source)
    )
    return log_p, log_q


class Words:
    """What stands before a prefix's end; sequences whose ids are in doubt are left out."""

    def __init__(self, sequences: Any, spelled: Any, sequence: np.ndarray, at: np.ndarray) -> None:
        ids, spellings = (spelled[key].to_pylist() for key in ("token_id", "bytes"))
        self.bytes = {one: word or b"" for one, word in zip(ids, spellings, strict=True)}
        numbers = sequences["seq_id"].to_pylist()
        self.ids = dict(zip(numbers, sequences["completion_ids"].to_pylist(), strict=True))
        self.prompts = dict(zip(numbers, sequences["prompt"].to_pylist(), strict=True))
        doubt = sequences["token_ids_suspect"].to_pylist()
        self.doubtful = {number for number, bad in zip(numbers, doubt, strict=True) if bad}
        self.sequence, self.at = sequence.tolist(), at.tolist()

    def word(self, token: int) -> str:
        """A token as text."""
        return self.bytes[int(token)].decode(errors="replace")

    def before(self, prefix: int) -> str:
        """The completion so far, its last letters."""
        ids = self.ids[self.sequence[prefix]][: self.at[prefix]]
        text = b"".join(self.bytes[one] for one in ids).decode(errors="replace")
        return text if len(text) <= CONTEXT else "…" + text[-CONTEXT:]

    def worst(self, scores: np.ndarray, rows: int) -> list[tuple[int, dict[str, Any]]]:
        """The prefixes of the highest scores, each text once."""
        found: dict[tuple[str, str], int] = {}
        for prefix in np.argsort(-scores).tolist():
            sequence = self.sequence[prefix]
            if sequence not in self.doubtful:
                found.setdefault((self.prompts[sequence], self.before(prefix)), prefix)
            if len(found) == rows:
                break
        return [
            (prefix, {"prompt": prompt, "before": before, "position": self.at[prefix]})
            for (prompt, before), prefix in found.items()
        ]


def holes_in_p(moments: Any, draws: Any, words: Words) -> list[dict[str, Any]]:
    """Where chi2(q‖p) is largest: q has mass and p nearly none."""
    rows, top = [], np.stack(draws["top20_ids"].to_pylist())
    for name, count in WORST.items():
        log_p, log_q = heads(draws, DRAWN[name])
        chi2 = moments[f"var_r/{PAIRS[name]}"].to_numpy()
        for prefix, where in words.worst(chi2, count):
            rows.append({
                "pair": name, **where, "kl": float(moments[f"kl/{PAIRS[name]}"][prefix].as_py()),
                "chi2": float(chi2[prefix]), "likeliest": words.word(top[prefix, 0]),
                "p": float(np.exp(log_p[prefix, 0])), "q": float(np.exp(log_q[prefix, 0])),
                "p_beyond": float(1 - np.exp(log_p[prefix]).sum()),
                "q_beyond": float(1 - np.exp(log_q[prefix]).sum()),
            })  # fmt: skip
    return rows


def holes_in_q(draws: Any, words: Words) -> list[dict[str, Any]]:
    """Where a token of p's head adds most to the KL: p has mass and q nearly none."""
    rows, top = [], np.stack(draws["top20_ids"].to_pylist())
    for name, count in WORST.items():
        log_p, log_q = heads(draws, DRAWN[name])
        adds = np.exp(log_p) * (log_p - log_q)
        for prefix, where in words.worst(adds.max(1), count):
            token = int(adds[prefix].argmax())
            rows.append({
                "pair": name, **where, "token": words.word(top[prefix, token]),
                "p": float(np.exp(log_p[prefix, token])), "q": float(np.exp(log_q[prefix, token])),
                "adds": float(adds[prefix, token]),
            })  # fmt: skip
    return rows


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
