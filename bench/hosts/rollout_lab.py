"""Roll-outs over a VLAN on a bond, VXLANs on that VLAN, and a router, on a kernel that has them.

    .venv/bin/python -m bench.hosts.rollout_lab [--machine FOLDER] [PART…]

The hosts are those of the emulated machine (bench/hosts/machine: ten hosts with a real sshd each, on Debian's kernel).
For each part a line says what was expected and what was found; exit code 1 if they differ. All of it takes about
twenty minutes on two CPUs, with the emulation of another type of CPU. Needs no root.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.hosts.emulated import Emulated, build, emulated
from bench.hosts.tls import asked

VLAN, OVERLAY, OVERLAY6 = "bond0.10", "vx0", "vx6"
EIGHT = tuple(f"h{number}" for number in range(1, 9))
ROUTED = ("h1", "h2", "h9", "h10")
# A host is to answer within a quarter of it, and the emulation is slow.
LEASE_SECONDS = 120.0
MOST_SECONDS = 900.0
ROLLOUT = (sys.executable, "-m", "framegauge", "rollout")


@dataclass(frozen=True)
class Lab:
    """The machine, and where files and journals are."""

    there: Emulated
    folder: Path

    def file(self, name: str, hosts: Sequence[str], interface: str, mtu: int, **more: object) -> Path:
        """A roll-out's file; h9 and h10 are on the other VLAN."""
        listed = [
            {"name": host, "agent": str(self.there.agent),
             "interface": "bond0.20" if interface == VLAN and host in ("h9", "h10") else interface}
            for host in hosts
        ]  # fmt: skip
        path = self.folder / f"{name}.yaml"
        asked = {"hosts": listed, "options": list(self.there.options), "mtu": mtu, "lease": f"{LEASE_SECONDS:g} s",
                 "wait": "1 s", **more}  # fmt: skip
        path.write_text(json.dumps(asked))
        return path

    def plan(self, path: Path) -> dict[str, Any]:
        """The document of its plan."""
        code, said = rollout("plan", path, "--json")
        if code not in (0, 2):  # 2: something stands against it
            raise RuntimeError(said)
        found: dict[str, Any] = json.JSONDecoder().raw_decode(said)[0]
        return found

    def mtus(self, hosts: Sequence[str], *interfaces: str) -> set[int]:
        """Those that these interfaces have."""
        return {self.there.mtus(host)[name] for host in hosts for name in interfaces}

    def passes(self, host: str, other: str, address: str, size: int) -> bool:
        """Whether packets of that size get from one host to an address of the other and back, and none in fragments."""
        before = self.fragments(host, other)
        words = ("ping", "-c", "3", "-W", "5", "-s", str(size - 28), address)
        said = self.there.run("ip", "netns", "exec", host, *words, check=False)
        # Some may be late, on a machine that is busy.
        return "bytes from" in said and self.fragments(host, other) == before

    def fragments(self, *hosts: str) -> int:
        """How many of IPv4 they have made (proc(5), /proc/net/snmp)."""
        made = 0
        for host in hosts:
            said = self.there.run("ip", "netns", "exec", host, "cat", "/proc/net/snmp")
            names, values = [line.split() for line in said.splitlines() if line.startswith("Ip:")]
            made += int(values[names.index("FragCreates")])
        return made

    def refused(self, host: str, interface: str, mtu: int) -> bool:
        """Whether the kernel takes no such MTU now."""
        try:
            self.there.ip(host, "link", "set", "dev", interface, "mtu", str(mtu))
        except subprocess.CalledProcessError:
            return True
        return False


