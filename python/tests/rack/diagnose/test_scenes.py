"""Trouble that is made on purpose, between two kernels and on a wire that knows the truth, is named, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.support import bench, by_length

main, scoring = bench("diagnosis.__main__"), bench("diagnosis.scoring")
scenes, staging = bench("diagnosis.scenes"), bench("diagnosis.staging")
# So few taps see a kind in the short form that one error is much.
LEAST_TAPS = 50


@pytest.mark.soak(15)
def test_what_is_provoked_is_found_and_nothing_else(tmp_path: Path) -> None:
    wanted = [(scene, number) for number in range(1, by_length(2, 20) + 1) for scene in scenes.SCENES]
    staged = staging.stage(wanted, tmp_path, 4, print)
    assert len(staged) >= 0.95 * len(wanted)
    samples = [sample for _, _, _, some in main.diagnose(staged) for sample in some]
    table = scoring.scores(samples)
    told = {kind: (score.recall, score.precision) for kind, score in table.items()}
    assert scoring.macro_f1(table) >= 0.95, told
    warnings, flows = scoring.false_warnings(samples)
    assert warnings <= max(1, flows / 1000)
    for kind, score in table.items():
        if score.right + score.missed >= LEAST_TAPS:
            assert score.recall >= 0.9, (kind, score)
            assert score.precision >= 0.95, (kind, score)
