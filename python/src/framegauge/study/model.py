"""The study as validated data: testbed, factors with levels, workloads, margins.

A study file is YAML; `study.file.load` reads it and names file and line of every problem. This module holds its model
(`Study`) and what follows from it (`arms`, `cells`); nothing here runs anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from framegauge import metrics
from framegauge.errors import InputError
from framegauge.files import settings
from framegauge.files.types import Factor, Model, Problem, Seconds, nearest
from framegauge.networks import disciplines
from framegauge.study.aggregates import aggregate_problems, hardware_problems, probing_problems
from framegauge.study.bonds import bond_problems
from framegauge.study.changes import Change, change_problems
from framegauge.study.estimators import Estimator, estimator_problems, of_metrics
from framegauge.study.factors import NETWORK, OFFLOADS, Factors, Meters, nic_of
from framegauge.study.margins import Margins, usual
from framegauge.study.mtus import host_mtus, mtu_problems, route_mtu, storage_mtu
from framegauge.study.multipath import multipath_problems
from framegauge.study.network_rules import network_problems
from framegauge.study.parameters import disobeyed
from framegauge.study.simulated import no_rack, simulation_problems, unmeasured_problems
from framegauge.study.testbed import Testbed
from framegauge.study.tunings import Tuning, tuning_problems
from framegauge.study.workloads import WORKLOADS, Workload

__all__ = [
    "NETWORK",
    "OFFLOADS",
    "Arm",
    "Cell",
    "Factor",
    "Problem",
    "Study",
    "Workload",
    "arms",
    "cells",
    "host_mtus",
    "level_text",
    "nic_of",
    "route_mtu",
    "storage_mtu",
]

MODERATION = "50 us"
_ON = {True: "on", False: "off"}

TreatmentName = Literal[
    "mtu", "rtt", "offloads", "tso", "lro", "gro", "hw_gro", "checksum", "moderation", "congestion_control", "nagle",
    "qdisc", "queue", "routing", "buffer", "skew", "shaping", "ecn", "overlay", "gso_size", "gro_size", "mtu_probing",
    "pacing", "mptcp", "plpmtud", "tuning",
]  # fmt: skip


class Study(Model):
    """One question, and the experiment that answers it.

    `fraction: 2` runs half of the cells, chosen so that main effects stay separate (`cells`). `stop: settled` ends
    before `blocks` once every comparison has its verdict (`framegauge docs statistics` states the cost); up to half as
    many more blocks are run if they are needed to tell whether the excluded runs were lost at random. `order: random`
    draws the order of arms in each block by itself. `primary` names the metrics that decide: the others have a verdict
    only once every comparison of these has one. `ask: not worse` asks no more than whether the treatment is not worse
    by more than the margin. `estimator`: of all metrics, or by metric. `changes` are made during every run. `tunings`
    are the sets of host settings that `factors.tuning` names.
    """

    question: StrictStr = "Do jumbo frames help?"
    testbed: Testbed
    factors: Factors
    workloads: Annotated[list[Workload], Field(min_length=1)]
    treatment: TreatmentName = "mtu"
    control: StrictBool = True
    blocks: Annotated[StrictInt, Field(ge=2, le=10_000)] = 8
    stop: Literal["settled", "blocks"] = "settled"
    order: Literal["balanced", "random"] = "balanced"
    fraction: Annotated[StrictInt, Field(ge=1, le=16)] = 1
    budget: Seconds = 600.0
    margins: Margins = Field(default_factory=Margins.model_construct)
    primary: list[StrictStr] = []
    ask: Literal["difference", "not worse"] = "difference"
    estimator: Estimator | dict[StrictStr, Estimator] = "mean"
    seed: Annotated[StrictInt, Field(ge=0)] = 1
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = 2
    meters: Meters = Field(default_factory=Meters)
    sysctls: dict[StrictStr, StrictStr] = {}
    tunings: dict[StrictStr, Tuning] = {}
    changes: list[Change] = []

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        capabilities, cpu = self.testbed.capabilities, self.testbed.cpu
        printed = self._declared()
        if capabilities.is_virtual:  # neither CPUs nor a wire: what a capture would show is known
            self.meters = self.meters.model_copy(update={"cpu": False, "wire": False})
            if "control" not in self.model_fields_set:  # equal scenarios have equal results
                self.control = len(self.factors.levels(self.treatment)) < 2
        if not self.margin():
            self.margins = usual([work.parameters for work in self.workloads], printed, self.meters.cpu or bool(cpu))
        if capabilities.builds_hosts:
            self._fill()
        elif "wire" not in self.meters.model_fields_set:
            self.meters = self.meters.model_copy(update={"wire": False})  # a capture needs root
        if getattr(self.factors, self.treatment) is None:
            raise Problem(("treatment",), self.treatment, f"a factor with levels: factors.{self.treatment} has none")
        levels = self.treatment_factor.levels
        if len(levels) < 2 and not self.control:
            path = ("factors", self.treatment)
            raise Problem(path, levels[0], "two or more levels for the treatment, or control: true")
        if not capabilities.delays and self.factors.levels("rtt") not in ([None], [0.0]):
            expected = f"0 on testbed {self.testbed.kind}: it cannot delay"
            raise Problem(("factors", "rtt"), self.factors.levels("rtt"), expected)
        rules = (
            _mtu_problems, _nic_problems, _network_problems, _workload_problems, _fraction_problems, _change_problems,
            _primary_problems, _estimator_problems, _sysctl_problems, _aggregate_problems, _tuning_problems,
            _simulation_problems,
        )  # fmt: skip
        for problem in itertools.chain.from_iterable(rule(self) for rule in rules):
            raise problem
        return self

    def _declared(self) -> list[str]:
        """Enters the metrics of workloads in the table, and returns their names; Problem for unknown margins."""
        labels: list[str] = []
        own_names: list[str] = []
        for index, workload in enumerate(self.workloads):
            path = ("workloads", index, workload.parameters.key)
            if workload.command is not None and workload.command.name in (*labels, *WORKLOADS):
                raise Problem((*path, "name"), workload.command.name, "a name that no other workload has")
            labels.append(workload.parameters.label)
            for name, metric in workload.parameters.declares.items():
                try:
                    metrics.declare(name, metric)
                except InputError as error:
                    raise Problem((*path, "metrics", name), name, str(error)) from None
                own_names.append(name)
        if strange := [name for name in self.margins.own() if name not in own_names]:
            metric_names = [*Margins.model_fields, *own_names]
            raise Problem(("margins", strange[0]), strange[0], f"a metric: {nearest(strange[0], metric_names)}")
        return own_names

    def _fill(self) -> None:
        """Sets the defaults of factors on hosts that the testbed builds."""
        factors, capabilities = self.factors, self.testbed.capabilities
        if factors.rtt is None:
            factors.rtt = Factor[Seconds].model_validate("0.2 ms" if capabilities.delays else "0 s")
        if factors.moderation is None:
            factors.moderation = Factor[Seconds].model_validate(MODERATION if capabilities.has_fabric else "0 s")
        if factors.offloads is None:
            factors.offloads = Factor[StrictBool](levels=[False])
        if factors.congestion_control is None:
            factors.congestion_control = Factor[StrictStr](levels=["cubic"])

    @property
    def treatment_factor(self) -> Factor[Any]:
        """The factor whose levels are compared with its baseline."""
        factor: Factor[Any] = getattr(self.factors, self.treatment)
        return factor

    def estimators(self) -> dict[str, Estimator]:
        """The estimators of metrics that have another than the mean."""
        return of_metrics(self.estimator, self.margin())

    def margin(self) -> dict[str, float]:
        """The margins as shares, by metric."""
        return self.margins.shares()


def _mtu_problems(study: Study) -> Iterator[Problem]:
    factors = study.factors
    yield from bond_problems(study.testbed, factors.mtu.levels, study.workloads, study.changes)
    yield from mtu_problems(study.testbed, factors.mtu.levels, bool(study.changes), factors.levels("overlay"))


def _nic_problems(study: Study) -> Iterator[Problem]:
    """Problems with combinations of NIC settings that no NIC, or not the kernel's own link, supports."""
    names = ("offloads", *OFFLOADS)
    traits = study.testbed.capabilities
    if not traits.builds_hosts:
        if study.factors.levels("moderation") not in ([None], [0.0]):
            expected = "no such factor on testbed ssh: moderation is left unchanged there"
            raise Problem(("factors", "moderation"), study.factors.levels("moderation"), expected)
    elif study.factors.qdisc is not None:
        expected = f"no such factor on testbed {study.testbed.kind}: its links determine the hosts' queues"
        raise Problem(("factors", "qdisc"), ", ".join(study.factors.qdisc.levels), expected)
    if traits.builds_hosts:
        yield from hardware_problems(study.factors, study.testbed.kind)
    for levels in itertools.product(*(study.factors.levels(name) for name in names)):
        nic = nic_of(dict(zip(names, levels, strict=True)))
        for name in ("tso", "lro"):
            if nic[name] and nic["checksum"] is False:
                key = "checksum" if study.factors.checksum is not None else name
                expected = f"checksum on wherever {name} is on: aggregates need it"
                yield Problem(("factors", key), f"{name} on, checksum off", expected)
        if traits.passes_aggregates and max(study.factors.levels("moderation")) > 0 and (nic["tso"] or not nic["gro"]):
            expected = "0 s on testbed veth, or gro on and tso off: the kernel's link polls only then"
            yield Problem(("factors", "moderation"), study.factors.levels("moderation"), expected)
        if traits.passes_aggregates and nic["tso"] != nic["lro"]:
            key = "lro" if study.factors.lro is not None else "tso"
            expected = "lro equal to tso on testbed veth: the kernel's link passes on whole aggregates"
            yield Problem(("factors", key), f"tso {_ON[nic['tso']]}, lro {_ON[nic['lro']]}", expected)


