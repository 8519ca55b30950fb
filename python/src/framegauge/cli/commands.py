"""What each verb does, without arguments or printing: study and folder in, summary out."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from framegauge import __version__
from framegauge.agents import binary
from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.agents.ssh import places
from framegauge.cli import documents
from framegauge.diagnose.runs import of_run
from framegauge.errors import InputError, MissingRequirement, StudyError
from framegauge.experiment import busy, extension, refusals, trial
from framegauge.experiment.planning import expected_seconds, stated_conditions
from framegauge.experiment.programs import lacking, program_lines
from framegauge.experiment.progress import Event, Losses, has_attempts, left, tries
from framegauge.experiment.runner import Outcome, Runner
from framegauge.files.machines import full
from framegauge.hosts import reach
from framegauge.hosts.dry_run import changes_of, counts
from framegauge.metrics import declared
from framegauge.report.decision.model import Decision
from framegauge.results import reading
from framegauge.results.journal import Journal, Run, read
from framegauge.results.tables import write_tables
from framegauge.study import file as study_file, narrow
from framegauge.study.aggregates import largest_aggregates
from framegauge.study.blocks import order
from framegauge.study.model import Study, arms, cells, level_text
from framegauge.study.rates import at_rate
from framegauge.summary import document as summary, judging, words
from framegauge.testbeds.base import Testbed
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.ssh import SshTestbed
from framegauge.testbeds.veth import VethTestbed

__all__ = [
    "PAGE",
    "Finished",
    "choose_folder",
    "conclude",
    "decision",
    "extended_study",
    "free_folder",
    "plan_lines",
    "plan_of",
    "report",
    "requirements",
    "reseal",
    "resumed_study",
    "run_study",
]

SCOPES = {"fake": "invented", "simulator": "simulated", "ssh": "measured"}
PAGE = "report.html"  # in every results folder
NOT_MEASURED = ("perf",)  # serves no metric that a study can have today, so its lack weakens no verdict

Say = Callable[[str], None]
Opener = Callable[[Study, Say], AbstractContextManager[Testbed]]


@dataclass(frozen=True)
class Finished:
    """A study that ran, whole or in part, and its summary."""

    folder: Path
    outcome: Outcome
    summary: dict[str, Any]
    page: Path


@contextmanager
def opened(study: Study, say: Say) -> Iterator[Testbed]:
    """The study's testbed; closed on every way out."""
    bed = _open(study.testbed.kind, study, say)
    try:
        yield bed
    finally:
        bed.close()


def _open(kind: str, study: Study | None, say: Say) -> Testbed:
    if kind == "fake":
        settings = study.testbed.fake if study is not None else None
        if settings is None or study is None:
            return FakeTestbed()
        try:
            faults = [Fault(name) for name in settings.faults]
        except ValueError as error:
            raise StudyError([f"testbed.fake.faults: {error}"]) from None
        model = FakeModel(study.seed, settings.noise, goodput_loss=settings.goodput_loss, faults=faults)
        return FakeTestbed(model)
    if kind == "ssh" and study is not None:
        bed = study.testbed
        return SshTestbed(
            full(bed.machines), say, reach, family=bed.family, bits_per_second=bed.link.rate, lease_seconds=bed.lease,
            goes_on=bed.when_lost == "continue", counts=counts(study),
        )  # fmt: skip
    agent = Agent.open(privileged([find_agent(), "rack"], say))
    return VethTestbed(agent) if kind == "veth" else RackTestbed(agent)


def requirements(kind: str, bits_per_second: int | None, say: Say) -> dict[str, Any]:
    """What this machine lacks for a testbed: missing and degraded."""
    if agent := binary.lacking():
        return {"missing": [agent], "degraded": []}
    try:
        bed = _open(kind, None, say)
    except MissingRequirement as error:  # nobody may look for the rest
        return {"missing": error.missing, "degraded": []}
    try:
        return bed.requirements(bits_per_second)
    finally:
        bed.close()


def choose_folder(name: str) -> Path:
    """The first free one of results/NAME, results/NAME-2, …, made at once: of two programs that begin together each has
    its own. What nothing was written into is gone at the end."""
    while True:
        folder = free_folder(name)
        try:
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError:
            return folder  # whoever writes there says what is wrong
        atexit.register(_leave, folder)
        return folder


def _leave(folder: Path) -> None:
    with contextlib.suppress(OSError):  # of one that has results
        folder.rmdir()
        folder.parent.rmdir()


def free_folder(name: str) -> Path:
    """The folder that `choose_folder` would make now."""
    base = Path("results") / name
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{name}-{number}")
    return folder


