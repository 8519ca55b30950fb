"""How many studies that lose runs are no evidence, with further blocks where they are wanted and without.

    .venv/bin/python -m bench.truth.exclusions [--studies 4000]

Studies of four cells and eight blocks, with an A/A control, in which runs are lost with a given chance: in all arms
alike, where every study without a verdict is a false alarm; or only in the arm with the treatment, where each with
verdicts has missed what makes it unfair. Either each attempt for itself, or for as long as what spoils them lasts: then
a retry of a lost run is lost in two of three. Only the rule about exclusions is tried, so no goodput is made up.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
import random
from functools import lru_cache

from bench.common import save

from framegauge.experiment.runner import MORE_BLOCKS
from framegauge.statistics.exclusions import Counts, exclusions_differ

CELLS, BLOCKS, RETRIES = 4, 8, 2
ARMS = ("baseline", "control", "treatment")
CHANCES = (0.03, 0.07, 0.1, 0.2, 0.3)
AGAIN = 2 / 3  # of the retries of a lost run, where what spoils runs lasts

differ = lru_cache(maxsize=None)(exclusions_differ)


class Losses:
    """The slots of a study that lost a run, and all of them, by cell and arm."""

    def __init__(self, chance: float, again: float, arms: tuple[str, ...], dice: random.Random) -> None:
        self.chance, self.again, self.arms, self.dice = chance, again, arms, dice
        self.counts: dict[tuple[int, str], Counts] = {(cell, arm): (0, 0) for cell in range(CELLS) for arm in ARMS}

    def block(self) -> None:
        """Every slot until its run counts, or its retries are spent."""
        for key, (lost, tried) in self.counts.items():
            is_lost = self._attempts(key[1])
            self.counts[key] = (lost + is_lost, tried + 1)

    def _attempts(self, arm: str) -> bool:
        """One slot; whether it lost a run."""
        for attempt in range(1 + RETRIES):
            if arm not in self.arms or self.dice.random() >= (self.again if attempt else self.chance):
                return attempt > 0
        return True

    def suspect(self) -> tuple[int, bool]:
        """Of how many cells the treatment has no verdict, and whether more runs are wanted."""
        doubted, wants = 0, False
        for cell in range(CELLS):
            for arm in ARMS[1:]:
                pairs = [(self.counts[cell, ARMS[0]], self.counts[cell, arm]), (self.all(ARMS[0]), self.all(arm))]
                unequal = [doubt for pair in pairs if (doubt := differ(*pair)) is not None]
                doubted += bool(unequal) and arm == "treatment"
                wants |= bool(unequal) and not any(doubt.is_shown for doubt in unequal)
        return doubted, wants

    def all(self, arm: str) -> Counts:
        """Over all cells."""
        counts = [entry for (_, name), entry in self.counts.items() if name == arm]
        return sum(lost for lost, _ in counts), sum(tried for _, tried in counts)


def studies(chance: float, again: float, arms: tuple[str, ...], count: int) -> dict[str, float]:
    """Shares of studies in which some treatment has no verdict, and how many blocks more they took."""
    dice = random.Random(f"{chance} {again} {arms}")
    before = after = more = 0
    for _ in range(count):
        study = Losses(chance, again, arms, dice)
        for _ in range(BLOCKS):
            study.block()
        doubted, wants = study.suspect()
        before += doubted > 0
        for _ in range(math.ceil(MORE_BLOCKS * BLOCKS)):
            if not wants:
                break
            study.block()
            more += 1
            doubted, wants = study.suspect()
        after += doubted > 0
    return {"planned_blocks": before / count, "more_blocks": after / count, "blocks_more": more / count}


def main() -> None:
    """Both kinds of loss, each for itself and lasting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4000)
    options = parser.parse_args()
    figures = {}
    for name, arms in (("all arms alike", ARMS), ("the treatment only", ARMS[2:])):
        for chance, lasts in ((chance, lasts) for lasts in (False, True) for chance in CHANCES):
            shares = studies(chance, AGAIN if lasts else chance, arms, options.studies)
            figures[f"{name}, {chance}{', lasting' if lasts else ''}"] = shares
            print(
                f"{chance:4.0%} lost in {name}{' for a while' if lasts else ''}: no verdict in "
                f"{shares['planned_blocks']:.1%} of studies, with more blocks in {shares['more_blocks']:.1%} "
                f"({shares['blocks_more']:.2f} more on average)"
            )
    print(f"figures: {save('bench-exclusions', figures)}")


if __name__ == "__main__":
    main()
