"""What must not change a number: junk under the mask, padding, order, names of clusters, types.

That any partition merges to the same state stands in test_merging.py, and that a dump reads back
to the last bit in tests/dumps/test_write.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kullback.columns import pack
from kullback.dumps import read, write
from kullback.estimation.estimate import Estimate, estimate
from kullback.estimation.summary import summarize
from kullback.reporting.document import document

PROPERTY = settings(max_examples=40, deadline=None)
JUNK = (np.nan, np.inf, -np.inf, 1e308, -1e308, -9999.0, 0.0, 5.0)
# Sixteenths down to −16: bfloat16 and half precision hold them, and differences are exact.
LOG_PROBS = st.integers(-255, 0).map(lambda n: n / 16) | st.sampled_from(
    [np.nan, -np.inf, -9999.0, 0.0]
)
TOKENS = st.tuples(LOG_PROBS, LOG_PROBS, LOG_PROBS, st.booleans(), st.sampled_from(JUNK))
SEQUENCES = st.lists(
    st.tuples(st.lists(TOKENS, max_size=5), st.integers(0, 3)), min_size=1, max_size=8
)
# Where p sampled, where a third policy did, and where all that stands before a token weighs, too.
ASKED: list[tuple[bool, dict[str, Any]]] = [
    (False, {"level": "token_mean"}),
    (False, {"level": "sequence_sum"}),
    (False, {"level": "sequence_mean"}),
    (True, {"level": "token_mean"}),
    (True, {"level": "sequence_sum", "prefixes": "p"}),
]
METHODS = ("k1", "k2", "k3")


def flat(sequences: Any, *, junk: bool) -> dict[str, Any]:
    """The tokens end to end; with junk at those that do not count, or as they are."""
    rows = [token for tokens, _ in sequences for token in tokens]
    given = [t if t[3] or not junk else (t[4], t[4], t[4], False, t[4]) for t in rows]
    columns = np.array(given, dtype=np.float64).reshape(-1, 5).T
    return {
        "log_p": columns[0],
        "log_q": columns[1],
        "log_sampler": columns[2],
        "mask": np.array([t[3] for t in rows], dtype=bool),
        "lengths": np.array([len(tokens) for tokens, _ in sequences]),
        "clusters": np.array([cluster for _, cluster in sequences]),
    }


def estimates(arrays: dict[str, Any]) -> list[Estimate]:
    """Every number that can be asked of the arrays."""

    def asked(third: bool, method: str, options: dict[str, Any]) -> Estimate:
        sampler = arrays["log_sampler"] if third else None
        return estimate(**arrays | {"log_sampler": sampler}, **options, method=method)

    return [asked(third, method, how) for third, how in ASKED for method in METHODS]


def same(one: list[Estimate], other: list[Estimate], *, size: float | None = None) -> None:
    """The same numbers: to the last bit, or within rounding of sums of numbers of this size."""
    for a, b in zip(one, other, strict=True):
        if size is None:
            assert repr(a) == repr(b)
            continue
        numbers = ("mean", "low", "high", "standard_error", "effective_clusters")
        left, right = (replace(e, **dict.fromkeys(numbers, 0.0)) for e in (a, b))
        assert left == right  # counts, clusters, marks and reasons are exact
        for name in numbers:
            got, meant = getattr(a, name), getattr(b, name)
            assert got == pytest.approx(meant, rel=1e-7, abs=1e-7 * size, nan_ok=True), name
        assert a.mean == pytest.approx(b.mean, rel=1e-12, abs=1e-12 * size, nan_ok=True)


@PROPERTY
@given(SEQUENCES)
def test_what_stands_at_masked_tokens_changes_no_bit(sequences):
    clean, junk = (estimates(flat(sequences, junk=junk)) for junk in (False, True))
    same(clean, junk)


@PROPERTY
@given(SEQUENCES)
def test_a_report_does_not_see_what_stands_at_masked_tokens(sequences):
    reports = []
    for junk in (False, True):
        given = flat(sequences, junk=junk)
        roles = {role: given[f"log_{role}"] for role in ("p", "q", "sampler")}
        options = {name: given[name] for name in ("mask", "lengths", "clusters")}
        batch = pack(roles, **options)
        asked = ["KL(p||q)", "KL(p||q) ~ sampler", "KL(p||q) ~ sampler prefixes p per sequence"]
        reports.append(document(summarize([batch], questions=asked)))
    assert reports[0]["questions"] == reports[1]["questions"]
    assert reports[0]["checks"] == reports[1]["checks"]


@PROPERTY
@given(SEQUENCES, st.integers(0, 3), st.booleans())
def test_padding_is_the_same_as_lengths(sequences, more: int, left: bool):
    """Padded on either side to any width, with anything in the padding."""
    given = flat(sequences, junk=False)
    width = int(given["lengths"].max()) + more
    shape = (len(sequences), width)
    place = np.arange(width) < given["lengths"][:, None]
    place = place[:, ::-1] if left else place
    padded: dict[str, Any] = {"clusters": given["clusters"], "mask": np.zeros(shape, dtype=bool)}
    padded["mask"][place] = given["mask"]
    for name in ("log_p", "log_q", "log_sampler"):
        padded[name] = np.resize(np.array(JUNK), shape)
        padded[name][place] = given[name]
    same(estimates(given), estimates(padded))


def largest(found: list[Estimate]) -> float:
    """The largest number there is, by which rounding is measured: sums of such terms cancel."""
    return max([1.0, *(abs(one.mean) for one in found if one.mean == one.mean)])


@PROPERTY
@given(SEQUENCES, st.randoms(use_true_random=False))
def test_the_order_of_sequences_changes_nothing_but_rounding(sequences, random):
    order = list(sequences)
    random.shuffle(order)
    one, other = (estimates(flat(each, junk=False)) for each in (sequences, order))
    same(one, other, size=largest(one))


@PROPERTY
@given(SEQUENCES, st.permutations(range(4)))
def test_names_of_clusters_are_names(sequences, names):
    given = flat(sequences, junk=False)
    texts = np.array([f"prompt {names[cluster]}" for cluster in given["clusters"].tolist()])
    found = estimates(given)
    for clusters in (np.array(names)[given["clusters"]], texts):
        same(found, estimates(given | {"clusters": clusters}), size=largest(found))


@PROPERTY
@given(SEQUENCES, st.sampled_from([np.float32, np.float16]))
def test_the_type_that_holds_a_number_does_not_change_it(sequences, kind):
    given = flat(sequences, junk=False)
    # Half precision has no -9999 (it would be -10000, which is a number and no sentinel).
    narrow = {
        name: np.where(given[name] == -9999, np.nan, given[name])
        for name in ("log_p", "log_q", "log_sampler")
    }
    held = {name: values.astype(kind) for name, values in narrow.items()}
    same(estimates(given | narrow), estimates(given | held))


@PROPERTY
@given(SEQUENCES, st.sampled_from([np.float32, np.float64]))
def test_a_report_of_what_was_written_is_that_of_what_was_there(tmp_path_factory, sequences, kind):
    given = flat(sequences, junk=False)
    roles = {role: given[f"log_{role}"].astype(kind) for role in ("p", "q", "sampler")}
    options = {name: given[name] for name in ("mask", "lengths", "clusters")}
    batch = pack(roles, **options)
    batch = replace(batch, labels={"prompt_id": given["clusters"]})
    meant = without_places(document(summarize([batch])))
    folder = tmp_path_factory.mktemp("written")
    for name in ("a.parquet", "a.jsonl"):
        write(batch, folder / name)
        assert without_places(document(summarize(read(folder / name)))) == meant


def without_places(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The numbers of a report, whatever the file is called that they come from."""
    questions = [one | {"trust": None} for one in report["questions"]]
    for one in questions:
        one["top"] = [top | {"source": None} for top in one["top"]]
        one["advice"] = one["advice"] | {"where": len(one["advice"]["where"])}
    return questions


