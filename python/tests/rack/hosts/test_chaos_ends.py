"""Whatever ends a study, a sweep or a lease at a random moment, nothing is left and what was done is there (bench/hosts)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers.support import bench, by_length

chaos = bench("hosts.chaos_ends")


@pytest.mark.soak(60)
@pytest.mark.parametrize("scene", by_length(("lease",), tuple(chaos.SCENES)))
def test_nothing_is_left_and_nothing_is_lost(scene: str, tmp_path: Path) -> None:
    kinds = chaos.KINDS[scene]
    for number in range(by_length(2, 70)):
        folder = tmp_path / str(number)
        folder.mkdir()
        draw = random.Random(f"{scene} {number}")
        seen = chaos.SCENES[scene](draw.choice(kinds), folder, draw)
        assert seen.wrong == (), (number, seen.ending)