def _network_problems(study: Study) -> Iterator[Problem]:
    names = study.testbed.host_names
    mtus = [mtu for level in study.factors.mtu.levels for mtu in host_mtus(level, names).values()]
    mtus += [mtu for level in study.factors.mtu.levels if (mtu := storage_mtu(level, names)) is not None]
    levels = {name: study.factors.levels(name) for name in NETWORK if getattr(study.factors, name) is not None}
    yield from network_problems(study.testbed, levels, mtus, study.sysctls, study.meters.watch)
    if study.meters.diagnose and study.testbed.capabilities.is_invented:
        expected = "off on an invented network, which has no packets; rack, veth or ssh has"
        yield Problem(("meters", "diagnose"), "on", expected)


def _change_problems(study: Study) -> Iterator[Problem]:
    workloads = [workload.parameters for workload in study.workloads]
    yield from change_problems(study.changes, study.testbed, study.factors.levels("overlay"), workloads)


def _primary_problems(study: Study) -> Iterator[Problem]:
    if strange := [name for name in study.primary if name not in study.margin()]:
        yield Problem(("primary",), ", ".join(strange), f"metrics with a margin ({', '.join(study.margin())})")


def _estimator_problems(study: Study) -> Iterator[Problem]:
    metrics = [name for name in study.margin() if not study.primary or name in study.primary]
    comparisons = len(metrics) * len(cells(study)) * max(1, sum(arm.role == "treatment" for arm in arms(study)))
    yield from estimator_problems(study.estimator, study.margin(), comparisons, study.blocks, study.stop)


