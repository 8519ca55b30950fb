"""`framegauge-agent simulate` beside ns-3 on the same networks: goodput, packets per CPU second; then how it grows.

    .venv/bin/python -m bench.simulate [--rounds 5] [--sizes 4,8,16] [--only agreement|ns-3|growth|seeds]
        [--plot docs/images/simulate.svg]
    .venv/bin/python -m bench.simulate --against OTHER/target/…/release/framegauge-agent [--rounds 5]

ns-3 is Debian's (apt-get install libns3-dev g++); its program is bench/peers/many_hosts.cc, built once into results/.
Both simulate long TCP flows over links of 1 Gb/s and 5 us with taildrop queues of 100 packets: 16 senders in four
groups to one receiver, and a permutation on a fat-tree of 128 hosts (k = 8) where a destination decides its way. A
packet is a segment's worth of payload that a receiver's application got. CPU time is each program's own, without
building the network in ns-3's case, with it in ours. Each round runs both, in turn in another order; a figure is the
ratio within a round. ns-3 is so much slower that it simulates a shorter time.

`agreement` compares what all receivers got in the second half of the time, when slow start is over: as a share of what
their links carry, because a full segment takes 1,538 bytes of time on Ethernet and 1,502 on ns-3's links.

`growth` runs permutations on fat-trees of k = 4 to 32 (16 to 8,192 hosts), each for the time that carries about a
million segments, and prints hops per second, events per hop (of the network and of hosts), peak memory, and that per
segment that is under way at the end.

`seeds` runs a study with twenty seeds, one process at a time and two: how much sooner two are done, report included,
and without it; and two processes of the simulator by hand, which is what the machine can do.

`--against` takes another version's agent instead: packets per CPU second and peak memory of this one as ratios of its,
within a round, on the two networks of `ns-3` and on a fat-tree of 1,024 hosts.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
from bench.common import save, say, spread, warn_if_busy

from framegauge.agents.binary import find_agent

SOURCE = Path(__file__).resolve().parent / "peers/many_hosts.cc"
PROGRAM = Path("results/many-hosts-ns3")
LIBRARIES = ("core", "network", "internet", "point-to-point", "applications")
SEGMENT_BYTES = 1448
QUEUE_BYTES = 100 * 1518
TARGET = 50.0
# Simulated seconds: of ns-3, and of ours.
SCENARIOS = {"many-to-one": (0.5, 10.0), "fat-tree-8": (0.01, 0.1)}
# Simulated seconds beside another version.
VERSIONS = {"many-to-one": 10.0, "fat-tree-8": 0.1, "fat-tree-16": 0.015}
# Bytes of time on the link per full segment: Ethernet's header, check sequence, preamble and gap; PPP's header.
WIRE_BYTES = {"framegauge": 1500 + 38, "ns-3": 1500 + 2}
LINE_BITS_PER_SECOND = 1e9
# Simulated seconds, and how many receivers' links there are.
AGREEMENT = {"many-to-one": (2.0, 1), "fat-tree-4": (0.6, 16)}
WANTED = 0.02
STUDY = Path(__file__).resolve().parent / "validation/many-to-one.yaml"
SEEDS = 20
STUDY_SECONDS = 60  # a run, so that a start of Python and the report are a small part
BY_HAND_SECONDS = 60.0
BY_HAND_PAIRS = 5  # in turn, because a virtual machine's neighbours come and go
TWO_CORES = 1.8
NOTHING_JUDGED = 3
GROWTH_SECONDS = {4: 1.0, 8: 0.1, 16: 0.015, 32: 0.002}


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    packets: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Packets per CPU second."""
        return self.packets / self.cpu_seconds


def build() -> None:
    """Builds ns-3's program, if its source is newer."""
    if PROGRAM.exists() and PROGRAM.stat().st_mtime > SOURCE.stat().st_mtime:
        return
    say("building the program for ns-3")
    PROGRAM.parent.mkdir(exist_ok=True)
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    built = subprocess.run(["g++", "-O3", "-std=c++17", SOURCE, "-o", PROGRAM, *libraries], check=False)
    if built.returncode != 0:
        raise SystemExit("bench.simulate: ns-3's program cannot be built; apt-get install libns3-dev g++")


