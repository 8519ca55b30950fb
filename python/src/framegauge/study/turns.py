"""Whose turn it is: the order of the arms in cells of a study that has few.

Whatever disturbs a machine at regular times (a job every minute, a fan that steps) may be in step with runs of equal
length. If each group of blocks gave every arm every position once, blocks would repeat each other in such a
disturbance: with two arms, one cell and a period of two blocks, a quarter of studies without any effect found one. A
random order errs seldom, but may leave an arm always first.

So each block draws its order from those that leave the arms most alike so far: in what a wave of any period would do to
each (its Fourier sum over the places of its runs), and in the positions that each has had. This is a biased coin (Efron
1971, Biometrika 58:403) whose covariates are the waves. More than FEW_CELLS cells come in an order that is random
enough. How often studies err beside a period is in docs/measured/calibration.md.
"""

from __future__ import annotations

import cmath
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from functools import lru_cache

__all__ = ["FEW_CELLS", "cell_order", "turns"]

FEW_CELLS = 4
WAVES = 48  # from one of 96 runs to one of two
LAST = 200  # later blocks are drawn freely: hardly any study has more
MOST_ORDERS = 24  # that a block chooses from: all of four arms
POWER = 4  # of the mean over waves: the largest count most
POSITIONS = 1.25  # their weight with two arms: what the first run suffers from is commoner than any period
SLACK = 0.15  # orders that are worse by this, for each arm but the first, may be drawn as well

_CIRCLE = [cmath.exp(1j * math.pi * place / WAVES) for place in range(2 * WAVES)]
_Order = tuple[int, ...]
_Pair = tuple[int, int]


def turns(seed: int, cells: int, arms: int, block: int) -> Sequence[_Order]:
    """The order of the arms in each cell of a block, by the cell's number, of a study with this seed."""
    return _study(seed, cells, arms).block(block)


@lru_cache(maxsize=16)
def _study(seed: int, cells: int, arms: int) -> _Turns:
    return _Turns(seed, cells, arms)


class _Turns:
    """All blocks of a study so far; each depends on those before it."""

    def __init__(self, seed: int, cells: int, arms: int) -> None:
        self._seed, self._count, self._arms = seed, cells, arms
        self._cells = [_Cell(arms) for _ in range(cells)]
        self._blocks: list[list[_Order]] = []

    def block(self, number: int) -> list[_Order]:
        """The order of the arms in each cell, by the cell's number."""
        while len(self._blocks) <= number:
            self._blocks.append(self._next(len(self._blocks)))
        return self._blocks[number]

    def _next(self, number: int) -> list[_Order]:
        generator = random.Random(f"framegauge turns {self._seed} {number}")
        free = [tuple(generator.sample(range(self._arms), self._arms)) for _ in range(self._count)]
        if number >= LAST:
            return free
        places = {cell: place for place, cell in enumerate(self._cells_of(number))}
        return [
            cell_state.drawn(generator, (number * self._count + places[cell]) * self._arms)
            for cell, cell_state in enumerate(self._cells)
        ]

    def _cells_of(self, number: int) -> list[int]:
        return cell_order(self._seed, number).sample(range(self._count), self._count)


class _Cell:
    """One cell: how much the arms differ so far, pair by pair, in each wave, and in their positions."""

    def __init__(self, arms: int) -> None:
        self._arms, self._weight = arms, POSITIONS * (arms - 1) ** 3
        self._pairs = list(itertools.combinations(range(arms), 2))
        self._waves = {pair: [0j] * WAVES for pair in self._pairs}
        self._positions = {pair: [0] * arms for pair in self._pairs}

    def drawn(self, generator: random.Random, place: int) -> _Order:
        """The order of a block whose first run in this cell has this place among all runs."""
        phases = [
            [_CIRCLE[wave * run % (2 * WAVES)] for wave in range(1, WAVES + 1)]
            for run in range(place, place + self._arms)
        ]
        orders = list(_orders(self._arms, generator))
        scores = [self._score(order, phases) for order in orders]
        enough = min(scores) * (1 + SLACK * (self._arms - 1)) + 1e-9
        chosen = generator.choice([order for order, score in zip(orders, scores, strict=True) if score <= enough])
        for pair in self._pairs:
            self._waves[pair] = self._after(pair, chosen, phases)
            self._positions[pair] = self._positions_after(pair, chosen)
        return chosen

    def _score(self, order: _Order, phases: Sequence[Sequence[complex]]) -> float:
        """How much the arms would differ after this order."""
        waves = [0.0] * WAVES
        uneven = 0
        for pair in self._pairs:
            for wave, value in enumerate(self._after(pair, order, phases)):
                waves[wave] += value.real * value.real + value.imag * value.imag
            uneven += sum(number * number for number in self._positions_after(pair, order))
        total = math.fsum(number**POWER for number in waves) + (self._weight * uneven) ** POWER
        return math.pow(total / (WAVES + 1), 1 / POWER)

    def _after(self, pair: _Pair, order: _Order, phases: Sequence[Sequence[complex]]) -> list[complex]:
        first, second = (phases[order.index(arm)] for arm in pair)
        return [before + one - other for before, one, other in zip(self._waves[pair], first, second, strict=True)]

    def _positions_after(self, pair: _Pair, order: _Order) -> list[int]:
        positions = list(self._positions[pair])
        positions[order.index(pair[0])] += 1
        positions[order.index(pair[1])] -= 1
        return positions


def _orders(arms: int, generator: random.Random) -> Iterator[_Order]:
    """All orders of the arms, or some if there are many."""
    if math.factorial(arms) <= MOST_ORDERS:
        yield from itertools.permutations(range(arms))
        return
    for _ in range(MOST_ORDERS):
        yield tuple(generator.sample(range(arms), arms))


def cell_order(seed: int, block: int) -> random.Random:
    """What a block draws the order of its cells from, first of all."""
    # `random` hashes a text seed with SHA-512, the same on every platform and Python version.
    return random.Random(f"framegauge order {seed} {block}")
