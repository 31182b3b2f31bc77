"""How noisy is the gradient of each form of a KL loss, and is its mean the one it claims?

    python benchmarks/gradients.py

Exact, by enumeration: in two small languages (three tokens, three steps; in one of them a token
ends a sequence) the gradient of each form is computed for every sequence. Its variance, added up
over all parameters, is given as the number of sequences whose mean gradient is off by a tenth of
its length, root mean square. The reference stands where the world has it, KL 0.65 and 0.46 nats per
sequence ("far"), or a tenth of the way to it ("near"); a policy a few updates old samples where it
says so. Where q learns, p is the reference. Loss: kb.loss with aggregate="sequence_sum". Results go
to results/gradients.json; nothing is random.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import kullback as kb

RESULT = Path(__file__).parents[1] / "results" / "gradients.json"
# Form, options, and the baseline that it takes.
FORMS = [
    *((form, None) for form in ("k2", "ratio_k1", "ratio_k3", "score")),
    ("score", "exact KL"),
    ("rao_blackwell", None),
]
FORMS_OF_Q = [("k1", None), ("k3", None), ("rao_blackwell", None)]
# Gradient, who sampled (roles of the world), options.
SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("token", "current", {}),
    ("token", "old", {}),
    ("token", "old", {"prefixes": "p"}),
    ("sequence", "current", {}),
    ("sequence", "old", {}),
    ("sequence", "old", {"weights": "sequence"}),
    ("token", "reference", {"learn": "q"}),
    ("token", "current", {"learn": "q"}),
    ("token", "old", {"learn": "q"}),
]


def worlds() -> Iterator[tuple[str, kb.worlds.Tabular]]:
    """Two languages, the reference far and near."""
    for ends in (False, True):
        world = kb.worlds.three_tokens(ends=ends)
        name = "random lengths" if ends else "fixed length"
        yield f"{name}, far", world
        current, reference = world.log_probs["current"], world.log_probs["reference"]
        near = 0.9 * current + 0.1 * reference
        near = near - np.log(np.exp(near).sum(-1, keepdims=True))
        yield f"{name}, near", replace(world, log_probs={**world.log_probs, "reference": near})


class Policies:
    """The log-probs of a world, of which those of ``current`` are differentiated in its logits."""

    def __init__(self, world: kb.worlds.Tabular) -> None:
        self.world = world
        self.logits = torch.tensor(world.log_probs["current"], requires_grad=True)
        self.table = {role: torch.tensor(one) for role, one in world.log_probs.items()}
        self.table["current"] = self.logits.log_softmax(-1)
        _, self.tokens, self.context, alive = world.tree
        self.alive = torch.tensor(alive)

    def along(self, role: str) -> torch.Tensor:
        """Of each token of each sequence."""
        return torch.where(self.alive, self.table[role][self.context, self.tokens], 0.0)

    def kl(self, p: str, q: str) -> torch.Tensor:
        """KL(p||q) at each prefix of each sequence."""
        a, b = self.table[p], self.table[q]
        return torch.where(self.alive, (a.exp() * (a - b)).sum(-1)[self.context], 0.0)

    def noise(self, loss: Any, p: str, q: str, sampler: str) -> dict[str, float]:
        """The mean and the variance of the gradient over what the sampler draws."""
        logs = (self.along(role) for role in (p, q, sampler))
        rows = torch.func.vmap(loss)(*logs, self.alive, self.kl(p, q))
        each = torch.autograd.grad(
            rows, self.logits, torch.eye(len(rows), dtype=rows.dtype), is_grads_batched=True,
            retain_graph=True,
        )[0].flatten(1)  # fmt: skip
        weight = self.along(sampler).sum(-1).exp().detach()
        mean = weight @ each
        variance = float(weight @ ((each - mean) ** 2).sum(-1))
        return {"length": float(mean.norm()), "variance": variance}


def one(
    p: Any, q: Any, s: Any, mask: Any, kl: Any, *, form: str, baseline: str | None,
    other: bool, **options: Any,
) -> Any:  # fmt: skip
    """The loss of one sequence."""
    if form == "rao_blackwell":
        options["exact"] = kl[None]
    if baseline:
        options["baseline"] = kl[None]
    return kb.loss(
        log_p=p[None], log_q=q[None], log_sampler=s[None] if other else None, mask=mask[None],
        aggregate="sequence_sum", form=form, **options,
    )  # fmt: skip


def rows() -> Iterator[dict[str, Any]]:
    """Every world, setting and form."""
    for name, world in worlds():
        policies = Policies(world)
        for gradient, sampler, options in SETTINGS:
            learn = options.get("learn", "p")
            p, q = ("current", "reference") if learn == "p" else ("reference", "current")
            asked = {**options, "gradient": gradient}
            for form, baseline in FORMS if learn == "p" else FORMS_OF_Q:
                claim = kb.loss_claim(
                    **asked, form=form, other_sampler=sampler != p, exact=form == "rao_blackwell"
                )
                if form == "k2" and gradient == "sequence" and sampler == "old" and not options:
                    continue  # it takes the weight of the sequence, which has its own setting
                loss = partial(one, form=form, baseline=baseline, other=sampler != p, **asked)
                noise = policies.noise(loss, p, q, sampler)
                yield {
                    "world": name,
                    "learn": learn,
                    "sampler": sampler,
                    "gradient": gradient,
                    "form": f"{form}, baseline {baseline}" if baseline else form,
                    "weights": claim.weights,
                    "prefixes": claim.prefixes,
                    **noise,
                    "sequences_for_a_tenth": 100 * noise["variance"] / noise["length"] ** 2,
                }


def main() -> None:
    """Enumerate, print and keep."""
    found = list(rows())
    told = {
        "command": "python benchmarks/gradients.py",
        "forms": found,
        "versions": {
            "kullback": kb.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }
    RESULT.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for row in found:
        head = f"{row['world']:22} {row['learn']} {row['gradient']:8} ~ {row['sampler']:9} "
        head += f"{row['weights']:8} {row['form']:26}"
        print(f"{head} {row['sequences_for_a_tenth']:10.0f}")


if __name__ == "__main__":
    main()
