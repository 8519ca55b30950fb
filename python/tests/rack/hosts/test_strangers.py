"""Ten thousand strangers at every port of the agents while a study runs: they get no byte and cost no thread."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from pathlib import Path

import pytest
import yaml
from helpers.over_ssh import framegauge, mtus, study_of
from helpers.sshd import Site, SshHost
from helpers.support import PATIENCE_SECONDS

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")

STRANGERS, AT_ONCE = 10_000, 500
PORTS = range(40_000, 40_012)  # what an inventory lets the agents open, and so what a firewall leaves open
MEGABYTES = 64


class Siege(threading.Thread):
    """Connects to every port of every host in turn; every third stranger says something that is no token."""

    def __init__(self, hosts: list[SshHost]) -> None:
        super().__init__(daemon=True)
        self.places = [(host.address, port) for host in hosts for port in PORTS]
        self.ending = threading.Event()
        self.connected = self.bytes = self.number = 0

    def run(self) -> None:
        held: list[socket.socket] = []
        while not self.ending.is_set():
            stranger = socket.socket()
            stranger.setblocking(False)
            stranger.connect_ex(self.places[self.number % len(self.places)])
            held.append(stranger)
            self.number += 1
            if len(held) >= AT_ONCE:
                time.sleep(0.05)
                self.leave(held)
        self.leave(held)

    def leave(self, held: list[socket.socket]) -> None:
        for number, stranger in enumerate(held):
            with contextlib.suppress(OSError):
                stranger.getpeername()  # there is a connection
                self.connected += 1
                if number % 3 == 0:
                    stranger.send(b"GET / HTTP/1.1\r\n\r\n" * 4)
        for stranger in held:
            with contextlib.suppress(OSError):
                self.bytes += len(stranger.recv(1000))
            stranger.close()
        held.clear()


def agents(hosts: list[SshHost]) -> list[Path]:
    """The agents that measure on these hosts."""
    found = [Path("/proc") / str(process) for host in hosts for process in host.processes()]
    return [place for place in found if (words := _words(place)) and b"agent" in words[0] and b"host" in words[1:2]]


def _words(place: Path) -> list[bytes]:
    with contextlib.suppress(OSError):
        return (place / "cmdline").read_bytes().split(b"\0")
    return []


def _status(place: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in (place / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return 0


def test_strangers_at_every_port_change_nothing(there: Site, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * AT_ONCE)), hard))
    path = study_of(there, tmp_path, ports=f"{PORTS[0]}-{PORTS[-1]}")
    study = yaml.safe_load(path.read_text())
    study["workloads"].append({"rr": {"duration": "0.3 s", "connections": 4}})
    path.write_text(yaml.safe_dump(study))
    hosts = list(there.hosts.values())
    siege = Siege(hosts)
    process = framegauge("study", path, "--out", tmp_path / "out")
    siege.start()
    threads = kilobytes = 0
    try:
        while process.poll() is None:
            for place in agents(hosts):
                threads = max(threads, _status(place, "Threads"))
                kilobytes = max(kilobytes, _status(place, "VmHWM"))
            time.sleep(0.05)
        said = process.communicate(timeout=1)[0]
        until = time.monotonic() + PATIENCE_SECONDS
        while siege.number < STRANGERS and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        siege.ending.set()
        siege.join()
        process.kill()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert process.returncode in (0, 3), said
    assert siege.number >= STRANGERS
    assert siege.connected > 100, "hardly any stranger found an open port"
    assert siege.bytes == 0
    assert 0 < threads < 40, threads
    assert 0 < kilobytes < MEGABYTES << 10, kilobytes
    runs = read(tmp_path / "out").runs
    assert len({(run.workload, run.arm, run.block) for run in runs}) == 8
    # Whatever a run lost by it is said with the run.
    assert all(run.metrics or run.excluded for run in runs)
    assert {run.metrics.get("goodput", 1) > 0 for run in runs} == {True}
    assert mtus(there) == {1500}
