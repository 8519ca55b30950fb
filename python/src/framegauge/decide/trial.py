"""The study of a decision: the user's workloads, or streams and requests, at the MTU as it is, between, and the target.

A study file of the user, or the part of one that has `workloads`, is taken as it is, but for what the decision asks:
the question, the treatment, the MTUs and, unless it builds a rack, the testbed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from framegauge.errors import StudyError
from framegauge.experiment import refusals
from framegauge.files import yaml as yaml_file
from framegauge.files.machines import Machine
from framegauge.study import file as study_file
from framegauge.study.file import Alter
from framegauge.study.model import Study

__all__ = ["BETWEEN", "LEAST_MTU", "at", "levels_of", "prepared"]

LEAST_MTU = 1500
BETWEEN = 4200  # what FDDI and many NICs that stop short of 9000 take
RACK = {"kind": "rack", "topology": "rack", "hosts": 4, "link": {"rate": "1 Gb/s"}}
BUILT = ("rack", "veth")
WORKLOADS: Mapping[str, Any] = {
    "workloads": [{"stream": {"duration": "1 s"}}, {"rr": {"duration": "0.5 s"}}],
    "blocks": 8,  # fewer never show that there is no practical difference
    "budget": "150 s",
    "margins": {"goodput": "2 %", "latency_p50": "10 %"},
}


# A rack's CPUs are no evidence about hardware, but its offloads can be varied without a change of anybody's host.
ON_HOSTS: Mapping[str, Any] = {"margins": {**WORKLOADS["margins"], "receiver_cpu_cost": "10 %"}}
ON_A_RACK: Mapping[str, Any] = {"factors": {"offloads": [False, True]}}


def prepared(
    path: Path | None, target_mtu: int, machines: Sequence[Machine] | None = None, testbed: Path | None = None
) -> Study:
    """The study before the hosts' MTU is known, so that mistakes in the user's files are told before anything is
    asked of a host: StudyError. `machines` None: on a rack, which is that of the study file `testbed`, else that of
    the file itself, else one of four hosts.
    """
    bed = None if testbed is None else _testbed(testbed)
    alter = _fitted(target_mtu, machines, bed, str(path))
    if path is None:
        usual = {**WORKLOADS, **(ON_A_RACK if machines is None else ON_HOSTS)}
        return study_file.parse(yaml.safe_dump(usual), "the usual workloads", alter)
    study = study_file.load(path, alter=alter)
    refusals.check(study, name=str(path))
    return study


def at(study: Study, present_mtu: int, family: int) -> Study:
    """The same study for hosts that have this MTU; where that is the target already, what they would have without.
    Hosts that are there are measured over this version of IP."""

    def alter(values: dict[str, Any]) -> None:
        mtus = values["factors"]["mtu"]["levels"]
        levels = levels_of(present_mtu, mtus[-1], mtus)
        values["factors"]["mtu"] = {"levels": levels, "baseline": levels[0]}
        if not study.testbed.capabilities.builds_hosts:
            values["testbed"]["family"] = family

    return study_file.parse(study_file.dump(study), "the study", alter)


def levels_of(present_mtu: int, target_mtu: int, given: Sequence[int]) -> list[int]:
    """The MTUs to compare: the present one, those of `given` that lie between, and the target."""
    least = present_mtu if present_mtu < target_mtu else LEAST_MTU
    return [least, *sorted({mtu for mtu in given if least < mtu < target_mtu}), target_mtu]


def _fitted(target_mtu: int, machines: Sequence[Machine] | None, bed: Mapping[str, Any] | None, name: str) -> Alter:
    def alter(values: dict[str, Any]) -> None:
        if values.get("treatment", "mtu") != "mtu":
            raise StudyError([f'{name}: treatment: found "{values["treatment"]}", expected mtu: it is what is decided'])
        own, factors = values.get("testbed"), dict(values.get("factors") or {})
        levels = levels_of(LEAST_MTU, target_mtu, _given(factors.get("mtu")))
        builds = isinstance(own, Mapping) and own.get("kind") in BUILT
        values["factors"] = {**factors, "mtu": {"levels": levels, "baseline": levels[0]}}
        if factors.get("overlay") is not None:
            raise StudyError([f"{name}: factors.overlay: found one, expected none: the MTU is that of the hosts' NICs"])
        if machines is not None:
            values["testbed"] = {"kind": "ssh", "machines": [machine.model_dump(mode="json") for machine in machines]}
        elif bed is not None or not builds:
            values["testbed"] = copy.deepcopy(dict(bed or RACK))
        who = "these hosts" if machines is not None else "this rack"
        values["question"] = f"Should {who} run jumbo frames (MTU {target_mtu})?"
        values.pop("ask", None)

    return alter


def _given(mtu: object) -> list[int]:
    """The MTUs of a study file, if it has any that are numbers; else the usual one between."""
    levels = mtu.get("levels", mtu.get("baseline")) if isinstance(mtu, Mapping) else mtu
    values = levels if isinstance(levels, list) else [levels]
    numbers = [level for level in values if isinstance(level, int) and not isinstance(level, bool)]
    return numbers or [BETWEEN]


def _testbed(path: Path) -> Mapping[str, Any]:
    """The testbed of a study file; StudyError unless it builds hosts."""
    text = yaml_file.read(path, "a study file")
    content = yaml_file.data(text, str(path))
    bed = content.get("testbed") if isinstance(content, Mapping) else None
    kind = bed.get("kind") if isinstance(bed, Mapping) else None
    if bed is None and (other := yaml_file.expected(text, str(path), "study")) is not None:
        raise StudyError([other])
    if not isinstance(bed, Mapping) or kind not in BUILT:
        raise StudyError([f'{path}: testbed.kind: found "{kind}", expected rack or veth: a decision needs real hosts'])
    return bed