def _sysctl_problems(study: Study) -> Iterator[Problem]:
    for name, value in study.sysctls.items():
        if problem := settings.sysctl(name, value):
            yield Problem(("sysctls", name), *problem)


def _aggregate_problems(study: Study) -> Iterator[Problem]:
    bed = study.testbed
    yield from aggregate_problems(study.factors, bed.capabilities, bed.kind, bed.link.rate)
    yield from multipath_problems(study.factors, bed, study.sysctls)
    yield from probing_problems(study.factors.levels("mtu_probing"), study.sysctls)


def _tuning_problems(study: Study) -> Iterator[Problem]:
    factors = [name for name in Factors.model_fields if getattr(study.factors, name) is not None]
    bed, levels = study.testbed, study.factors.levels("tuning")
    yield from tuning_problems(levels, study.tunings, factors, bed.kind, bed.capabilities.builds_hosts)


def _simulation_problems(study: Study) -> Iterator[Problem]:
    if not study.testbed.capabilities.is_virtual:
        return
    workloads = [workload.parameters for workload in study.workloads]
    yield from simulation_problems(study.testbed, study.factors, workloads, study.sysctls, study.tunings)
    yield from unmeasured_problems(study.meters, study.margin(), study.testbed.cpu is not None)


def _misfits(workload: Workload, study: Study) -> Iterator[Problem]:
    """Problems of a workload's parameters with the rest of the study."""
    bed, hosts = study.testbed, study.testbed.host_names
    if workload.stream is not None:
        yield from workload.stream.misfits(hosts, bed.nics_of_hosts, study.factors.mtu.levels)
    if workload.command is not None:
        levels = [name for name in Factors.model_fields if getattr(study.factors, name) is not None]
        yield from workload.command.misfits(hosts, levels)
    if workload.web is not None:
        yield from workload.web.misfits(hosts, bed.family)
    if workload.ceph is not None:
        is_split = any(storage_mtu(level, hosts) is not None for level in study.factors.mtu.levels)
        yield from workload.ceph.misfits(bed.nics_of_hosts, bed.family, is_split)
    if workload.incast is not None and not bed.capabilities.is_virtual:
        yield from workload.incast.misfits()
    yield from () if workload.mapreduce is None else workload.mapreduce.misfits(hosts)
    yield from () if workload.shuffle is None else workload.shuffle.misfits(hosts)
    if workload.arrivals is not None:
        yield from workload.arrivals.misfits(len(hosts), bed.link.rate)
    if workload.replay is not None:
        yield from workload.replay.misfits(hosts)
    yield from workload.parameters.crowded(len(hosts))


