"""What the workload `command` costs a program: the program's own figure with it and without, on the kernel's own link.

    sudo .venv/bin/python -m bench.cost.harness [--blocks 10] [--seconds 2]

Each block runs every program in both ways, in random order, on fresh hosts: iperf3 as a command beside the workload
`iperf3`, and redis-benchmark as a command beside the same program started in the same namespaces with nothing that
watches it. The ratio is that of the program's own figures, command over other, with a 95 % interval of its mean.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable, Sequence

import scipy.stats

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.experiment.planning import baseline
from framegauge.study import file as study_file
from framegauge.testbeds.base import Host
from framegauge.testbeds.veth import VethTestbed
from framegauge.workloads.command import Command
from framegauge.workloads.iperf3 import Iperf3
from framegauge.workloads.programs import running
from framegauge.workloads.readings import Reading, value
from framegauge.workloads.tasks import Readiness, Task

STUDY = """
testbed: {kind: veth, link: {rate: unshaped}}
factors: {mtu: [1500, 9000], offloads: on}
workloads: [{stream: {duration: 1 s}}]
"""
SERVE = ("redis-server", "--bind", "{address}", "--port", "6379", "--save", "", "--protected-mode", "no")
ASK = ("redis-benchmark", "-h", "{h2}", "-c", "8", "-n", "{count}", "-d", "4000", "-t", "get", "--csv")
GETS = Reading(output='"GET","([0-9.]+)"')
REQUESTS_PER_SECOND = 20_000  # about; so many are made for each second that a run is to take


def command(name: str, server: Task, client: Task, reading: Reading, hosts: Sequence[Host]) -> float:
    """The figure of a program as the workload `command` runs it."""
    made = Command(name, [client], {"figure": reading}, servers=[server], mtu={host.name: 1500 for host in hosts})
    found: float = made.run(hosts, "0" * 32).record["printed"]["figure"]
    return found


def iperf3_as_command(seconds: int) -> Callable[[Sequence[Host]], float]:
    """Bits per second, as iperf3 reports what was received."""
    server = Task(("h2",), ("iperf3", "-s", "-1"), ready=Readiness(port="5201", seconds=None))
    client = Task(("h1",), ("iperf3", "-J", "-c", "{h2}", "-t", str(seconds), "-C", "cubic"))
    return lambda hosts: command("iperf3", server, client, Reading(json="end.sum_received.bits_per_second"), hosts)


def iperf3_as_workload(seconds: int) -> Callable[[Sequence[Host]], float]:
    """The same of the workload."""

    def run(hosts: Sequence[Host]) -> float:
        found = Iperf3(float(seconds)).run(hosts, "0" * 32).record["clients"][0]
        return 8.0 * found["bytes"] / found["seconds"]

    return run


def redis_as_command(seconds: int) -> Callable[[Sequence[Host]], float]:
    """Requests per second, as redis-benchmark prints them."""
    server = Task(("h2",), SERVE, ready=Readiness(port="6379", seconds=None))
    client = Task(("h1",), tuple(word.replace("{count}", str(seconds * REQUESTS_PER_SECOND)) for word in ASK))
    return lambda hosts: command("redis", server, client, GETS, hosts)


def redis_alone(seconds: int) -> Callable[[Sequence[Host]], float]:
    """The same programs, started and nothing else."""

    def run(hosts: Sequence[Host]) -> float:
        client, server = hosts
        words = {"{h2}": server.address, "{count}": str(seconds * REQUESTS_PER_SECOND)}
        with running(
            server, "redis-server", [server.address if word == "{address}" else word for word in SERVE]
        ) as one:
            one.await_words("Ready to accept")
            with running(client, "redis-benchmark", [words.get(word, word) for word in ASK]) as other:
                other.wait(60.0)
                return value("gets", GETS, other.output(), "output")

    return run


def main() -> None:
    """Print the ratio of each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    pairs = {
        "iperf3: as a command, to the workload iperf3": (
            iperf3_as_command(options.seconds), iperf3_as_workload(options.seconds),
        ),
        "redis-benchmark: as a command, to the program alone": (
            redis_as_command(options.seconds), redis_alone(options.seconds),
        ),
    }  # fmt: skip
    logs: dict[str, list[float]] = {name: [] for name in pairs}
    bed = VethTestbed(Agent.open([find_agent(), "rack"]))
    conditions = baseline(study_file.parse(STUDY, "bench"))
    try:
        for block in range(options.blocks):
            for name, ways in pairs.items():
                found = [0.0, 0.0]
                for index in random.sample((0, 1), 2):
                    bed.up(conditions)
                    found[index] = ways[index](bed.hosts())
                    bed.down()
                logs[name].append(math.log(found[0] / found[1]))
                print(f"block {block + 1}, {name}: {found[0]:.4g} to {found[1]:.4g}", flush=True)
    finally:
        bed.close()
    for name, each in logs.items():
        half = scipy.stats.t.ppf(0.975, len(each) - 1) * statistics.stdev(each) / math.sqrt(len(each))
        mean = statistics.fmean(each)
        low, middle, high = (math.exp(x) for x in (mean - half, mean, mean + half))
        print(f"{name}: ratio {middle:.4f} ({low:.4f} to {high:.4f}), {len(each)} blocks")


if __name__ == "__main__":
    main()