def told_by_ns3(scenario: str, seconds: float) -> dict[str, Any]:
    """What a run of ns-3 prints."""
    output = subprocess.run([PROGRAM, scenario, str(seconds)], stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(output)
    return found


def ns3(scenario: str, seconds: float) -> Figures:
    """One run of ns-3."""
    found = told_by_ns3(scenario, seconds)
    return Figures(found["bytes"] / SEGMENT_BYTES, found["cpu_seconds"])


def flow(client: str, server: str) -> dict[str, Any]:
    """A transfer without end."""
    return {"client": client, "server": server, "steps": [{"from": "client", "bytes": None}]}


def link(links: int) -> dict[str, Any]:
    """Links of 5 us, where so many are between the hosts that are furthest apart."""
    return {"bits_per_second": 10**9, "rtt_seconds": 2 * links * 5e-6, "buffer_bytes": QUEUE_BYTES, "port_mtu": 9216}


def scenario_of(name: str, seconds: float) -> dict[str, Any]:
    """The scenario as the agent reads it."""
    tcp = {"congestion_control": "reno"}
    if name == "many-to-one":
        hosts = [f"h{number}" for number in range(1, 18)]
        links = [[host, f"group{place // 4}"] for place, host in enumerate(hosts[:16])]
        links += [[f"group{group}", "root"] for group in range(4)] + [[hosts[16], "root"]]
        switches = [*(f"group{group}" for group in range(4)), "root"]
        shape: dict[str, Any] = {"topology": {"kind": "custom", "switches": switches, "links": links}, "link": link(3)}
        flows = [flow(host, hosts[16]) for host in hosts[:16]]
    else:
        k = int(name.removeprefix("fat-tree-"))
        hosts = [f"h{number}" for number in range(1, k**3 // 4 + 1)]
        shape = {"topology": {"kind": "fat-tree", "k": k}, "link": link(6)}
        shape["routing"] = {"paths": "shortest", "choice": "destination"}
        half = len(hosts) // 2
        flows = [flow(host, hosts[(place + half + 1) % len(hosts)]) for place, host in enumerate(hosts)]
    named = [{"name": host, "mtu": 1500} for host in hosts]
    return {"hosts": named, **shape, "tcp": tcp, "flows": flows, "end_seconds": seconds}


def ours(name: str, seconds: float, agent: Path | None = None) -> tuple[Figures, dict[str, Any]]:
    """One run of the simulator, of this version or another agent's, and its result."""
    with tempfile.TemporaryDirectory() as folder:
        asked = json.dumps(scenario_of(name, seconds))
        command = [str(agent or find_agent()), "simulate", folder]
        lines = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout
    result = json.loads(lines.splitlines()[-1])["result"]
    return Figures(result["received_bytes"] / SEGMENT_BYTES, result["cpu_seconds"]), result


def beside(rounds: int) -> dict[str, Any]:
    """Both programs on both scenarios."""
    build()
    found: dict[str, Any] = {}
    for name, (theirs, mine) in SCENARIOS.items():
        ratios, rates = [], []
        for number in range(rounds):
            runs = {"ns-3": lambda name=name, theirs=theirs: ns3(name, theirs),
                    "framegauge": lambda name=name, mine=mine: ours(name, mine)[0]}  # fmt: skip
            order = list(runs) if number % 2 else list(runs)[::-1]
            figures = {program: runs[program]() for program in order}
            rates.append({program: figure.rate for program, figure in figures.items()})
            ratios.append(figures["framegauge"].rate / figures["ns-3"].rate)
            say(f"{name}, round {number + 1}: {ratios[-1]:.0f} times")
        reached = "reached" if statistics.median(ratios) >= TARGET else "NOT reached"
        medians = {program: statistics.median(rate[program] for rate in rates) for program in rates[0]}
        print(f"{name}: {medians['framegauge'] / 1e6:.2f} M packets per CPU second, ns-3 {medians['ns-3'] / 1e3:.1f} k")
        print(f"    {spread(ratios, '.0f')} times ns-3; wanted {TARGET:.0f}: {reached}")
        found[name] = {"ratios": ratios, "packets_per_cpu_second": rates}
    return found


def against(other: Path, rounds: int) -> dict[str, Any]:
    """This version beside another one: speed and memory, in turn in another order."""
    found: dict[str, Any] = {}
    for name, seconds in VERSIONS.items():
        rates, peaks = [], []
        for number in range(rounds):
            runs = {}
            for agent in (None, other) if number % 2 else (other, None):
                runs[agent] = ours(name, seconds, agent)
            rates.append(runs[None][0].rate / runs[other][0].rate)
            peaks.append(runs[None][1]["peak_bytes"] / runs[other][1]["peak_bytes"])
            say(f"{name}, round {number + 1}: {rates[-1]:.2f} times as fast")
        print(f"{name}: {spread(rates, '.2f')} times its packets per CPU second, {spread(peaks, '.2f')} its memory")
        found[name] = {"rates": rates, "peaks": peaks}
    return found


def agreement() -> dict[str, Any]:
    """What both programs' receivers got, as shares of what their links carry."""
    build()
    found: dict[str, Any] = {}
    for name, (seconds, receivers) in AGREEMENT.items():
        mine = ours(name, seconds)[0].packets - ours(name, seconds / 2)[0].packets
        packets = {"framegauge": mine, "ns-3": told_by_ns3(name, seconds)["late_bytes"] / SEGMENT_BYTES}
        carried = LINE_BITS_PER_SECOND * seconds / 2 * receivers / 8
        shares = {program: packets[program] * WIRE_BYTES[program] / carried for program in packets}
        off = shares["framegauge"] / shares["ns-3"] - 1
        near = "reached" if abs(off) <= WANTED else "NOT reached"
        print(f"{name}: receivers' links {shares['framegauge']:.2%} full, in ns-3 {shares['ns-3']:.2%}")
        print(f"    {off:+.2%}; wanted within {WANTED:.0%}: {near}")
        found[name] = shares
    return found


def growth(sizes: list[int]) -> dict[str, Any]:
    """Permutations on ever larger fat-trees."""
    found: dict[str, Any] = {}
    print(
        f"{'hosts':>6} {'hops/CPU s':>11} {'events/hop':>11} {'segments/CPU s':>15} {'memory':>9} {'per segment':>12}"
    )
    for k in sizes:
        _, result = ours(f"fat-tree-{k}", GROWTH_SECONDS[k])
        peak = result["peak_bytes"]
        frames = sum(port["sent_frames"] for port in result["ports"])
        hops = frames / result["cpu_seconds"]
        events = (frames + sum(result["interrupts"]) + result["events"]) / frames
        segments = result["segments"] / result["cpu_seconds"]
        found[str(k**3 // 4)] = {
            "hops_per_cpu_second": hops, "segments_per_cpu_second": segments, "events_per_hop": events,
            "peak_bytes": peak,
        }  # fmt: skip
        memory = f"{peak / 2**20:>5.0f} MiB {peak / result['under_way']:>10.0f} B"
        told = f"{hops / 1e6:>9.2f} M {events:>11.2f} {segments / 1e6:>13.2f} M {memory}"
        print(f"{k**3 // 4:>6} {told}")
    return found


def plot(found: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Hops per CPU second and peak memory against hosts, both axes logarithmic."""
    rows = [{"hosts": int(hosts), **figures} for hosts, figures in found.items()]
    for row in rows:
        row |= {"hops": row["hops_per_cpu_second"] / 1e6, "memory": row["peak_bytes"] / 2**20}
    hosts = alt.X(
        "hosts:Q", title="hosts", scale=alt.Scale(type="log"), axis=alt.Axis(values=[r["hosts"] for r in rows])
    )
    panels = [
        alt.Chart(alt.Data(values=rows), width=300, height=200)
        .mark_line(point=True, color="#1f5fa8")
        .encode(x=hosts, y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(type="log")))
        for name, title in (("hops", "million hops per CPU second"), ("memory", "peak memory (MiB)"))
    ]
    alt.hconcat(*panels).save(str(path))


def seeds(rounds: int) -> dict[str, list[float]]:
    """By how much two processes are faster than one, with twenty seeds of a study: one run of each per round.

    Beside it the machine's own bound: what two processes of the simulator by hand do in the time of one.
    """
    found: dict[str, list[float]] = {"whole": [], "simulating": [], "by hand": []}
    _took(1, 1)  # reads all files once, and compiles the sources
    for number in range(rounds):
        took = {jobs: _took(jobs, STUDY_SECONDS) for jobs in ((1, 2) if number % 2 else (2, 1))}
        for name, one, two in zip(("whole", "simulating"), took[1], took[2], strict=True):
            found[name].append(one / two)
        one, two = (
            sum(times) for times in zip(*((_by_hand(1), _by_hand(2)) for _ in range(BY_HAND_PAIRS)), strict=True)
        )
        found["by hand"].append(2 * one / two)
        say(f"seeds, round {number + 1}: {took[1][0]:.1f} s by one, {took[2][0]:.1f} s by two")
    reached = "reached" if statistics.median(found["whole"]) >= TWO_CORES else "NOT reached"
    print(f"{SEEDS} seeds by two processes: {spread(found['whole'], '.2f')} times one; wanted {TWO_CORES}: {reached}")
    print(f"    simulating alone {spread(found['simulating'], '.2f')}; two by hand {spread(found['by hand'], '.2f')}")
    return found


def _took(jobs: int, simulated: int) -> tuple[float, float]:
    """Seconds of the whole command, and of its simulations."""
    with tempfile.TemporaryDirectory() as folder:
        long = ["--sweep", f"workloads.0.stream.duration={simulated}s"]
        told = ["--seeds", str(SEEDS), *long, "--jobs", str(jobs), "--out", f"{folder}/out"]
        command = [sys.executable, "-m", "framegauge", "simulate", str(STUDY), *told]
        # As for a user, whose Python keeps what it has compiled.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        begun = time.monotonic()
        ended = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept, check=False
        ).returncode
        if ended not in (0, NOTHING_JUDGED):
            raise SystemExit(f"bench.simulate: framegauge simulate {STUDY} has failed")
        took = time.monotonic() - begun
        return took, json.loads(Path(f"{folder}/out/environment.json").read_text())["simulation"]["seconds"]


def _by_hand(processes: int) -> float:
    """Seconds of so many processes of the simulator side by side, each with the same scenario."""
    asked = json.dumps(scenario_of("many-to-one", BY_HAND_SECONDS)).encode()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        running = []
        for number in range(processes):
            Path(folder, str(number)).mkdir()
            command = [str(find_agent()), "simulate", f"{folder}/{number}"]
            running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        for process in running:
            assert process.stdin is not None
            process.stdin.write(asked)
            process.stdin.close()
        codes = [process.wait() for process in running]
        if any(codes):
            raise SystemExit("bench.simulate: framegauge-agent simulate has failed")
        return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="4,8,16,32", help="k of the fat-trees of `growth`")
    parser.add_argument("--plot", type=Path, help="where the picture of `growth` goes, such as growth.svg")
    parser.add_argument("--only", choices=("agreement", "ns-3", "growth", "seeds"))
    parser.add_argument("--against", type=Path, metavar="AGENT", help="only this version beside another one's agent")
    options = parser.parse_args()
    warn_if_busy()
    if options.against:
        say(f"figures: {save('bench-simulate-against', against(options.against, options.rounds))}")
        return
    found: dict[str, Any] = {}
    if options.only in (None, "agreement"):
        found["agreement"] = agreement()
    if options.only in (None, "ns-3"):
        found["ns-3"] = beside(options.rounds)
    if options.only in (None, "growth"):
        found["growth"] = growth([int(k) for k in options.sizes.split(",")])
        if options.plot:
            plot(found["growth"], options.plot)
    if options.only in (None, "seeds"):
        found["seeds"] = seeds(options.rounds)
    say(f"figures: {save('bench-simulate', found)}")


if __name__ == "__main__":
    main()
