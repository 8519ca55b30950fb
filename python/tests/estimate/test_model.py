"""A model of what CPUs take: known costs come out of runs that were made with them, or it is said why they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace

import numpy as np
import pytest

from framegauge.estimate.model import COSTS, DRAWS, Unfit, Work, fit

TRUE = {
    "wakeup": 4e-6, "receive.packet": 3e-7, "receive.aggregate": 1.1e-6, "receive.byte": 2e-9, "send.aggregate": 4e-7,
    "send.byte": 6e-10,
}  # fmt: skip


def made(mtus: tuple[int, ...] = (1500, 4000, 9000), merging: tuple[int, ...] = (1, 4), cut: tuple[int, ...] = (1, 25),
         blocks: int = 8, spread: float = 0.0, seed: int = 0) -> list[Work]:  # fmt: skip
    """Both hosts of transfers of 100 MB: of so many packets, so many merged, so many cut from one."""
    random = np.random.default_rng(seed)
    return list(_made(mtus, merging, cut, blocks, spread, random))


def _made(mtus, merging, cut, blocks, spread, random) -> Iterator[Work]:  # type: ignore[no-untyped-def]
    size = 100e6
    for block in range(blocks):
        for mtu in mtus:
            for each in merging:
                for pieces in cut:
                    packets = size / (mtu - 52)
                    answers = packets / max(each, 2)
                    sender = (packets / 3, answers, answers, 0.0, packets / pieces, size)
                    receiver = (packets / 2.5, packets, packets / each, size, answers, 0.0)
                    for side, counts in (("sends", sender), ("receives", receiver)):
                        known = sum(cost * count for cost, count in zip(TRUE.values(), counts, strict=True))
                        arm = f"{side} {mtu} {each} {pieces}"
                        yield Work(arm, block, known * (1 + spread * random.standard_normal()), *counts)


def test_known_costs_come_out() -> None:
    model = fit(made())
    assert dict(model.seconds) == pytest.approx(TRUE, rel=1e-6)
    assert max(map(abs, model.deviations.values())) < 1e-9
    assert len(model.deviations) == 2 * 3 * 2 * 2


def test_intervals_hold_what_is_true_as_often_as_they_should() -> None:
    held = dict.fromkeys(TRUE, 0)
    for seed in range(60):
        model = fit(made(spread=0.05, seed=seed, blocks=12))
        for name, (low, high) in model.intervals.items():
            held[name] += low <= TRUE[name] <= high
    # Of 60, 57 in the mean; a bootstrap over twelve blocks is somewhat too narrow.
    assert all(count >= 48 for count in held.values()), held


def test_a_cost_is_never_below_zero() -> None:
    noisy = fit(made(spread=0.3, seed=3))
    assert all(value >= 0 for value in noisy.seconds.values())
    assert all(0 <= low <= high for low, high in noisy.intervals.values())


def test_one_seed_gives_one_answer() -> None:
    assert fit(made(spread=0.1)) == fit(made(spread=0.1))
    assert fit(made(spread=0.1), seed=2).intervals != fit(made(spread=0.1)).intervals


@pytest.mark.parametrize(
    ("works", "why"),
    [
        ([], "found 0 blocks with figures of CPU time, expected 3 at least"),
        (made(blocks=2), "found 2 blocks"),
        (made(mtus=(1500,), merging=(1,), cut=(1,)), "rise and fall together"),
        (made(merging=(1,)), "rise and fall together"),
        ([replace(each, received_bytes=0.0) for each in made()], "found no received bytes in these runs"),
        ([replace(each, seconds=0.0) for each in made()], "found 0 blocks"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_apart_is_said(works: list[Work], why: str) -> None:
    with pytest.raises(Unfit, match=why):
        fit(works)


def test_counts_stand_in_the_order_of_their_costs() -> None:
    counts = astuple(made(blocks=3)[0])[3:]
    assert len(counts) == len(COSTS) == len(TRUE)
    assert list(TRUE) == list(COSTS)
    assert DRAWS >= 200