def resumed_study(folder: Path, given: Study | None, may_adapt: bool = False) -> Study:
    """The study of a folder; InputError if another one is given. One that `may_adapt` keeps the rate at which it
    began."""
    saved = read(folder)  # a folder that is no study, or of a newer version, says so first
    study = study_file.load(folder / "study.yaml")
    if "order" not in study_file.keys(folder / "study.yaml"):  # from before orders were balanced
        study = study.model_copy(update={"order": "random"})
        given = given and given.model_copy(update={"order": "random"})
    rate = study.testbed.link.rate
    if given is not None and study not in (given, at_rate(given, rate) if may_adapt and rate else given):
        raise InputError(
            f"{folder}: found another study, expected the one given: leave the file away, or choose another --out"
        )
    return extension.as_extended(study, saved.plan)


def run_study(
    study: Study,
    folder: Path,
    resume: bool,
    on_event: Callable[[Event], None],
    say: Say,
    opener: Opener = opened,
    more_blocks: int = 0,
    may_adapt: bool = False,
    waited: Callable[[], float] = lambda: 0.0,
) -> Finished:
    """Run what is left of a study and judge what there is; MissingRequirement before anything is begun.

    `opener` opens the testbed, where the study's own is to be on another machine. A study that is resumed may be
    extended by so many more blocks. One that `may_adapt` runs at the highest rate that this machine carries;
    `waited` says how long the user has waited for its trial.
    """
    if not resume:
        refusals.check(study)
    if missing := refusals.missing(study):
        raise MissingRequirement(missing)
    before: list[int] = []
    if resume:
        saved = read(folder)
        before = extension.planned_before(saved.plan)
        if more_blocks:
            study, before = extension.extend(study, saved, more_blocks)
    plan = plan_of(study, before)
    if resume and (trial_plan := saved.plan.get("trial")):
        plan["trial"] = trial_plan
    journal = Journal.resume(folder) if resume else Journal.create(folder, study_file.dump(study), plan)
    with journal:
        try:
            with opener(study, say) as bed:
                lacks = _demanded(study, bed)
                # On another machine than this, nobody has asked what it carries.
                if opener is opened and trial.applies(study) and not _is_over(study, plan, journal.runs):
                    study = _tried(study, bed, journal, plan, say, may_adapt and not resume, waited())
                outcome = _fill(study, bed, journal, plan, lacks, on_event, say, more_blocks > 0)
        except BaseException:
            journal.discard()
            raise
        if outcome.interrupted:
            say("interrupted: judging the runs so far, and writing the report")
        document = conclude(journal)
    return Finished(folder, outcome, document, folder / PAGE)


def conclude(journal: Journal) -> dict[str, Any]:
    """The summary of the runs of a journal, saved with their tables and the page, which is last."""
    write_tables(journal)
    saved = read(journal.folder)
    document = summary.summarise(saved)
    journal.save(reading.SUMMARY, summary.kept(document))
    journal.save(PAGE, documents.page(saved, document).encode())
    return document


def reseal(folder: Path, at: str) -> list[str]:
    """Seals a folder that was edited on purpose, with its summary made anew; what had been changed."""
    journal, changed = Journal.reseal(folder, at)
    with journal:
        conclude(journal)
    return changed


def plan_of(study: Study, before: Sequence[int] = ()) -> dict[str, Any]:
    """What results.json says of a study; `before`: the numbers of blocks that it was planned for before."""
    return {
        "question": study.question,
        "scope": SCOPES.get(study.testbed.kind, "emulated"),
        "treatment": study.treatment,
        **({"metrics": own_metrics} if (own_metrics := declared(_own_metrics(study))) else {}),
        "margins": study.margin(),
        "primary": study.primary,
        "ask": study.ask,
        **({"estimators": estimators} if (estimators := study.estimators()) else {}),
        "planned_runs": len(order(study)),
        "planned_blocks": study.blocks,
        "stop": study.stop,
        "framegauge": __version__,
        **({"extended_from": list(before)} if before else {}),
    }


def _own_metrics(study: Study) -> list[str]:
    return [name for workload in study.workloads for name in workload.parameters.declares]


def _demanded(study: Study, bed: Testbed) -> dict[str, Any]:
    """What the testbed lacks; MissingRequirement if it cannot do without."""
    lacks = bed.requirements(study.testbed.link.rate, largest_aggregates(study.factors))
    lacks["missing"] += lacking(study, bed.standing()) if not lacks["missing"] else []
    if lacks["missing"]:
        raise MissingRequirement(lacks["missing"])
    return lacks


def _is_over(study: Study, plan: Mapping[str, Any], runs: Sequence[Run]) -> bool:
    """Whether nothing is left to run, or to decide, of a study that is resumed."""
    attempts, blocks = tries(runs), max((run.block + 1 for run in runs), default=0)
    is_open = any(has_attempts(attempts.get(slot.key, ()), study.retries) for slot in order(study))
    return not is_open or (blocks > 0 and judging.is_settled(plan, blocks, runs))


