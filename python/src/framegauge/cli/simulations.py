"""What `framegauge simulate` does, without arguments or printing: a study file and a folder in, a summary out."""

from __future__ import annotations

import platform
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from framegauge.agents import binary
from framegauge.cli import commands, documents
from framegauge.errors import CorruptResults, InputError
from framegauge.experiment.progress import Event
from framegauge.experiment.runner import Outcome
from framegauge.experiment.simulated import captures, memory, plan as planning
from framegauge.experiment.simulated.captures import Captures
from framegauge.experiment.simulated.engines import Engine
from framegauge.experiment.simulated.pool import Pool
from framegauge.files.distributions import Beside
from framegauge.files.recordings import to_csv
from framegauge.results import spools
from framegauge.results.journal import RECORDINGS, Journal, read
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.study.narrow import narrow as narrow_links
from framegauge.study.simulated import left_out
from framegauge.study.sweep import Axis, Point, Source, points, simulated
from framegauge.summary import judging

__all__ = ["Asked", "resumed", "run"]

KEY = "simulation"  # of results.json: what was asked for, so that it can be resumed


@dataclass(frozen=True)
class Asked:
    """What is to be simulated: a study file, and the axes of a sweep."""

    source: Source
    axes: Sequence[Axis] = ()
    captures: Captures = field(default_factory=Captures)

    def as_json(self) -> dict[str, Any]:
        """As results.json has it."""
        source = self.source
        sweep = {axis.key: list(axis.values) for axis in self.axes}
        document: dict[str, Any] = {"file": source.text, "name": source.name, "seeds": source.seeds, "sweep": sweep}
        if source.seed is not None:
            document["seed"] = source.seed
        if self.captures.ports:
            document["captures"] = {"ports": list(self.captures.ports), "runs": list(self.captures.runs)}
        if source.beside.texts:
            document["files"] = source.beside.texts
        return document


def resumed(folder: Path, given: Asked | None) -> Asked:
    """What a folder was asked for; InputError if it is no simulation, or another one is given."""
    saved = read(folder).plan.get(KEY)
    if not isinstance(saved, Mapping):
        raise InputError(f"{folder}: found no simulation, expected one to resume (a study: framegauge study --resume)")
    try:
        sweep = [Axis(str(key), tuple(map(str, values))) for key, values in saved["sweep"].items()]
        capture_settings = saved.get("captures", {"ports": [], "runs": []})
        captured = Captures(tuple(map(str, capture_settings["ports"])), tuple(map(int, capture_settings["runs"])))
        name = str(saved["name"])
        # What was beside the file at first, whatever is there now.
        paths = {str(key): folder / _inside(str(name)) for key, name in saved.get("recordings", {}).items()}
        beside = Beside(Path(name).parent, {str(key): str(text) for key, text in saved.get("files", {}).items()}, paths)
        source = Source(str(saved["file"]), name, saved["seeds"], beside, saved.get("seed"))
        request = Asked(source, sweep, captured)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise CorruptResults(f"{folder}/results.json: {KEY}: found no file with its sweep, expected them") from None
    if given is not None and (
        given.source.text, given.source.seeds, given.source.seed, list(given.axes), given.captures,
    ) != (request.source.text, request.source.seeds, request.source.seed, request.axes, request.captures):  # fmt: skip
        raise InputError(
            f"{folder}: found another simulation, expected the one given: leave the file and its options away, or "
            "choose another --out"
        )
    return request


