"""kullback: a KL divergence you can trust. The public names, on one screen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kullback import audit, dictionary, worlds
    from kullback.columns import Columns, pack
    from kullback.control.coefficient import AdaptiveCoefficient
    from kullback.control.coefficient_rules import BandRule, ProportionalRule
    from kullback.control.evidence import Evidence
    from kullback.control.prompt_sums import PromptSums, prompt_sums
    from kullback.control.stopping import EarlyStop, replay_stops
    from kullback.diagnosis.advise import Advice, advise
    from kullback.diagnosis.diagnose import diagnose
    from kullback.diagnosis.finding import Diagnosis, Finding
    from kullback.diagnosis.judge_log import JudgedLog, judge_log
    from kullback.diagnosis.who_sampled import WhoSampled, who_sampled
    from kullback.dumps import Dump, demo_path, read, write
    from kullback.estimation.compare import Comparison, compare
    from kullback.estimation.drift import Drift, split_drift
    from kullback.estimation.estimate import Estimate, estimate
    from kullback.estimation.policies import PolicyPair, policy_questions, policy_table
    from kullback.estimation.step_drift import DriftByStep, drift_by_step
    from kullback.estimation.summary import Summary, summarize
    from kullback.explaining.explain import explain
    from kullback.explaining.explanation import Explanation
    from kullback.formulas.categorical import entropy, exact
    from kullback.formulas.divergences import divergence
    from kullback.formulas.k_family import f_form, k1, k2, k3, k_lambda, other_direction
    from kullback.formulas.shape import Shape, shape
    from kullback.levels import Totals, log_q_over_p, totals
    from kullback.logs.read import read_log
    from kullback.logs.step_log import Series, StepLog
    from kullback.losses.clamp import ClampBias, clamp_bias
    from kullback.losses.distill import distill
    from kullback.losses.loss import loss, loss_totals
    from kullback.losses.loss_claim import LossClaim, loss_claim
    from kullback.losses.penalty import advantage, penalty
    from kullback.question import Question
    from kullback.reporting.write import report
    from kullback.vocabulary.head_kl import HeadKL, head_kl
    from kullback.vocabulary.heads import head_divergences
    from kullback.vocabulary.whole import Whole, whole_vocabulary

__version__ = "0.1.0"

# Where the names live. A file is loaded when a name of it is first used: an import costs nothing.
_HOMES = {
    "columns": ("Columns", "pack"),
    "control.coefficient": ("AdaptiveCoefficient",),
    "control.coefficient_rules": ("BandRule", "ProportionalRule"),
    "control.evidence": ("Evidence",),
    "control.prompt_sums": ("PromptSums", "prompt_sums"),
    "control.stopping": ("EarlyStop", "replay_stops"),
    "diagnosis.advise": ("Advice", "advise"),
    "diagnosis.diagnose": ("diagnose",),
    "diagnosis.finding": ("Diagnosis", "Finding"),
    "diagnosis.judge_log": ("JudgedLog", "judge_log"),
    "diagnosis.who_sampled": ("WhoSampled", "who_sampled"),
    "dumps": ("Dump", "demo_path", "read", "write"),
    "estimation.compare": ("Comparison", "compare"),
    "estimation.drift": ("Drift", "split_drift"),
    "estimation.estimate": ("Estimate", "estimate"),
    "estimation.policies": ("PolicyPair", "policy_questions", "policy_table"),
    "estimation.step_drift": ("DriftByStep", "drift_by_step"),
    "estimation.summary": ("Summary", "summarize"),
    "explaining.explain": ("explain",),
    "explaining.explanation": ("Explanation",),
    "formulas.categorical": ("entropy", "exact"),
    "formulas.divergences": ("divergence",),
    "formulas.k_family": ("f_form", "k1", "k2", "k3", "k_lambda", "other_direction"),
    "formulas.shape": ("Shape", "shape"),
    "levels": ("Totals", "log_q_over_p", "totals"),
    "logs.read": ("read_log",),
    "logs.step_log": ("Series", "StepLog"),
    "losses.clamp": ("ClampBias", "clamp_bias"),
    "losses.distill": ("distill",),
    "losses.loss": ("loss", "loss_totals"),
    "losses.loss_claim": ("LossClaim", "loss_claim"),
    "losses.penalty": ("advantage", "penalty"),
    "question": ("Question",),
    "reporting.write": ("report",),
    "vocabulary.head_kl": ("HeadKL", "head_kl"),
    "vocabulary.heads": ("head_divergences",),
    "vocabulary.whole": ("Whole", "whole_vocabulary"),
}

__all__ = [
    "AdaptiveCoefficient",
    "Advice",
    "BandRule",
    "ClampBias",
    "Columns",
    "Comparison",
    "Diagnosis",
    "Drift",
    "DriftByStep",
    "Dump",
    "EarlyStop",
    "Estimate",
    "Evidence",
    "Explanation",
    "Finding",
    "HeadKL",
    "JudgedLog",
    "LossClaim",
    "PolicyPair",
    "PromptSums",
    "ProportionalRule",
    "Question",
    "Series",
    "Shape",
    "StepLog",
    "Summary",
    "Totals",
    "WhoSampled",
    "Whole",
    "advantage",
    "advise",
    "audit",
    "clamp_bias",
    "compare",
    "demo_path",
    "diagnose",
    "dictionary",
    "distill",
    "divergence",
    "drift_by_step",
    "entropy",
    "estimate",
    "exact",
    "explain",
    "f_form",
    "head_divergences",
    "head_kl",
    "judge_log",
    "k1",
    "k2",
    "k3",
    "k_lambda",
    "log_q_over_p",
    "loss",
    "loss_claim",
    "loss_totals",
    "other_direction",
    "pack",
    "penalty",
    "policy_questions",
    "policy_table",
    "prompt_sums",
    "read",
    "read_log",
    "replay_stops",
    "report",
    "shape",
    "split_drift",
    "summarize",
    "totals",
    "who_sampled",
    "whole_vocabulary",
    "worlds",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in ("audit", "dictionary", "worlds"):
        return import_module(f"kullback.{name}")
    for home, names in _HOMES.items():
        if name in names:
            # Kept, so that what a loop asks of kullback again and again is looked for once.
            globals()[name] = found = getattr(import_module(f"kullback.{home}"), name)
            return found
    raise AttributeError(f"module 'kullback' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
