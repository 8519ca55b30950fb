"""A check of many hosts over ssh, of which some are not there and one cannot carry the frames: what it says, and when.

    sudo .venv/bin/python -m bench.hosts.many_hosts [--hosts 8 64 250 1000] [--gone 0.05]

So many hosts with a real sshd each, in namespaces of this machine, on one bridge that carries 9000 bytes; the port of
one of them carries 1500. Of the inventory's hosts a share more is not there: half of them refuse, half are silent.
Printed: seconds of the command with ssh's connections cold and warm, how many logins were under way at a time,
and what of the answer is wrong: a host that is not there is a row with its reason, the one host the only fault.
A thousand hosts take some 10 GB of memory, and a minute to build.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))

from bench.common import save, say
from helpers import sshd
from helpers.sshd import Site

from framegauge.check.judgement.findings import CATALOGUE
from framegauge.testbeds.logins import AT_ONCE

NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default")  # of all namespaces together (arp(7))
MOST_NEIGHBOURS = {"gc_thresh3": 1 << 18, "gc_thresh2": 1 << 17}
LOOK_SECONDS = 0.25
SMALL_MTU, VLAN_BYTES = 1500, 4
MUTE = "mute"  # a host whose server takes connections and says nothing


@contextlib.contextmanager
def many_neighbours() -> Iterator[None]:
    """The kernel's table of neighbours has room for all hosts' until the block is left."""
    before = {name: (NEIGHBOURS / name).read_text() for name in MOST_NEIGHBOURS}
    for name, count in MOST_NEIGHBOURS.items():
        (NEIGHBOURS / name).write_text(str(count))
    try:
        yield
    finally:
        for name, text in reversed(before.items()):
            (NEIGHBOURS / name).write_text(text)


def prepared(site: Site, place: Path, share: float) -> tuple[Path, str, list[str]]:
    """Frames of 9000 bytes everywhere but at one host; the inventory, that host, and those that are not there."""
    names = [name for name in site.hosts if name != MUTE]
    bad = site.hosts[names[len(names) // 2]]
    for host in site.hosts.values():
        sshd.run("ip", "-n", host.namespace, "link", "set", "eth0", "mtu", "9000")
    sshd.run("ip", "link", "set", f"{bad.namespace}p", "mtu", str(SMALL_MTU))
    gone = [f"gone{number}" for number in range(math.ceil(share * len(names)))]
    address = site.hosts[MUTE].address
    entries = [
        f"Host {name}\n  HostName {address}\n  Port {22 if number % 2 else 1}\n" for number, name in enumerate(gone)
    ]
    config = place / "config"
    config.write_text("".join(entries) + config.read_text())
    shared = ["-o", "ControlMaster=auto", "-o", f"ControlPath={place}/%C", "-o", "ControlPersist=600"]
    path = place / "hosts.yaml"
    path.write_text(json.dumps({"hosts": [*names, *gone], "options": [*site.options, *shared]}))
    return path, bad.name, gone


def logins() -> int:
    """How many connections the servers have whose user is not known yet."""
    found = subprocess.run(["pgrep", "-cf", r"^sshd: .*\[net\]"], check=False, capture_output=True, text=True)
    return int(found.stdout or 0)


def checked(inventory: Path) -> tuple[float, int, dict[str, Any]]:
    """Seconds of the command, most logins under way at a time, and its answer."""
    words = [sys.executable, "-m", "framegauge", "check", "--hosts", str(inventory), "-4", "--json"]
    begun, most = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(words, stdout=out, stderr=said)
        while process.poll() is None:
            most = max(most, logins())
            time.sleep(LOOK_SECONDS)
        seconds = time.monotonic() - begun
        out.seek(0)
        said.seek(0)
        if process.returncode != 1:
            raise SystemExit(f"exit code {process.returncode}:\n{said.read()[-2000:]}")
        return seconds, most, json.load(out)


def wrong(document: dict[str, Any], bad: str, gone: list[str]) -> list[str]:
    """What of an answer is not so."""
    lines = []
    failed = {host["name"]: host["error"] for host in document["hosts"] if host["error"]}
    if sorted(failed) != sorted(gone):
        lines.append(f"hosts with an error: {sorted(failed)[:8]}, expected {sorted(gone)[:8]}")
    for pair in document["pairs"]:
        ends = {pair["source"], pair["destination"]}
        # What a veth takes in may be larger than its MTU by a VLAN tag (is_skb_forwardable).
        small = SMALL_MTU + VLAN_BYTES * (bad == pair["source"])
        expected = None if ends & set(gone) else small if bad in ends else 9000
        if pair["path_mtu_bytes"] != expected:
            lines.append(f"{pair['source']} to {pair['destination']}: {pair['path_mtu_bytes']}, expected {expected}")
    named = [(each["kind"], each["hosts"]) for each in document["findings"] if CATALOGUE[each["kind"]].is_fault]
    if [hosts for _, hosts in named] != [[bad]]:
        lines.append(f"faults: {named[:4]}, expected one of {bad} alone")
    return lines


def measured(site: Site, place: Path, share: float) -> list[dict[str, Any]]:
    """The figures of hosts that are there, cold and warm; printed, too."""
    inventory, bad, gone = prepared(site, place, share)
    figures = []
    os.kill(site.hosts[MUTE].process, signal.SIGSTOP)
    try:
        for kind in ("cold", "warm"):
            seconds, most, document = checked(inventory)
            found = {
                "hosts": len(site.hosts) - 1, "gone": len(gone), "logins": kind, "seconds": seconds,
                "search_seconds": document["seconds"], "pairs": len(document["pairs"]), "most_logins": most,
                "wrong": wrong(document, bad, gone),
            }  # fmt: skip
            figures.append(found)
            result = "right" if not found["wrong"] else f"WRONG ({len(found['wrong'])}): {found['wrong'][:4]}"
            print(
                f"{found['hosts']} hosts, {len(gone)} more not there, {kind}: {seconds:.1f} s, of which the search of "
                f"{found['pairs']} pairs {document['seconds']:.1f} s; {most} logins at a time (bound: {AT_ONCE}); "
                + result, flush=True,
            )  # fmt: skip
    finally:
        os.kill(site.hosts[MUTE].process, signal.SIGCONT)
        for name in site.hosts:
            command = ["ssh", *site.options, "-o", f"ControlPath={place}/%C", "-O", "exit", name]
            subprocess.run(command, check=False, capture_output=True)
    return figures


def main() -> None:
    """Print a line for each number of hosts, cold and warm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 64, 250, 1000])
    parser.add_argument("--gone", type=float, default=0.05, help="share of hosts that are not there (default: 0.05)")
    options = parser.parse_args()
    figures = []
    for count in options.hosts:
        say(f"building {count} hosts")
        names = [f"host{number:04}" for number in range(count)]
        # As a guest, whose shell reads no files of this machine's root when it starts.
        with tempfile.TemporaryDirectory(dir="/run") as folder, many_neighbours():
            Path(folder).chmod(0o755)
            with sshd.site(Path(folder), [*names, MUTE], sudoers="") as site:
                figures += measured(site, Path(folder), options.gone)
    say(f"figures: {save('bench-many-hosts', figures)}")


if __name__ == "__main__":
    main()
