"""Captures of ports and hosts in simulated runs: which, in which runs, and whether there are such."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from framegauge.errors import InputError
from framegauge.experiment.simulated.plan import Planned
from framegauge.experiment.simulated.pool import Simulate, scenario_of
from framegauge.networks.ports import capture_file, named, unknown

__all__ = ["Captures", "asked", "check", "planned", "told"]

MOST_BYTES = 256 << 20  # of the captures of a run (crates/simulator/src/capture.rs)
NO_TIME_SECONDS = 1e-9


@dataclass(frozen=True)
class Captures:
    """Ports and hosts, and numbers of runs; without numbers, the runs of the first block."""

    ports: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()

    def of(self, one: Planned) -> Sequence[str]:
        """The ports to capture in this run."""
        return self.ports if (one.number in self.runs if self.runs else one.slot.block == 0) else ()


def asked(ports: Sequence[str], runs: str | None) -> Captures:
    """What `--pcap` and `--pcap-runs` ask for; InputError for what makes no sense."""
    names = tuple(map(named, ports))
    for place, name in enumerate(names):
        if capture_file(name) in map(capture_file, names[:place]):
            raise InputError(f"--pcap: found {capture_file(name)} for two ports, expected a file for each")
    if runs is None:
        return Captures(names)
    if not names:
        raise InputError("--pcap-runs: found no --pcap, expected the ports or hosts to capture")
    numbers = [number.strip() for number in runs.split(",")]
    if not all(
        number.isascii() and number.isdecimal() and 0 < len(number) <= 9 and int(number) > 0 for number in numbers
    ):
        raise InputError(f'--pcap-runs: found "{runs}", expected numbers of runs, such as 1,2')
    return Captures(names, tuple(sorted(set(map(int, numbers)))))


def planned(captures: Captures, blocks: Iterable[Sequence[Planned]]) -> list[Planned]:
    """The runs that are captured; InputError for a number that no run has."""
    runs = [run for block in blocks for run in block]
    if captures.runs and captures.runs[-1] > len(runs):
        raise InputError(f"--pcap-runs: found run {captures.runs[-1]}, expected numbers from 1 to {len(runs)}")
    return [run for run in runs if captures.of(run)]


def told(captures: Captures, runs: Sequence[Planned], of: int) -> str:
    """What is kept, and how large it may be."""
    ports, most = ", ".join(captures.ports), MOST_BYTES >> 20
    return f"captures of {ports} in {len(runs)} of {of} runs: at most {most} MiB for each run"


def check(captures: Captures, runs: Sequence[Planned], simulate: Simulate) -> None:
    """InputError if the network of one of these runs has no such port or host. The simulator says which ports there
    are: a network without work costs next to nothing."""
    networks = set()
    for run in runs:
        idle = {**scenario_of(run), "flows": [], "end_seconds": NO_TIME_SECONDS, "seed": 1}
        network = json.dumps([idle.get(key) for key in ("hosts", "topology", "links")], sort_keys=True)
        if network in networks:
            continue
        networks.add(network)
        there = {"port": [port["port"] for port in simulate(idle, lambda _: None).result["ports"]]}
        there["host"] = [host["name"] for host in idle["hosts"]]
        for name in captures.ports:
            kind = "port" if ">" in name else "host"
            if name not in there[kind]:
                raise InputError(f"--pcap: {unknown(kind, name, there[kind])}")