def _tried(
    study: Study,
    bed: Testbed,
    journal: Journal,
    plan: dict[str, Any],
    say: Say,
    may_adapt: bool,
    waited_seconds: float,
) -> Study:
    """The study at the rate that its trial found; the folder keeps the trial of a study that begins."""
    before = busy.read()
    outcome = trial.find(study, trial.attempt_at(study, bed, **_clocks(bed)), waited_seconds=waited_seconds)
    study, line = trial.follow(study, outcome, may_adapt, busy.largest(before, busy.read(), os.getpid()))
    say(line)
    if not journal.runs:
        plan["trial"] = outcome.as_json(study.testbed.link.rate or outcome.asked)
        journal.replan(study_file.dump(study), plan)
    return study


def _fill(
    study: Study,
    bed: Testbed,
    journal: Journal,
    plan: Mapping[str, Any],
    lacks: Mapping[str, Any],
    on_event: Callable[[Event], None],
    say: Say,
    is_extended: bool,
) -> Outcome:
    """Runs what is left of a study on an open testbed."""
    if is_extended:
        journal.extend(plan)
        say(extension.cost(plan, read(journal.folder)))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    journal.environment({"agent": bed.about(), "python": python, "platform": sys.platform, **lacks})
    degraded = [
        f"{item['name']} (found {item['found']}; {item['remedy']})"
        for item in lacks["degraded"]
        if item["name"] not in NOT_MEASURED
    ]
    settled, wanting = partial(judging.is_settled, plan), partial(judging.wants_runs, plan)
    runner = Runner(
        study, bed, journal, on_event=on_event, degraded=degraded, settled=settled, wanting=wanting, diagnose=of_run,
        **_clocks(bed), **_watched(study, say),
    )  # fmt: skip
    return runner.run()


def _clocks(bed: Testbed) -> dict[str, Any]:
    """An invented network is quiet at once, and no real time is part of its system's."""
    return {"pause": lambda _: None, "cpu_time": lambda: 0.0} if bed.scope == "invented" else {}


def _watched(study: Study, say: Say) -> dict[str, Any]:
    """A runner's eye on what else uses the CPUs; who holds up the user's own hosts cannot be seen from here."""
    capabilities = study.testbed.capabilities
    return (
        {"after_block": Losses(say, busy.read, os.getpid())}
        if capabilities.builds_hosts and not capabilities.is_invented
        else {}
    )


def report(folder: Path, wanted: documents.Wanted) -> tuple[dict[str, Any], list[Path]]:
    """The summary of a results folder, judged again from its runs; and what of it was written where."""
    wanted.check()
    saved = read(folder)
    document = summary.summarise(saved)
    return document, documents.write(saved, document, wanted)


def decision(folder: Path, wanted: documents.Wanted) -> tuple[dict[str, Any], Decision, list[Path]]:
    """The same for the decision alone, with the decision."""
    wanted.check()
    saved = read(folder)
    document = summary.summarise(saved)
    return document, *documents.decided(saved, document, wanted)


def extended_study(study: Study, folder: Path, more_blocks: int) -> Study:
    """The study of a folder with so many more blocks, for --dry-run; nothing is saved."""
    return extension.extend(study, read(folder), more_blocks)[0]


def plan_lines(study: Study, may_adapt: bool = False) -> list[str]:
    """What a study would do, for --dry-run."""
    slots = order(study)
    seconds = sum(expected_seconds(study, slot) for slot in slots)
    lines = [
        study.question,
        f"testbed {study.testbed.kind}, treatment {study.treatment}, seed {study.seed}",
        "arms: " + ", ".join(f"{arm.role} {level_text(arm.level)}" for arm in arms(study)),
        f"{study.blocks} blocks of {len(cells(study))} x {len(arms(study))} runs: "
        f"{len(slots)} runs, about {left(seconds)}",
    ]
    lines += [*trial.lines(study, may_adapt), *narrow.lines(study), *refusals.lines(study)]
    own_hosts = not study.testbed.capabilities.builds_hosts
    lines += changes_of(study, lambda agent_path: places(agent_path or find_agent())) if own_hosts else []
    if programs := program_lines(study):
        lines += [
            "programs, which run as you on your own hosts, and as root in a rack unless a user is given:",
            *programs,
        ]
    slots_by_cell = {slot.cell.index: slot for slot in slots}
    for index in sorted(slots_by_cell):
        stated = stated_conditions(study, slots_by_cell[index])
        lines.append(f"  {slots_by_cell[index].cell.workload}: {words.conditions(stated)}")
    return lines
