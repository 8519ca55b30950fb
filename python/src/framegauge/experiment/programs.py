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
    asked = study.workloads[slot.cell.place].command
    if asked is None:
        raise ValueError(f"workload {slot.cell.place} is no command")
    names = study.testbed.host_names
    levels = {name: level_text(value) for name, value in factors.items() if value is not None and name != "mtu"}
    nagle = factors["nagle"]
    return Command(
        name=asked.name,
        clients=[_task(each, each.within, name=each.name) for each in asked.clients],
        metrics_={name: _reading(each) for name, each in asked.metrics.items()},
        servers=[_task(each, ready=_ready(each.ready), lives=each.lives) for each in asked.servers],
        prepare=[_task(each, each.within, lives=each.lives) for each in asked.prepare],
        after=[_task(each, each.within) for each in asked.after],
        roles=asked.roles,
        values={**levels, **{name: level_text(value) for name, value in slot.cell.parameters.items()}},
        mtu=host_mtus(factors["mtu"], names),
        keep=asked.keep,
        nagle=nagle,
        nagle_on=asked.hosts_of(asked.nagle_on) if asked.nagle_on is not None else names,
        preload=find_nodelay if nagle is not None else None,
        expect_seconds=asked.expect if asked.expect is not None else 10.0,
    )


def programs_of(study: Study) -> dict[str, list[str]]:
    """The programs that hosts must have, by host: the first words of commands, if they are names or whole paths that
    can be known beforehand, and of those with a package the ones that a step names."""
    found: dict[str, dict[str, None]] = {}
    for command in _commands(study):
        for _, step in command.steps():
            first = step.argv[0]
            known = "{" not in first and (first.startswith("/") or "/" not in first)
            needed = [*([first] if known else []), *(each for each in command.packages if step.names(each))]
            for host in command.hosts_of(step.host) if needed else ():
                found.setdefault(host, {}).update(dict.fromkeys(needed))
    return {host: list(found[host]) for host in study.testbed.host_names if host in found}


def _commands(study: Study) -> list[model.Command]:
    return [each.command for each in study.workloads if each.command is not None]


def remedy(study: Study, program: str) -> str:
    """How to install a program of a command."""
    packages = [command.packages[program] for command in _commands(study) if program in command.packages]
    return f"apt-get install {packages[0]}" if packages else INSTALL


def lacking(study: Study, agents: Mapping[str, Requests]) -> list[dict[str, str]]:
    """The programs that the user's own hosts lack, as requirements: all programs of all hosts. Hosts that a testbed
    builds are not among `agents`; they have this machine's programs (`planning.missing_programs`)."""
    found: dict[str, list[str]] = {}
    for host, programs in programs_of(study).items():
        if (agent := agents.get(host)) is not None:
            with running(Host(host, "", agent), "sh", ["/bin/sh", "-c", LOOK, "sh", *programs]) as look:
                look.wait(LOOK_SECONDS)
                absent = set(look.output().splitlines())
                for program in (each for each in programs if each in absent):
                    found.setdefault(program, []).append(host)
    return [
        {
            "name": name, "needed_for": f"command on {', '.join(hosts)}", "found": "no such program",
            "remedy": remedy(study, name),
        }
        for name, hosts in found.items()
    ]  # fmt: skip


def program_lines(study: Study) -> list[str]:
    """What a study would start, and where, for --dry-run: one line per program, with its placeholders."""
    lines = []
    for each in study.workloads:
        for where, step in each.command.steps() if each.command is not None else ():
            hosts = ", ".join(each.command.hosts_of(step.host)) if each.command is not None else ""
            user = f" as {step.user}" if step.user is not None else ""
            lives = getattr(step, "lives", "run")
            stays = "" if lives == "run" else f", kept for the {lives}"
            words = one_line(shlex.join(step.argv), MOST_SHOWN)
            lines.append(f"  {each.parameters.label}, {KINDS[str(where[0])]} on {hosts}{user}{stays}: {words}")
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


def _ready(asked: model.Ready) -> Readiness:
    port = None if asked.port is None else str(asked.port)
    return Readiness(asked.within, port, asked.output, asked.file, asked.seconds)


def _reading(asked: model.Reading) -> Reading:
    factor = metrics.UNITS[asked.unit][1]
    return Reading(asked.output, asked.json_, asked.file, asked.client, factor, asked.over_clients)
