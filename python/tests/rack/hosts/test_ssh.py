"""Agents over real ssh: cached, copied, refused, lost; and a check over it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers import sshd
from helpers.sshd import Site
from helpers.support import ROOT, bench

from framegauge.agents.binary import find_agent
from framegauge.agents.ssh import Remote, open_agent
from framegauge.errors import AgentFailure, AgentLost, AgentMissing
from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")
chaos = bench("hosts.chaos")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sshd.site(tmp_path_factory.mktemp("site"), ["alpha", "beta"]) as found:
        yield found


def remote(site: Site, name: str, **more: object) -> Remote:
    return Remote(name, name, site.options, **more)  # type: ignore[arg-type]


def test_the_agent_is_copied_once_and_then_found(there: Site) -> None:
    said: list[str] = []
    for _ in range(2):
        agent = open_agent(remote(there, "alpha"), ["host"], said.append)
        assert agent.about["role"] == "host"
        assert agent.request("check.facts")["hostname"]
        agent.close()
    assert len(said) == 1
    assert said[0].startswith("alpha: copying the agent (")
    [kept] = (there.hosts["alpha"].folder / "cache/framegauge").iterdir()
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
    begun = time.monotonic()
    try:
        with pytest.raises(AgentFailure, match="beta: "):
            open_agent(remote(there, "beta"), ["host"], print, start_seconds=2)
    finally:
        os.kill(host.process, signal.SIGCONT)
    assert time.monotonic() - begun < 10


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    document = json.loads(done.stdout)
    found = {(pair["source"], pair["destination"]): pair["path_mtu_bytes"] for pair in document["pairs"]}
    assert found["alpha", "beta"] == found["beta", "alpha"] == 1500
    assert done.returncode == 1  # 9000 does not pass, and one host could not be asked
    assert "gone" in done.stderr + done.stdout


STUDY = """\
question: Do jumbo frames help here?
testbed: {{kind: ssh, inventory: {inventory}, lease: {lease} s}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}}}
workloads: [{{stream: {{duration: {seconds} s}}}}]
blocks: {blocks}
stop: blocks
control: false
margins: {{goodput: 2 %, receiver_cpu_cost: 5 %}}
"""


def study_of(
    site: Site, folder: Path, *, lease: int = 30, seconds: float = 0.3, blocks: int = 2, **more: object
) -> Path:
    """A study file of all hosts of a site, and its inventory."""
    hosts = [{"name": name, **more} for name in site.hosts]
    (folder / "hosts.yaml").write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    path = folder / "study.yaml"
    path.write_text(STUDY.format(inventory="hosts.yaml", lease=lease, seconds=seconds, blocks=blocks))
    return path


def framegauge(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "framegauge", *map(str, words)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def mtus(site: Site) -> set[int]:
    return {host.mtu() for host in site.hosts.values()}


def test_a_study_over_ssh_changes_proves_and_puts_back(there: Site, tmp_path: Path) -> None:
    assert mtus(there) == {1500}
    process = framegauge("study", study_of(there, tmp_path), "--out", tmp_path / "out")
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    saved = read(tmp_path / "out")
    assert [run.excluded for run in saved.runs] == [[]] * 4, said
    assert all(run.metrics["goodput"] > 0 and run.metrics["receiver_cpu_cost"] > 0 for run in saved.runs)
    assert mtus(there) == {1500}
    environment = json.loads((tmp_path / "out/environment.json").read_text())
    assert set(environment["agent"]["hosts"]) == {"alpha", "beta"}
    assert environment["agent"]["hosts"]["alpha"]["facts"]["interfaces"]
    record = json.loads((tmp_path / "out/runs/1/record.json").read_text())
    assert {host: reading["mtu"] for host, reading in record["before"].items()} == dict.fromkeys(
        there.hosts, saved.runs[0].level
    )
    # What is saved needs no inventory: it says which hosts there were.
    assert "alpha" in (tmp_path / "out/study.yaml").read_text()


def test_queue_disciplines_over_ssh(there: Site, tmp_path: Path) -> None:
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["factors"] = {"mtu": 1500, "qdisc": {"levels": ["default", "pfifo"], "baseline": "default"}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"treatment": "qdisc"}))
    process = framegauge("study", tmp_path / "study.yaml", "--out", tmp_path / "out")
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    saved = read(tmp_path / "out")
    assert [run.excluded for run in saved.runs] == [[]] * 4, said
    for run in saved.runs:
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        kinds = {reading["qdisc"]["kind"] for reading in record["before"].values()}
        assert kinds == {"pfifo" if run.level == "pfifo" else "noqueue"}
    assert "pfifo" in said
    for host in there.hosts.values():
        assert "noqueue" in sshd.run("tc", "-n", host.namespace, "qdisc", "show", "dev", "eth0", "root")


@pytest.mark.needs("sudo")
@pytest.mark.parametrize("rules", [None, "", f"{sshd.GUEST} ALL=(root) NOPASSWD: ALL"])
def test_instructions_of_whole_hosts_are_counted_or_it_is_said_why_not(
    roomy: Path, tmp_path: Path, rules: str | None
) -> None:
    """As root, as a guest without sudo, and through sudo. Many virtual machines hide their counters."""
    place = roomy / {None: "as-root", "": "without"}.get(rules, "through-sudo")
    place.mkdir()
    with sshd.site(place, ["alpha", "beta"], sudoers=rules) as site:
        (place / "key").chmod(0o600)
        study = study_of(site, tmp_path)
        text = study.read_text().replace("[1500, 9000]", "[1500]").replace("control: false", "control: true")
        study.write_text(text.replace("receiver_cpu_cost: 5 %", "receiver_instructions: 5 %, receiver_cycles: 5 %"))
        dry = framegauge("study", study, "--dry-run").communicate(timeout=60)[0]
        assert "counters   (reads the performance counters of all CPUs" in dry
        process = framegauge("study", study, "--out", tmp_path / "out")
        said = process.communicate(timeout=120)[0]
    assert process.returncode in (0, 3), said
    for run in read(tmp_path / "out").runs:
        for metric in ("receiver_instructions", "receiver_cycles"):
            if rules == "":
                assert "sudo" in run.readings["not_measured"][metric]
            elif metric not in run.metrics:
                assert "perf_event_open: " in run.readings["not_measured"][metric]


def test_a_controller_that_is_killed_leaves_nothing_changed(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, seconds=20), "--out", tmp_path / "out")
    try:
        until = time.monotonic() + 60
        while mtus(there) != {9000} and time.monotonic() < until:
            time.sleep(0.1)
        assert mtus(there) == {9000}
    finally:
        process.kill()
        process.wait()
    until = time.monotonic() + 10
    while mtus(there) != {1500} and time.monotonic() < until:
        time.sleep(0.1)
    assert mtus(there) == {1500}  # at once: its end closes the pipes


def test_hosts_that_are_read_only_stay_as_they_are(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, read_only=True), "--out", tmp_path / "out")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2
    assert "read_only" in said
    assert mtus(there) == {1500}


def test_a_path_that_does_not_carry_the_frames_is_said_and_left_as_it_was(there: Site, tmp_path: Path) -> None:
    subprocess.run(["ip", "link", "set", there.bridge, "mtu", "1500"], check=True)
    port = sorted(os.listdir(f"/sys/class/net/{there.bridge}/brif"))[0]
    subprocess.run(["ip", "link", "set", port, "mtu", "1500"], check=True)
    try:
        process = framegauge("study", study_of(there, tmp_path), "--out", tmp_path / "out")
        said = process.communicate(timeout=90)[0]
    finally:
        subprocess.run(["ip", "link", "set", port, "mtu", "9000"], check=True)
        subprocess.run(["ip", "link", "set", there.bridge, "mtu", "9000"], check=True)
    assert process.returncode == 2, said
    assert "packets of 9000 bytes from" in said
    assert mtus(there) == {1500}


@pytest.fixture(scope="module")
def roomy() -> Iterator[Path]:
    """A folder that every user may walk through."""
    folder = Path(tempfile.mkdtemp(prefix="framegauge-test.", dir="/run"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.needs("sudo")
@pytest.mark.parametrize(("rules", "allowed"), [("", False), (f"{sshd.GUEST} ALL=(root) NOPASSWD: ALL", True)])
def test_what_needs_privilege_goes_through_the_host_s_own_sudo(
    roomy: Path, tmp_path: Path, rules: str, allowed: bool
) -> None:
    place = roomy / ("allowed" if allowed else "refused")
    place.mkdir()
    with sshd.site(place, ["alpha", "beta"], sudoers=rules) as site:
        (place / "key").chmod(0o600)
        process = framegauge("study", study_of(site, tmp_path), "--out", tmp_path / "out")
        said = process.communicate(timeout=120)[0]
        if allowed:
            assert process.returncode == 0, said
            assert [run.excluded for run in read(tmp_path / "out").runs] == [[]] * 4
        else:
            assert process.returncode == 2, said
            assert "missing privilege (needed for mtu:eth0=9000 on alpha)" in said
            assert "sudo" in said, said
        assert mtus(site) == {1500}


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
    out, said = (asked := hosts_asked(there, tmp_path, names, "prlimit", "--nofile=80:4000")).communicate(timeout=120)
    assert asked.returncode == 0, said
    assert [host["error"] for host in json.loads(out)["hosts"]] == [None] * 40
    out, said = (asked := hosts_asked(there, tmp_path, names, "prlimit", "--nofile=80:200")).communicate(timeout=120)
    assert asked.returncode == 2
    assert "open files: 376 (needed for 40 hosts): found a limit of 200; as root: ulimit -n 376" in said


def test_a_jump_host_that_turns_away_some_of_many_is_asked_again(tmp_path: Path) -> None:
    with sshd.site(tmp_path, ["near", "beyond"], startups="2:70:4") as site:
        far = f"Host far\n  HostName {site.hosts['beyond'].address}\n  ProxyJump near\n"
        config = tmp_path / "config"
        config.write_text(far + config.read_text())
        names = {f"h{number}": "far" for number in range(16)}
        out, said = (asked := hosts_asked(site, tmp_path, names)).communicate(timeout=120)
        turned_away = (tmp_path / "near/sshd.log").read_text().count("drop connection")
    assert asked.returncode == 0, said
    assert [host["error"] for host in json.loads(out)["hosts"]] == [None] * 16
    assert turned_away > 0


def test_ctrl_c_while_hosts_are_silent_does_not_wait_for_them(there: Site, tmp_path: Path) -> None:
    os.kill(there.hosts["beta"].process, signal.SIGSTOP)
    try:
        names = {f"h{number}": "beta" for number in range(70)}  # more than log in at a time
        asked = hosts_asked(there, tmp_path, names)
        time.sleep(6)
        assert asked.poll() is None
        begun = time.monotonic()
        asked.send_signal(signal.SIGINT)
        _, said = asked.communicate(timeout=60)
        assert time.monotonic() - begun < 5
    finally:
        os.kill(there.hosts["beta"].process, signal.SIGCONT)
    assert asked.returncode == 130
    assert "logging in: 0 of 70 hosts" in said
    assert len(said.splitlines()) < 5


def test_hosts_say_what_they_are_and_what_a_firewall_must_allow(there: Site, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    hosts = [*there.hosts, {"name": "gone", "ssh": "gone.invalid"}]
    inventory.write_text(json.dumps({"hosts": hosts, "options": list(there.options)}))
    asked = [sys.executable, "-m", "framegauge", "hosts", str(inventory)]
    done = subprocess.run([*asked, "--json"], capture_output=True, text=True, timeout=60, check=False)
    found = {host["name"]: host for host in json.loads(done.stdout)["hosts"]}
    assert done.returncode == 1
    assert "resolve hostname" in found["gone"]["error"]
    facts = found["alpha"]["facts"]
    assert [(each["name"], each["mtu"], each["driver"]) for each in facts["interfaces"]] == [("eth0", 1500, "veth")]
    assert facts["clock_source"]
    assert facts["sysctls"]["net.ipv4.tcp_congestion_control"]
    printed = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False).stdout
    assert "1500 of 65535" in printed
    said = subprocess.run([*asked, "--explain"], capture_output=True, text=True, timeout=60, check=False).stdout
    assert "TCP ports 32768 to 60999 (its ephemeral ports" in said


@pytest.mark.needs("nft")
def test_behind_a_firewall_that_opens_only_the_ports_of_the_inventory(there: Site, tmp_path: Path) -> None:
    """And the connections that were open when the MTU was raised are named: ssh's own are among them."""
    # Without connection tracking, which not every kernel has: what opens a connection, or a probe, is what is judged.
    rules = (
        "table inet guard { chain in { type filter hook input priority 0; policy drop; iif lo accept; "
        "meta l4proto { icmp, ipv6-icmp } accept; tcp flags & (syn | ack) != syn accept; tcp dport 22 accept; "
        "tcp dport 40000-40009 accept; udp dport 40000-40009 accept; udp sport 40000-40009 accept\n}\n}\n"
    )
    for host in there.hosts.values():
        sshd.run("ip", "netns", "exec", host.namespace, "nft", rules)
    try:
        process = framegauge("study", study_of(there, tmp_path, ports="40000-40009"), "--out", tmp_path / "out")
        said = process.communicate(timeout=120)[0]
        assert process.returncode == 0, said
        runs = read(tmp_path / "out").runs
        assert [run.excluded for run in runs] == [[]] * 4, said
        shut = framegauge("study", study_of(there, tmp_path, seconds=0.2), "--out", tmp_path / "shut")
        shut.communicate(timeout=120)
        assert shut.returncode in (2, 3)  # the kernel's own choice of ports does not pass: the rules are there
    finally:
        for host in there.hosts.values():
            sshd.run("ip", "netns", "exec", host.namespace, "nft", "delete table inet guard")
    raised = [run.readings["old_connections"] for run in runs if run.level == 9000]
    for each in raised:
        assert set(each) == {"alpha", "beta"}
        for host, found in each.items():
            assert f"{there.hosts[host].address}:22" in {line["local"] for line in found["connections"]}, found
    assert all("old_connections" not in run.readings for run in runs if run.level == 1500)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert any(line.startswith("alpha: 1 connection was open when the MTU was raised") for line in summary["caveats"])


