"""A rack for hand use: built, used, shown and taken down as people do it, and killed in every way."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.real import agent_processes, await_end, hosts_of, leaves_nothing
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS, SOAK

from framegauge.agents.binary import find_agent
from framegauge.cli import printed
from framegauge.rack import keeper, state as kept

STUDY = """\
question: Can it be used by hand?
testbed: {kind: rack, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [9000, 1500], baseline: 1500}
  offloads: [true, false]
workloads:
  - stream: {size: 1 MB, repeat: 0.1 s}
control: false
blocks: 2
margins: {goodput: 1 %}
"""
MAIN = [sys.executable, "-m", "framegauge"]
SIXTEEN = "{kind: rack, topology: rack, hosts: 16, link: {rate: 200 Mb/s}}"
# One echo request and its answer (RFC 792), for machines without a `ping`.
PING = """
import socket, struct, sys
def total(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    return ~((words >> 16) + (words & 0xffff)) & 0xffff
echo = struct.pack("!BBHHH", 8, 0, 0, 7, 1)
echo = struct.pack("!BBHHH", 8, 0, total(echo), 7, 1)
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
    raw.settimeout(5)
    raw.sendto(echo, (sys.argv[1], 0))
    while True:
        answer, (source, _) = raw.recvfrom(2000)
        if answer[20] == 0 and source == sys.argv[1]:
            print("answer from", source)
            break
"""


def rack(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, "rack", *words], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS, **options
    )


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """A study file; whatever a failed test left up goes."""
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    assert not kept.FOR_ROOT.exists(), "a rack of yours is up: framegauge rack down"
    yield str(file)
    if kept.FOR_ROOT.exists():
        rack("down")


def up(path: str) -> Any:
    found = rack("up", path, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def processes(state: Any) -> list[int]:
    """Keeper, rack agent, hosts' agents."""
    return [each["pid"] for each in (state["keeper"], state["agent"], *state["hosts"])]


@pytest.mark.soak(0.1)
def test_sixteen_hosts_come_and_go(path: str) -> None:
    """In `make soak`, quickly."""
    with leaves_nothing():
        Path(path).write_text(STUDY.replace("{kind: rack, link: {rate: 200 Mb/s}}", SIXTEEN))
        state = up(path)
        assert [host["name"] for host in state["hosts"]] == [f"h{number}" for number in range(1, 17)]
        begun = time.monotonic()
        found = rack("exec", "h1", "--", sys.executable, "-c", PING, "10.77.0.16")
        print(f"up in {state['build_seconds']:.2f} s, a command in {time.monotonic() - begun:.2f} s")
        assert (found.returncode, found.stdout) == (0, "answer from 10.77.0.16\n"), found.stderr
        found = rack("down")
        print(found.stdout)
        assert found.returncode == 0
        took = float(found.stdout.split()[-2])
    if SOAK:
        assert state["build_seconds"] < 3
        assert took < 1.5


# A segment of System V memory of 4 KiB, which nobody removes (shmget(2): IPC_CREAT | 0600).
SEGMENT = "import ctypes; exit(ctypes.CDLL(None).shmget(7_777_777, 4096, 0o1600) < 0)"


def test_shared_memory_that_a_program_leaves_ends_with_its_host(path: str) -> None:
    here = Path("/proc/sysvipc/shm")
    with leaves_nothing():
        before = here.read_text()
        up(path)
        assert rack("exec", "h1", "--", sys.executable, "-c", SEGMENT).returncode == 0
        seen = [rack("exec", host, "--", "cat", str(here)).stdout for host in ("h1", "h2")]
        assert [text.count("7777777") for text in seen] == [1, 0]
        rack("down")
        assert here.read_text() == before


def test_what_is_printed_says_how_to_go_on(path: str) -> None:
    with leaves_nothing():
        found = rack("up", path)
        assert found.stdout.splitlines()[:3] == [
            "host  interface  address    MTU",
            "h1    fg1        10.77.0.1  1500",
            "h2    fg2        10.77.0.2  1500",
        ]
        assert "framegauge rack exec h1 -- ping -c 3 10.77.0.2" in found.stdout
        assert kept.FOR_ROOT.stat().st_mode & 0o777 == 0o600
        shown = json.loads(rack("list", "--json").stdout)
        conforms(shown, printed.rack())
        # The baseline of mtu, the first level of offloads.
        assert shown["conditions"]["mtu"] == {"h1": 1500, "h2": 1500}
        assert [host["running"] for host in shown["hosts"]] == [True, True]
        assert rack("show").stdout.splitlines()[:3] == found.stdout.splitlines()[:3]
        second = rack("up", path)
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert "a rack of 2 hosts is up" in second.stderr
        assert "`framegauge rack down` first" in second.stderr
        assert rack("down").returncode == 0
        assert rack("down").stdout == "no rack is up\n"
        assert json.loads(rack("show", "--json").stdout) is None


def test_a_command_is_as_at_home_but_in_the_host(path: str, tmp_path: Path) -> None:
    with leaves_nothing():
        state = up(path)
        shell = "echo $WORD; pwd; ls /sys/class/net; head -1; exit 7"
        found = rack(
            "exec", "h2", "--", "sh", "-c", shell, env=os.environ | {"WORD": "jumbo"}, cwd=tmp_path, input="in\n"
        )
        assert found.returncode == 7, found.stderr
        assert found.stdout.split() == ["jumbo", str(tmp_path), "fg2", "lo", "in"]
        # Its CPUs are the host's.
        script = "import os; print(sorted(os.sched_getaffinity(0)))"
        host = os.sched_getaffinity(state["hosts"][0]["pid"])
        assert rack("exec", "h1", "--", sys.executable, "-c", script).stdout.strip() == str(sorted(host))
        assert rack("exec", "h1", "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
        # SIGPIPE is not ignored there, as Python has it.
        assert rack("exec", "h1", "--", "sh", "-c", "kill -PIPE $$").returncode == -signal.SIGPIPE
        assert rack("exec", "h1", "--", "no-such-program").returncode == 127
        assert rack("exec", "h1", "--", "/").returncode == 126
        rack("down")


def test_what_cannot_be_entered_is_one_line(path: str) -> None:
    found = rack("exec", "h1", "--", "true")
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert "found no rack, expected one that is up: framegauge rack up FILE" in found.stderr
    state = up(path)
    found = rack("exec", "h9", "--", "true")
    assert (found.returncode, found.stderr) == (
        2,
        'framegauge: rack exec: found no host "h9", expected one of h1, h2\n',
    )
    os.kill(state["hosts"][0]["pid"], signal.SIGKILL)
    await_end([state["hosts"][0]["pid"]])
    found = rack("exec", "h1", "--", "true")
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert "h1 no longer runs" in found.stderr
    shown = rack("show")
    assert "h1 has gone" in shown.stderr
    rack("down")


def test_ctrl_c_goes_to_the_command(path: str) -> None:
    up(path)
    child, terminal = pty.fork()
    if child == 0:
        words = ["rack", "exec", "h1", "--", "sh", "-c", "trap 'exit 9' INT; tty; while :; do sleep 0.05; done"]
        os.execv(MAIN[0], [*MAIN, *words])
    said = b""
    while b"/dev/pts/" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    os.close(terminal)
    rack("down")


def test_it_outlives_the_terminal_that_it_was_built_in(path: str) -> None:
    with leaves_nothing():
        child, terminal = pty.fork()
        if child == 0:
            os.execv("/bin/sh", ["sh", "-c", f"{sys.executable} -m framegauge rack up {path} && echo ready; cat"])
        said = b""
        while b"ready" not in said:
            said += os.read(terminal, 1000)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGHUP
        assert rack("exec", "h1", "--", "true").returncode == 0
        rack("down")


def test_down_ends_what_runs_in_the_hosts(path: str) -> None:
    with leaves_nothing():
        up(path)
        # The second leaves its session and its parent.
        words = ["rack", "exec", "h1", "--", "sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000"]
        with subprocess.Popen([*MAIN, *words], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert rack("down").returncode == 0
            assert process.wait(10) == -signal.SIGKILL
            assert process.stdout.read() == b""  # the other one had it open, too


def test_sigterm_to_the_keeper_is_down(path: str) -> None:
    with leaves_nothing():
        family = processes(up(path))
        os.kill(family[0], signal.SIGTERM)
        await_end(family)
        assert not kept.FOR_ROOT.exists()


@pytest.mark.parametrize("victim", ["keeper", "agent"])
def test_a_killed_keeper_or_agent_takes_the_rack_down(path: str, victim: str) -> None:
    with leaves_nothing():
        state = up(path)
        os.kill(state[victim]["pid"], signal.SIGKILL)
        await_end(processes(state))
        found = rack("list")
        assert found.stdout.startswith("no rack is up")
        why = "has ended" if victim == "keeper" else "its agent ended"
        assert why in found.stderr
        assert f"removed {kept.FOR_ROOT}" in found.stderr
        assert rack("list").stderr == ""


def kill(pids: Sequence[int]) -> None:
    """All of them at once: stopped first, so that none can react to another's end. Children end before their parents:
    a stopped child whose group loses its last parent would be sent SIGCONT, and act (POSIX, `_exit`, orphaned groups)."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGKILL)


def test_all_killed_together_are_swept_up_by_the_next(path: str) -> None:
    with leaves_nothing():
        state = up(path)
        command = [*MAIN, "rack", "exec", "h1", "--", "sh", "-c", "echo ready; exec sleep 1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            kill(processes(state))
            await_end(processes(state))
            try:
                assert process.poll() is None
                assert hosts_of(state["agent"]["pid"]) == []
                found = rack("up", path)
                assert found.returncode == 0
                assert "the rack that was up no longer exists" in found.stderr
                assert process.wait(10) == -signal.SIGKILL
            finally:
                process.kill()
        rack("down")


def test_another_process_of_the_same_number_is_not_the_keeper(path: str) -> None:
    with leaves_nothing():
        state = up(path)
        kill(processes(state))
        await_end(processes(state))
        # As if our own number had been the keeper's, and the host's.
        for each in (state["keeper"], *state["hosts"]):
            each["pid"] = os.getpid()
        keeper.replace(kept.FOR_ROOT, state)
        found = rack("down")
        assert (found.returncode, found.stdout) == (0, "no rack is up\n")
        assert "the rack that was up no longer exists" in found.stderr
        host = state["hosts"][0]
        words = [
            find_agent(),
            "exec",
            "--pid",
            str(host["pid"]),
            "--start-ticks",
            str(host["start_ticks"]),
            "--",
            "true",
        ]
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "it is another process by now, the host has gone" in refused.stderr
        up(path)  # sweeps
        rack("down")


def test_only_a_host_of_a_rack_can_be_entered() -> None:
    own = kept.Process.of(os.getpid())
    words = [find_agent(), "exec", "--pid", str(own.pid), "--start-ticks", str(own.start_ticks), "--", "true"]
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "it is not the agent of a rack's host" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.15])
def test_interrupted_half_way_leaves_nothing(path: str, moment: float, number: signal.Signals) -> None:
    with leaves_nothing():
        process = subprocess.Popen(
            [*MAIN, "rack", "up", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while not kept.FOR_ROOT.exists():
            assert process.poll() is None
            select.select([], [], [], 0.002)
        # A random moment needs the passing of time itself; nothing is waited for.
        select.select([], [], [], moment)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        if kept.FOR_ROOT.exists():  # it was quicker
            rack("down")
        else:
            *progress, last = errors.splitlines()
            assert (process.returncode, last) == (130, "framegauge: interrupted")
            # A busy machine may take seconds to build the rack.
            assert all(line.startswith("framegauge: building the rack: ") for line in progress), progress
        assert not kept.FOR_ROOT.exists()


def test_a_killed_builder_leaves_a_state_that_the_next_removes(path: str) -> None:
    with leaves_nothing():
        before = set(agent_processes())
        process = subprocess.Popen([*MAIN, "rack", "up", path], stdout=subprocess.DEVNULL)
        while not set(agent_processes()) - before:
            assert process.poll() is None
        process.kill()
        process.wait()
        found = rack("list")
        assert found.stdout.startswith("no rack is up")
        assert "the rack that was up no longer exists" in found.stderr
        await_end(list(set(agent_processes()) - before))


def test_a_study_runs_beside_it(path: str, tmp_path: Path) -> None:
    with leaves_nothing():
        up(path)
        command = [*MAIN, "study", path, "--out", str(tmp_path / "out")]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        assert found.returncode in (0, 3), found.stderr  # 3: the machine was too busy, which is told
        assert "a rack for hand use is up and shares the CPUs with this study" in found.stderr
        runs = tmp_path / "out/runs.jsonl"
        # A machine that carries nothing at the moment ends it before its first run.
        assert "error:" not in runs.read_text() if runs.exists() else "too busy" in found.stderr
        assert rack("exec", "h1", "--", "true").returncode == 0
        rack("down")


def test_a_command_that_came_through_sudo_is_the_users_again(path: str, tmp_path: Path) -> None:
    # A sudo that is no sudo: it only looks like one to its child.
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nenv -i PATH=/usr/bin:/bin HOME=/root SUDO_UID=65534 SUDO_GID=65534 "$@"\nexit $?\n')
    sudo.chmod(0o755)
    host = up(path)["hosts"][0]
    enter = [find_agent(), "exec", "--pid", str(host["pid"]), "--start-ticks", str(host["start_ticks"])]
    shell = "id -u; id -g; id -G; echo $WORD-$HOME-$SUDO_UID; grep CapEff /proc/self/status"
    environment = {"PATH": os.environ["PATH"], "WORD": "jumbo", "HOME": "/mine"}

    def run(*words: str, before: Sequence[str] = (str(sudo),)) -> list[str]:
        command = [*before, *enter, *words, "--", "sh", "-c", shell]
        found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd="/")
        return found.stdout.split()

    nothing = ["CapEff:", "0" * 16]
    assert run("--groups", "65534,100") == ["65534", "65534", "65534", "100", "jumbo-/mine-", *nothing]
    # Without sudo as its parent the environment stays what it is.
    before = ["env", "SUDO_UID=65534", "SUDO_GID=65534"]
    assert run(before=before) == ["65534", "65534", "65534", "jumbo-/mine-65534", *nothing]
    assert run("--keep-user", before=before)[:2] == ["0", "0"]
    rack("down")


# Frames of 1,442 bytes (UDP over IPv4: 1,400 + 8 + 20 + 14) without their FCS, until it is killed.
FLOOD = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    print("ready", flush=True)
    while True:
        try:
            udp.sendto(bytes(1400), (sys.argv[1], 9))
        except OSError:
            pass
"""


def ports(*words: str) -> dict[str, Any]:
    """One look, by port."""
    found = rack("watch", "--once", "--json", *words)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("\n") == 1
    return {port["port"]: port for port in json.loads(found.stdout)["ports"]}


def test_a_watch_sees_what_a_ping_sent(path: str) -> None:
    up(path)
    before = ports("--every", "0.05 s")
    assert before.keys() == {"h1>switch", "switch>h1", "h2>switch", "switch>h2"}
    found = rack("exec", "h1", "--", sys.executable, "-c", PING, "10.77.0.2")
    assert found.returncode == 0, found.stderr
    after = ports("--every", "0.05 s")
    # The request by the one way, the answer by the other; neighbours may ask for addresses besides.
    for name in before:
        grown = {key: after[name][key] - before[name][key] for key in before[name] if key.endswith("_frames")}
        assert grown["sent_frames"] == grown["received_frames"] >= 1, name
        assert grown["dropped_frames"] == grown["lost_frames"] == 0, name
    rack("down")


def test_a_watch_sees_a_port_that_is_full(path: str) -> None:
    up(path)
    words = [*MAIN, "rack", "exec", "h1", "--", sys.executable, "-c", FLOOD, "10.77.0.2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as flood:
        assert flood.stdout is not None
        assert flood.stdout.readline() == b"ready\n"
        busy = ports("--every", "0.5 s")["h1>switch"]
        shown = rack("watch", "--once", "--every", "0.2 s").stdout.splitlines()
        flood.kill()
    # Two figures that know nothing of each other: 1,446 bytes of frame are 1,466 on the wire.
    assert busy["bits_per_second"] / 200e6 * 1466 / 1446 == pytest.approx(busy["busy_share"], rel=0.02)
    # A host sends as fast as its shaper lets it, if it gets any CPU at all.
    assert 0.2 < busy["busy_share"] < 1.01
    assert shown[0].startswith("up ")
    assert shown[1].split()[:3] == ["port", "Mb/s", "busy"]
    assert shown[-1].endswith("idle") or len(shown) == 6
    rack("down")


def test_many_watch_at_once_and_go_as_they_like(path: str) -> None:
    with leaves_nothing():
        state = up(path)
        words = [*MAIN, "rack", "watch", "--json", "--every", "0.05 s"]
        watchers = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        for each in watchers:
            assert each.stdout is not None
            assert json.loads(each.stdout.readline())["elapsed_seconds"] >= 0.04
        watchers[0].kill()
        watchers[1].send_signal(signal.SIGINT)
        assert watchers[1].communicate(timeout=PATIENCE_SECONDS)[1] == b"framegauge: interrupted\n"
        assert watchers[1].returncode == 130
        assert watchers[2].stdout is not None
        assert json.loads(watchers[2].stdout.readline())["ports"]
        assert rack("exec", "h1", "--", "true").returncode == 0
        assert rack("down").returncode == 0
        for each in watchers[2:]:
            _, errors = each.communicate(timeout=PATIENCE_SECONDS)
            assert (each.returncode, errors.count(b"\n")) == (1, 1)
            assert b"rack.ports: the rack's keeper closed the connection" in errors
        watchers[0].communicate()
        await_end(processes(state))


def test_a_capture_has_what_passed_the_port(path: str, tmp_path: Path) -> None:
    up(path)
    written = tmp_path / "port.pcapng"
    words = [*MAIN, "rack", "capture", "h1:switch", "--for", "60 s", "--write", str(written)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as capturing:
        # It begins somewhere among them: each takes as long as an interpreter to start.
        for _ in range(30):
            assert rack("exec", "h1", "--", sys.executable, "-c", PING, "10.77.0.2").returncode == 0
        capturing.send_signal(signal.SIGINT)
        said, wrong = capturing.communicate(timeout=PATIENCE_SECONDS)
    assert capturing.returncode == 0, wrong
    came = int(said.split()[1])
    assert said == f"{written}: {came} frames that came to h1>switch, {came} that left, 0 that were dropped\n"
    assert came >= 1
    data = written.read_bytes()
    assert data[:4] == b"\x0a\x0d\x0d\x0a"  # a pcapng section
    assert data.count(b"came by h1>switch") == 2 * came
    again = rack("capture", "h1:switch", "--write", str(written))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "found a file, expected a new name" in again.stderr
    unknown = rack("capture", "h1:swich", "--write", str(tmp_path / "other"))
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
    assert 'found no port "h1>swich", expected one such as h1>switch' in unknown.stderr
    rack("down")


def test_only_the_user_of_a_rack_and_root_may_ask_its_agent(path: str) -> None:
    up(path)
    place = keeper.socket_path(str(kept.FOR_ROOT))
    script = (
        "import os, socket, sys\n"
        "os.setgid(65534), os.setuid(65534)\n"
        "with socket.socket(socket.AF_UNIX) as asker:\n"
        "    try:\n"
        "        asker.connect(sys.argv[1])\n"
        "        asker.settimeout(20)\n"
        '        asker.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{}}\\n\')\n'
        "        print(asker.recv(9))\n"
        "    except OSError as error:\n"
        "        print(type(error).__name__)\n"
    )

    def ask() -> str:
        words = [sys.executable, "-c", script, place]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert ask() == "PermissionError"
    # Even where the file lets them, the keeper asks who they are.
    os.chmod(place, 0o666)
    assert ask() in ("b''", "ConnectionResetError", "BrokenPipeError")
    assert ports("--every", "0.05 s")
    rack("down")


# The same with 8,972 bytes of data and DF: with the headers of ICMP and IP they are a packet of 9,000.
JUMBO_PING = (
    PING.replace("0, 7, 1)", "0, 7, 1) + bytes(8972)")
    .replace("total(echo), 7, 1)", "total(echo), 7, 1) + bytes(8972)")
    .replace("raw.settimeout(5)", "raw.settimeout(5); raw.setsockopt(socket.IPPROTO_IP, 10, 2)")  # IP_PMTUDISC_DO
    .replace("recvfrom(2000)", "recvfrom(20000)")
)


def test_jumbo_frames_pass_once_both_hosts_have_the_mtu(path: str) -> None:
    up(path)
    words = ["exec", "h1", "--", sys.executable, "-c", JUMBO_PING, "10.77.0.2"]
    assert "Message too long" in rack(*words).stderr
    for host in ("h1", "h2"):
        begun = datetime.now(UTC)
        found = rack("set", host, "--mtu", "9000")
        assert found.returncode == 0, found.stderr
        told = re.fullmatch(rf"MTU 9000, since (.*): {host}\n", found.stdout)
        assert told is not None
        # It was while it was asked for; printed are milliseconds, the rest is cut off.
        assert begun - timedelta(milliseconds=1) <= datetime.fromisoformat(told[1]) <= datetime.now(UTC)
    assert rack(*words).stdout == "answer from 10.77.0.2\n"
    assert [host["mtu"] for host in json.loads(rack("show", "--json").stdout)["hosts"]] == [9000, 9000]
    # A port that is too small for them drops them in silence: 1 giant more.
    before = ports("--every", "0.05 s")
    assert rack("set", "switch>h2", "--mtu", "4000").returncode == 0
    assert "timed out" in rack(*words).stderr
    after = ports("--every", "0.05 s")
    giants = {name: after[name]["giant_frames"] - before[name]["giant_frames"] for name in after}
    assert giants == {"h1>switch": 0, "switch>h1": 0, "h2>switch": 0, "switch>h2": 1}
    rack("down")


def test_a_port_has_the_rate_that_was_set_and_none_when_it_is_down(path: str) -> None:
    up(path)
    words = [*MAIN, "rack", "exec", "h1", "--", sys.executable, "-c", FLOOD, "10.77.0.2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as flood:
        assert flood.stdout is not None
        assert flood.stdout.readline() == b"ready\n"
        found = rack("set", "switch:h*", "--rate", "10Mb/s", "--queue", "red", "--buffer", "64KiB")
        assert found.returncode == 0, found.stderr
        assert re.fullmatch(
            r"rate 10 Mb/s, buffer 64 KiB, queue red, since [-+0-9:. ]+: switch>h1, switch>h2\n", found.stdout
        )
        slow = ports("--every", "0.5 s")["switch>h2"]
        assert rack("set", "switch>h2", "--down").returncode == 0
        ports("--every", "0.05 s")
        down = ports("--every", "0.2 s")["switch>h2"]
        assert rack("set", "switch>h2", "--up").returncode == 0
        again = ports("--every", "0.5 s")["switch>h2"]
        flood.kill()
    for each in (slow, again):
        # 1,446 bytes of every 1,466 on the wire, to a frame more or less in half a second of 426.
        assert each["bits_per_second"] == pytest.approx(10e6 * 1446 / 1466, rel=0.01)
        assert each["busy_share"] == pytest.approx(1, rel=0.01)
        assert each["dropped_frames_per_second"] > 0
    assert (down["bits_per_second"], down["queued_bytes"]) == (0, 0)
    rack("down")


def test_what_a_rack_cannot_be_set_to_is_one_line(path: str) -> None:
    up(path)
    for words, message in (
        (["switch>h3", "--up"], 'found no port "switch>h3", expected one such as switch>h'),
        (["h3", "--mtu", "9000"], 'found no host "h3", expected one such as h1, h2'),
        (["h1", "--mtu", "70000"], "70000"),
        (["switch>h1", "--queue", "rde"], "rde"),
        (["switch>h1", "--rate", "0 b/s"], "rack.set"),
    ):
        found = rack("set", *words)
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1), (words, found)
        assert message in found.stderr
    rack("down")
