"""How many studies that lose runs are no evidence, with further blocks where they are wanted and without.

    .venv/bin/python -m bench.truth.exclusions [--studies 4000]

Studies of four cells and eight blocks, with an A/A control, in which runs are lost with a given chance: in all arms
alike, where every study without a verdict is a false alarm; or only in the arm with the treatment, where each with
verdicts has missed what makes it unfair. Only the rule about exclusions is tried, so no goodput is made up.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
import random
from functools import lru_cache

from bench.common import save

from framegauge.experiment.runner import MORE_BLOCKS
from framegauge.statistics.exclusions import exclusions_differ

CELLS, BLOCKS, RETRIES = 4, 8, 2
ARMS = ("baseline", "control", "treatment")
CHANCES = (0.03, 0.07, 0.1, 0.2, 0.3)

Counts = tuple[int, int]
differ = lru_cache(maxsize=None)(exclusions_differ)


class Losses:
    """(excluded, attempted) runs of a study, by cell and arm."""

    def __init__(self, chance: float, arms: tuple[str, ...], dice: random.Random) -> None:
        self.chance, self.arms, self.dice = chance, arms, dice
        self.counts: dict[tuple[int, str], Counts] = {(cell, arm): (0, 0) for cell in range(CELLS) for arm in ARMS}

    def block(self) -> None:
        """Every slot until its run counts, or its retries are spent."""
        for key in self.counts:
            for _ in range(1 + RETRIES):
                is_lost = key[1] in self.arms and self.dice.random() < self.chance
                lost, tried = self.counts[key]
                self.counts[key] = (lost + is_lost, tried + 1)
                if not is_lost:
                    break

    def suspect(self) -> tuple[int, bool]:
        """Of how many cells the treatment has no verdict, and whether more runs are wanted."""
        found, wants = 0, False
        for cell in range(CELLS):
            for arm in ARMS[1:]:
                pairs = [(self.counts[cell, ARMS[0]], self.counts[cell, arm]), (self.all(ARMS[0]), self.all(arm))]
                unequal = [each for pair in pairs if (each := differ(*pair)) is not None]
                found += bool(unequal) and arm == "treatment"
                wants |= bool(unequal) and not any(each.is_shown for each in unequal)
        return found, wants

    def all(self, arm: str) -> Counts:
        """Over all cells."""
        mine = [counts for (_, each), counts in self.counts.items() if each == arm]
        return sum(lost for lost, _ in mine), sum(tried for _, tried in mine)


def studies(chance: float, arms: tuple[str, ...], count: int) -> dict[str, float]:
    """Shares of studies in which some treatment has no verdict, and how many blocks more they took."""
    dice = random.Random(f"{chance} {arms}")
    before = after = more = 0
    for _ in range(count):
        study = Losses(chance, arms, dice)
        for _ in range(BLOCKS):
            study.block()
        found, wants = study.suspect()
        before += found > 0
        for _ in range(math.ceil(MORE_BLOCKS * BLOCKS)):
            if not wants:
                break
            study.block()
            more += 1
            found, wants = study.suspect()
        after += found > 0
    return {"planned_blocks": before / count, "more_blocks": after / count, "blocks_more": more / count}


def main() -> None:
    """Both kinds of loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000)
    options = parser.parse_args()
    figures = {}
    for name, arms in (("all arms alike", ARMS), ("the treatment only", ARMS[2:])):
        for chance in CHANCES:
            figures[f"{name}, {chance}"] = found = studies(chance, arms, options.studies)
            print(
                f"{chance:4.0%} lost in {name}: no verdict in {found['planned_blocks']:.1%} of studies, "
                f"with more blocks in {found['more_blocks']:.1%} ({found['blocks_more']:.2f} more on average)"
            )
    print(f"figures: {save('bench-exclusions', figures)}")


if __name__ == "__main__":
    main()
