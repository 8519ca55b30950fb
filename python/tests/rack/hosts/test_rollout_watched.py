"""`rollout apply --gate 'framegauge watch …'` with our own agents: it goes on where nothing is worse, and lowers where
something is. And what a host that was started anew is to `watch`: a gap.

One host sends to another all the time, in each of two waves. The harm is a switch port that damages a part of the large
frames, as a bad cable does. The probes of the roll-out pass, since they are sent again, and so are segments of TCP:
only counters tell. A busy machine makes TCP send again what was not lost, but damages nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from helpers import rollouts, sshd, xdp
from helpers.rollouts import agents_in, done, entries, file_of
from helpers.sshd import run
from helpers.switched import Lab, lab

from framegauge.watch import model, samples
from framegauge.watch.recorded import Recorded
from framegauge.watch.sampling import Times

NAMES = ["a", "b", "c", "d", "e"]
STEP = 0.75  # half of it is the time for an answer, which a busy machine needs
STEPS = 16  # of the time before a switch, and of that after it
AT = "2026-11-27T10:00:00Z"  # of files whose time is given otherwise
LARGE, PART, PLACE = 2000, 0.2, 1500  # the frames of which the harmful port damages a part, and where
# A message is a large frame once larger ones may be sent, and some small ones before. Connections are new ones all the
# time, for their MSS.
LOAD = """
import socket, sys, threading, time
MESSAGE = bytes(8000)
def serve(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
def answer(connection):
    with connection:
        while connection.recv(len(MESSAGE), socket.MSG_WAITALL):
            connection.sendall(b"!")
def send(address):
    while True:
        try:
            with socket.create_connection((address, 5001), 10) as connection:
                for _ in range(20):
                    connection.sendall(MESSAGE)
                    connection.recv(1)
                    time.sleep(0.05)
        except OSError:
            time.sleep(0.1)
threading.Thread(target=serve, args=(socket.create_server(("", 5001), backlog=64),), daemon=True).start()
for address in 3 * sys.argv[1:]:
    threading.Thread(target=send, args=(address,), daemon=True).start()
sys.stdin.read()
"""


@dataclass(frozen=True)
class There:
    """Hosts over ssh, of which samples are taken all the time."""

    lab: Lab
    rollout: Path
    watch: Path
    folder: Path

    def apply(self) -> tuple[int, str]:
        command = f"{sys.executable} -m framegauge watch {self.watch} --wave --wait"
        return done("apply", self.rollout, "--gate", command)


def until(what: Callable[[], bool]) -> bool:
    """As rollouts.until, and seldom: each look reads all samples."""
    return rollouts.until(what, pause=STEP)


def framegauge(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "framegauge", *map(str, words)]
    return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


@contextlib.contextmanager
def sampling(path: Path) -> Iterator[None]:
    """Samples until the block ends; Ctrl-C keeps what there is."""
    program = framegauge("watch", path, "--sample", "--for", "1 h")
    try:
        yield
    finally:
        program.send_signal(signal.SIGINT)
        said = program.communicate()[1]
        assert program.returncode == 130, said


@contextlib.contextmanager
def load(found: Lab) -> Iterator[None]:
    with contextlib.ExitStack() as undo:
        for name, others in {"a": "", "b": "a", "c": "", "d": "c"}.items():
            addresses = map(found.address, others)
            command = ["ip", "netns", "exec", found.hosts[name], sys.executable, "-c", LOAD, *addresses]
            process = subprocess.Popen(command, stdin=subprocess.PIPE)
            undo.callback(process.wait)
            undo.callback(process.kill)
        yield


def taken(folder: Path, host: str) -> list[samples.Sample]:
    """The samples of a host, gaps included."""
    found = samples.read(folder, time.time() - 3600, time.time() + 1)
    return [each for each in found if each.host == host and (each.life or each.gap)]


def seconds(found: list[samples.Sample]) -> float:
    """How much time they span."""
    return found[-1].at - found[0].at if found else 0.0


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "site").mkdir()
    with (
        sshd.site(folder / "site", NAMES) as site,
        lab(NAMES, {name: host.namespace for name, host in site.hosts.items()}) as found,
        load(found),
    ):
        for namespace in found.hosts.values():  # real checksums, which between namespaces are left out otherwise
            run("ip", "netns", "exec", namespace, "ethtool", "-K", "eth1", "tx", "off")
        rollout = file_of(found, folder, hosts=NAMES, options=site.options, more="waves: [[a, b], [c, d], [e]]")
        watch = folder / "watch.yaml"
        said = {
            "question": "Did larger frames do harm?",
            "agents": {"folder": "samples", "options": list(site.options), "interfaces": ["eth1"]},
            "change": {"at": AT, "hosts": ["a", "b"], "settle": "1 s"}, "control": ["c", "d", "e"],
            "before": f"{STEPS * STEP} s", "after": f"{STEPS * STEP} s", "step": f"{STEP} s",
            "coverage": "50 %",  # a busy machine misses samples
            "metrics": {
                "damaged": {
                    "counters": "TcpInCsumErrors", "kind": "count", "better": "lower", "margin": "20 %", "negligible": 1,
                },
                "drops": {"negligible": 1}, "errors": {"negligible": 1}, "retransmits": {"decides": False},
            },
        }  # fmt: skip
        watch.write_text(yaml.safe_dump(said))
        with sampling(watch):
            # As much as the time before a switch, of each host: the first switch may come at once.
            assert until(lambda: all(seconds(taken(folder / "samples", name)) > STEPS * STEP for name in NAMES))
            yield There(found, rollout, watch, folder / "samples")


@pytest.mark.needs("ssh", "sshd", "ethtool")
def test_the_gate_goes_on_after_a_harmless_wave_and_stops_after_a_harmful_one(there: There) -> None:
    """The port of the second wave's sender is bad, which does nothing until it may send large frames."""
    with xdp.passing(there.lab.switch, there.lab.port("d"), generic=True, code=xdp.damaging(LARGE, PART, PLACE)):
        code, said = there.apply()
    assert (code, there.lab.is_old()) == (1, True), said
    found = entries(there.rollout)
    assert [each["refused"] for each in found if each["event"] == "gate"] == [
        None, "the gate ended with exit code 1 (stop), expected 0: go on",
    ], said  # fmt: skip
    first, second = said.split("wave 2 of 3: c, d: releasing its routes")
    assert "Go on: nothing that decides is worse" in first
    assert ": a, b; beside c, d, e" in first
    assert "Stop: damaged is worse" in second
    assert ": c, d; beside e" in second
    assert [each["wave"] for each in found if each.get("stage") == "release"] == [0, 1]  # the third never was
    assert found[-1]["event"] == "put_back"


@pytest.mark.needs("ssh", "sshd")
def test_an_agent_that_is_killed_is_a_gap_until_it_is_there_again(there: There) -> None:
    before = len(taken(there.folder, "c"))
    life = taken(there.folder, "c")[0].life
    for pid in sshd._processes(there.lab.hosts["c"]):
        with contextlib.suppress(OSError):
            if b"--patience" in Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
    assert until(lambda: any(each.gap for each in taken(there.folder, "c")[before:]))
    gap = next(place for place, each in enumerate(taken(there.folder, "c")) if place >= before and each.gap)
    assert until(lambda: any(each.life for each in taken(there.folder, "c")[gap:]))
    assert {each.life for each in taken(there.folder, "c") if each.life} == {life}


def sends(name: str, datagrams: int) -> None:
    """So many datagrams from a namespace to itself."""
    program = f"import socket; s = socket.socket(2, 2); [s.sendto(b'x', ('127.0.0.1', 9)) for _ in range({datagrams})]"
    subprocess.run(["ip", "netns", "exec", name, sys.executable, "-c", program], check=True)


def made(name: str) -> None:
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)


