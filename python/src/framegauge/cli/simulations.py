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
        found: dict[str, Any] = {"file": source.text, "name": source.name, "seeds": source.seeds, "sweep": sweep}
        if source.seed is not None:
            found["seed"] = source.seed
        if self.captures.ports:
            found["captures"] = {"ports": list(self.captures.ports), "runs": list(self.captures.runs)}
        if source.beside.texts:
            found["files"] = source.beside.texts
        return found


def resumed(folder: Path, given: Asked | None) -> Asked:
    """What a folder was asked for; InputError if it is no simulation, or another one is given."""
    found = read(folder).plan.get(KEY)
    if not isinstance(found, Mapping):
        raise InputError(f"{folder}: found no simulation, expected one to resume (a study: framegauge study --resume)")
    try:
        sweep = [Axis(str(key), tuple(map(str, values))) for key, values in found["sweep"].items()]
        taken = found.get("captures", {"ports": [], "runs": []})
        captured = Captures(tuple(map(str, taken["ports"])), tuple(map(int, taken["runs"])))
        name = str(found["name"])
        # What was beside the file at first, whatever is there now.
        kept = {str(key): folder / _inside(str(name)) for key, name in found.get("recordings", {}).items()}
        beside = Beside(Path(name).parent, {str(key): str(text) for key, text in found.get("files", {}).items()}, kept)
        source = Source(str(found["file"]), name, found["seeds"], beside, found.get("seed"))
        asked = Asked(source, sweep, captured)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise CorruptResults(f"{folder}/results.json: {KEY}: found no file with its sweep, expected them") from None
    if given is not None and (
        given.source.text, given.source.seeds, given.source.seed, list(given.axes), given.captures,
    ) != (asked.source.text, asked.source.seeds, asked.source.seed, asked.axes, asked.captures):  # fmt: skip
        raise InputError(
            f"{folder}: found another simulation, expected the one given: leave the file and its options away, or "
            "choose another --out"
        )
    return asked


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
    found = points(asked.source, asked.axes)
    if notes := [*notes, *left_out(base.factors, base.sysctls, base.tunings, base.testbed.cpu is not None)]:
        say(f"without effect in a simulation, and left out: {', '.join(dict.fromkeys(notes))}")
    narrow = {each.text(): each.as_json() for point in found for each in narrow_links(point.study)}
    for text in narrow:
        say(f"warning: {text}")
    blocks = planning.blocks(found)
    taken = captures.planned(asked.captures, blocks)
    captures.check(asked.captures, taken, engine.simulate)
    if taken:
        say(captures.told(asked.captures, taken, sum(map(len, blocks))))
    replayed, kept = _replayed(found), _kept(found, asked.source.beside)
    if resume and read(folder).plan[KEY].get("replayed", []) != replayed:
        raise InputError(f"{folder}: found other recorded flows than when it began, expected the same to resume it")
    about = {**asked.as_json(), **({"replayed": replayed, "recordings": kept} if replayed else {})}
    plan = {**commands.plan_of(base), "planned_runs": sum(map(len, blocks)), KEY: about}
    if narrow:
        plan["narrow_links"] = list(narrow.values())
    journal = Journal.resume(folder) if resume else _created(folder, base, found, plan, kept)
    documents.begin()
    with journal:
        try:
            if kept and not resume:
                # From now on nothing outside the folder is needed.
                asked.source.beside.kept |= {path: folder / name for path, name in kept.items()}
                found = points(asked.source, asked.axes)
                blocks = planning.blocks(found)
            engine = memory.within(engine, blocks, say)
            outcome = _fill(found, blocks, journal, plan, engine, on_event, asked.captures)
        except BaseException:
            journal.discard()
            raise
        made = {run.number: run for run in journal.runs}
        for each in taken:
            record = spools.record(folder, made[each.number]) if each.number in made else {}
            if lost := spools.dig(record, "simulation", "captured_left_out"):
                say(f"run {each.number}: {lost} frames at the end did not fit into its captures")
        told = commands.conclude(journal)
    return commands.Finished(folder, outcome, told, folder / commands.PAGE)


def _replayed(found: Sequence[Point]) -> list[str | None]:
    """The digests of recorded flows that are replayed, point by point: their files may change, and results do not."""
    return [work.replay.sha256 for point in found for work in point.study.workloads if work.replay is not None]


def _kept(found: Sequence[Point], beside: Beside) -> dict[str, str]:
    """The place in the results of each recording, by the path that the study has; each in a folder of its own, for its
    name is among the conditions of runs."""
    given = [work.replay.flows for point in found for work in point.study.workloads if work.replay is not None]
    of = {str(place): path for path, place in beside.kept.items()}
    return {
        of.get(path, path): f"{RECORDINGS}/{number}/{Path(path).name}"
        for number, path in enumerate(dict.fromkeys(given), start=1)
    }


def _created(
    folder: Path, base: Study, found: Sequence[Point], plan: Mapping[str, Any], kept: Mapping[str, str]
) -> Journal:
    """The journal, with a copy of every recording; in the study file, their paths are relative to it."""
    replays = [work.replay for point in found for work in point.study.workloads if work.replay is not None]
    copies = {kept[each.flows]: to_csv(each.recording().flows).encode() for each in replays}
    study = base.model_copy(deep=True)
    for work in study.workloads:
        if work.replay is not None:
            work.replay.flows = kept[work.replay.flows]
    return Journal.create(folder, study_file.dump(study), plan, copies)


def _inside(name: str) -> str:
    """A path below the folder of recordings; ValueError for any other."""
    if not re.fullmatch(RECORDINGS + r"/[0-9]{1,9}/[^/]+", name) or name.endswith("/.."):
        raise ValueError(name)
    return name


def _fill(
    found: Sequence[Point],
    blocks: Sequence[Sequence[planning.Planned]],
    journal: Journal,
    plan: Mapping[str, Any],
    engine: Engine,
    on_event: Callable[[Event], None],
    taken: Captures,
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
        settled=partial(judging.is_settled, plan), captured=taken.of,
    )  # fmt: skip
    try:
        return pool.run(found[0].study.stop == "settled")
    finally:
        # What differs from machine to machine is here alone.
        took = round(time.monotonic() - begun, 3)
        journal.environment({**about, KEY: {"jobs": engine.jobs, "seconds": took, "machine": platform.machine()}})