@PROPERTY
@given(SEQUENCES)
def test_p_and_q_exchanged_turn_the_sign_of_k1_on_the_same_tokens(sequences):
    """Without the weight, which is of another policy then; k2 stays, and k1's spread too."""
    given = flat(sequences, junk=False)
    # A token whose ratio is finite one way is not always so the other way: take those that are.
    sound = np.isfinite(given["log_p"]) & np.isfinite(given["log_q"])
    given["mask"] &= sound & np.isfinite(given["log_sampler"])
    batch = pack(
        {role: given[f"log_{role}"] for role in ("p", "q", "sampler")},
        mask=given["mask"],
        lengths=given["lengths"],
        clusters=given["clusters"],
    )
    there, back = ["KL(p||q) ~ sampler", "KL(q||p) ~ sampler"]
    one, other = document(summarize([batch], questions=[there, back]))["questions"]
    assert one["counts"] == other["counts"]
    k1, turned = one["distribution"]["k1"], other["distribution"]["k1"]
    if not one["counts"]["tokens"]:
        assert k1["mean"] == turned["mean"] == 0
        return
    assert k1["mean"] == -turned["mean"]
    assert (k1["min"], k1["max"]) == (-turned["max"], -turned["min"])
    assert k1["std"] == turned["std"]
    assert one["unweighted_k1"] == -other["unweighted_k1"]
    assert one["distribution"]["k2"]["mean"] == other["distribution"]["k2"]["mean"]


def test_the_laws_are_of_something() -> None:
    """On a batch of the kind that is drawn above the numbers exist, and the weights weigh."""
    rng = np.random.default_rng(0)
    tokens = [(*(-rng.integers(0, 64, 3) / 16), True, np.nan) for _ in range(40)]
    cuts = [(0, 3), (3, 9), (9, 11), (11, 20), (20, 40)]
    given = flat([(tokens[i:j], i % 3) for i, j in cuts], junk=False)
    found = estimates(given)
    assert all(one.mean == one.mean and one.low <= one.mean <= one.high for one in found)
    assert len({round(one.mean, 9) for one in found}) == len(found)
