"""What the fabric carries and costs, beside the kernel's own veth with tbf and, where it is installed, Mininet.

    sudo .venv/bin/python -m bench.peers.fabric [--rounds 3] [--seconds 2] [--moderation 50]
        [--case '12 to 1' --mtu 1500]

Cases: a pair, twelve senders to one, and fifteen to one on a fat-tree of sixteen; MTU 1500 and 9000, offloads off and
on; cubic. Of each, at 1 Gb/s: goodput as a share of the ceiling; CPU of the fabric's thread; CPU seconds per gigabyte
of the whole machine; how late deliveries were; and for how much of the time something else held a CPU of the hosts.
And the most it carries when links have 40 Gb/s. Goodput is that of the steady part of the run, by the rule of studies
(framegauge.evidence.steady): slow start and the end of the streams do not count. Mininet's is iperf3's, of the whole
run. All testbeds are measured in turn within a round. Then how long a fat-tree takes to be there and to be gone.
Mininet's switches are Linux bridges, which cannot have the loops of a fat-tree: of that it shows only how long it
takes.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import io
import json
import secrets
import shutil
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.ipc
from bench.common import save, say, spread, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.spools import read_spool
from framegauge.evidence import steady
from framegauge.testbeds.base import Host
from framegauge.testbeds.rack import Relay
from framegauge.workloads.stream import Stream

GIGABIT = 10**9
FAST = 40 * GIGABIT
CASES: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "pair": (2, {}),
    "12 to 1": (13, {}),
    "fat-tree, 15 to 1": (16, {"topology": {"kind": "fat-tree", "k": 4}}),
}
MTUS = (1500, 9000)
# Of these the kernel keeps account; what else a CPU did is only sampled, with each tick.
RESTING = ("idle", "iowait", "steal")
MININET = Path(__file__).resolve().parent / "mininet_case.py"
BUFFER_BYTES = 524_288

Figures = dict[str, float]


def rack_up(
    testbed: str, case: str, mtu: int, offloads: bool, rate: int | None, moderation_seconds: float = 0.0
) -> dict[str, Any]:
    """The params of `rack.up`."""
    hosts, network = CASES[case]
    kernel = testbed == "kernel"
    return {
        "testbed": testbed,
        "hosts": [{"name": f"h{number}", "mtu": mtu} for number in range(1, hosts + 1)],
        "link": {
            "bits_per_second": rate, "rtt_seconds": 0.0 if kernel else 0.0002, "buffer_bytes": BUFFER_BYTES,
            "port_mtu": 9216,
        },
        "nic": {
            **dict.fromkeys(("tso", "lro", "gro", "checksum"), offloads),
            "moderation_seconds": moderation_seconds, "aggregate_bytes": 36864,
        },
        "shaper": {"factor": 0.999, "burst_bytes": 70000},
        "congestion_control": "cubic", "family": 4, "sysctls": {}, **network,
    }  # fmt: skip


def ours(agent: Agent, asked: Mapping[str, Any], seconds: float) -> Figures:
    """One run on the fabric or on the kernel testbed."""
    begun = time.monotonic()
    built = agent.request("rack.up", asked, timeout_seconds=60)
    found: Figures = {"up_seconds": time.monotonic() - begun}
    hosts = [Host(each["name"], each["address"], Relay(agent, each["name"])) for each in built["hosts"]]
    agent.request("measure.begin")
    pattern = "many-to-one" if len(hosts) > 2 else "one-to-one"
    work = Stream(duration_seconds=seconds, pattern=pattern)
    executed = work.run(hosts, secrets.token_hex(16), None)
    measured = agent.request("measure.end")
    agents = {host.name: host.agent for host in hosts}
    tables = {
        each.name: pyarrow.ipc.open_file(io.BytesIO(read_spool(agents[each.host], each.number))).read_all()
        for each in executed.spools
        if each.name.startswith(("transfers", "samples"))
    }
    done = executed.record | work.evidence(executed.record, tables)
    began = time.monotonic()
    agent.request("rack.down", timeout_seconds=60)
    found["down_seconds"] = time.monotonic() - began
    rested = sum(cpu[f"{state}_seconds"] for cpu in measured["cpus"] for state in RESTING)
    busy = len(measured["cpus"]) * measured["elapsed_seconds"] - rested
    part = steady.of_streams(done, tables)
    whole = work.metrics(done, tables)["goodput"]
    found["goodput_bits_per_second"] = whole if part is None else part.bits_per_second
    found["cpu_seconds_per_gigabyte"] = busy / done["bytes"] * 1e9
    found["ceiling_bits_per_second"] = next(iter(built["ceilings"].values()))["goodput_bits_per_second"] or 0.0
    fabric = measured["fabric"]
    if fabric is not None:
        last = built["hosts"][-1]["name"]
        port = next(each for each in fabric["ports"] if each["port"].endswith(f">{last}"))
        found["link_busy"] = port["busy_seconds"] / measured["elapsed_seconds"]
        found["fabric_cores"] = fabric["thread"]["cpu_seconds"] / measured["elapsed_seconds"]
        found["late_p50_us"] = fabric["lateness"]["p50_seconds"] * 1e6
        found["late_p99_us"] = fabric["lateness"]["p99_seconds"] * 1e6
        found["late_max_ms"] = fabric["lateness"]["max_seconds"] * 1e3
        held = max((cpu["seconds"] for cpu in measured["held"]), default=0.0)
        found["held_percent"] = 100.0 * held / measured["elapsed_seconds"]
    return found


def mininet(asked: Mapping[str, Any]) -> Figures | None:
    """One case in Mininet; None if it failed, which it says itself."""
    words = ["/usr/bin/python3", str(MININET), json.dumps(asked)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    if ended.returncode != 0:
        say(f"Mininet: {ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else ended.returncode}")
        return None
    found: Figures = json.loads(ended.stdout.splitlines()[-1])
    return found


def has_mininet() -> bool:
    """Whether Debian's packages are there."""
    there = shutil.which("mn") is not None and shutil.which("brctl") is not None
    if not there:
        say("no Mininet beside it: apt-get install mininet bridge-utils")
    return there