def _workload_problems(study: Study) -> Iterator[Problem]:
    hosts, capabilities = len(study.testbed.host_names), study.testbed.capabilities
    for index, workload in enumerate(study.workloads):
        parameters = workload.parameters
        least, key = parameters.needed_hosts()
        if hosts < least:
            path: tuple[str | int, ...] = ("workloads", index, parameters.key, *([key] if key else []))
            yield Problem(path, f"{hosts} hosts", f"topology: rack with at least {least} hosts")
        for problem in _misfits(workload, study):
            problem.path = ("workloads", index, parameters.key, *problem.path)
            yield problem
        if parameters.only_simulated and not capabilities.is_virtual:
            expected = f"simulator for {parameters.key}, which is only simulated (framegauge simulate)"
            yield Problem(("testbed", "kind"), study.testbed.kind, expected)
        if capabilities.is_invented and (workload.command is not None or parameters.starts_programs):
            beds = "rack, veth or ssh" if workload.command is not None else "rack or veth"
            expected = f"{beds} for {parameters.key}: an invented network runs no programs"
            yield Problem(("testbed", "kind"), study.testbed.kind, expected)
        if parameters.needs_rack and not capabilities.names_hosts:
            yield no_rack(study.testbed, parameters, index)
        if study.testbed.family == 6 and parameters.key == "mapreduce":
            yield Problem(("testbed", "family"), 6, "4 for mapreduce: Hadoop does not speak IPv6")
        if parameters.starts_programs and not capabilities.builds_hosts:
            expected = "stream, rr, mixed, incast, datagrams, quic or command on testbed ssh: others start programs"
            yield Problem(("workloads", index, parameters.key), parameters.key, expected)
        yield from disobeyed(parameters, study.factors)


