from __future__ import annotations

from kullback.diagnosis import alignment, openings, padding, sampler_tests
from kullback.diagnosis.finding import CODES
from kullback.estimation import sampler_state, terms
from kullback.explaining.accusing import ACCUSING


def test_every_accusing_code_is_written_of_and_no_other():
    accusing = {code for code, said in CODES.items() if said.accuses and said.of == "dump"}
    assert set(ACCUSING) == accusing


def test_thresholds_are_those_of_the_code_that_accuses():
    for code, thresholds in {
        "negative-beyond-chance": (
            f"{sampler_tests.ALPHA:.0%}",
            f"{sampler_tests.FLOAT32_FLOOR:g} nats per token",
        ),
        "sampler-mismatch": (
            f"H ≥ {sampler_state.ENTROPY_FLOOR}",
            str(sampler_tests.FEWEST_PREFIXES),
            f"{terms.STAKE:g} (q/p − 1)",
        ),
        "shifted-by-one": (f"{alignment.VARIANCE_LEFT:g} of that", f"{alignment.SQUARES_LEFT:g};"),
        "misaligned": (f"less than {alignment.UNRELATED:g}",),
        "mask-covers-padding": (f"{padding.FEW_PADDED:.0%}", f"{padding.FILLED:.0%}"),
        "mask-covers-prompt": (f"{openings.NEARLY_ALL:.0%}", f"{sampler_tests.NEARLY_ALL:.0%}"),
    }.items():
        assert all(one in ACCUSING[code].test for one in thresholds), code
