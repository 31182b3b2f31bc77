"""Cases about whole sequences: masks, packing, levels, alignment, position, length."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kullback as kb
from kullback.formulas.weights import control
from kullback.levels import segment_sums
from kullback.reporting.document import document

from .entries import Input, Table, log, no_question, refusal
from .logs import codes, tool_turns

# 10


def until_eos(x: Input) -> NDArray[np.bool_]:
    """The wrong mask: up to the end token, or all of the row where there is none."""
    is_eos = np.array(x["tokens"]) == x["eos_id"]
    return np.cumsum(is_eos, axis=1) - is_eos == 0


def findings_of_ten(x: Input) -> list[str]:
    """What is found in a log of ten such batches under the wrong mask.

    The policy is not certain of its tokens, and does not expect padding.
    """
    kl, mask = np.tile(x["per_token_kl"], (10, 1)), np.tile(until_eos(x), (10, 1))
    drawn = np.random.default_rng(0).uniform(-3.0, -0.5, size=kl.shape)
    log_p = np.where(np.tile(x["attention"], (10, 1)), drawn, -11.5)
    columns = kb.pack({"policy": log_p, "ref": log_p - kl}, mask=mask)
    columns = replace(columns, tokens=np.tile(x["tokens"], (10, 1)).ravel())
    return [finding["code"] for finding in document(kb.summarize([columns]))["findings"]]


# 13


def pack_both(x: Input) -> kb.Columns:
    return kb.pack({role: x[f"{role}_logprob"] for role in ("rollout", "trainer")}, lengths=1)


def read_both(x: Input) -> list[kb.Columns]:
    row = {f"log_probs.{role}": x[f"{role}_logprob"] for role in ("rollout", "trainer")}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rollouts.jsonl"
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
        return list(kb.read(path, strict=True))


def best_offset(x: Input) -> int:
    """Where the trainer's tokens are likest to the rollout's, by k2: half the mean square."""
    rollout, trainer = x["rollout_logprob"], x["trainer_logprob"]
    size = len(trainer)
    found = [
        kb.estimate(log_p=rollout[at : at + size], log_q=trainer, lengths=1, method="k2").mean
        for at in range(len(rollout) - size + 1)
    ]
    return int(np.argmin(found))


# 14


def pieces(x: Input) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which scores are of a token of their own sequence, and how many each sequence has."""
    ends = np.array(x["cu_seqlens"][1:])
    own = ~np.isin(np.arange(ends[-1] - 1), ends - 1)
    lengths = np.diff(x["cu_seqlens"])
    lengths[-1] -= 1  # behind the last token nothing is scored
    return own, lengths


def packed_mean(x: Input, method: str, *, correct: bool) -> float:
    own, lengths = pieces(x)
    p, q = x["policy_logprob_of_next_token"], x["ref_logprob_of_next_token"]
    mask = own if correct else None
    return kb.estimate(log_p=p, log_q=q, lengths=lengths, mask=mask, method=method).mean


def sequence_sums(x: Input) -> NDArray[np.float64]:
    own, lengths = pieces(x)
    log_r = np.subtract(x["ref_logprob_of_next_token"], x["policy_logprob_of_next_token"])
    return segment_sums(np.where(own, kb.k1(log_r), 0.0), lengths)


# 15, 16, 17


def rows(x: Input) -> kb.Totals:
    return kb.totals(x["per_token_kl_rows"])


def batches(x: Input) -> kb.Totals:
    tokens = [batch["tokens"] for batch in x["microbatches"]]
    means = [batch["sum"] / batch["tokens"] for batch in x["microbatches"]]
    return kb.totals(np.repeat(means, tokens), lengths=tokens)


def equal_batches(x: Input) -> float:
    return kb.totals(x["microbatch_token_mean_kl"], lengths=1).at("token_mean")


def scaled(x: Input) -> str:
    """What the logged value is of one sequence for each micro-batch."""
    kl = np.array(x["microbatch_token_mean_kl"])[:, None]
    log_probs = {"policy": 0.0 * kl - 1.0, "ref": -1.0 - kl}
    return str(kb.audit.identify(x["logged_value"], log_probs, microbatches=len(kl)))


# 75, 76, 77, 78


def of_rows(x: Input, level: str = "token_mean") -> float:
    log_p, log_q, mask = (x[f"{name}_rows"] for name in ("policy_logprob", "ref_logprob", "mask"))
    return kb.estimate(log_p=log_p, log_q=log_q, mask=mask, method="k1", level=level).mean


