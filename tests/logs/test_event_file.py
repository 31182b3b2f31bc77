from __future__ import annotations

import pytest

from kullback.dumps.errors import DumpError
from kullback.logs.event_file import _of_tensor, is_event_file
from kullback.logs.read import read_log


@pytest.fixture
def events(data, tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(next(data.glob("*tfevents*")).read_bytes())
    return path


def test_it_begins_with_its_version(events):
    assert is_event_file(events.read_bytes())
    assert not is_event_file(b"\x18" + bytes(40))


def test_a_record_that_is_still_written_is_left_out(events):
    whole = events.read_bytes()
    for cut in (3, 20):
        events.write_bytes(whole[:-cut])
        log = read_log(events)
        assert len(log["response_length/mean"]) == 11
        assert "ends within a record" in log.notes[0]
    events.write_bytes(whole + b"\x01")
    assert "ends within a record" in read_log(events).notes[0]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [(40, "the length of a record"), (-30, "a record does not fit its checksum")],
)
def test_damage_is_found_by_its_checksum(events, place, sentence):
    damaged = bytearray(events.read_bytes())
    first = 16 + damaged[0]  # where the second record begins, by the length of the first
    damaged[first + 1 if place > 0 else place] ^= 0xFF
    events.write_bytes(damaged)
    with pytest.raises(DumpError, match=rf"byte \d+: {sentence}"):
        read_log(events)


def test_several_files_of_a_run_are_one(events, tmp_path):
    (tmp_path / "events.out.tfevents.2").write_bytes(events.read_bytes())
    log = read_log(tmp_path)
    assert log.run == "."
    assert log.steps == 12
    assert "start again at step 1" in log.notes[0]


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"\x08\x01\x2a\x04\x00\x00\x00\x3f", 0.5),  # float_val, packed
        (b"\x08\x01\x22\x04\x00\x00\x00\x3f", 0.5),  # tensor_content
        (b"\x08\x03\x38\x07", 7.0),  # int_val
        (b"\x08\x07\x42\x01a", None),  # text
        (b"\x08\x01\x22\x08\x00\x00\x00\x3f\x00\x00\x00\x3f", None),  # two numbers
    ],
)
def test_a_tensor_of_one_number_is_one(data, number):
    assert _of_tensor(data) == number