def test_a_stranger_at_a_data_port_gets_nothing_and_is_counted(there: Site, tmp_path: Path) -> None:
    port = 40123
    study = study_of(there, tmp_path, seconds=1, ports=str(port))
    study.write_text(study.read_text().replace("[1500, 9000]", "[1500]").replace("control: false", "control: true"))
    process = framegauge("study", study, "--out", tmp_path / "out")
    answers: list[bytes] = []
    while process.poll() is None:
        for host in there.hosts.values():
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host.address, port), 2) as call:
                call.sendall(b"GET / HTTP/1.1\r\nHost: " + bytes(64) + b"\r\n\r\n")
                try:
                    answers.append(call.recv(4096))
                except ConnectionResetError:  # what it said was not even read
                    answers.append(b"")
        time.sleep(0.05)
    said = process.communicate()[0]
    assert process.returncode in (0, 3), said
    assert len(answers) >= 4, "none met an open port"
    assert set(answers) == {b""}
    runs = read(tmp_path / "out").runs
    counted = sum(run.readings.get("refused_connections", 0) for run in runs)
    assert len(answers) <= counted <= len(answers) + len(runs)  # a last one may have been cut off before its answer
    assert not any(run.excluded for run in runs), said
    assert f"{counted} connections without their run's token were refused" in said


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
        until = time.monotonic() + 10  # its shell tries a folder first, and then notices that nothing is sent
        while gamma.processes() != [gamma.process] and time.monotonic() < until:
            time.sleep(0.05)
        assert gamma.processes() == [gamma.process]
        assert os.listdir(gamma.folder / "home/.cache/framegauge") == []


