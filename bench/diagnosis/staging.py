"""Stages variants, several at once, and keeps captures and truths in a folder, from which a next call goes on."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.diagnosis.field_scenes import FIELD
from bench.diagnosis.others import OTHERS
from bench.diagnosis.run import Ran, run
from bench.diagnosis.scenes import OWN, Scene

# A wire that was later than this has changed what it was to show; so has a kernel that was not scheduled for so long.
MOST_LATE_SECONDS = 0.004
SCENES = (*OWN, *FIELD, *OTHERS)
TRIES = 6
Staged = tuple[Scene, int, Path]


def place(folder: Path, scene: Scene, number: int) -> Path:
    """Where a variant's capture is."""
    return folder / f"{scene.name.replace(' ', '-').replace(',', '')}-{number}.pcapng.gz"


def stage(wanted: Iterable[tuple[Scene, int]], folder: Path, workers: int, say: Callable[[str], None]) -> list[Staged]:
    """Run those that are not there yet. What cannot be run is said, and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    all_of_them = [(scene, number, place(folder, scene, number)) for scene, number in wanted]
    missing = [each for each in all_of_them if not _truth(each[2]).exists()]
    for done, (name, number, problem) in enumerate(_in_parallel(missing, workers), 1):
        if problem:
            say(f"{done} of {len(missing)}: {name} {number}: {problem}")
        elif done % 50 == 0:
            say(f"{done} of {len(missing)}")
    return [each for each in all_of_them if _truth(each[2]).exists()]


def _in_parallel(missing: list[Staged], workers: int) -> Iterator[tuple[str, int, str]]:
    if not missing:
        return
    with multiprocessing.get_context("fork").Pool(workers, _ignore_interrupt, maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(_one, [(scene.name, number, capture) for scene, number, capture in missing])


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(wanted: tuple[str, int, Path]) -> tuple[str, int, str]:
    name, number, capture = wanted
    scene = next(each for each in SCENES if each.name == name)
    problem = ""
    for attempt in range(1, TRIES + 1):
        try:
            ran = run(scene.variant(number), capture)
        except (OSError, RuntimeError, TimeoutError) as why:
            problem = str(why).strip().splitlines()[-1]
            continue
        if ran.late <= MOST_LATE_SECONDS:
            _truth(capture).write_text(json.dumps({**asdict(ran), "attempts": attempt}) + "\n")
            return scene.name, number, ""
        problem = f"the wire was {ran.late * 1e3:.0f} ms late"
    return scene.name, number, problem


def _truth(capture: Path) -> Path:
    return capture.with_suffix("").with_suffix(".json")


def truth(capture: Path) -> tuple[Ran, int]:
    """What a run said, and how many attempts it took until the wire was in time."""
    found: dict[str, Any] = json.loads(_truth(capture).read_bytes())
    attempts = found.pop("attempts")
    return Ran(**found), attempts