def run(
    asked: Asked,
    folder: Path,
    resume: bool,
    engine: Engine,
    on_event: Callable[[Event], None],
    say: Callable[[str], None],
) -> commands.Finished:
    """Simulates what is left, and judges what there is; errors in the file, the sweep or the agent come first."""
    base, notes = simulated(asked.source)
    grid = points(asked.source, asked.axes)
    if notes := [*notes, *left_out(base.factors, base.sysctls, base.tunings, base.testbed.cpu is not None)]:
        say(f"without effect in a simulation, and left out: {', '.join(dict.fromkeys(notes))}")
    narrow = {item.text(): item.as_json() for point in grid for item in narrow_links(point.study)}
    for text in narrow:
        say(f"warning: {text}")
    blocks = planning.blocks(grid)
    captured_runs = captures.planned(asked.captures, blocks)
    captures.check(asked.captures, captured_runs, engine.simulate)
    if captured_runs:
        say(captures.told(asked.captures, captured_runs, sum(map(len, blocks))))
    replayed, recordings = _replayed(grid), _kept(grid, asked.source.beside)
    if resume and read(folder).plan[KEY].get("replayed", []) != replayed:
        raise InputError(f"{folder}: found other recorded flows than when it began, expected the same to resume it")
    about = {**asked.as_json(), **({"replayed": replayed, "recordings": recordings} if replayed else {})}
    plan = {**commands.plan_of(base), "planned_runs": sum(map(len, blocks)), KEY: about}
    if narrow:
        plan["narrow_links"] = list(narrow.values())
    journal = Journal.resume(folder) if resume else _created(folder, base, grid, plan, recordings)
    documents.begin()
    with journal:
        try:
            if recordings and not resume:
                # From now on nothing outside the folder is needed.
                asked.source.beside.kept |= {path: folder / name for path, name in recordings.items()}
                grid = points(asked.source, asked.axes)
                blocks = planning.blocks(grid)
            engine = memory.within(engine, blocks, say)
            outcome = _fill(grid, blocks, journal, plan, engine, on_event, asked.captures)
        except BaseException:
            journal.discard()
            raise
        runs_by_number = {run.number: run for run in journal.runs}
        for item in captured_runs:
            record = spools.record(folder, runs_by_number[item.number]) if item.number in runs_by_number else {}
            if lost := spools.dig(record, "simulation", "captured_left_out"):
                say(f"run {item.number}: {lost} frames at the end did not fit into its captures")
        summary = commands.conclude(journal)
    return commands.Finished(folder, outcome, summary, folder / commands.PAGE)


def _replayed(grid: Sequence[Point]) -> list[str | None]:
    """The digests of recorded flows that are replayed, point by point: their files may change, and results do not."""
    return [work.replay.sha256 for point in grid for work in point.study.workloads if work.replay is not None]


def _kept(grid: Sequence[Point], beside: Beside) -> dict[str, str]:
    """The place in the results of each recording, by the path that the study has; each in a folder of its own, for its
    name is among the conditions of runs."""
    flow_paths = [work.replay.flows for point in grid for work in point.study.workloads if work.replay is not None]
    of = {str(place): path for path, place in beside.kept.items()}
    return {
        of.get(path, path): f"{RECORDINGS}/{number}/{Path(path).name}"
        for number, path in enumerate(dict.fromkeys(flow_paths), start=1)
    }


def _created(
    folder: Path, base: Study, grid: Sequence[Point], plan: Mapping[str, Any], recordings: Mapping[str, str]
) -> Journal:
    """The journal, with a copy of every recording; in the study file, their paths are relative to it."""
    replays = [work.replay for point in grid for work in point.study.workloads if work.replay is not None]
    copies = {recordings[replay.flows]: to_csv(replay.recording().flows).encode() for replay in replays}
    study = base.model_copy(deep=True)
    for work in study.workloads:
        if work.replay is not None:
            work.replay.flows = recordings[work.replay.flows]
    return Journal.create(folder, study_file.dump(study), plan, copies)


def _inside(name: str) -> str:
    """A path below the folder of recordings; ValueError for any other."""
    if not re.fullmatch(RECORDINGS + r"/[0-9]{1,9}/[^/]+", name) or name.endswith("/.."):
        raise ValueError(name)
    return name


def _fill(
    grid: Sequence[Point],
    blocks: Sequence[Sequence[planning.Planned]],
    journal: Journal,
    plan: Mapping[str, Any],
    engine: Engine,
    on_event: Callable[[Event], None],
    capture_settings: Captures,
) -> Outcome:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    about = {
        "agent": {"agent": binary.version().partition(" ")[2].partition(" ")[0]},
        "python": python,
        "platform": sys.platform,
    }
    begun = time.monotonic()
    pool = Pool(
        blocks, journal, engine.simulate, engine.jobs, stop=engine.stop, on_event=on_event,
        settled=partial(judging.is_settled, plan), captured=capture_settings.of,
    )  # fmt: skip
    try:
        return pool.run(grid[0].study.stop == "settled")
    finally:
        # What differs from machine to machine is here alone.
        took = round(time.monotonic() - begun, 3)
        journal.environment({**about, KEY: {"jobs": engine.jobs, "seconds": took, "machine": platform.machine()}})
