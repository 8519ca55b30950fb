"""Studies with a known truth come out right on the real rack; bench/truth/known.py asks the same twenty times."""

from __future__ import annotations

import pytest
from helpers.support import bench

known = bench("truth.known")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", list(known.ASKED))
def test_a_study_finds_what_is_so(case: str, seed: int) -> None:
    assert known.wrong(case, known.once(case, seed)) == []