def test_a_path_that_carries_the_frames_no_more_is_a_gap(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, blocks=6), "--out", tmp_path / "out")
    port = sorted(os.listdir(f"/sys/class/net/{there.bridge}/brif"))[0]
    try:
        until = time.monotonic() + 90
        while time.monotonic() < until and not carried(tmp_path / "out"):
            time.sleep(0.02)
        # It carried them once; from now on one port does not.
        subprocess.run(["ip", "link", "set", port, "mtu", "1500"], check=True)
        said = process.communicate(timeout=150)[0]
    finally:
        process.kill()
        process.wait()
        subprocess.run(["ip", "link", "set", port, "mtu", "9000"], check=True)
        subprocess.run(["ip", "link", "set", there.bridge, "mtu", "9000"], check=True)
    runs = read(tmp_path / "out").runs
    assert len(runs) > 12, said  # every place in the plan, and repetitions of those that are gaps
    assert any("packets of 9000 bytes from" in line for run in runs for line in run.excluded), said
    assert all(not run.excluded for run in runs if run.level == 1500), said
    assert mtus(there) == {1500}


def carried(folder: Path) -> bool:
    """Whether a run with large frames is on disk."""
    try:
        return any(json.loads(line)["level"] == 9000 for line in (folder / "runs.jsonl").read_text().splitlines())
    except (OSError, ValueError, KeyError):
        return False