def offsets(x: Input) -> kb.Totals:
    return kb.totals(x["per_token_kl"], lengths=np.diff(x["cu_seqlens"]))


def twice(x: Input) -> str:
    kl = np.array(x["per_token_kl_rows"])
    log_probs = {"student": 0.0 * kl - 1.0, "teacher": -1.0 - kl}
    return str(kb.audit.identify(x["logged_value"], log_probs).best)


def sides(x: Input) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array(x["policy_logprob"]), np.array(x["ref_logprob"])


def against_a_row(x: Input) -> kb.Estimate:
    log_p, log_q = sides(x)
    return kb.estimate(log_p=log_p[:, None], log_q=log_q)


# 59, 67


def two_steps(x: Input, p: str, q: str) -> kb.worlds.Tabular:
    """The language of two steps, by its tables."""
    second = x["step2_given_first_token"]
    if "0" in second:  # by first token, then by role
        second = {role: {token: second[token][role] for token in "01"} for role in (p, q)}
    tables = {r: log([x["step1"][r], second[r]["0"], second[r]["1"]]) for r in (p, q)}
    return kb.worlds.Tabular(tables, sampler=p, max_length=2)


def moments(x: Input, form: str) -> tuple[float, float]:
    """The exact mean and variance of one form of a sequence's estimate."""
    world = two_steps(x, "policy", "reference")
    log_r = world.by_token("reference") - world.by_token("policy")
    values = {
        "token_k1": kb.k1(log_r).sum(axis=1),
        "token_k3": kb.k3(log_r).sum(axis=1),
        "sequence_k3": kb.k3(log_r.sum(axis=1)),
        "exact": world.by_context(world.kl("policy", "reference")).sum(axis=1),
    }[form]
    return world.mean(values, by="policy"), world.variance(values, by="policy")


def at_position(x: Input, position: int) -> float:
    world = two_steps(x, "p", "q")
    return world.mean(world.by_context(world.kl("p", "q"))[:, position - 1], by="p")


def sequence_kl(x: Input, p: str, q: str) -> float:
    return two_steps(x, p, q).exact(kb.Question(p, q, level="sequence_sum"))


# 63


def ratio(log_r: float) -> float:
    return float(1.0 + control(log_target=log_r, log_sampler=0.0))


def drift(x: Input, level: str) -> float:
    """log r of the sequence, or the mean of its tokens."""
    return kb.totals(np.full((1, x["length"]), x["mean_log_ratio_per_token"])).at(level)


def k1_of_sequence(x: Input) -> Any:
    log_p = np.full((1, x["length"]), -1.0)
    log_q = log_p + x["mean_log_ratio_per_token"]
    return kb.estimate(log_p=log_p, log_q=log_q, level="sequence_sum").mean


