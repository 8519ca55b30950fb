"""Whatever breaks in the middle of a roll-out, every host is back at its old MTU within the lease, or it is finished.

    sudo .venv/bin/python -m bench.hosts.chaos_rollout [--times 50] [--seed 1] [--lease 8] [--hosts 8] [KIND…]

Hosts that are network namespaces on two switches; a roll-out raises or lowers their MTU. At a random moment
of it one of these happens: the controller or a host's agent is killed, a host is cut off or rebooted, its
port drops frames above 1500 from then on, its DHCP client (udhcpc) renews its lease with a server (dnsmasq)
that says 1500, or something else sets its MTU to that. Fifty times in the second, the kernels of all hosts
are asked for the largest packet that they would send to another, and the MTU of their interfaces: if one
sends more than another takes in, packets are lost. Printed for each: how long until all hosts were at the
old MTU, or at the new one and proved, the longest time in which packets were lost, and how it ended. A line
at the end for each kind; exit code 1 if a time is longer than the lease and three seconds.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))

from helpers import dhcp, rollouts, sampled, switched
from helpers.sampled import Eyes
from helpers.switched import Lab

LEASE_SECONDS = 8.0
SLACK_SECONDS = 3.0  # for a round of probes that had passed when it broke, and on a machine that does other things
MOST_SECONDS = 60.0
WAIT_SECONDS = 0.5  # of each wave
RENEWAL = "DHCP renewal"
KINDS = ("controller killed", "agent killed", "host cut off", "host rebooted", "port at 1500", "MTU rewritten", RENEWAL)

ONLY_RAISED = ("port at 1500", "MTU rewritten", RENEWAL)


@dataclass(frozen=True)
class Seen:
    """What one roll-out and what broke in it came to. `back_seconds`: until nothing was half done."""

    kind: str
    back_seconds: float
    lost_seconds: float
    end: str


def break_(
    kind: str, lab: Lab, name: str, eyes: Eyes, controller: subprocess.Popen[str], old: int, renew: Callable[[], bool]
) -> None:
    """What breaks."""
    if kind == RENEWAL:
        if not renew():
            raise SystemExit(f"{name}: its lease was not renewed")
    elif kind == "controller killed":
        controller.kill()
    elif kind == "agent killed":
        for pid in rollouts.agents_in(lab, name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    elif kind == "host cut off":
        eyes.out.add(name)
        lab.cut(name)
    elif kind == "host rebooted":
        eyes.out.add(name)
        for pid in sampled.processes_in(lab.hosts[name]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lab.unplug(name)
        lab.plug(name, old)
        eyes.out.discard(name)
    elif kind == "port at 1500":
        lab.set_port(name, 1500)
        eyes.ports[name] = 1500
    else:
        lab.set_mtu(name, 1500)


@contextlib.contextmanager
def leased(kind: str, lab: Lab, name: str, folder: Path) -> Iterator[Callable[[], bool]]:
    """What has the DHCP client of a host renew its lease, where that is what breaks."""
    if kind != RENEWAL:
        yield lambda: False
        return
    with dhcp.server(lab, folder / "dhcp") as server, dhcp.udhcpc(server, name) as client:
        yield client.renewed


def state(lab: Lab, eyes: Eyes, old: int, new: int) -> str | None:
    """`old` or `new` if every host has that and nothing else, `held` if none sends more than the smaller; else None."""
    there = [name for name in lab.hosts if name not in eyes.out]
    mtus, sent = {eyes.mtu(name) for name in there}, {eyes.sends(name) for name in there}
    for word, mtu in (("old", old), ("new", new)):
        if mtus == {mtu} and sent == {mtu}:
            return word
    return "held" if max(sent) <= min(old, new) and not eyes.loses() else None


def usual(folder: Path, lease: float, count: int) -> float:
    """How long a roll-out takes from its first change, if nothing breaks."""
    names = [f"h{number + 1}" for number in range(count)]
    with switched.lab(names) as lab:
        path = rollouts.file_of(lab, folder, lease=lease, wait=WAIT_SECONDS)
        controller = rollouts.rollout("apply", path)
        rollouts.until(rollouts.has(path, "stage", stage="hold"), MOST_SECONDS)
        begun = time.monotonic()
        said = controller.communicate()[0]
        if controller.returncode != 0:
            raise SystemExit(f"a roll-out in which nothing breaks failed:\n{said}")
        return time.monotonic() - begun


def once(folder: Path, kind: str, draw: random.Random, lease: float, count: int, longest: float) -> Seen:
    """One roll-out, and what breaks at most so many seconds after its first change."""
    names = [f"h{number + 1}" for number in range(count)]
    # What leaves a host at 1500 by itself breaks a network of 9000 without any roll-out.
    old, new = (1500, 9000) if kind in ONLY_RAISED else draw.choice([(1500, 9000), (1500, 9000), (9000, 1500)])
    after_seconds, victim = draw.uniform(0, longest), draw.choice(names)
    with (
        switched.lab(names, mtu=old) as lab,
        leased(kind, lab, victim, folder) as renew,
        sampled.watching(lab) as (eyes, lost),
    ):
        path = rollouts.file_of(lab, folder, mtu=new, lease=lease, wait=WAIT_SECONDS)
        controller = rollouts.rollout("apply", path)
        try:
            rollouts.until(rollouts.has(path, "stage", stage="hold"), MOST_SECONDS)
            time.sleep(after_seconds)
            ended_before = controller.poll() is not None
            broken = time.monotonic()
            break_(kind, lab, victim, eyes, controller, old, renew)
            controller.wait(MOST_SECONDS)
            finished = rollouts.has(path, "finished")() or ended_before
            if rollouts.has(path, "keeping")() and not finished:
                # All may be kept before anybody could write that down: it is the end if it lasts longer than leases do.
                rollouts.until(lambda: state(lab, eyes, old, new) != "new", lease + SLACK_SECONDS)
                finished = state(lab, eyes, old, new) == "new"
            wanted = {"new"} if finished else {"old", "held"} if rollouts.has(path, "keeping")() else {"old"}
            # What breaks after the end is no matter of the roll-out's.
            spoils = kind not in ("controller killed", "agent killed", "host cut off")
            rollouts.until(lambda: (finished and spoils) or state(lab, eyes, old, new) in wanted, lease + MOST_SECONDS)
            back = time.monotonic() - broken
            end = "finished" if finished else state(lab, eyes, old, new) or "mixed"
        finally:
            controller.kill()
            said = controller.communicate()[0]
        if end == "mixed":
            print(said)
        return Seen(kind, 0.0 if finished else back, 0.0 if finished and spoils else max(lost), end)


def main() -> int:
    """Print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    parser.add_argument("--times", type=int, default=50, help="of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=LEASE_SECONDS, help="seconds (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        longest = usual(Path(place), options.lease, options.hosts)
    print(f"a roll-out of {options.hosts} hosts takes {longest:.1f} s from its first change", flush=True)
    bad = 0
    for kind in options.kinds:
        seen = []
        for number in range(options.times):
            draw = random.Random(f"{options.seed} {kind} {number}")
            with tempfile.TemporaryDirectory() as place:
                one = once(Path(place), kind, draw, options.lease, options.hosts, longest)
            seen.append(one)
            print(
                f"{number + 1:3} {kind:18} {one.end:9} {one.back_seconds:5.2f} s; lost {one.lost_seconds:5.2f} s",
                flush=True,
            )
        limit = options.lease + SLACK_SECONDS
        bad += sum(each.back_seconds > limit or each.lost_seconds > limit or each.end == "mixed" for each in seen)
        ends = ", ".join(f"{count} {word}" for word, count in sorted(Counter(each.end for each in seen).items()))
        print(
            f"{kind}: {options.times} times: {ends}; back after {max(each.back_seconds for each in seen):.2f} s, "
            f"lost for {max(each.lost_seconds for each in seen):.2f} s at most (lease {options.lease:g} s)"
        )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
