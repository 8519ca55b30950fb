"""What a decision is about: hosts, target and study, as the command line gives them, and as its folder keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from framegauge.decide import trial
from framegauge.decide.folder import SCHEMA
from framegauge.decide.places import Lab, Own, Place, Rack
from framegauge.errors import CorruptResults, InputError
from framegauge.files.machines import Machine
from framegauge.labs import file as lab_file
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.listed import is_here

__all__ = ["LOAD_SECONDS", "Question", "asked", "kept"]

LOAD_SECONDS = 10.0

Json = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """`hosts` are words as for framegauge check, `machines` hosts of an inventory. `lab` is the path of a lab file.
    `study` is resolved, and None where nothing can be studied; `rack` says that it builds its hosts. `load_seconds`:
    for how long the load is read."""

    hosts: tuple[str, ...]
    machines: tuple[Machine, ...]
    rack: bool
    lab: str | None
    target_mtu: int
    study: Study | None
    load_seconds: float = LOAD_SECONDS

    @property
    def text(self) -> str:
        """The question."""
        who = "this lab" if self.lab is not None else "this rack" if self.rack else "these hosts"
        return f"Should {who} run jumbo frames (MTU {self.target_mtu})?"

    def place(self, allowed: bool) -> Place:
        """Where it is decided; `allowed`: whether hosts that are there may be changed."""
        if self.lab is not None:
            return Lab(self.lab)
        if self.rack and self.study is not None:
            return Rack(self.study)
        return Own(self.hosts, self.machines, allowed)

    def as_json(self) -> Json:
        """As asked.json has it."""
        return {
            "schema": SCHEMA,
            "hosts": list(self.hosts),
            "machines": [machine.model_dump(mode="json") for machine in self.machines],
            "rack": self.rack,
            "testbed": self.lab,
            "target_mtu": self.target_mtu,
            "study": None if self.study is None else study_file.dump(self.study),
            "load_seconds": self.load_seconds,
        }


def asked(
    hosts: Sequence[str],
    machines: Sequence[Machine],
    rack: bool,
    testbed: Path | None,
    target_mtu: int,
    workload: Path | None,
) -> Question:
    """What a command line asks; InputError or StudyError for what cannot be asked."""
    own = [*hosts, *(machine.name for machine in machines)]
    if own and (rack or testbed is not None):
        option = "--rack" if testbed is None else "--testbed"
        raise InputError(f"decide: found {own[0]} with {option}, expected hosts that are there, or a rack to build")
    if testbed is not None and lab_file.is_lab(testbed):
        if workload is not None:
            raise InputError("--workload: found a lab with --testbed, expected a study file: labs are only checked")
        return Question((), (), True, str(testbed.absolute()), target_mtu, None)
    if rack or testbed is not None:
        return Question((), (), True, None, target_mtu, trial.prepared(workload, target_mtu, None, testbed))
    if len(own) < 2:
        named = "no hosts" if not own else f"{own[0]} alone"
        raise InputError(f"decide: found {named}, expected two or more, --hosts FILE, or --rack")
    there = Own(hosts, machines, allowed=True)
    here = [word for word in hosts if word == "local" or ":" in word]
    here += [machine.name for machine in machines if is_here(machine)]
    if here:
        if workload is not None:
            raise InputError(
                f"--workload: found {', '.join(here)}, expected hosts over ssh: only they can be raised for a study"
            )
        return Question(tuple(hosts), tuple(machines), False, None, target_mtu, None)
    study = trial.prepared(workload, target_mtu, there.machines)
    return Question(tuple(hosts), tuple(machines), False, None, target_mtu, study)


def kept(found: Mapping[str, Any], where: Path) -> Question:
    """What asked.json asks; CorruptResults if it cannot be asked."""
    try:
        machines = tuple(Machine.model_validate(entry) for entry in found["machines"])
    except ValidationError:
        raise CorruptResults(f"{where}: machines: found no hosts, expected those of an inventory") from None
    text = found["study"]
    study = None if text is None else study_file.parse(text, str(where))
    seconds = found.get("load_seconds", LOAD_SECONDS)  # none in a folder that is older than it is
    hosts = tuple(found["hosts"])
    return Question(hosts, machines, found["rack"], found["testbed"], found["target_mtu"], study, seconds)
