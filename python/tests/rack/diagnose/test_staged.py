"""Trouble that is staged for real: two hosts, and a wire between them that knows what it did. A short form of
`bench.diagnosis`, which judges every scene in many variants.

Only scenes that a busy machine does not change: what makes them is in the wire, in a timer of the kernel's or in what a
program does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.real import because_held_up, judged
from helpers.support import ROOT, bench

staging, judging = bench("diagnosis.staging"), bench("diagnosis.__main__")
# Of numbers that `bench.diagnosis` does not reach, two whose faults lie where most taps can know of them; both families,
# with and without offloads.
VARIANTS = (5095, 5197)
EVERYWHERE = frozenset({"sender", "switch", "receiver"})
# What must be named, and the taps that can know it: a packet that was lost before a tap leaves no trace there.
TROUBLES = {
    "one loss": ("fast_retransmit", EVERYWHERE),
    "timeout in slow start": ("rto_stall", EVERYWHERE),  # its sender sends no probes, which may come before a timer
    "two small writes": ("nagle_delayed_ack", EVERYWHERE),
    "paused reader": ("zero_window", EVERYWHERE),
    "black hole": ("pmtu_black_hole", frozenset({"sender", "switch"})),
    "lost SYN": ("syn_loss", frozenset({"switch", "receiver"})),  # the receiver opens the connection
    "refused": ("connection_refused", EVERYWHERE),
    "reset": ("reset", EVERYWHERE),
}
# The same programs without the trouble.
CLEAN = ("clean stream", "clean asks", "clean split writes")
STAGING_SECONDS = 300.0  # it takes ten; two hosts that hang take twenty each time
# A host that a busy machine kept from a CPU for so long is slow for a reason that no packet shows. What is wrong although
# both hosts ran when they wanted to is wrong. Shorter pauses are called nothing.
MOST_WAITED_SECONDS = 0.01


@dataclass(frozen=True)
class Judged:
    """How the taps of a scene were judged, and why it may be no evidence."""

    taps: dict[str, Any]
    excluded: list[str]


Scenes = dict[tuple[str, int], Judged]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    """By scene and variant, how each tap's diagnosis was judged."""
    return judge([*TROUBLES, *CLEAN], tmp_path_factory.mktemp("scenes"))


def right(scenes: Scenes, name: str, number: int, folder: Path) -> dict[str, Any]:
    """The taps of a scene in which nothing is wrong; it is staged once again if a host was kept from a CPU."""
    staged = iter([scenes[name, number]])

    def make() -> Sequence[Judged]:
        return [next(staged, None) or judge([name], folder)[name, number]]

    def is_as_it_must_be(attempt: Sequence[Judged]) -> bool:
        print(attempt[0].taps)
        return is_right(name, attempt[0].taps)

    return judged(make, folder, is_as_it_must_be)[0].taps


def is_right(name: str, taps: dict[str, Any]) -> bool:
    return not any(sample.wrong if name in CLEAN else sample.missed for sample in taps.values())


def judge(names: list[str], folder: Path) -> Scenes:
    """Stage these scenes, in processes of their own, which may fork; judge what is said of each, and whether its hosts
    had a CPU when they wanted one."""
    started = [
        subprocess.Popen(
            [
                sys.executable, "-m", "bench.diagnosis", "--kind", ",".join(names), "--first", str(number),
                "--variants", "1", "--folder", str(folder), "--write", str(folder / f"{number}.md"),
            ],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for number in VARIANTS
    ]  # fmt: skip
    try:
        for each in started:
            told, _ = each.communicate(timeout=STAGING_SECONDS)
            assert each.returncode == 0, told
            assert "could not be staged" not in told, told
    finally:
        for each in started:
            each.kill()
    scenes = [scene for scene in staging.SCENES if scene.name in names]
    staged = [(scene, number, staging.place(folder, scene, number)) for scene in scenes for number in VARIANTS]
    waited = {}
    for scene, number, capture in staged:
        ran, _ = staging.truth(capture)
        waited[scene.name, number] = max(ran.sender["waited_seconds"], ran.receiver["waited_seconds"])
    return {
        (scene.name, number): Judged(
            {sample.tap: sample for sample in samples},
            [because_held_up(f"a host waited {waited[scene.name, number]:.3f} s for a CPU")]
            if waited[scene.name, number] > MOST_WAITED_SECONDS
            else [],
        )
        for (scene, number, _), _, _, samples in judging.diagnose(staged)
    }


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize("name", TROUBLES)
def test_what_was_provoked_is_named_wherever_it_can_be_known(
    scenes: Scenes, tmp_path: Path, name: str, number: int
) -> None:
    kind, where = TROUBLES[name]
    taps = right(scenes, name, number, tmp_path)
    assert set(taps) == EVERYWHERE
    assert {tap for tap, sample in taps.items() if kind in sample.found} >= where, taps


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize("name", CLEAN)
def test_where_nothing_was_provoked_nothing_is_named(scenes: Scenes, tmp_path: Path, name: str, number: int) -> None:
    taps = right(scenes, name, number, tmp_path)
    assert set(taps) == EVERYWHERE
    assert not [(sample.tap, sample.wrong) for sample in taps.values() if sample.wrong]
