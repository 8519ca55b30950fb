"""The workload `command` of a study file, made into the workload that runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from framegauge import metrics
from framegauge.agents.binary import find_nodelay
from framegauge.agents.pipe import Requests
from framegauge.printable import one_line
from framegauge.study import command as model
from framegauge.study.blocks import Slot
from framegauge.study.model import Study, host_mtus, level_text
from framegauge.testbeds.base import Host
from framegauge.workloads.command import Command
from framegauge.workloads.programs import running
from framegauge.workloads.readings import Reading
from framegauge.workloads.tasks import Lives, Readiness, Task

__all__ = ["command_of", "lacking", "program_lines", "programs_of", "remedy"]

INSTALL = "install it, or give its full path"
LOOK_SECONDS = 20.0
MOST_SHOWN = 200
# Prints those of its arguments that are no programs there.
LOOK = 'for each; do command -v "$each" >/dev/null 2>&1 || printf "%s\\n" "$each"; done'


def command_of(study: Study, slot: Slot, factors: Mapping[str, Any]) -> Command:
    """The workload of a slot, with the levels of factors and parameters as values of placeholders."""
    settings = study.workloads[slot.cell.place].command
    if settings is None:
        raise ValueError(f"workload {slot.cell.place} is no command")
    names = study.testbed.host_names
    levels = {name: level_text(value) for name, value in factors.items() if value is not None and name != "mtu"}
    nagle = factors["nagle"]
    return Command(
        name=settings.name,
        clients=[_task(entry, entry.within, name=entry.name) for entry in settings.clients],
        metrics_={name: _reading(entry) for name, entry in settings.metrics.items()},
        servers=[_task(entry, ready=_ready(entry.ready), lives=entry.lives) for entry in settings.servers],
        prepare=[_task(entry, entry.within, lives=entry.lives) for entry in settings.prepare],
        after=[_task(entry, entry.within) for entry in settings.after],
        roles=settings.roles,
        values={**levels, **{name: level_text(value) for name, value in slot.cell.parameters.items()}},
        mtu=host_mtus(factors["mtu"], names),
        keep=settings.keep,
        nagle=nagle,
        nagle_on=settings.hosts_of(settings.nagle_on) if settings.nagle_on is not None else names,
        preload=find_nodelay if nagle is not None else None,
        expect_seconds=settings.expect if settings.expect is not None else 10.0,
    )


def programs_of(study: Study) -> dict[str, list[str]]:
    """The programs that hosts must have, by host: the first words of commands, if they are names or whole paths that
    can be known beforehand, and of those with a package the ones that a step names."""
    programs: dict[str, dict[str, None]] = {}
    for command in _commands(study):
        for _, step in command.steps():
            first = step.argv[0]
            is_known = "{" not in first and (first.startswith("/") or "/" not in first)
            needed = [*([first] if is_known else []), *(package for package in command.packages if step.names(package))]
            for host in command.hosts_of(step.host) if needed else ():
                programs.setdefault(host, {}).update(dict.fromkeys(needed))
    return {host: list(programs[host]) for host in study.testbed.host_names if host in programs}


def _commands(study: Study) -> list[model.Command]:
    return [workload.command for workload in study.workloads if workload.command is not None]


def remedy(study: Study, program: str) -> str:
    """How to install a program of a command."""
    packages = [command.packages[program] for command in _commands(study) if program in command.packages]
    return f"apt-get install {packages[0]}" if packages else INSTALL


def lacking(study: Study, agents: Mapping[str, Requests]) -> list[dict[str, str]]:
    """The programs that the user's own hosts lack, as requirements: all programs of all hosts. Hosts that a testbed
    builds are not among `agents`; they have this machine's programs (`planning.missing_programs`)."""
    hosts_by_program: dict[str, list[str]] = {}
    for host, programs in programs_of(study).items():
        if (agent := agents.get(host)) is not None:
            with running(Host(host, "", agent), "sh", ["/bin/sh", "-c", LOOK, "sh", *programs]) as look:
                look.wait(LOOK_SECONDS)
                absent = set(look.output().splitlines())
                for program in (candidate for candidate in programs if candidate in absent):
                    hosts_by_program.setdefault(program, []).append(host)
    return [
        {
            "name": name, "needed_for": f"command on {', '.join(hosts)}", "found": "no such program",
            "remedy": remedy(study, name),
        }
        for name, hosts in hosts_by_program.items()
    ]  # fmt: skip


def program_lines(study: Study) -> list[str]:
    """What a study would start, and where, for --dry-run: one line per program, with its placeholders."""
    lines = []
    for workload in study.workloads:
        for place, step in workload.command.steps() if workload.command is not None else ():
            hosts = ", ".join(workload.command.hosts_of(step.host)) if workload.command is not None else ""
            user = f" as {step.user}" if step.user is not None else ""
            lives = getattr(step, "lives", "run")
            stays = "" if lives == "run" else f", kept for the {lives}"
            words = one_line(shlex.join(step.argv), MOST_SHOWN)
            lines.append(f"  {workload.parameters.label}, {KINDS[str(place[0])]} on {hosts}{user}{stays}: {words}")
    return lines


KINDS = {"prepare": "before", "servers": "server", "clients": "client", "after": "after"}


def _task(
    step: model.Step,
    within: float = 60.0,
    name: str | None = None,
    ready: Readiness | None = None,
    lives: Lives = "run",
) -> Task:
    return Task(
        hosts=tuple(step.host), argv=tuple(step.argv), within_seconds=within, environment=step.env, files=step.files,
        templates=step.templates,
        user=step.user, folder=step.folder, name=name, ready=ready, lives=lives,
    )  # fmt: skip


def _ready(settings: model.Ready) -> Readiness:
    port = None if settings.port is None else str(settings.port)
    return Readiness(settings.within, port, settings.output, settings.file, settings.seconds)


def _reading(settings: model.Reading) -> Reading:
    factor = metrics.UNITS[settings.unit][1]
    return Reading(settings.output, settings.json_, settings.file, settings.client, factor, settings.over_clients)