def test_a_host_that_was_started_anew_has_another_life_and_nothing_in_between(tmp_path: Path) -> None:
    """Its second life has counted more than the first when it is seen, so that no counter falls."""
    name, path = f"fgl{secrets.token_hex(3)}", tmp_path / "watch.yaml"
    host = f"netns:{name}"
    path.write_text(
        f"agents: {{folder: samples, interfaces: [lo]}}\nchange: {{at: {AT}, hosts: ['{host}'], settle: 0 s}}\n"
        f"control: [local]\nbefore: 1 min\nafter: 1 min\nstep: {STEP} s\n"
        "metrics: {sent: {counters: UdpOutDatagrams, kind: count, better: lower, margin: 5 %}}\n"
    )

    def lives() -> list[samples.Sample]:
        return [each for each in taken(tmp_path / "samples", host) if each.life]

    made(name)
    try:
        sends(name, 10)
        with sampling(path):
            assert until(lambda: len(lives()) >= 3)
            [agent] = agents_in(Lab({"x": name}, "none"), "x")
            subprocess.run(["ip", "netns", "del", name], check=True)
            made(name)
            sends(name, 500)
            os.kill(agent, signal.SIGKILL)
            assert until(lambda: len([each for each in lives() if each.life != lives()[0].life]) >= 3)
            sends(name, 7)
            count = len(lives())
            assert until(lambda: len(lives()) >= count + 3)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
    first = next(each for each in lives() if each.life != lives()[0].life)
    assert (lives()[0].values["UdpOutDatagrams"], first.values["UdpOutDatagrams"]) == (10, 500)
    asked = model.load(path, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(first.at)))
    times = Times.of(asked, first.at + 3600)
    found = Recorded(asked)
    [series] = [each for each in found.series(asked.metrics["sent"], times.grid) if each.labels["instance"] == host]
    assert np.nansum(np.diff(series.values)) in (0, 7)  # 0 if a busy machine has a gap there, and never 490
    assert "it began anew about" in found.reasons(times.grid)[host]
