"""Studies with a known truth come out right on the real rack; bench/truth/known.py asks the same, and prints figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.real import judged
from helpers.support import SOAK, bench

known = bench("truth.known")


@dataclass(frozen=True)
class Studied:
    """A study as something that may be no evidence."""

    summary: dict[str, Any]

    @property
    def excluded(self) -> list[str]:
        """Why runs were excluded."""
        return [reason for each in self.summary["excluded"] for reason in each["reasons"]]


def has_answered(studies: Any) -> bool:
    """Whether the study kept its runs, or lost some and has a verdict on its treatment all the same."""
    (one,) = studies
    verdicts = [each["verdict"] for each in one.summary["verdicts"]]
    return not one.excluded or not (known.held_up(one.summary) or "undecided" in verdicts)


if SOAK:
    # Whether the rate of 1 Gb/s is carried, and how many blocks a verdict takes, is up to the machine. In `make test` that a
    # study tells an effect from none is in test_checks_can_fail.py, and the ratio in test_truth.py.

    @pytest.mark.soak(1.5)
    @pytest.mark.parametrize("seed", range(1, 21))
    @pytest.mark.parametrize("case", list(known.ASKED))
    def test_a_study_finds_what_is_so(case: str, seed: int, tmp_path: Path) -> None:
        [found] = judged(lambda: [Studied(known.once(case, seed))], tmp_path, has_answered)
        assert known.wrong(case, found.summary) == []
