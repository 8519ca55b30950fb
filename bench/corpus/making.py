"""Makes the runs of a corpus, several at once. A finished run is whole and on disk before it has its name."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.corpus.truths import connections, named, own_of, truth
from bench.diagnosis import kernel_trace, taps
from bench.diagnosis.run import Played, play
from bench.diagnosis.scenes import Scene
from bench.diagnosis.staging import MOST_LATE_SECONDS, SCENES, TRIES

RUNS, UNFINISHED = "runs", ".making-"
TRUTH, KERNEL, WIRE = "truth.json", "kernel.json", "wire.jsonl.gz"
# Networks of runs that are made at the same time differ, so that the kernel's trace tells them apart.
FIRST_NETWORK, NETWORKS = 10, 200
# A host that waited longer for a CPU was slow for a reason that no packet shows, and its truth would be false.
MOST_WAITED_SECONDS = 0.01
Wanted = tuple[Scene, int]


class _Shared:
    """What the processes of a call share: whether it is to end, and the number of the next process."""

    ending: Any = None
    network: int = FIRST_NETWORK


def run_name(scene: Scene, number: int) -> str:
    """The name of a run, and of its folder."""
    return f"{scene.name.replace(' ', '-').replace(',', '')}-{number}"


def wanted(runs: int, first: int, scenes: Sequence[Scene] = SCENES) -> list[Wanted]:
    """At least so many runs: all scenes equally often, by ascending number."""
    variants = -(-runs // len(scenes))
    return [(scene, number) for number in range(first, first + variants) for scene in scenes]


def make(folder: Path, runs: Sequence[Wanted], workers: int, say: Callable[[str], None]) -> bool:
    """Make the runs that are not there. False: Ctrl-C ended it, and the next call goes on."""
    home = folder / RUNS
    home.mkdir(parents=True, exist_ok=True)
    for left in home.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left)
    missing = [(scene.name, number, home) for scene, number in runs if not (home / run_name(scene, number)).exists()]
    say(f"{len(runs) - len(missing)} of {len(runs)} runs are there, {len(missing)} are to be made")
    if not missing:
        return True
    context = multiprocessing.get_context("fork")
    ending, turn = context.Event(), context.Value("i", 0)
    begun = time.monotonic()
    with context.Pool(workers, _begin, (ending, turn), maxtasksperchild=50) as pool, _until_interrupted(ending, say):
        for done, (name, problem) in enumerate(pool.imap_unordered(_one, missing), 1):
            if problem and not ending.is_set():
                say(f"{done} of {len(missing)}: {name}: {problem}")
            elif done % 20 == 0 and not ending.is_set():
                each = (time.monotonic() - begun) / done
                say(f"{done} of {len(missing)}: {each:.2f} s per run, {each * (len(missing) - done) / 60:.0f} min left")
    return not ending.is_set()


@contextmanager
def _until_interrupted(ending: Any, say: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C lets runs that have begun end; the second one ends all at once."""

    def end(*_: object) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()
        say("ending: runs that have begun are finished")

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin(ending: Any, turn: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that hosts and traces are put away
    with turn.get_lock():
        _Shared.network = FIRST_NETWORK + turn.value % NETWORKS
        turn.value += 1
    _Shared.ending = ending
    if not kernel_trace.enter():
        kernel_trace.sweep()


def _one(asked: tuple[str, int, Path]) -> tuple[str, str]:
    name, number, home = asked
    scene = next(each for each in SCENES if each.name == name)
    run, problem = run_name(scene, number), "not begun"
    for attempt in range(1, TRIES + 1):
        if _Shared.ending.is_set():
            break
        try:
            with kernel_trace.following() as trace:
                played = play(scene.variant(number), _Shared.network)
        except (OSError, RuntimeError, TimeoutError) as why:
            problem = str(why).strip().splitlines()[-1]
            continue
        problem = unfit(played)
        if not problem:
            write(home, run, scene, played, trace, attempt)
            break
    return run, problem


def waited(played: Played) -> float:
    """How long a host waited for a CPU at most, in seconds."""
    return max(host["waited_seconds"] for host in (played.ran.sender, played.ran.receiver))


def unfit(played: Played) -> str:
    """Why a run is no evidence, or ""."""
    for what, seconds, most in (
        ("the wire was late by", played.ran.late, MOST_LATE_SECONDS),
        ("a host waited for a CPU for", waited(played), MOST_WAITED_SECONDS),
    ):
        if seconds > most:
            return f"{what} {seconds * 1e3:.0f} ms, expected at most {most * 1e3:.0f} ms"
    return ""


def write(home: Path, run: str, scene: Scene, played: Played, trace: kernel_trace.Trace, attempt: int) -> None:
    """Put a run there, as a whole or not at all."""
    place = home / f"{UNFINISHED}{run}"
    place.mkdir()
    for tap, packets in played.captured().items():
        taps.write(place / f"{tap}.pcapng.gz", {tap: packets})
    whole = truth(run, scene, played, None if trace.missing else trace.events)
    quality = {"wire_late_seconds": played.ran.late, "waited_seconds": waited(played), "attempts": attempt}
    _save(place / TRUTH, whole | {"quality": quality})
    of_run = own_of(trace.events, connections(played.wire.ledger, played.translated))
    traced = {"missing": trace.missing or None, "again": [asdict(event) for event in of_run]}
    _save(place / KERNEL, {"sender": played.ran.sender, "receiver": played.ran.receiver, "trace": traced})
    lines = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in log(played))
    (place / WIRE).write_bytes(gzip.compress(lines.encode(), mtime=0))
    place.rename(home / run)


def log(played: Played) -> Iterator[dict[str, Any]]:
    """The books of the wire, a line for each packet of the link."""
    for entry in played.wire.ledger:
        source, destination = named(entry.ends[:2]), named(entry.ends[2:])
        yield {
            "at": entry.at, "from": ("sender", "receiver")[entry.side], "source": source, "destination": destination,
            "flags": entry.flags, "seq": entry.seq, "ack": entry.ack, "begin": entry.begin, "payload": entry.payload,
            "size": entry.size, "again": entry.is_again, "aggregate": entry.aggregate,
            "queued_bytes": entry.queued_bytes, "origin": entry.origin, "fate": entry.fate, "fault": entry.fault,
            "held_nanoseconds": entry.held, "held_by": sorted(entry.holders), "left_at": entry.left_at,
        }  # fmt: skip


def _save(path: Path, document: Any) -> None:
    with path.open("w") as file:
        file.write(json.dumps(document) + "\n")
        file.flush()
        os.fsync(file.fileno())