def rollout(*words: object) -> tuple[int, str]:
    """Exit code and output, and then what was said beside it."""
    command = [*ROLLOUT, *map(str, words)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=MOST_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def kinds(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Of a plan's findings: severity and kind; who owns the MTU is left out."""
    return {(each["severity"], each["what"]) for each in document["findings"] if each["what"] != "owner"}


def linked(path: Path) -> set[tuple[str, ...]]:
    """The orders in which the last change of a journal set MTUs, one for each host, if they differ."""
    lines = (path.with_suffix(".rollout") / "journal.jsonl").read_text().splitlines()
    begun = [entry for entry in map(json.loads, lines) if entry["event"] == "begun"][-1]
    return {
        tuple(name for group in host["stages"]["link"] for name in group if name.startswith("mtu:"))
        for host in begun["hosts"].values()
    }


class Expected:
    """Prints what was expected and found, and counts what differs."""

    def __init__(self) -> None:
        self.bad = 0

    def that(self, what: str, found: object, expected: object = True, said: str = "") -> None:
        """One line; and what was said, if it differs."""
        if found == expected:
            print(f"ok: {what}", flush=True)
            return
        self.bad += 1
        print(f"BAD: {what}: found {found}, expected {expected}\n{said}", flush=True)


def stacked(lab: Lab, seen: Expected) -> None:
    """A VLAN on a bond, and a VXLAN on it: in the right order, in the wrong one, and back."""
    vlan = lab.file("vlan", EIGHT, VLAN, 9000, waves=["h1", ["h2", "h3", "h4"], ["h5", "h6", "h7", "h8"]])
    overlay = lab.file("overlay", EIGHT, OVERLAY, 8950)
    found = lab.plan(vlan)
    seen.that(
        "the plan of the VLAN sees what is below and above", kinds(found), {("note", "parent"), ("note", "overlay")}
    )
    found = lab.plan(overlay)
    seen.that("the plan of the VXLAN is refused while the VLAN has 1500", kinds(found), {("refused", "overlay")})
    code, said = rollout("apply", overlay)
    seen.that("and so is its change", (code != 0, "raise bond0.10 to 9000 first" in said), (True, True), said)
    seen.that("the kernel refuses the VXLAN before the VLAN", lab.refused("h1", OVERLAY, 8950))
    seen.that("and the VLAN before the bond", lab.refused("h1", VLAN, 9000))
    seen.that("nothing has changed", lab.mtus(EIGHT, "e1", "e2", "bond0", VLAN), {1500})

    code, said = rollout("apply", vlan)
    seen.that("the VLAN is raised", code, 0, said)
    seen.that("the bond first", linked(vlan), {("mtu:bond0", f"mtu:{VLAN}")})
    seen.that("with its ports", lab.mtus(EIGHT, "e1", "e2", "bond0", VLAN), {9000})
    routes = lab.there.route_mtus("h1", VLAN)
    seen.that("its subnet is released, what is behind the router is held",
              (routes["10.77.10.0/24"], routes["10.77.20.0/24"], routes["fd77:10::/64"], routes["fd77:20::/64"]),
              (0, 1500, 0, 1500))  # fmt: skip
    seen.that("full-size packets pass from one switch to the other", lab.passes("h1", "h8", "10.77.10.8", 9000))
    code, said = rollout("apply", overlay)
    seen.that("then the VXLAN is raised", (code, lab.mtus(EIGHT, OVERLAY)), (0, {8950}), said)
    seen.that("its full-size packets pass", lab.passes("h1", "h8", "10.88.0.8", 8950))

    code, said = rollout("undo", vlan)
    seen.that("the VLAN is not lowered below its VXLAN", (code != 0, "lower it first" in said), (True, True), said)
    seen.that("and keeps what it has", lab.mtus(EIGHT, "e1", "e2", "bond0", VLAN), {9000})
    before = lab.fragments("h2")
    lab.there.ip("h2", "link", "set", "dev", VLAN, "mtu", "1500")
    lab.passes("h1", "h2", "10.88.0.2", 8950)
    seen.that("lowered by hand all the same, its packets leave in fragments", lab.fragments("h2") > before)
    lab.there.ip("h2", "link", "set", "dev", VLAN, "mtu", "9000")
    seen.that("and still when it is raised again", not lab.passes("h1", "h2", "10.88.0.2", 8950))
    lab.there.ip("h2", "route", "flush", "cache")
    seen.that("until the path MTU that was learned is flushed", lab.passes("h1", "h2", "10.88.0.2", 8950))
    code, said = rollout("undo", overlay)
    seen.that("the VXLAN is lowered", (code, lab.mtus(EIGHT, OVERLAY)), (0, {1450}), said)
    lab.there.ip("h3", "link", "add", "link", "bond0", "name", "bond0.30", "type", "vlan", "id", "30")
    lab.there.ip("h3", "link", "set", "dev", "bond0.30", "mtu", "9000", "up")
    code, said = rollout("undo", vlan)
    others = [name for name in EIGHT if name != "h3"]
    seen.that("then the VLAN is", (code, lab.mtus(EIGHT, VLAN)), (0, {1500}), said)
    seen.that("before its bond", lab.mtus(others, "e1", "e2", "bond0"), {1500})
    seen.that("but a bond on which another VLAN was raised since", lab.mtus(["h3"], "bond0", "bond0.30"), {9000})
    seen.that("in that order", linked(vlan), {(f"mtu:{VLAN}", "mtu:bond0"), (f"mtu:{VLAN}",)})
    lab.there.ip("h3", "link", "del", "bond0.30")
    lab.there.ip("h3", "link", "set", "dev", "bond0", "mtu", "1500")


def overlaid(lab: Lab, seen: Expected) -> None:
    """A VXLAN over IPv6, which takes 70 bytes."""
    pair = ("h5", "h6")
    for host in pair:
        number = host.removeprefix("h")
        for words in (
            f"link add name {OVERLAY6} type vxlan id 8 group ff05::7:7 dev {VLAN} dstport 4790",
            f"link set {OVERLAY6} gso_max_segs 1 up", f"addr add 10.99.0.{number}/24 dev {OVERLAY6}",
            f"addr add fd99::{number}/64 dev {OVERLAY6} nodad",
        ):  # fmt: skip
            lab.there.ip(host, *words.split())
    vlan, overlay = lab.file("below", pair, VLAN, 9000), lab.file("overlay6", pair, OVERLAY6, 8930)
    code, said = rollout("apply", vlan)
    seen.that("the VLAN below is raised", code, 0, said)
    code, said = rollout("plan", lab.file("above", pair, OVERLAY6, 8950))
    seen.that("8950 is too much over IPv6", (code, "ask for 8930" in said), (2, True), said)
    seen.that("as the kernel has it", lab.refused("h5", OVERLAY6, 8931))
    code, said = rollout("apply", overlay)
    seen.that("8930 is raised", (code, lab.mtus(pair, OVERLAY6)), (0, {8930}), said)
    seen.that("its full-size packets pass", lab.passes("h5", "h6", "10.99.0.6", 8930))
    code, said = rollout("undo", vlan)
    seen.that("the VLAN is not lowered below it", (code != 0, "lower it first" in said), (True, True), said)
    for path, name, least in ((overlay, OVERLAY6, 1430), (vlan, VLAN, 1500)):
        code, said = rollout("undo", path)
        seen.that(f"{name} is lowered", (code, lab.mtus(pair, name)), (0, {least}), said)
    for host in pair:
        lab.there.ip(host, "link", "del", OVERLAY6)


def loaded(lab: Lab, seen: Expected) -> None:
    """Clients ask a TLS server over IPv4 and IPv6 all the time; both switches and the bonds are between them."""
    path = lab.file("loaded", EIGHT, VLAN, 9000, waves=["h1", ["h2", "h3", "h4"], ["h5", "h6", "h7", "h8"]])
    with asked(lab.there, "h8", ("10.77.10.8", "fd77:10::8"), ("h1", "h2")) as found:
        code, said = rollout("apply", path)
        seen.that("the VLAN is raised under load", (code, lab.mtus(EIGHT, VLAN)), (0, {9000}), said)
        code, said = rollout("undo", path)
        seen.that("and lowered", (code, lab.mtus(EIGHT, VLAN)), (0, {1500}), said)
    print(f"{sum(answered for answered, _ in found.values())} requests were answered")
    seen.that("every client was answered", all(answered for answered, _ in found.values()))
    seen.that("and no request failed", [line for _, failed in found.values() for line in failed], [])
    for name in ("a8", "b8"):
        lab.there.ip("sw", "link", "set", "dev", name, "mtu", "1500")
    with asked(lab.there, "h8", ("10.77.10.8", "fd77:10::8"), ("h1",)) as found:
        for host in ("h1", "h8"):
            for name in ("bond0", VLAN):
                lab.there.ip(host, "link", "set", "dev", name, "mtu", "9000")
        time.sleep(30.0)
    seen.that("raised by hand behind ports that stay at 1500, requests fail", all(bad for _, bad in found.values()))
    for host in ("h1", "h8"):
        for name in (VLAN, "bond0"):
            lab.there.ip(host, "link", "set", "dev", name, "mtu", "1500")
    for name in ("a8", "b8"):
        lab.there.ip("sw", "link", "set", "dev", name, "mtu", "9000")


def limited(lab: Lab, seen: Expected) -> None:
    """A NIC in the bond that takes no more than 1500, and a switch port that silently stays there."""
    path = lab.file("limited", ("h1", "h2"), VLAN, 9000)
    lab.there.run("ip", "link", "set", "small", "netns", "h1")
    lab.there.ip("h1", "link", "set", "small", "master", "bond0")
    found = lab.plan(path)
    seen.that("a NIC of the bond that takes less refuses its VLAN", ("refused", "port") in kinds(found))
    seen.that("the kernel does, too", lab.refused("h1", "bond0", 9000))
    lab.there.ip("h1", "link", "set", "small", "nomaster")
    lab.there.ip("h1", "link", "set", "small", "netns", "1")
    lab.there.ip("sw", "link", "set", "dev", "a2", "mtu", "1500")
    code, said = rollout("apply", path)
    # A bridge leaves room for a tag, which is not part of a frame's length where it is offloaded.
    seen.that(
        "a switch port that stays at 1500 ends it", (code, "black hole above 1504 bytes" in said), (1, True), said
    )
    seen.that("and everything is put back", lab.mtus(("h1", "h2"), "e1", "e2", "bond0", VLAN), {1500})
    lab.there.ip("sw", "link", "set", "dev", "a2", "mtu", "9000")


def routed(lab: Lab, seen: Expected) -> None:
    """Two subnets with a router at 1500 between them."""
    path = lab.file("routed", ROUTED, VLAN, 9000)
    code, said = rollout("apply", path)
    seen.that("two subnets are raised, and the way between them is proved as it is used", code, 0, said)
    seen.that("both have 9000", (lab.mtus(ROUTED[:2], VLAN), lab.mtus(ROUTED[2:], "bond0.20")), ({9000}, {9000}))
    code, said = rollout("status", path, "--prove")
    seen.that("which a later proof confirms", code, 0, said)
    code, said = rollout("undo", path)
    seen.that("and undone", (code, lab.mtus(ROUTED, "bond0")), (0, {1500}), said)
    code, said = rollout("apply", lab.file("all", ROUTED, VLAN, 9000, scope="all"))
    seen.that("with every route, the router forbids it", (code, "above 1500 bytes" in said), (1, True), said)
    seen.that("and everything is put back", lab.mtus(ROUTED, "bond0"), {1500})


def bridged(lab: Lab, seen: Expected) -> None:
    """Hosts whose addresses are on a bridge over the VLAN."""
    pair = ("h9", "h10")
    for host in pair:
        number = host.removeprefix("h")
        steps = (
            "link add name br0 type bridge", "link set br0 gso_max_segs 1 up", "route del fd77:10::/64",
            f"addr del 10.77.20.{number}/24 dev bond0.20", f"addr del fd77:20::{number}/64 dev bond0.20",
            "link set bond0.20 master br0", f"addr add 10.77.20.{number}/24 dev br0",
            f"addr add fd77:20::{number}/64 dev br0 nodad",
        )  # fmt: skip
        for words in steps:
            lab.there.ip(host, *words.split())
    path = lab.file("bridged", pair, "br0", 9000)
    seen.that("the plan of a bridge sees what carries it", kinds(lab.plan(path)), {("note", "parent")})
    for name in ("bond0", "bond0.20"):
        lab.there.ip("h9", "link", "set", "dev", name, "mtu", "9000")
    seen.that("raised by hand, the bridge follows at once", lab.mtus(["h9"], "br0"), {9000})
    for name in ("bond0.20", "bond0"):
        lab.there.ip("h9", "link", "set", "dev", name, "mtu", "1500")
    seen.that("and back", lab.mtus(["h9"], "br0"), {1500})
    code, said = rollout("apply", path)
    seen.that("the bridge is raised", (code, lab.mtus(pair, "br0")), (0, {9000}), said)
    seen.that("after its bond and its VLAN", linked(path), {("mtu:bond0", "mtu:bond0.20", "mtu:br0")})
    seen.that("full-size packets pass", lab.passes("h9", "h10", "10.77.20.10", 9000))
    code, said = rollout("undo", path)
    seen.that("and undone", (code, lab.mtus(pair, "bond0", "bond0.20", "br0")), (0, {1500}), said)
    seen.that("in reverse order", linked(path), {("mtu:br0", "mtu:bond0.20", "mtu:bond0")})


def killed(lab: Lab, seen: Expected) -> None:
    """The controller is killed when some hosts have begun to send large packets."""
    four, seconds = EIGHT[:4], 20.0
    path = lab.file("killed", four, VLAN, 9000, lease=f"{seconds:g} s", wait="300 s")
    controller = subprocess.Popen(
        [*ROLLOUT, "apply", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + MOST_SECONDS
    while not released(path) and controller.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    seen.that("the first wave sends large packets", (released(path), lab.mtus(four, VLAN)), (True, {9000}))
    controller.kill()
    controller.wait()
    time.sleep(seconds)
    seen.that("after the lease everything is back", lab.mtus(four, "e1", "e2", "bond0", VLAN), {1500})
    held = {mtu for host in four for mtu in lab.there.route_mtus(host, VLAN).values()}
    seen.that("with its routes", held, {0})


def released(path: Path) -> bool:
    """Whether a journal says that the first wave is proved."""
    journal = path.with_suffix(".rollout") / "journal.jsonl"
    lines = journal.read_text().split("\n")[:-1] if journal.exists() else []
    return any(entry.get("when") == "release 1" for entry in map(json.loads, lines))


PARTS: dict[str, Callable[[Lab, Expected], None]] = {
    "stacked": stacked, "overlaid": overlaid, "loaded": loaded, "limited": limited, "routed": routed, "killed": killed,
    "bridged": bridged,
}  # fmt: skip


def main() -> int:
    """Print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--machine", type=Path, help="a folder of machine/build (default: it is built)")
    options = parser.parse_args()
    machine = options.machine or build()
    seen = Expected()
    with tempfile.TemporaryDirectory() as place:
        begun = time.monotonic()
        with emulated(machine, Path(place)) as there:
            print(f"the machine is ready after {time.monotonic() - begun:.0f} s", flush=True)
            lab = Lab(there, Path(place))
            for name in options.parts:
                print(f"{name}:", flush=True)
                PARTS[name](lab, seen)
        print(f"{seen.bad} of these differ, after {time.monotonic() - begun:.0f} s")
    return 1 if seen.bad else 0


if __name__ == "__main__":
    sys.exit(main())
