"""The tables of docs/what-released-trainers-do.md, from results/zoo.

    python benchmarks/zoo/zoo_page.py

What stands between ``<!-- zoo: NAME -->`` and ``<!-- zoo: end -->`` is written by this file.
"""

from __future__ import annotations

import re
from typing import Any

from reading import Found, gradient, part, value, weight
from zoo_table import ROOT, line, results

PAGE = ROOT / "docs" / "what-released-trainers-do.md"
MARKED = re.compile(r"(<!-- zoo: (?!end)(\w+) -->\n).*?(<!-- zoo: end -->)", re.DOTALL)
NAMES = {
    "trl": "TRL",
    "verl": "verl",
    "openrlhf": "OpenRLHF",
    "torchrl": "torchrl",
    "liger": "liger-kernel",
    "tinker": "tinker-cookbook",
    "sb3": "Stable-Baselines3",
}
# What is shown of each framework, and what a user of it calls that.
SHOWN = {
    "trl": {
        "GRPO": "GRPO (default)",
        "GRPO, no bias correction": "GRPO, `use_bias_correction_kl=False`",
        "GRPO, sequence weights": 'GRPO, `importance_sampling_level="sequence"`',
        "GRPO, mean of sequences": 'GRPO, `loss_type="grpo"`',
        "RLOO": "RLOO (in the reward)",
    },
    "verl": {
        "actor loss": "`use_kl_loss` (default `low_var_kl`)",
        "loss k1": "`kl_loss_type=k1`",
        "loss k2": "`kl_loss_type=k2`",
        "loss low_var_kl+": "`kl_loss_type=low_var_kl+`",
        "reward kl": "`use_kl_in_reward` (default `kl`)",
        "reward low_var_kl": "`use_kl_in_reward`, `kl_penalty=low_var_kl`",
    },
    "openrlhf": {
        "loss k1": "`kl.use_loss` (default `k1`)",
        "loss k2": "`kl.use_loss`, `k2`",
        "loss k3": "`kl.use_loss`, `k3`",
        "loss k1, unbiased gradient": "`kl.use_loss`, `kl.unbiased_gradient`",
        "reward k1": "in the reward (default `k1`)",
        "reward k3": "in the reward, `k3`",
    },
    "torchrl": {
        "GRPO, to the reference": "`GRPOLoss`, `kl_to_ref_coeff`",
        "KLComputation": "`KLComputation` (in the reward)",
    },
    "liger": {
        "GRPO": "`LigerFusedLinearGRPOLoss` (default)",
        "GRPO, bias correction": "the same, `use_bias_correction_kl=True`",
    },
    "tinker": {
        "penalty": "`kl_penalty_coef` (default)",
        "penalty, discounted": "the same, `kl_discount_factor=1`",
        "distillation": "on-policy distillation (default)",
        "distillation, discounted": "the same, `kl_discount_factor=1`",
    },
}
HEADS = ("trainer", "KL term", "its value", "training descends", "with samples of an older policy")


def descends(entry: Found, scenario: str) -> str:
    """A gradient as this page calls it: the reference's side in words."""
    if scenario == "stale" and entry["used"] == "reward":
        return "as the trainer weighs it"
    seen = gradient(entry, scenario)
    if seen == "none":
        fixed = gradient(entry, scenario, "fixed")
        return "no divergence" if fixed == "none" else f"no divergence; {fixed} at one length"
    if seen == "zero":
        return "**nothing** (zero on average)"
    return f"{seen}{part(entry, scenario)}"


def glance(found: dict[str, Any]) -> str:
    """One row for each term that is shown."""
    lines = [line(HEADS), line(["---"] * len(HEADS))]
    for framework, terms in SHOWN.items():
        entries = found[framework]["entries"]
        for name, called in terms.items():
            entry = entries[name]
            told = value(entry) + weight(entry)
            ways = [descends(entry, scenario) for scenario in ("on-policy", "stale")]
            lines.append(line([NAMES[framework], called, told, *ways]))
    return "\n".join(lines)


def releases(found: dict[str, Any]) -> str:
    """Which releases were probed."""
    told = [
        f"{NAMES[framework]} {next(iter(result['versions'].values()))}"
        for framework, result in found.items()
    ]
    return f"{', '.join(told[:-1])} and {told[-1]}."


PARTS = {"glance": glance, "releases": releases}


def filled(text: str, found: dict[str, Any]) -> str:
    """A page with its marked parts written anew."""
    return MARKED.sub(lambda one: f"{one[1]}\n{PARTS[one[2]](found)}\n\n{one[3]}", text)


def fill() -> None:
    """Write the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results()), encoding="utf-8")


if __name__ == "__main__":
    fill()
