"""Studies with a known truth come out right on the real rack; bench/truth/known.py asks the same, and prints figures."""

from __future__ import annotations

import pytest
from helpers.support import bench, by_length

known = bench("truth.known")


@pytest.mark.soak(1.5)
@pytest.mark.parametrize("seed", range(1, by_length(2, 21)))
@pytest.mark.parametrize("case", by_length(["larger", "equal"], list(known.ASKED)))  # a burn is in test_costs.py
def test_a_study_finds_what_is_so(case: str, seed: int) -> None:
    """A study that lost its runs to a busy machine says that it is no evidence, or that it needs more blocks, and is made
    again."""
    for _ in range(3):
        found = known.once(case, seed)
        if not (known.held_up(found) or "undecided" in [each["verdict"] for each in found["verdicts"]]):
            break
    assert known.wrong(case, found) == []
