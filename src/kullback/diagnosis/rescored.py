"""Do two evaluations of the same tokens agree? With dropout, or by the batch, they do not."""

from __future__ import annotations

from kullback.diagnosis.alignment import shifted_roles
from kullback.diagnosis.finding import Check, Diagnosis, Finding, decided
from kullback.diagnosis.sampler_tests import FLOAT32_FLOOR
from kullback.diagnosis.soundness import scored
from kullback.estimation.again_state import Again
from kullback.estimation.summary import Summary
from kullback.question import Question

CODE = "stochastic-forward"
FEWEST = 10  # tokens scored twice
MANY = 0.2  # share of them that noise moves; fewer are of another prefix, or of other weights
SMALL = 0.02  # share of the variance of log p: another prefix never moves it by so little
LARGE = 0.3  # and noise never moves it by more
UNRELATED = 0.4  # correlation with the differences of another role, at most
MOVING = ("current", "student")  # roles whose weights may change inside a step
OWNS = 0.5  # share of a k3 that the noise makes: it is no drift
TELLS = 0.05  # share from which a question is named: it is one at least


def diagnose_rescored(summary: Summary) -> Diagnosis:
    """The noise of each role's log-probs, where the same tokens behind the same prefix show it."""
    seen = {role: _seen(summary, role) for role in summary.columns}
    checks = {
        role: _judged(summary, role, one) if one else _not_possible(summary, role)
        for role, one in seen.items()
    }
    found = {r: one.noise for r, one in seen.items() if one and checks[r].status == "failed"}
    findings = (_finding(summary, found),) if found else ()
    return Diagnosis(findings, tuple(checks.values()))


def noises(summary: Summary) -> dict[str, float]:
    """By role whose evaluations are noisy, the variance of one log-prob."""
    return {
        role: seen.noise
        for role in summary.columns
        if (seen := _seen(summary, role)) and _judged(summary, role, seen).status == "failed"
    }


def _seen(summary: Summary, role: str) -> Again | None:
    """What the role did at tokens scored twice, if they are enough to tell."""
    seen = summary.again.roles.get(role)
    enough = seen is not None and seen.tokens >= FEWEST
    sound = scored(summary, role) and role not in shifted_roles(summary)
    return seen if enough and sound else None


def _not_possible(summary: Summary, role: str) -> Check:
    there = summary.again.roles.get(role)
    reason = (
        f"{there.tokens if there else 0} tokens were scored twice behind one prefix: an evaluation "
        "that is noisy (dropout, kernels that depend on the batch) looks like a small drift; log "
        "several completions of each prompt with ids and prompt_id, or the same rows scored twice"
    )
    return Check(CODE, role, "not-possible", reason)


def _judged(summary: Summary, role: str, seen: Again) -> Check:
    """Equal, noisy, or not the same prefix after all.

    Rounding and float32 kernels are no noise. Where the ids before are the same and the prompt is
    not, every role's log-prob differs, much and together; a role that is equal vouches for the
    prefix.
    """
    told = (
        f"{seen.differing} of {seen.tokens} tokens scored twice behind one prefix differ, by "
        f"{seen.noise**0.5 * 2**0.5:.2g} nats (root mean square)"
    )
    if _equal(summary, role, seen):
        return Check(CODE, role, "passed", told)
    if seen.differing >= MANY * seen.tokens and _is_noise(summary, role, seen):
        return Check(CODE, role, "failed", told)
    told += ": no noise does that, so their prompts or weights may differ; log prompt_id and step"
    return Check(CODE, role, "not-possible", told)


def _equal(summary: Summary, role: str, seen: Again) -> bool:
    _, step = summary.columns[role].grid
    return seen.noise <= max(FLOAT32_FLOOR**2, step * step / 12)


def _is_noise(summary: Summary, role: str, seen: Again) -> bool:
    """Small, or of a size that noise has and hardly seen in other roles, or in one role alone."""
    witnesses = (
        _equal(summary, other, one)
        for other, one in summary.again.roles.items()
        if other != role and one.tokens >= FEWEST
    )
    if seen.noise < SMALL * seen.spread or (not _doubt(summary, role) and any(witnesses)):
        return True
    return seen.noise < LARGE * seen.spread and summary.again.correlation(role) < UNRELATED


def _doubt(summary: Summary, role: str) -> str:
    """Why the weights may have changed between two rows; nothing if they did not."""
    if role == "reference":
        return ""
    if role in MOVING:
        return f" (if one set of weights scored all rows: {role} may change with every minibatch)"
    return "" if summary.again.by_step else " (if these rows are of one step: no step is logged)"


def _floors(summary: Summary, noises: dict[str, float]) -> dict[Question, tuple[float, float]]:
    """By question, what the noise makes of k3, and k3."""
    found = {}
    for question, state in summary.questions.items():
        noise = noises.get(question.p, 0.0) + noises.get(question.q, 0.0)
        if noise and state.tokens:
            found[question] = noise / 2, state.mean("raw_k3")
    return found


def _finding(summary: Summary, noises: dict[str, float]) -> Finding:
    floors = _floors(summary, noises)
    shares = {q: floor / k3 if k3 > 0 else 0.0 for q, (floor, k3) in floors.items()}
    role = max(noises, key=lambda one: noises[one])
    seen, others = summary.again.roles[role], [one for one in noises if one != role]
    also = f" So do those of {', '.join(others)}." if others else ""
    doubt = _doubt(summary, role)
    return Finding(
        code=CODE,
        severity="warning" if max(shares.values(), default=0.0) >= OWNS else "note",
        certainty="likely" if doubt else "certain",
        questions=tuple(str(question) for question, share in shares.items() if share >= TELLS),
        claim=(
            f"Scored twice behind the same prefix, {seen.differing} of {seen.tokens} tokens have "
            f"two log-probs of {role}, {2**0.5 * seen.noise**0.5:.2g} nats apart (root mean "
            f"square){doubt}.{also} Each log-prob carries noise of {seen.noise**0.5:.2g}: dropout "
            "was left on, or the kernels depend on the batch."
        ),
        numbers={
            "noise": {one: variance**0.5 for one, variance in noises.items()},
            "tokens": seen.tokens,
            "differing": seen.differing,
            "largest": seen.largest,
            "k3_of_noise": {str(question): floor for question, (floor, _) in floors.items()},
        },
        cost=_cost(floors, shares),
        advice="Score with dropout off (evaluation mode), both sides by one kernel in one "
        "precision, with kernels that do not depend on the batch. What is left at the first step "
        "is the floor of every later KL.",
        where=(str(seen.first),),
    )


def _cost(floors: dict[Question, tuple[float, float]], shares: dict[Question, float]) -> str:
    if not floors:
        return "No question is asked of it."
    worst = max(shares, key=lambda question: shares[question])
    floor, k3 = floors[worst]
    return (
        f"Of equal weights it makes a k3 of {floor:.2g} or more (unlikely tokens, which two "
        f"sequences seldom share, are noisier); {worst} is {k3:.3g} by k3. "
        f"{decided(k3, max(k3 - floor, 0.0)) if shares[worst] >= TELLS else ''}"
    ).rstrip()