SEQUENCES: Table = {
    "10-pad-counted-without-eos": {
        "token_mean_correct": lambda x: kb.totals(x["per_token_kl"], mask=x["attention"]).at(
            "token_mean"
        ),
        "token_mean_eos_only_mask": lambda x: kb.totals(x["per_token_kl"], mask=until_eos(x)).at(
            "token_mean"
        ),
        "n_pad_counted": lambda x: (
            kb.totals(x["per_token_kl"], mask=until_eos(x)).tokens
            - kb.totals(x["per_token_kl"], mask=x["attention"]).tokens
        ),
        "verdict": findings_of_ten,
    },
    "12-tool-token-kl-in-returns": {
        "mean_kl_model_tokens": lambda x: kb.totals(
            [x["per_token_kl"]], mask=[x["model_token_mask"]]
        ).at("token_mean"),
        "mean_kl_all_tokens": lambda x: kb.totals([x["per_token_kl"]]).at("token_mean"),
        **no_question("a discounted return is no KL", "returns_masked_kl", "returns_leaky_kl"),
        "verdict": lambda x: codes(tool_turns(x)),
    },
    "13-retokenised-length-mismatch": {
        "lengths_agree": lambda x: not refusal(pack_both, x),
        "verdict": lambda x: refusal(read_both, x),
        **no_question(
            "a mean of |log r| is no KL",
            "mean_abs_diff_at_offset_0",
            "mean_abs_diff_at_best_offset",
        ),
        "best_offset_of_trainer_in_rollout": best_offset,
    },
    "14-packed-boundary-token": {
        "k1_token_mean_correct": lambda x: packed_mean(x, "k1", correct=True),
        "k1_token_mean_naive": lambda x: packed_mean(x, "k1", correct=False),
        "k3_token_mean_correct": lambda x: packed_mean(x, "k3", correct=True),
        "k3_token_mean_naive": lambda x: packed_mean(x, "k3", correct=False),
        "sequence_k1_sums": sequence_sums,
        **no_question("a mask is given, and entry i belongs to token i", "valid_mask"),
    },
    "15-token-mean-vs-sequence-mean": {
        "token_mean": lambda x: rows(x).at("token_mean"),
        "seq_mean_token_mean": lambda x: rows(x).at("sequence_mean"),
        "seq_mean_token_sum": lambda x: rows(x).at("sequence_sum"),
        **no_question("no mean is divided by a constant", "seq_sum_over_constant"),
    },
    "16-microbatch-mean-of-means": {
        "global_token_mean": lambda x: batches(x).at("token_mean"),
        "mean_of_microbatch_means": lambda x: batches(x).at("sequence_mean"),
        "ratio_wrong_over_right": lambda x: (
            batches(x).at("sequence_mean") / batches(x).at("token_mean")
        ),
    },
    "17-logged-kl-scaled-twice": {
        "correct_value": equal_batches,
        "logged_over_correct": lambda x: x["logged_value"] / equal_batches(x),
        "verdict": scaled,
    },
    "59-sequence-or-token-k3": {
        "exact_sequence_kl": lambda x: sequence_kl(x, "policy", "reference"),
        "mean_sum_token_k1": lambda x: moments(x, "token_k1")[0],
        "mean_sum_token_k3": lambda x: moments(x, "token_k3")[0],
        "mean_sequence_k3": lambda x: moments(x, "sequence_k3")[0],
        "mean_sum_exact_conditional_kl": lambda x: moments(x, "exact")[0],
        "variance_sum_token_k1": lambda x: moments(x, "token_k1")[1],
        "variance_sum_token_k3": lambda x: moments(x, "token_k3")[1],
        "variance_sequence_k3": lambda x: moments(x, "sequence_k3")[1],
        "variance_sum_exact_conditional_kl": lambda x: moments(x, "exact")[1],
    },
    "63-sequence-ratio-grows-with-length": {
        "token_ratio": lambda x: ratio(x["mean_log_ratio_per_token"]),
        "sequence_ratio": lambda x: ratio(drift(x, "sequence_sum")),
        "length_normalised_ratio": lambda x: ratio(drift(x, "sequence_mean")),
        "sequence_masked": lambda x: ratio(drift(x, "sequence_sum")) > x["cap"],
        "k1_sequence_rollout_trainer": k1_of_sequence,
        **no_question("a property of the cap", "length_at_which_cap_is_reached"),
    },
    "75-rows-of-their-own-length": {
        "token_mean": of_rows,
        "seq_mean_token_mean": lambda x: of_rows(x, "sequence_mean"),
        "seq_mean_token_sum": lambda x: of_rows(x, "sequence_sum"),
        **no_question("nothing is padded", "padded_mean"),
    },
    "76-running-sums-given-as-lengths": {
        "seq_mean_token_mean": lambda x: offsets(x).at("sequence_mean"),
        "seq_mean_token_sum": lambda x: offsets(x).at("sequence_sum"),
        "verdict": lambda x: refusal(lambda: kb.totals(x["per_token_kl"], lengths=x["cu_seqlens"])),
    },
    "77-divided-by-the-tokens-twice": {
        "correct_value": lambda x: rows(x).at("token_mean"),
        "logged_over_correct": lambda x: x["logged_value"] / rows(x).at("token_mean"),
        "verdict": twice,
    },
    "78-column-against-row": {
        "k2_mean": lambda x: (
            kb.estimate(
                **dict(zip(("log_p", "log_q"), sides(x), strict=True)), lengths=1, method="k2"
            ).mean
        ),
        **no_question("no token is compared with another", "k2_mean_of_the_matrix"),
        "verdict": lambda x: refusal(against_a_row, x),
    },
    "67-first-token-only-kl": {
        "kl_position_1": lambda x: at_position(x, 1),
        "kl_position_2": lambda x: at_position(x, 2),
        "sequence_kl": lambda x: sequence_kl(x, "p", "q"),
        "share_of_position_1": lambda x: at_position(x, 1) / sequence_kl(x, "p", "q"),
    },
}
