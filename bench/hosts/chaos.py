"""Whatever breaks in the middle of a study over ssh, every host's settings are back within the lease.

    sudo .venv/bin/python -m bench.hosts.chaos [--times 50] [--seed 1] [--lease 8]

Two hosts with a real sshd each, in namespaces of this machine; a study that changes their MTU for every run. At a
random moment one of these happens: the controller or a host's agent is killed, the controller is ended or hung up on,
the agent is stopped, its login is cut, all packets to a host are dropped for one and a half times its lease, its cache
folder's disk is full. Printed: what happened,
how long until the settings were back, and how many finished runs were there before and after.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/tests"))

from helpers import sshd
from helpers.sshd import Site, SshHost

LEASE_SECONDS = 8
DROP_LEASES = 1.5  # as 90 s of a lease of 60
SLACK_SECONDS = 3.0  # for whoever puts things back to get a CPU
STUDY = """\
question: What is left?
testbed: {{kind: ssh, inventory: hosts.yaml, lease: {lease} s}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}}}
workloads: [{{stream: {{duration: 0.5 s}}}}]
blocks: 40
stop: blocks
control: false
meters: {{cpu: false}}
margins: {{goodput: 2 %}}
"""
UNCHANGED = 1500
ENDING_SECONDS = 90  # of a study: a login that is under way may have to be given up first
ENDS = {"controller killed": signal.SIGKILL, "controller ended": signal.SIGTERM, "controller hung up on": signal.SIGHUP}
KINDS = ("controller killed", "agent killed", "agent stopped", "packets dropped", "disk full")
MORE_KINDS = (*KINDS, "controller ended", "controller hung up on", "login cut")


def logins(host: SshHost) -> list[int]:
    """Processes of sshd in a host, each for one login; not the server that waits for them."""
    return [pid for pid in host.processes() if pid != host.process and _words(pid)[0].startswith(b"sshd: ")]


def _words(pid: int) -> list[bytes]:
    """The command line of a process; one empty word where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def agents(host: SshHost) -> list[int]:
    """Process ids of the agent itself in a host: not its leases, which are programs of their own."""
    words = {pid: _words(pid) for pid in host.processes()}
    return [pid for pid, each in words.items() if b"/agent-" in each[0] and each[1:2] == [b"host"]]


@contextlib.contextmanager
def broken(kind: str, host: SshHost, controller: subprocess.Popen[bytes]) -> Iterator[None]:
    """What breaks, until the block is left."""
    if kind in ENDS:
        controller.send_signal(ENDS[kind])
        yield
    elif kind == "login cut":
        for pid in logins(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        yield
    elif kind in ("agent killed", "agent stopped"):
        number = signal.SIGKILL if kind == "agent killed" else signal.SIGSTOP
        for pid in agents(host):
            os.kill(pid, number)
        yield
        for pid in agents(host) if kind == "agent stopped" else ():
            os.kill(pid, signal.SIGCONT)
    elif kind == "packets dropped":
        port = f"{host.namespace}p"[:15]
        subprocess.run(["ip", "link", "set", port, "down"], check=True)
        try:
            yield
        finally:
            subprocess.run(["ip", "link", "set", port, "up"], check=True)
    else:
        filler = host.folder / "cache" / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
        yield
        filler.unlink()


def finished(folder: Path) -> int:
    """Runs on disk, each a whole line."""
    try:
        return len([json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()])
    except OSError:
        return 0


def once(
    site: Site, folder: Path, kind: str, draw: random.Random, lease: int = LEASE_SECONDS
) -> tuple[float, int, int]:
    """One study and what breaks in it: seconds until all settings were back, and finished runs before and after.

    Where the study goes on without a host that is cut off, or with less disk, the settings are those of that host, and
    of all of them once the study has been ended in order.
    """
    hosts = [{"name": name} for name in site.hosts]
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    (folder / "study.yaml").write_text(STUDY.format(lease=lease))
    command = [
        sys.executable,
        "-m",
        "framegauge",
        "study",
        str(folder / "study.yaml"),
        "--out",
        str(folder / "out"),
    ]
    with (folder / "log").open("wb") as log:
        controller = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _await(lambda: finished(folder / "out") >= 2, 90, "two runs")
        time.sleep(draw.uniform(0, 3))
        _await(lambda: any(host.mtu() == 9000 for host in site.hosts.values()), 30, "a change")
        before = finished(folder / "out")
        host, longest, back = draw.choice(list(site.hosts.values())), lease + SLACK_SECONDS, "the settings to be back"
        seconds, goes_on = 0.0, kind not in ENDS
        with broken(kind, host, controller):
            if not goes_on:
                seconds = _await(lambda: not changed(site), longest, back)
            elif kind == "agent stopped":
                seconds = _await(lambda: host.mtu() == UNCHANGED, longest, back)
            elif kind == "packets dropped":
                seconds = _await(lambda: host.mtu() == UNCHANGED, longest, back)
                time.sleep(max(0.0, DROP_LEASES * lease - seconds))
                assert host.mtu() == UNCHANGED
            else:
                time.sleep(draw.uniform(0, 2))
        if goes_on:
            controller.send_signal(signal.SIGINT)
            controller.wait(ENDING_SECONDS)
            seconds = max(seconds, _await(lambda: not changed(site), longest, back))
        after = finished(folder / "out")
    finally:
        controller.kill()
        controller.wait()
    return seconds, before, after


def changed(site: Site) -> list[str]:
    """Hosts whose MTU is not what it was."""
    return [host.name for host in site.hosts.values() if host.mtu() != UNCHANGED]


def _await(done: object, seconds: float, what: str) -> float:
    begun = time.monotonic()
    while not done():  # type: ignore[operator]
        if time.monotonic() - begun > seconds:
            raise SystemExit(f"no {what} within {seconds:g} s")
        time.sleep(0.05)
    return time.monotonic() - begun


def main() -> None:
    """Print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=int, default=LEASE_SECONDS, help="seconds (default: %(default)s)")
    options = parser.parse_args()
    draw, longest, lost = random.Random(options.seed), 0.0, 0
    for number in range(options.times):
        kind = MORE_KINDS[number] if number < len(MORE_KINDS) else draw.choice(MORE_KINDS)
        with tempfile.TemporaryDirectory() as place, sshd.site(Path(place), ["alpha", "beta"], small_disk=True) as site:
            seconds, before, after = once(site, Path(place), kind, draw, options.lease)
        longest, lost = max(longest, seconds), lost + max(0, before - after)
        print(f"{number + 1:3} {kind:22} back after {seconds:5.2f} s; {before} runs before, {after} after", flush=True)
    print(
        f"{options.times} times: back after {longest:.2f} s at the latest (lease {options.lease} s); {lost} runs lost"
    )


if __name__ == "__main__":
    main()