def one_round(
    agent: Agent, options: argparse.Namespace, beside: bool, found: dict[tuple[Any, ...], list[Figures]]
) -> None:
    """Every case on every testbed once."""
    seconds, moderation_seconds = options.seconds, options.moderation * 1e-6
    for case in options.case or CASES:
        hosts, _ = CASES[case]
        for mtu in options.mtu or MTUS:
            for offloads in (False, True):
                for rate in (GIGABIT, FAST):
                    asked = rack_up("fabric", case, mtu, offloads, rate, moderation_seconds)
                    found[case, mtu, offloads, rate, "fabric"].append(ours(agent, asked, seconds))
                if case.startswith("fat-tree"):
                    continue
                for rate in (GIGABIT, None):
                    asked = rack_up("kernel", case, mtu, offloads, rate)
                    found[case, mtu, offloads, rate or FAST, "veth+tbf"].append(ours(agent, asked, seconds))
                if beside:
                    queue = BUFFER_BYTES // (mtu + 18)
                    done = mininet(
                        {"senders": hosts - 1, "rate_mbit": 1000, "mtu": mtu, "offloads": offloads,
                         "seconds": seconds, "queue_packets": queue}
                    )  # fmt: skip
                    if done is not None:
                        found[case, mtu, offloads, GIGABIT, "Mininet"].append(done)
    if beside and not options.case:
        done = mininet({"topology": "fat-tree", "rate_mbit": 1000})
        if done is not None:
            found["fat-tree of 16", 0, False, GIGABIT, "Mininet"].append(done)


def values(runs: list[Figures], name: str) -> list[float]:
    """Of one figure, where it was measured."""
    return [run[name] for run in runs if name in run]


def show(found: Mapping[tuple[Any, ...], list[Figures]]) -> None:
    """One line per case and testbed."""
    for (case, mtu, offloads, rate, testbed), runs in found.items():
        if not mtu:
            continue
        words = f"{case}, MTU {mtu}, offloads {'on ' if offloads else 'off'}, {testbed:9}"
        goodput = values(runs, "goodput_bits_per_second")
        if rate == GIGABIT:
            # All are held against the same arithmetic: the ceiling of a link that nothing else limits.
            ceiling = statistics.median(values(found[case, mtu, offloads, rate, "fabric"], "ceiling_bits_per_second"))
            line = f"{words} 1 Gb/s: {spread([each / ceiling for each in goodput])} of the ceiling"
        else:
            line = f"{words} at most: {spread([each / 1e9 for each in goodput], '.2f')} Gb/s"
        line += f", {spread(values(runs, 'cpu_seconds_per_gigabyte'), '.2f')} CPU s/GB"
        if testbed == "fabric":
            line += f", fabric {spread(values(runs, 'fabric_cores'), '.2f')} cores"
            line += f", late p99 {spread(values(runs, 'late_p99_us'), '.0f')} us"
            line += f", held {spread(values(runs, 'held_percent'), '.1f')} %"
        print(line)
    trees = [run for key, runs in found.items() if key[0].startswith("fat-tree, ") for run in runs]
    other = found.get(("fat-tree of 16", 0, False, GIGABIT, "Mininet"), [])
    for name, runs in (("fabric", trees), ("Mininet", other)):
        if runs:
            up, down = (spread(values(runs, f"{what}_seconds"), ".2f") for what in ("up", "down"))
            print(f"fat-tree of 16 hosts, {name}: up in {up} s, down in {down} s")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of all cases (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each transfer, at least 0.5 (default 2)")
    parser.add_argument("--moderation", type=float, default=50.0, help="of interrupts, in us (default 50, as studies)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="this one only; may be repeated")
    parser.add_argument("--mtu", action="append", type=int, choices=MTUS, help="this one only")
    options = parser.parse_args()
    warn_if_busy()
    beside = has_mininet()
    found: dict[tuple[Any, ...], list[Figures]] = defaultdict(list)
    with Agent.open([find_agent(), "rack"]) as agent:
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            one_round(agent, options, beside, found)
    show(found)
    kept = [{"case": list(key), "runs": runs} for key, runs in found.items()]
    say(f"figures: {save('bench-fabric', kept)}")


if __name__ == "__main__":
    main()
