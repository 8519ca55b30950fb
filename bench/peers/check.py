"""The path MTU check beside tracepath, traceroute --mtu, scamper and nmap on the same faults; how fast it is in a mesh.

    .venv/bin/python -m bench.peers.check [--repetitions N] [--no-peers]

Every lab of examples/faults with two hosts, on real kernels: how often the check agrees with the truth, to the byte,
in both directions and families, and how long a pair takes; and what each peer says of the way from a to b over IPv4,
with its time, at most a minute. A peer is right if it names the path MTU of the truth, or, where all flows are fine,
the target; a range is right if it holds it. The peers run side by side, each in a lab of its own. Needs
apt-get install iputils-tracepath traceroute scamper nmap.

Then meshes, and what pacing costs: the shares that the default takes of links of 1, 10 and 100 Gb/s.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import save, say, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.check import plan as check_plan, run as check
from framegauge.labs import file as lab_file
from framegauge.labs.file import LabFile
from framegauge.testbeds.lab import LabTestbed
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.programs import running

FAULTS = Path(__file__).resolve().parents[2] / "examples/faults"
# Command, and what in its output is an MTU, or the least and what is too much; the last that it says counts.
PEERS = {
    "tracepath": (["tracepath", "-n", "-m", "8"], r"Resume: pmtu (\d+)"),
    "traceroute --mtu": (["traceroute", "--mtu", "-n", "-m", "8"], r"F=(\d+)"),
    "scamper": (["scamper", "-c", "trace -M -m 8", "-i"], r"mtu: (\d+)"),
    "nmap": (
        ["nmap", "-Pn", "-n", "-sU", "-p", "9", "--script", "path-mtu"],
        r"path-mtu:(?: PMTU ==)? (\d+)(?: <= PMTU < (\d+))?",
    ),
}
PEER_SECONDS = 60.0


@dataclass(frozen=True)
class Claim:
    """What a peer says of the path MTU: from `least` up to less than `beyond`; nothing, or no end."""

    sizes: tuple[int, int] | None
    ended: bool
    seconds: float

    def holds(self, truth: int) -> bool:
        """Whether it is right."""
        return self.ended and self.sizes is not None and self.sizes[0] <= truth < self.sizes[1]

    def words(self) -> str:
        """For people."""
        if not self.ended:
            return "no end"
        if self.sizes is None:
            return "nothing"
        least, beyond = self.sizes
        return f"{least}" if beyond == least + 1 else f"{least}-{beyond - 1}"


def ask_peer(path: Path, peer: str) -> Claim:
    """What it claims of the way from the first host to the last, in a lab of its own."""
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        bed = LabTestbed(agent)
        bed.up(lab_file.load(path).network)
        hosts = bed.hosts()
        address = bed.addresses(hosts[-1].name)[4]
        began = time.monotonic()
        with running(hosts[0], peer, [*PEERS[peer][0], address]) as program:
            ended = program.wait(PEER_SECONDS) is not None
            took, words = time.monotonic() - began, program.output()
    found = [match.groups() for match in re.finditer(PEERS[peer][1], words)]
    if not found:
        return Claim(None, ended, took)
    least = int(found[-1][0])
    ranged = len(found[-1]) > 1 and found[-1][1] is not None
    return Claim((least, int(found[-1][1]) if ranged else least + 1), ended, took)


def once(bed: LabTestbed, lab: LabFile, rate: float = float("inf"), **more: Any) -> tuple[dict[str, Any], list[str]]:
    """A check, and where it disagrees with the truth."""
    asked = check_plan.Asked(lab.check.target_mtu, bits_per_second=rate, **more)
    members = [check_plan.Member(host) for host in bed.hosts()]
    document = check.run(check_plan.prepare(members, asked), asked).document
    pairs = {(pair["source"], pair["destination"], pair["family"]): pair for pair in document["pairs"]}
    wrong = []
    for line in lab.truth:
        pair = pairs[line.source, line.destination, line.family]
        sizes_differ = asked.exact and pair["path_mtu_bytes"] != line.path_mtu_bytes
        if pair["verdict"] != line.verdict or sizes_differ:
            wrong.append(
                f"{line.source} to {line.destination} IPv{line.family}: {pair['verdict']} {pair['path_mtu_bytes']}"
            )
    return document, wrong


def case(agent: Agent, path: Path, repetitions: int, peers: list[str]) -> dict[str, Any]:
    """One lab: how often we are right, how long a pair takes, and what the peers say."""
    lab, bed = lab_file.load(path), LabTestbed(agent)
    wrong: list[str] = []
    seconds: list[float] = []
    for _ in range(repetitions):
        # A fresh lab each time: kernels remember path MTUs.
        bed.up(lab.network)
        document, found = once(bed, lab)
        bed.down()
        wrong += found[:1]
        seconds.append(max(pair["seconds"] for pair in document["pairs"]))
    truth = next(line for line in lab.truth if (line.source, line.family) == (lab.truth[0].source, 4))
    expected = truth.path_mtu_bytes or lab.check.target_mtu
    with ThreadPoolExecutor() as pool:
        claims = dict(zip(peers, pool.map(lambda peer: ask_peer(path, peer), peers), strict=True))
    said = {
        peer: {"claim": claim.words(), "seconds": claim.seconds, "right": claim.holds(expected)}
        for peer, claim in claims.items()
    }
    right = repetitions - len(wrong)
    row = {"case": path.stem, "right": right, "of": repetitions, "seconds": seconds, "wrong": wrong, "peers": said}
    words = "; ".join(
        f"{peer} {each['claim']} {'right' if each['right'] else 'WRONG'} {each['seconds']:.1f} s"
        for peer, each in said.items()
    )
    print(f"{path.stem}: {right} of {repetitions} right, a pair {statistics.median(seconds):.2f} s at the median, "
          f"{max(seconds):.2f} at most; truth {truth.verdict} {truth.path_mtu_bytes}; {words}", flush=True)  # fmt: skip
    return row


def meshes(agent: Agent, repetitions: int) -> list[dict[str, Any]]:
    """16 hosts with two bad ones or a bad link, in stages; 64 clean hosts on one switch."""
    rows = []
    for name in ("leaf-spine-two-bad-hosts", "leaf-spine-bad-uplink"):
        for what, more in (("verdict", {"exact": False, "blame": False}), ("exact", {"blame": False}), ("blame", {})):
            words = f"16 hosts, {name.removeprefix('leaf-spine-')}, both families, 32 flows: {what}"
            rows.append(_again(words, repetitions, lambda name=name, more=more: in_lab(agent, name, **more)))
    for asked in (check_plan.Asked(9000, (4,), 8, float("inf")), check_plan.Asked(9000, None, 32, float("inf"))):
        families = "IPv4" if asked.families else "both families"
        words = f"64 clean hosts, {families}, {asked.flows} flows"
        rows.append(_again(words, repetitions, lambda asked=asked: _sixty_four(agent, asked)))
    return rows


def pacing(agent: Agent, repetitions: int) -> list[dict[str, Any]]:
    """What it costs to send no more than the default does on links of these rates: pairs, and 16 hosts."""
    return [
        _again(f"{name}, as on links of {gigabits} Gb/s", repetitions,
               lambda name=name, rate=check_plan.LINK_SHARE * gigabits * 1e9: in_lab(agent, name, rate=rate))
        for name in ("clean", "hop-1500-icmp-blocked", "leaf-spine-two-bad-hosts")
        for gigabits in (1, 10, 100)
    ]  # fmt: skip


def in_lab(agent: Agent, name: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """A check in a fresh lab."""
    lab, bed = lab_file.load(FAULTS / f"{name}.yaml"), LabTestbed(agent)
    bed.up(lab.network)
    try:
        return once(bed, lab, **more)
    finally:
        bed.down()


def _again(what: str, repetitions: int, measure: Callable[[], tuple[dict[str, Any], list[str]]]) -> dict[str, Any]:
    answers = [measure() for _ in range(repetitions)]
    seconds = [document["seconds"] for document, _ in answers]
    wrong = [line for _, lines in answers for line in lines]
    print(f"{what}: {statistics.median(seconds):.2f} s ({min(seconds):.2f}-{max(seconds):.2f}), {len(wrong)} wrong",
          flush=True)  # fmt: skip
    return {"what": what, "seconds": seconds, "wrong": wrong}


def _sixty_four(agent: Agent, asked: check_plan.Asked) -> tuple[dict[str, Any], list[str]]:
    from framegauge.rack import hand
    from framegauge.study import file as study_file
    from framegauge.testbeds.veth import VethTestbed

    text = (
        "testbed: {kind: veth, topology: rack, hosts: 64, link: {rate: unshaped}}\n"
        "factors: {mtu: 9000}\nworkloads: [{stream: {size: 1 MB}}]\nmargins: {goodput: 1 %}\n"
    )
    bed: RackTestbed = VethTestbed(agent)
    bed.up(hand.baseline(study_file.parse(text, "bench/peers/check.py")))
    try:
        members = [check_plan.Member(host) for host in bed.hosts()]
        document = check.run(check_plan.prepare(members, asked), asked).document
    finally:
        bed.down()
    bad = (pair for pair in document["pairs"] if pair["verdict"] != "carries_target")
    return document, [f"{pair['source']} to {pair['destination']}: {pair['verdict']}" for pair in bad]


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--repetitions", type=int, default=20, help="labs of every case (default 20); of meshes and paces a quarter"
    )
    parser.add_argument("--no-peers", action="store_true", help="only the check itself")
    options = parser.parse_args()
    peers = [] if options.no_peers else [name for name in PEERS if shutil.which(name.split()[0])]
    for name in set(PEERS) - set(peers) if not options.no_peers else ():
        say(f"note: {name} is not installed, and left out")
    warn_if_busy()
    with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
        paths = sorted(path for path in FAULTS.glob("*.yaml") if not path.stem.startswith("leaf-spine"))
        rows = [case(agent, path, max(1, options.repetitions), peers) for path in paths]
        few = max(1, options.repetitions // 4)
        found, paced = meshes(agent, few), pacing(agent, few)
    say(f"figures: {save('bench-check', {'cases': rows, 'meshes': found, 'pacing': paced})}")


if __name__ == "__main__":
    main()