@dataclass(frozen=True)
class Arm:
    """One level of the treatment within a block; the control repeats the baseline's level."""

    role: Literal["baseline", "control", "treatment"]
    level: Any

    @property
    def name(self) -> str:
        """A name that is unique within a study."""
        return self.role if self.role != "treatment" else level_text(self.level)


@dataclass(frozen=True)
class Cell:
    """One combination of everything but the treatment; verdicts are given within a cell.

    `workload` is the name that results have for it, `place` its place among the study's workloads.
    """

    index: int
    workload: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, Any]
    place: int = 0


def level_text(level: object) -> str:
    """A level as a word: 9000, h1=9000,h2=1500, 0.0002, true, red (30 to 90 KiB, ECN)."""
    if isinstance(level, Mapping) and "kind" in level:
        return disciplines.text(level)
    if isinstance(level, Mapping):
        return ",".join(f"{host}={mtu}" for host, mtu in level.items())
    return str(level).lower() if isinstance(level, bool | None) else str(level)


def arms(study: Study) -> list[Arm]:
    """The arms: the baseline, the A/A control, then the other levels in the file's order."""
    factor = study.treatment_factor
    all_arms = [Arm("baseline", factor.baseline)]
    if study.control:
        all_arms.append(Arm("control", factor.baseline))
    return all_arms + [Arm("treatment", level) for level in factor.levels if level != factor.baseline]


def _axes(study: Study) -> dict[str, int]:
    """Everything that the cells vary, with its number of levels: the other factors, and the workloads as one."""
    names = [name for name in Factors.model_fields if name != study.treatment]
    axes = {name: len(study.factors.levels(name)) for name in names}
    axes["workloads"] = sum(len(work.parameters.conditions()) for work in study.workloads)
    return {name: count for name, count in axes.items() if count > 1}


def _fraction_problems(study: Study) -> Iterator[Problem]:
    if study.fraction == 1:
        return
    axes = _axes(study)
    uneven = [f"{name} ({count})" for name, count in axes.items() if count % study.fraction]
    if len(axes) < 3 or uneven:
        text = ", ".join(f"{name} ({count})" for name, count in axes.items()) or "nothing"
        expected = f"1, or at least three varied besides the treatment, each with a multiple of {study.fraction} levels"
        yield Problem(("fraction",), f"{study.fraction} with {text}", expected)


def cells(study: Study) -> list[Cell]:
    """Every combination of the other factors' levels and the workloads' parameters, or a fraction of them.

    A fraction 1/s keeps the cells whose level numbers add up to a multiple of s: an orthogonal array whose strength is
    one less than the number of varied factors (Hedayat, Sloane & Stufken 1999, chapter 1; with two levels it is the
    usual half fraction, whose defining relation is the highest interaction). Any two factors still occur in all
    combinations equally often; the effect of each is confounded with the interaction of all others.
    """
    names = [name for name in Factors.model_fields if name != study.treatment]
    levels = [list(enumerate(study.factors.levels(name))) for name in names]
    loads = [(index, one) for index, work in enumerate(study.workloads) for one in work.parameters.conditions()]
    all_cells: list[Cell] = []
    for (number_of, (place, parameters)), chosen in itertools.product(enumerate(loads), itertools.product(*levels)):
        label = study.workloads[place].parameters.label
        if (number_of + sum(number for number, _ in chosen)) % study.fraction == 0:
            factors = dict(zip(names, (level for _, level in chosen), strict=True))
            all_cells.append(Cell(len(all_cells), label, parameters, factors, place))
    return all_cells