@pytest.mark.parametrize("example", ["ssh-pair", "ssh-rack"])
def test_an_example_runs_on_real_hosts(example: str, tmp_path: Path) -> None:
    """Its hosts' names, with what ssh needs to find them here; two blocks of short runs; everything else as it is."""
    study = yaml.safe_load((ROOT / f"examples/{example}.yaml").read_text())
    names = [
        each if isinstance(each, str) else each["name"]
        for each in study["testbed"].get("machines") or hosts_of_example()
    ]
    for workload in study["workloads"]:
        next(iter(workload.values()))["duration"] = "0.3 s"
    place = tmp_path / "site"
    place.mkdir()
    with sshd.site(place, names) as site:
        study["testbed"] |= {"inventory": "hosts.yaml"}
        study["testbed"].pop("machines", None)
        (tmp_path / "hosts.yaml").write_text(json.dumps({"hosts": names, "options": list(site.options)}))
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"blocks": 2}))
        process = framegauge("study", tmp_path / "study.yaml", "--out", tmp_path / "out")
        said = process.communicate(timeout=240)[0]
        runs = read(tmp_path / "out").runs
        # A load is met or not, whatever else this machine does.
        reasons = {line for run in runs for line in run.excluded if not line.startswith("load: ")}
        assert (process.returncode in (0, 3), reasons) == (True, set()), said
        assert all(run.metrics for run in runs)
        assert mtus(site) == {1500}


