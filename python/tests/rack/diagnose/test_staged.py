"""Trouble that is staged for real: two hosts, and a wire between them that knows what it did. A short form of
`bench.diagnosis`, which judges every scene in many variants.

Only scenes that a busy machine does not change: what makes them is in the wire, in a timer of the kernel's or in what a
program does, and a run in which the wire was late is staged again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.support import ROOT, bench

staging, judging = bench("diagnosis.staging"), bench("diagnosis.__main__")
# Of numbers that `bench.diagnosis` does not reach, two whose faults lie where most taps can know of them; both families,
# with and without offloads.
VARIANTS = (5095, 5197)
EVERYWHERE = frozenset({"sender", "switch", "receiver"})
# What must be named, and the taps that can know it: a packet that was lost before a tap leaves no trace there.
TROUBLES = {
    "one loss": ("fast_retransmit", EVERYWHERE),
    "lost flight": ("rto_stall", EVERYWHERE),
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
# A host that a busy machine kept from a CPU for so long is slow for a reason that no packet shows: its scene is staged
# again. What is wrong although both hosts ran when they wanted to is wrong. Shorter pauses are called nothing.
TRIES = 5
MOST_WAITED_SECONDS = 0.01
Samples = dict[tuple[str, int], dict[str, Any]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """By scene and variant, how each tap's diagnosis was judged."""
    found: Samples = {}
    again = {(name, number) for name in (*TROUBLES, *CLEAN) for number in VARIANTS}
    for _ in range(TRIES):
        judged, waited = judge(sorted({name for name, _ in again}), tmp_path_factory.mktemp("scenes"))
        found |= {key: judged[key] for key in again}
        again = {key for key in again if not is_right(key[0], found[key]) and waited[key] > MOST_WAITED_SECONDS}
        if not again:
            break
    return found


def is_right(name: str, taps: dict[str, Any]) -> bool:
    return not any(sample.wrong if name in CLEAN else sample.missed for sample in taps.values())


def judge(names: list[str], folder: Path) -> tuple[Samples, dict[tuple[str, int], float]]:
    """Stage these scenes, in processes of their own, which may fork; judge what is said of each, and how long its hosts
    waited for a CPU."""
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
    judged = {
        (scene.name, number): {sample.tap: sample for sample in samples}
        for (scene, number, _), _, _, samples in judging.diagnose(staged)
    }
    return judged, waited


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize("name", TROUBLES)
def test_what_was_provoked_is_named_wherever_it_can_be_known(samples: Samples, name: str, number: int) -> None:
    kind, where = TROUBLES[name]
    taps = samples[name, number]
    assert set(taps) == EVERYWHERE
    assert {tap for tap, sample in taps.items() if kind in sample.found} >= where, taps
    assert is_right(name, taps), taps


@pytest.mark.parametrize("number", VARIANTS)
@pytest.mark.parametrize("name", CLEAN)
def test_where_nothing_was_provoked_nothing_is_named(samples: Samples, name: str, number: int) -> None:
    taps = samples[name, number]
    assert set(taps) == EVERYWHERE
    assert not [(sample.tap, sample.wrong) for sample in taps.values() if sample.wrong]
