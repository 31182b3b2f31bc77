"""NPZ as people save it: padded, flat, with scalars; and what somebody could hide in one."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kullback.dumps import Dump, DumpError, npz, read

WIDE = {
    "log_probs.a": np.array([[-1.0, -2.0, 0.0], [-3.0, -4.0, -5.0]], np.float32),
    "log_probs.b": np.array([[-1.5, -2.5, 0.0], [-3.5, -4.5, -5.5]]),
    "mask": np.array([[1, 1, 0], [1, 0, 1]]),
}
FLAT = {
    "log_probs.a": -np.arange(5.0),
    "log_probs.b": -np.arange(5.0) - 0.5,
    "lengths": np.array([2, 0, 3]),
}


def saved(folder: Path, arrays: dict[str, Any], compressed: bool = False) -> Path:
    path = folder / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_padded_arrays_have_the_full_width_and_a_mask(tmp_path: Path, compressed: bool):
    extra = {
        "prompt_id": np.array([7, 2**63], np.uint64),
        "step": np.array(3),
        "reward": np.zeros(2),
    }
    extra |= {"text": np.array(["a", "é"]), "sampling.log_probs": np.array("raw")}
    dump = read(saved(tmp_path, WIDE | extra, compressed))
    assert (dump.format, dump.rows, dump.unused) == (
        "kullback NPZ",
        2,
        {"reward": "no name that is known here"},
    )
    (chunk,) = dump
    assert chunk.lengths.tolist() == [3, 3]
    assert chunk.mask.tolist() == [True, True, False, True, False, True]
    assert chunk.log_probs["a"].dtype == np.float32
    assert chunk.log_probs["b"].tolist() == WIDE["log_probs.b"].ravel().tolist()
    assert chunk.labels["prompt_id"].tolist() == [7, 2**63]
    assert chunk.labels["step"].tolist() == [3, 3]
    assert chunk.labels["sampling.log_probs"].tolist() == ["raw", "raw"]
    assert chunk.text == ["a", "é"]


def test_lengths_cut_padded_arrays(tmp_path: Path):
    heads = {"tokens": np.arange(6).reshape(2, 3), "top_k.a": np.array(1)}
    heads |= {"top_ids.a": np.arange(12).reshape(2, 3, 2)}
    heads |= {"top_log_probs.a": -np.arange(12.0).reshape(2, 3, 2)}
    (chunk,) = read(saved(tmp_path, WIDE | heads | {"lengths": np.array([2, 3])}))
    assert chunk.lengths.tolist() == [2, 3]
    assert chunk.log_probs["a"].tolist() == [-1, -2, -3, -4, -5]
    assert chunk.mask.tolist() == [True, True, True, False, True]
    assert chunk.tokens is not None
    assert chunk.tokens.tolist() == [0, 1, 3, 4, 5]
    assert chunk.top_k["a"].ids.tolist() == [[0], [2], [6], [8], [10]]


@pytest.mark.parametrize("cuts", [FLAT["lengths"], None])
def test_flat_arrays_are_cut_by_lengths_or_their_sums(tmp_path: Path, cuts: Any):
    arrays = FLAT | {"prompt_id": np.array(["x", "y", "x"]), "versions": np.array([1, 2, 3])}
    if cuts is None:
        arrays["cu_seqlens"] = np.array([0, 2, 2, 5], np.int32)
        del arrays["lengths"]
    (chunk,) = read(saved(tmp_path, arrays))
    assert chunk.lengths.tolist() == [2, 0, 3]
    assert chunk.log_probs["b"].tolist() == FLAT["log_probs.b"].tolist()
    assert chunk.labels["prompt_id"].tolist() == ["x", "y", "x"]
    assert chunk.versions is not None
    assert chunk.versions.tolist() == [1, 1, 3, 3, 3]


def test_sequences_of_one_token_are_told_by_name(tmp_path: Path):
    arrays = {"log_probs.a": -np.ones(3), "log_probs.b": -np.ones(3), "lengths": np.ones(3, int)}
    (chunk,) = read(saved(tmp_path, arrays | {"step": np.arange(3), "tokens": np.arange(3)}))
    assert chunk.labels["step"].tolist() == [0, 1, 2]
    wide = {name: one[:, None] for name, one in arrays.items() if name != "lengths"}
    (other,) = read(saved(tmp_path, wide | {"lengths": np.ones(3, int)}))
    assert other.lengths.tolist() == chunk.lengths.tolist() == [1, 1, 1]


def test_names_of_other_projects_and_of_the_caller(tmp_path: Path):
    wide = list(WIDE.values())
    path = saved(tmp_path, {"rollout_log_probs": wide[0], "old_log_probs": wide[1]})
    assert read(path).format == "verl NPZ"
    path = saved(tmp_path, {"x": wide[0], "y": wide[1], "lengths": np.array([1, 3])})
    (chunk,) = read(path, map={"rollout": "x", "current": "y"})
    assert chunk.log_probs["rollout"].tolist() == [-1, -3, -4, -5]


def test_many_rows_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(npz, "DECODED_AT_ONCE", 50)
    wide = {name: -np.arange(700.0).reshape(100, 7) for name in ("log_probs.a", "log_probs.b")}
    (chunk,) = read(saved(tmp_path, wide, compressed=True))
    assert chunk.log_probs["a"].tolist() == (-np.arange(700.0)).tolist()
    flat = {name: one.ravel() for name, one in wide.items()} | {"lengths": np.arange(37)}
    flat["lengths"] = np.r_[flat["lengths"], 34]
    (chunk,) = read(saved(tmp_path, flat))
    assert chunk.log_probs["a"].tolist() == (-np.arange(700.0)).tolist()
    assert chunk.lengths.tolist() == [*range(37), 34]


@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_order_does_not_matter(tmp_path: Path, order: str):
    arrays = {name: one.astype(f"{order}f4") for name, one in list(WIDE.items())[:2]}
    (chunk,) = read(saved(tmp_path, arrays))
    assert chunk.log_probs["a"].tolist()[:2] == [-1.0, -2.0]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (
            WIDE | {"mask": np.array([None, 1])},
            "mask holds Python objects, which are not unpickled",
        ),
        (WIDE | {"mask": np.ones((5, 3))}, "mask has 5 sequences and there should be 2, by log_pr"),
        (WIDE | {"lengths": np.array([2, 4])}, "log_probs.a is 3 tokens wide, and the lengths go"),
        (WIDE | {"lengths": np.array([2.0, 3])}, "lengths must hold one whole number per sequence"),
        (WIDE | {"lengths": np.array([-1, 3])}, "by lengths, a sequence would have -1 tokens"),
        (WIDE | {"mask": np.ones((3, 2)).T}, "mask is stored by columns (Fortran order)"),
        (FLAT | {"lengths": np.array([2, 2])}, "the lengths add up to 4, but log_probs.a has 5"),
        (
            FLAT | {"mask": np.ones(4, bool)},
            "mask has 4 tokens and there should be 5, by the lengths",
        ),
        (dict(list(FLAT.items())[:2]), "holds flat log-probs and no lengths"),
        (dict(list(FLAT.items())[:2]) | {"cu_seqlens": np.array([1, 5])}, "must begin with 0"),
        ({"x": np.ones(3)}, "has log-probs of none"),
    ],
)
def test_arrays_that_do_not_fit_are_one_sentence(tmp_path: Path, arrays: Any, said: str):
    path = saved(tmp_path, arrays)
    with pytest.raises(DumpError) as error:
        list(read(path))
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)


def member(array: np.ndarray, shape: tuple[int, ...] | None = None) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    content = file.getvalue()
    return content if shape is None else content.replace(b"(2, 3), ", f"{shape}, ".encode())


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_header_that_asks_for_more_than_there_is_gets_nothing(tmp_path: Path):
    lying = member(WIDE["log_probs.a"], (9, 9**9))
    path = zipped(tmp_path / "a.npz", {"log_probs.a.npy": lying, "log_probs.b.npy": lying})
    with pytest.raises(
        DumpError, match=r"the header of log_probs\.a speaks of 13947137604 bytes, and"
    ):
        read(path)


def test_names_that_climb_are_names(tmp_path: Path):
    good = {f"{name}.npy": member(one) for name, one in WIDE.items()}
    dump = read(zipped(tmp_path / "a.npz", good | {"../../evil.npy": good["mask.npy"]}))
    assert dump.unused == {"../../evil": "no name that is known here"}
    assert [len(chunk) for chunk in dump] == [6]
    assert [one.name for one in tmp_path.rglob("*")] == ["a.npz"]


def test_an_archive_of_something_else_is_one_sentence(tmp_path: Path):
    path = zipped(tmp_path / "a.npz", {"data.pkl": b"cos\nsystem\n", "x.npy": b"no array"})
    with pytest.raises(DumpError, match="x has no header of an array"):
        read(path)
    with pytest.raises(DumpError, match="is a zip archive without NumPy arrays"):
        read(zipped(tmp_path / "a.npz", {"archive/data.pkl": b""}))


def test_two_arrays_of_one_name_are_refused(tmp_path: Path):
    path = saved(tmp_path, WIDE)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("mask.npy", member(WIDE["mask"]))
    with pytest.raises(DumpError, match="has two arrays named mask"):
        read(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_anywhere_is_a_sentence_or_nothing(tmp_path: Path, compressed: bool):
    path = saved(tmp_path, WIDE, compressed)
    whole = path.read_bytes()
    before = [chunk.log_probs["a"].tolist() for chunk in read(path)]
    refused = 0
    for place in range(0, len(whole), 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = [chunk.log_probs["a"].tolist() for chunk in read(path)]
        except DumpError:
            refused += 1
        else:
            assert found == before
    assert refused > len(whole) // 6
    for size in range(4, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DumpError):
            list(read(path))


def test_an_archive_that_changed_unnoticed_is_one_sentence(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Dump, "_require_unchanged", lambda self, path: None)
    dump = read(saved(tmp_path, WIDE))
    for arrays in ({"x": np.ones(3)}, WIDE | {"mask": np.ones(2)}):
        saved(tmp_path, arrays)
        with pytest.raises(DumpError, match="is not what it was when it was opened"):
            list(dump)


def test_an_archive_at_odds_with_itself_is_one_sentence_and_not_all_its_bytes(tmp_path: Path):
    path = saved(tmp_path, WIDE)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"log_probs.a.npy", bytes(15), 1))
    with pytest.raises(DumpError, match=r"cannot be read as NPZ .*: save it again") as refused:
        read(path)
    assert len(str(refused.value)) < len(str(path)) + 400
