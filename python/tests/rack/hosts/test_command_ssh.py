"""The workload `command` over real ssh: programs run as the user, are proved, and are gone on every way out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from helpers import sshd
from helpers.over_ssh import framegauge, studied, study_of, undisturbed
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd", "perl")

SERVER = """
use IO::Socket::INET;
$SIG{CHLD} = "IGNORE";
my $all = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => $ARGV[1], Listen => 9, ReuseAddr => 1) or die "$!";
while (my $one = $all->accept) {
    next if fork;
    while (<$one>) { print $one "x" x $_; $one->flush }
    exit;
}
"""
CLIENT = """
use IO::Socket::INET; use Time::HiRes "time";
my ($begun, $size) = (time, 20000);
my $one = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die "$!";
while (time - $begun < 2) { print $one "$size\\n"; $one->flush; my $left = $size; $left -= sysread $one, my $data, $left while $left }
printf "took %.6f s as %s\\n", time - $begun, scalar getpwuid $<;
"""


def study(there: Site, place: Path, lives: str = "run", **change: object) -> Path:
    """The study of two hosts over ssh, with programs; `lives` is of the server, `change` of the client."""
    path = study_of(there, place)
    document = yaml.safe_load(path.read_text())
    client = {
        "host": "alpha", "run": ["perl", "client.pl", "{beta}", "7000"], "files": {"client.pl": CLIENT}, "within": "30 s",
    }  # fmt: skip
    command = {
        "name": "lines",
        "servers": [
            {
                "host": "beta", "run": ["perl", "server.pl", "{address}", "7000"], "files": {"server.pl": SERVER},
                "ready": {"port": 7000}, "lives": lives,
            }
        ],
        "clients": [{**client, **change}],
        "metrics": {"seconds_taken": {"output": "took ([0-9.]+) s", "unit": "s", "better": "lower"}},
    }  # fmt: skip
    path.write_text(
        yaml.safe_dump(document | {"workloads": [{"command": command}], "margins": {"seconds_taken": "10 %"}})
    )
    return path


def perls(site: Site) -> set[int]:
    """The programs of these hosts."""
    found = set()
    for host in site.hosts.values():
        pids = sshd.run("ip", "netns", "pids", host.namespace).split()
        names = {int(pid): Path("/proc", pid, "comm") for pid in pids}
        for pid, name in names.items():
            with contextlib.suppress(OSError):  # it has just ended
                found |= {pid} if name.read_text().strip() in ("perl", "sleep") else set()
    return found


@pytest.mark.parametrize("lives", ["run", "study"])
def test_programs_on_hosts_are_measured_with_their_proofs(there: Site, tmp_path: Path, lives: str) -> None:
    studied(study(there, tmp_path, lives), tmp_path / "out")
    runs = read(tmp_path / "out").runs
    assert {line for run in runs for line in run.excluded if not line.startswith("fidelity: ")} == set()
    shared = list(range(len(runs))) if lives == "study" else [None] * len(runs)
    assert [run.readings.get("lasting_runs") for run in runs] == shared
    for run in undisturbed(runs):
        work = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())["workload"]
        assert run.metrics["seconds_taken"] == work["printed"]["seconds_taken"] > 0
        assert {row["mss_bytes"] for row in work["live"]} == {run.level - 52}
        assert work["received_bytes"]["alpha"] >= 1_000_000
    assert perls(there) == set()


def test_programs_that_hosts_lack_are_named_at_once(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study(there, tmp_path, run=["no-such-client", "x"]), "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert process.returncode == 2
    assert "no-such-client" in said
    assert "command on alpha" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_runs_on_when_the_controller_goes(there: Site, tmp_path: Path, how: int) -> None:
    """With a client that never ends, and has put a program into the background."""
    endless = study(there, tmp_path, run=["sh", "-c", "setsid sleep 500 & exec sleep 400"])
    before = folders()
    process = framegauge("study", endless, "--out", tmp_path / "out")
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(perls(there)) < 3:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.05)
        assert folders() > before
        os.kill(process.pid, how)
        process.communicate(timeout=PATIENCE_SECONDS)
        while perls(there) or folders() > before:
            assert time.monotonic() < until + PATIENCE_SECONDS
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()


def folders() -> set[Path]:
    """The folders of hosts."""
    return {place for name in ("/tmp", "/dev/shm", "/run/user") for place in Path(name).glob("framegauge-[0-9]*-*-*")}


@pytest.mark.needs("sudo")
def test_programs_run_as_the_user_who_logs_in(roomy: Path, tmp_path: Path) -> None:
    rules = f"{sshd.GUEST} ALL=(root) NOPASSWD: ALL"
    with sshd.site(roomy, ["alpha", "beta"], sudoers=rules) as site:
        studied(study(site, tmp_path), tmp_path / "out")
        for run in undisturbed(read(tmp_path / "out").runs):
            work = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())["workload"]
            assert f"as {sshd.GUEST}" in work["clients"][0]["words"]
        assert perls(site) == set()
    assert subprocess.run(["pgrep", "-f", "framegauge-agent keep"], check=False, capture_output=True).stdout == b""
