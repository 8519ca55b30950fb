"""Agents over real ssh: cached, copied, refused, lost; and a check over it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import sshd
from helpers.over_ssh import remote
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent
from framegauge.agents.ssh import Remote, open_agent
from framegauge.errors import AgentFailure, AgentLost, AgentMissing

pytestmark = pytest.mark.needs("ssh", "sshd")


def test_the_agent_is_copied_once_and_then_found(there: Site) -> None:
    said: list[str] = []
    for _ in range(2):
        agent = open_agent(remote(there, "alpha"), ["host"], said.append)
        assert agent.about["role"] == "host"
        assert agent.request("check.facts")["hostname"]
        agent.close()
    assert len(said) == 1
    assert said[0].startswith("alpha: copying the agent (")
    [kept] = (there.hosts["alpha"].folder / "cache/framegauge").glob("agent-*[!m]")  # and not what is kept of its sum
    assert kept.read_bytes() == Path(find_agent()).read_bytes()


def test_where_no_cache_can_be_written_it_goes_elsewhere_and_leaves_nothing(there: Site) -> None:
    cache = there.hosts["beta"].folder / "cache"
    cache.write_text("a file where a folder should be")
    before = {name for name in os.listdir("/dev/shm") if name.startswith("framegauge.")}
    said: list[str] = []
    agent = open_agent(remote(there, "beta"), ["host"], said.append)
    assert "copying" in said[0]
    agent.close()
    for _ in range(100):
        after = {name for name in os.listdir("/dev/shm") if name.startswith("framegauge.")}
        if after <= before:
            break
        time.sleep(0.05)
    assert after <= before
    cache.unlink()


def test_where_the_agent_does_not_fit_it_goes_elsewhere(tmp_path: Path) -> None:
    """A file system that is almost full takes its beginning only."""
    with sshd.site(tmp_path, ["alpha"], small_disk=True) as found:
        cache = found.hosts["alpha"].folder / "cache"
        with (cache / "much").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, os.statvfs(cache).f_bavail * os.statvfs(cache).f_frsize - (64 << 10))
        agent = open_agent(remote(found, "alpha"), ["host"], lambda _: None)
        assert agent.request("check.facts")["hostname"]
        agent.close()
        assert list((cache / "framegauge").iterdir()) == []


def test_a_host_key_that_changed_is_refused_as_ssh_refuses_it(there: Site, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    lines = (there.folder / "known_hosts").read_text().splitlines()
    known.write_text("\n".join([f"{lines[0].split()[0]} {' '.join(lines[1].split()[1:])}", *lines[1:]]) + "\n")
    other = Remote("alpha", "alpha", [*there.options, "-o", f"UserKnownHostsFile={known}"])
    with pytest.raises(AgentLost, match=r"alpha: .*[Hh]ost key verification failed"):
        open_agent(other, ["host"], print)


def test_a_host_that_is_not_there_is_named(there: Site) -> None:
    with pytest.raises(AgentLost, match=r"nobody: .*resolve hostname"):
        open_agent(Remote("nobody", "nobody.invalid", there.options), ["host"], print)


def test_another_machine_s_agent_is_said_not_run(there: Site, tmp_path: Path) -> None:
    wrong = tmp_path / "agent"
    wrong.write_bytes(b"\x7fELF" + bytes(4096))
    with pytest.raises(AgentFailure, match="beta: "):
        open_agent(remote(there, "beta", agent=str(wrong)), ["host"], print)
    with pytest.raises(AgentMissing, match="no readable file"):
        open_agent(remote(there, "beta", agent="/nowhere/agent"), ["host"], print)


def test_a_silent_host_is_given_up_in_time(there: Site) -> None:
    host = there.hosts["beta"]
    os.kill(host.process, signal.SIGSTOP)
    try:
        # While it is silent: it could answer only afterwards.
        with pytest.raises(AgentFailure, match="beta: "):
            open_agent(remote(there, "beta"), ["host"], print, start_seconds=2)
    finally:
        os.kill(host.process, signal.SIGCONT)


def test_a_check_over_ssh(there: Site, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(json.dumps({"hosts": ["alpha", "beta", {"name": "gone", "ssh": "gone.invalid"}],
                                 "options": list(there.options)}))  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "framegauge",
        "check",
        "--hosts",
        str(hosts),
        "-4",
        "--rate",
        "unlimited",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    document = json.loads(done.stdout)
    found = {(pair["source"], pair["destination"]): pair["path_mtu_bytes"] for pair in document["pairs"]}
    assert found["alpha", "beta"] == found["beta", "alpha"] == 1500
    assert done.returncode == 1  # 9000 does not pass, and one host could not be asked
    assert "gone" in done.stderr + done.stdout


def test_through_a_jump_host_to_one_without_python(roomy: Path, tmp_path: Path) -> None:
    programs = sshd.little(roomy / "bin")
    place = roomy / "jump"
    place.mkdir()
    with sshd.site(place, ["near", "beyond"], sudoers="", programs=programs) as site:
        far = f"Host far\n  HostName {site.hosts['beyond'].address}\n  ProxyJump near\n"
        (tmp_path / "config").write_text(far + (place / "config").read_text())
        agent = open_agent(Remote("far", "far", ["-F", str(tmp_path / "config")]), ["host"], print)
        try:
            assert agent.request("check.facts")["hostname"]
            # It was started, and works, where there is next to nothing, and by way of the other.
            assert f"PATH={programs}".encode() in Path(f"/proc/{agent.about['pid']}/environ").read_bytes().split(b"\0")
            assert not list(programs.glob("python*"))
            assert "Accepted publickey" in (place / "near/sshd.log").read_text()
        finally:
            agent.close()


def hosts_asked(site: Site, folder: Path, names: dict[str, str], *before: str) -> subprocess.Popen[str]:
    """`framegauge hosts --json` of so many names of hosts of a site, under way."""
    listed = [{"name": name, "ssh": destination} for name, destination in names.items()]
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": listed, "options": list(site.options)}))
    command = [*before, sys.executable, "-m", "framegauge", "hosts", str(folder / "hosts.yaml"), "--json"]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_more_hosts_than_a_program_may_have_files_open(there: Site, tmp_path: Path) -> None:
    names = {f"h{number}": "alpha" for number in range(40)}
    out, said = (asked := hosts_asked(there, tmp_path, names, "prlimit", "--nofile=80:4000")).communicate(
        timeout=PATIENCE_SECONDS
    )
    assert asked.returncode == 0, said
    assert [host["error"] for host in json.loads(out)["hosts"]] == [None] * 40
    out, said = (asked := hosts_asked(there, tmp_path, names, "prlimit", "--nofile=80:200")).communicate(
        timeout=PATIENCE_SECONDS
    )
    assert asked.returncode == 2
    assert "open files: 448 (needed for 40 hosts): found a limit of 200; as root: ulimit -n 448" in said


def test_a_jump_host_that_turns_away_some_of_many_is_asked_again(tmp_path: Path) -> None:
    with sshd.site(tmp_path, ["near", "beyond"], startups="2:70:4") as site:
        far = f"Host far\n  HostName {site.hosts['beyond'].address}\n  ProxyJump near\n"
        config = tmp_path / "config"
        config.write_text(far + config.read_text())
        names = {f"h{number}": "far" for number in range(16)}
        out, said = (asked := hosts_asked(site, tmp_path, names)).communicate(timeout=PATIENCE_SECONDS)
        turned_away = (tmp_path / "near/sshd.log").read_text().count("drop connection")
    assert asked.returncode == 0, said
    assert [host["error"] for host in json.loads(out)["hosts"]] == [None] * 16
    assert turned_away > 0


def test_ctrl_c_while_hosts_are_silent_does_not_wait_for_them(there: Site, tmp_path: Path) -> None:
    os.kill(there.hosts["beta"].process, signal.SIGSTOP)
    try:
        names = {f"h{number}": "beta" for number in range(70)}  # more than log in at a time
        asked = hosts_asked(there, tmp_path, names)
        assert asked.stderr is not None
        first = asked.stderr.readline()  # after some seconds
        asked.send_signal(signal.SIGINT)
        # They are silent until after it has ended.
        _, said = asked.communicate(timeout=PATIENCE_SECONDS)
    finally:
        os.kill(there.hosts["beta"].process, signal.SIGCONT)
    assert asked.returncode == 130
    assert "logging in: 0 of 70 hosts" in first
    assert len(said.splitlines()) < 4


def test_hosts_say_what_they_are_and_what_a_firewall_must_allow(there: Site, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    hosts = [*there.hosts, {"name": "gone", "ssh": "gone.invalid"}]
    inventory.write_text(json.dumps({"hosts": hosts, "options": list(there.options)}))
    asked = [sys.executable, "-m", "framegauge", "hosts", str(inventory)]
    done = subprocess.run([*asked, "--json"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    found = {host["name"]: host for host in json.loads(done.stdout)["hosts"]}
    assert done.returncode == 1
    assert "resolve hostname" in found["gone"]["error"]
    facts = found["alpha"]["facts"]
    assert [(each["name"], each["mtu"], each["driver"]) for each in facts["interfaces"]] == [("eth0", 1500, "veth")]
    assert facts["clock_source"]
    assert facts["sysctls"]["net.ipv4.tcp_congestion_control"]
    printed = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False).stdout
    assert "1500 of 65535" in printed
    said = subprocess.run(
        [*asked, "--explain"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    ).stdout
    assert "TCP ports 32768 to 60999 (its ephemeral ports" in said


def test_another_kind_of_machine_is_said_and_nothing_is_copied(roomy: Path) -> None:
    programs = sshd.little(roomy / "other")
    (programs / "uname").unlink()
    (programs / "uname").write_text("#!/bin/sh\ncase $1 in -s) echo Linux ;; *) echo riscv64 ;; esac\n")
    (programs / "uname").chmod(0o755)
    place = roomy / "riscv"
    place.mkdir()
    with sshd.site(place, ["gamma"], sudoers="", programs=programs) as site:
        with pytest.raises(
            AgentMissing, match=r"gamma: found a machine of type riscv64, expected .*set `agent` of the host"
        ):
            open_agent(remote(site, "gamma"), ["host"], print)
        gamma = site.hosts["gamma"]
        until = (
            time.monotonic() + PATIENCE_SECONDS
        )  # its shell tries a folder first, and then notices that nothing is sent
        while gamma.processes() != [gamma.process] and time.monotonic() < until:
            time.sleep(0.05)
        assert gamma.processes() == [gamma.process]
        assert os.listdir(gamma.folder / "home/.cache/framegauge") == []
