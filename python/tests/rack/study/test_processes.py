"""Programs in hosts: environment, folder, limits, output, signals, and the end of a whole tree."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.real import UP, output, spawn
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent, Json
from framegauge.errors import AgentError
from framegauge.experiment.planning import searched
from framegauge.testbeds.base import PLACES
from framegauge.testbeds.rack import Relay


@pytest.fixture
def host(rack_agent: Agent) -> Iterator[Relay]:
    rack_agent.request("rack.up", UP)
    yield Relay(rack_agent, "h1")
    rack_agent.request("rack.down")


def ended(host: Relay, process: int) -> Json:
    return host.request("process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS})


def test_environment_folder_and_limits(host: Relay) -> None:
    asked = {
        "argv": ["sh", "-c", "echo $WORD; pwd; ulimit -n; echo oops >&2; exit 7"],
        "environment": {"WORD": "jumbo"},
        "directory": "/usr",
        "limits": {"open_files": 77},
    }
    process = host.request("process.spawn", asked)["process"]
    assert ended(host, process) == {"ended": True, "exit_code": 7, "signal": None}
    assert output(host, process).split() == ["jumbo", "/usr", "77"]
    assert output(host, process, "stderr") == "oops\n"


def test_a_program_sees_its_own_network(host: Relay) -> None:
    process = spawn(host, "sh", "-c", "ls /sys/class/net; ls /sys/fs/cgroup | head -1")
    ended(host, process)
    assert {"fg1", "lo"} <= set(output(host, process).split())


def test_a_program_in_the_users_own_folder_is_found_by_the_plan_and_by_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `/opt/…` in the PATH of root: what the plan finds there, a host starts."""
    name = f"framegauge-{os.getpid()}-of-mine"
    (tmp_path / name).write_text("#!/bin/sh\necho it is mine\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which(name, path=searched()) == str(tmp_path / name)
    with Agent.open([find_agent(), "rack"]) as agent:
        agent.request("rack.up", UP)
        host = Relay(agent, "h1")
        process = spawn(host, name)
        assert ended(host, process)["exit_code"] == 0
        assert output(host, process) == "it is mine\n"


def test_a_whole_tree_is_killed(host: Relay) -> None:
    # The grandchild leaves session and parent; the name in its arguments finds it.
    process = spawn(host, "sh", "-c", "setsid sleep 98765 & wait")
    # The brackets keep the search from finding itself.
    ended(host, spawn(host, "sh", "-c", "until grep -qs 9876[5] /proc/[0-9]*/cmdline; do :; done"))
    assert any("98765" in words for words in _command_lines())
    assert host.request("process.kill", {"process": process})["signal"] == 9
    assert not any("98765" in words for words in _command_lines())


def test_what_a_grandchild_held_is_free_once_its_tree_is_killed(host: Relay, tmp_path: Path) -> None:
    # The kernel takes its memory away before its files, long after the one that was started has ended.
    lock = tmp_path / "lock"
    held = f"held = open({str(lock)!r}, 'w'); fcntl.flock(held, fcntl.LOCK_EX); memory = b'x' * 400_000_000"
    grandchild = f"import fcntl, time; {held}; print('on', flush=True); time.sleep(99)"
    process = spawn(host, "sh", "-c", f"setsid {sys.executable} -c {shlex.quote(grandchild)} & wait")
    while "on" not in output(host, process):
        time.sleep(0.01)
    with lock.open() as mine:
        with pytest.raises(BlockingIOError):
            fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert host.request("process.kill", {"process": process})["ended"]
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _command_lines() -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline") as file:
                    found.append(file.read())
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def test_signal(host: Relay) -> None:
    process = spawn(host, "sh", "-c", "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    while "ready" not in output(host, process):
        pass
    host.request("process.signal", {"process": process, "signal": int(signal.SIGTERM)})
    assert ended(host, process)["exit_code"] == 5
    assert output(host, process) == "ready\ncaught\n"


def test_a_program_that_is_not_there(host: Relay) -> None:
    with pytest.raises(AgentError, match=r"start no-such-program: found no such program in /.*: No such file"):
        spawn(host, "no-such-program")


def test_a_program_is_found_where_the_callers_path_has_no_system_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a study checks for is what its hosts find: root has no sbin after a plain `su`."""
    monkeypatch.setenv("PATH", "/opt/mine:/usr/bin:/bin")
    assert shutil.which("ldconfig") is None  # every Debian has it in /sbin
    with Agent.open([find_agent(), "rack"]) as agent:
        agent.request("rack.up", UP)
        host = Relay(agent, "h1")
        found = spawn(host, "ldconfig", "--version")
        assert ended(host, found)["exit_code"] == 0
        from_a_shell = spawn(host, "sh", "-c", "ldconfig --version && echo $PATH")
        assert ended(host, from_a_shell)["exit_code"] == 0
        folders = output(host, from_a_shell).splitlines()[-1].split(":")
        assert folders[:3] == ["/opt/mine", "/usr/bin", "/bin"]
        assert set(PLACES.split(":")) <= set(folders)
        asked = {"argv": ["/bin/sh", "-c", "echo $PATH"], "environment": {"PATH": "/nowhere"}, "directory": None}
        own = host.request("process.spawn", asked)["process"]
        ended(host, own)
        assert output(host, own) == "/nowhere\n"


def test_a_hosts_network_is_that_of_its_agents_other_threads_only(rack_agent: Agent) -> None:
    """Who looks into every network that has a process finds none of a rack's hosts."""
    [host] = rack_agent.request("rack.bare", {"hosts": ["alone"]})["hosts"]
    try:
        networks = {
            task.name: (task / "ns/net").readlink().name for task in Path(f"/proc/{host['pid']}/task").iterdir()
        }
        outside = networks.pop(str(host["pid"]))
        assert outside == Path("/proc/self/ns/net").readlink().name
        assert str(host["thread"]) in networks
        assert len(set(networks.values())) == 1
        assert outside not in networks.values()
    finally:
        rack_agent.request("rack.down")