def hosts_of_example() -> list[object]:
    return list(yaml.safe_load((ROOT / "examples/inventory/hosts.yaml").read_text())["hosts"])


# Each kind of what may break once; bench/hosts/chaos.py does it at random, and more often.
@pytest.mark.parametrize("kind", chaos.KINDS)
def test_whatever_breaks_the_settings_are_back_within_the_lease(kind: str, tmp_path: Path) -> None:
    with sshd.site(tmp_path, ["alpha", "beta"], small_disk=True) as site:
        _, before, after = chaos.once(site, tmp_path, kind, random.Random(kind))
    assert after >= before


def test_an_agent_that_is_killed_is_a_gap_and_the_old_values_are_not_forgotten(there: Site, tmp_path: Path) -> None:
    """The next run logs in anew, perhaps before the lease of the agent that is gone has put things back."""
    process = framegauge("study", study_of(there, tmp_path, lease=6, blocks=6), "--out", tmp_path / "out")
    try:
        until = time.monotonic() + 60
        while mtus(there) != {9000} and time.monotonic() < until:
            time.sleep(0.02)
        for pid in chaos.agents(there.hosts["alpha"]):
            os.kill(pid, signal.SIGKILL)
        said = process.communicate(timeout=120)[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (0, 3), said
    runs = read(tmp_path / "out").runs
    assert any("alpha" in line for run in runs for line in run.excluded), said
    assert sum(not run.excluded for run in runs) >= 10, said
    assert mtus(there) == {1500}
