"""What `framegauge reproduce` does, without arguments or printing: the studies of published figures run, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from framegauge.agents.privilege import PRIVILEGE
from framegauge.cli import commands, datagrams, encapsulations, simulations
from framegauge.cli.progress import Reporter
from framegauge.errors import AgentError, Interrupted, MissingRequirement, TooBusy
from framegauge.experiment.planning import total_seconds
from framegauge.experiment.runner import Outcome
from framegauge.experiment.simulated import captures, engines, plan as planning
from framegauge.quantities import print_seconds
from framegauge.reproduce import arithmetic, folder as kept, outcomes
from framegauge.reproduce.documents import Figure, Loaded
from framegauge.reproduce.outcomes import Reproduced
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.study.sweep import Source, points

__all__ = ["Job", "jobs", "plan_lines", "reproduced", "run"]

RACK, SIMULATOR = outcomes.ENGINES
Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """A study of a document on a testbed. `lack`: why it is not run, "" if it is."""

    engine: str
    loaded: Loaded
    study: str
    runs: int
    seconds: float | None  # at most; None: virtual time, which takes as long as its packets take to compute
    lack: str = ""

    @property
    def key(self) -> str:
        """By which the folder names it."""
        return kept.key(self.engine, self.loaded, self.study)


def jobs(asked: kept.Asked) -> list[Job]:
    """All studies that answer what is asked for, simulations first."""
    all_jobs = [
        _job(engine, loaded, study, asked)
        for loaded, figures in kept.chosen(asked)
        for study in loaded.studies_of(figures)
        for engine in _engines(loaded, study, asked.testbeds)
    ]
    return sorted(all_jobs, key=lambda job: job.engine != SIMULATOR)


def _engines(loaded: Loaded, study: str, testbeds: Sequence[str]) -> Sequence[str]:
    """Where a study runs: on the testbeds that were asked for, or where alone it can."""
    possible = loaded.document.studies[study].testbeds
    return [testbed for testbed in testbeds if testbed in possible] or [SIMULATOR] * (possible == [SIMULATOR])


def _job(engine: str, loaded: Loaded, study: str, request: kept.Asked) -> Job:
    file = loaded.document.studies[study]
    if engine == SIMULATOR:
        source = Source(loaded.file(study).read_text("utf-8"), str(loaded.file(study)), request.seeds or file.seeds)
        runs, seconds = sum(map(len, planning.blocks(points(source, ())))), None
    else:
        rack_study = study_file.load(loaded.file(study))
        runs, seconds = len(order(rack_study)), total_seconds(rack_study)
    lack = file.by_hand if engine == RACK and not request.by_hand else None
    return Job(engine, loaded, study, runs, seconds, lack or next(_unmet(engine, file.requires), ""))


def _unmet(engine: str, requires: dict[str, str]) -> Iterator[str]:
    for path, value in requires.items() if engine == RACK else ():
        try:
            there = Path(path).read_text("utf-8").strip()
        except OSError as error:
            there = f"nothing readable ({error.strerror})"
        if there != value:
            yield f"found {there} in {path}, expected {value}: a setting of the whole machine, which no study changes"


def plan_lines(found: Sequence[Job]) -> list[str]:
    """What would be run, and for how long, document by document."""
    lines = []
    for name in dict.fromkeys(job.loaded.name for job in found):
        document_jobs = [job for job in found if job.loaded.name == name]
        on_rack = [job for job in document_jobs if job.engine == RACK and not job.lack]
        virtual = [job for job in document_jobs if job.engine == SIMULATOR and not job.lack]
        parts = []
        if on_rack:
            seconds = round(sum(job.seconds or 0.0 for job in on_rack))
            parts.append(f"{_studies(on_rack)} on the rack, at most {print_seconds(seconds, 3)}")
        if virtual:
            parts.append(f"{_studies(virtual)} in the simulator, {sum(job.runs for job in virtual)} runs")
        lines.append(f"{name}: {'; '.join(parts) or 'nothing to run'}")
        lines += [f"  left out: {job.study}: {job.lack}" for job in document_jobs if job.lack]
    return lines


def _studies(job_list: Sequence[Job]) -> str:
    return f"{len(job_list)} stud{'y' if len(job_list) == 1 else 'ies'}"


def run(folder: Path, state: kept.State, found: Sequence[Job], reporter: Reporter) -> None:
    """Runs these studies, one after the other; Interrupted names the one that was interrupted."""
    for number, job in enumerate(found, start=1):
        if job.lack:
            state.left_out[job.key] = job.lack
            continue
        place = "on the rack" if job.engine == RACK else "in the simulator"
        reporter.say(f"study {number} of {len(found)}: {job.loaded.name}, {job.study}, {place}, {job.runs} runs")
        try:
            outcome = _run(folder, job, state.asked.seeds, reporter)
        except (MissingRequirement, TooBusy, AgentError) as error:
            # Without root nothing runs on the rack; what is missing or refused, or other work, stops one study.
            if isinstance(error, MissingRequirement) and any(need.get("name") == PRIVILEGE for need in error.missing):
                reporter.say("a simulation needs no root: --testbed simulator")
                raise
            state.left_out[job.key] = "; ".join(str(error).splitlines())
            reporter.say(f"left out: {job.study}: {state.left_out[job.key]}")
            continue
        finally:
            kept.save(folder, state)
        if outcome.interrupted:
            raise Interrupted(f"interrupted in {job.study}")
        state.left_out.pop(job.key, None)
        state.over.append(job.key)
        kept.save(folder, state)
    kept.save(folder, state)


def _run(folder: Path, job: Job, seeds: int | None, reporter: Reporter) -> Outcome:
    place = kept.place(folder, job.engine, job.loaded, job.study)
    file = job.loaded.file(job.study)
    is_begun = (place / "runs.jsonl").exists()
    if job.engine == RACK:
        rack_study = study_file.load(file)
        if is_begun:
            rack_study = commands.resumed_study(place, rack_study)
        return commands.run_study(rack_study, place, is_begun, reporter, reporter.say).outcome
    source = Source(file.read_text("utf-8"), str(file), seeds or job.loaded.document.studies[job.study].seeds)
    simulated = simulations.Asked(source, (), captures.asked([], None))
    if is_begun:
        simulated = simulations.resumed(place, simulated)
    with engines.opened("local", None) as engine:
        return simulations.run(simulated, place, is_begun, engine, reporter, reporter.say).outcome


def reproduced(folder: Path) -> list[Reproduced]:
    """What became of each figure that a folder was asked for, by the results that are there."""
    state, sums = kept.resume(folder), arithmetic.Sums(encapsulations.ask, datagrams.ask)
    return [_document(folder, state, loaded, figures, sums) for loaded, figures in kept.chosen(state.asked)]


def _document(
    folder: Path, state: kept.State, loaded: Loaded, figures: Sequence[Figure], sums: arithmetic.Sums
) -> Reproduced:
    there = kept.results(folder, loaded, figures, outcomes.ENGINES)
    lacks = {
        (engine, study): why
        for engine in outcomes.ENGINES
        for study in loaded.document.studies
        if (why := state.left_out.get(kept.key(engine, loaded, study)))
    }
    return outcomes.reproduced(loaded, figures, there, lacks, lambda figure: arithmetic.number(figure, sums))
