"""Studies over real ssh: what they change, prove and put back."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from helpers import sshd
from helpers.over_ssh import HELD_UP, framegauge, mtus, studied, study_of, undisturbed
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS, ROOT

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")


def test_a_study_over_ssh_changes_proves_and_puts_back(there: Site, tmp_path: Path) -> None:
    assert mtus(there) == {1500}
    studied(study_of(there, tmp_path), tmp_path / "out")
    saved = read(tmp_path / "out")
    assert all(run.metrics["goodput"] > 0 for run in undisturbed(saved.runs))
    assert mtus(there) == {1500}
    environment = json.loads((tmp_path / "out/environment.json").read_text())
    assert set(environment["agent"]["hosts"]) == {"alpha", "beta"}
    assert environment["agent"]["hosts"]["alpha"]["facts"]["interfaces"]
    record = json.loads((tmp_path / "out/runs/1/record.json").read_text())
    # What it cost is less than whatever else this machine does, before and meanwhile.
    assert all(record["cpu"][host]["programs"]["cpu_seconds"] > 0 for host in there.hosts)
    assert {host: reading["mtu"] for host, reading in record["before"].items()} == dict.fromkeys(
        there.hosts, saved.runs[0].level
    )
    # What is saved needs no inventory: it says which hosts there were.
    assert "alpha" in (tmp_path / "out/study.yaml").read_text()


def test_synchronized_reads_over_ssh(there: Site, tmp_path: Path) -> None:
    """The last machine asks the first."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["workloads"] = [{"incast": {"unit": "200 kB", "servers": 1, "rounds": 20}}]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    studied(tmp_path / "study.yaml", tmp_path / "out")
    for run in undisturbed(read(tmp_path / "out").runs):
        assert run.metrics["goodput"] > 0
        work = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())["workload"]
        assert (work["senders"], work["received_bytes"]) == (["alpha"], {"beta": 20 * 200_000})


def test_datagrams_over_ssh(there: Site, tmp_path: Path) -> None:
    """Both hosts are namespaces of one machine: their agents read one clock, and say so."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["workloads"] = [{"datagrams": {"size": "4 kB", "rate": 400, "duration": "0.5 s"}}]
    study["margins"] = {"delay_p50": "10 %", "delivered": "1 %"}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    studied(tmp_path / "study.yaml", tmp_path / "out")
    for run in undisturbed(read(tmp_path / "out").runs):
        counts = run.readings["datagrams"]
        assert counts["sent"] == 200 == counts["received"] + counts["lost"]
        assert run.metrics["delay_p50"] > 0


def test_quic_over_ssh(there: Site, tmp_path: Path) -> None:
    """Discovery ends at the MTU that the lease has set."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["workloads"] = [{"quic": {"size": "24 MB", "repeat": "0 s"}}]
    study["margins"] = {"completion_time": "10 %"}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    studied(tmp_path / "study.yaml", tmp_path / "out")
    for run in undisturbed(read(tmp_path / "out").runs):
        (settled,) = run.readings["quic"]["settled_mtu"]
        assert run.level - 20 < settled <= run.level
        assert run.metrics["completion_time"] > 0
    assert mtus(there) == {1500}


def test_queue_disciplines_over_ssh(there: Site, tmp_path: Path) -> None:
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["factors"] = {"mtu": 1500, "qdisc": {"levels": ["default", "pfifo"], "baseline": "default"}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"treatment": "qdisc"}))
    said = studied(tmp_path / "study.yaml", tmp_path / "out")
    saved = read(tmp_path / "out")
    for run in saved.runs:
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        kinds = {reading["qdisc"]["kind"] for reading in record["before"].values()}
        assert kinds == {"pfifo" if run.level == "pfifo" else "noqueue"}
    assert "pfifo" in said
    for host in there.hosts.values():
        assert "noqueue" in sshd.run("tc", "-n", host.namespace, "qdisc", "show", "dev", "eth0", "root")


def test_sizes_of_aggregates_and_probing_over_ssh(there: Site, tmp_path: Path) -> None:
    """Read back on both hosts for both IP families, and put back; without a capture, BIG TCP itself is not proved."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    sizes = {"levels": [65536, 180000], "baseline": 65536}
    study["factors"] = {"mtu": 1500, "gso_size": sizes, "gro_size": 131072, "mtu_probing": 2}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"treatment": "gso_size"}))
    studied(tmp_path / "study.yaml", tmp_path / "out")
    for run in read(tmp_path / "out").runs:
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        for reading in (*record["before"].values(), *record["after"].values()):
            found = reading["aggregates"]
            assert {found["gso_bytes"], found["gso_ipv4_bytes"]} == {run.level}
            assert {found["gro_bytes"], found["gro_ipv4_bytes"]} == {131072}
            assert reading["sysctls"]["net.ipv4.tcp_mtu_probing"] == "2"
            assert reading["path_mtu_exceptions"] == []
        assert any(line.startswith("not proved: the MTU of short flows: alpha, beta probe") for line in run.degraded)
        assert any("64 KiB: not counted (meters.wire is off)" in line for line in run.degraded)
    for host in there.hosts.values():
        shown = sshd.run("ip", "-n", host.namespace, "-d", "link", "show", "eth0")
        assert "gso_max_size 65536" in shown
        assert "gro_max_size 65536" in shown


def test_the_sysctls_of_a_tuning_over_ssh(there: Site, tmp_path: Path) -> None:
    """Set on both hosts for its runs alone, and put back."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    name, value = "net.ipv4.tcp_rmem", "4096 87380 4194304"
    levels = {"levels": ["as-is", "buffers"], "baseline": "as-is"}
    study |= {"factors": {"mtu": 1500, "tuning": levels}, "tunings": {"buffers": {"sysctls": {name: value}}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"treatment": "tuning"}))

    def now() -> set[str]:
        hosts = there.hosts.values()
        return {sshd.run("ip", "netns", "exec", host.namespace, "sysctl", "-n", name) for host in hosts}

    before = now()
    studied(tmp_path / "study.yaml", tmp_path / "out")
    found = {}
    for run in read(tmp_path / "out").runs:
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        readings = [*record["before"].values(), *record["after"].values()]
        found[run.level] = {" ".join(str(reading["sysctls"].get(name)).split()) for reading in readings}
    assert found == {"as-is": {"None"}, "buffers": {value}}
    assert now() == before


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
        study.write_text(text.replace("goodput: 2 %", "goodput: 2 %, receiver_instructions: 5 %, receiver_cycles: 5 %"))
        dry = framegauge("study", study, "--dry-run").communicate(timeout=PATIENCE_SECONDS)[0]
        assert "counters   (reads the performance counters of all CPUs" in dry
        process = framegauge("study", study, "--out", tmp_path / "out")
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert process.returncode in (0, 3), said
    for run in read(tmp_path / "out").runs:
        # Only root may use real-time scheduling.
        unmeasured = [line for line in run.degraded if line.startswith("not measured: ")]
        hosts = [] if rules is None else ["alpha", "beta"]
        assert [line.split(": ")[1] for line in unmeasured] == hosts, run.degraded
        for metric in ("receiver_instructions", "receiver_cycles"):
            if rules == "":
                assert "sudo" in run.readings["not_measured"][metric]
            elif metric not in run.metrics:
                assert "perf_event_open: " in run.readings["not_measured"][metric]


def test_hosts_that_are_read_only_stay_as_they_are(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, read_only=True), "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert process.returncode == 2
    assert "read_only" in said
    assert mtus(there) == {1500}


def test_a_path_that_does_not_carry_the_frames_is_said_and_left_as_it_was(there: Site, tmp_path: Path) -> None:
    subprocess.run(["ip", "link", "set", there.bridge, "mtu", "1500"], check=True)
    port = sorted(os.listdir(f"/sys/class/net/{there.bridge}/brif"))[0]
    subprocess.run(["ip", "link", "set", port, "mtu", "1500"], check=True)
    try:
        process = framegauge("study", study_of(there, tmp_path), "--out", tmp_path / "out")
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    finally:
        subprocess.run(["ip", "link", "set", port, "mtu", "9000"], check=True)
        subprocess.run(["ip", "link", "set", there.bridge, "mtu", "9000"], check=True)
    assert process.returncode == 2, said
    assert "packets of 9000 bytes from" in said
    assert mtus(there) == {1500}


@pytest.mark.needs("sudo")
@pytest.mark.parametrize(("rules", "allowed"), [("", False), (f"{sshd.GUEST} ALL=(root) NOPASSWD: ALL", True)])
def test_what_needs_privilege_goes_through_the_host_s_own_sudo(
    roomy: Path, tmp_path: Path, rules: str, allowed: bool
) -> None:
    place = roomy / ("allowed" if allowed else "refused")
    place.mkdir()
    with sshd.site(place, ["alpha", "beta"], sudoers=rules) as site:
        (place / "key").chmod(0o600)
        if allowed:
            studied(study_of(site, tmp_path), tmp_path / "out")
        else:
            process = framegauge("study", study_of(site, tmp_path), "--out", tmp_path / "out")
            said = process.communicate(timeout=PATIENCE_SECONDS)[0]
            assert process.returncode == 2, said
            assert "missing privilege (needed for mtu:eth0=9000 on alpha)" in said
            assert "sudo" in said, said
        assert mtus(site) == {1500}


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
        studied(study_of(there, tmp_path, ports="40000-40009"), tmp_path / "out")
        runs = read(tmp_path / "out").runs
        path = study_of(there, tmp_path, seconds=0.2)
        path.write_text(path.read_text() + "retries: 0\n")  # each attempt to connect waits for some seconds
        shut = framegauge("study", path, "--out", tmp_path / "shut")
        shut.communicate(timeout=PATIENCE_SECONDS)
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


def test_runs_over_ssh_are_diagnosed(there: Site, tmp_path: Path) -> None:
    """By captures of both hosts, which no controller leaves behind."""
    study = yaml.safe_load(study_of(there, tmp_path).read_text())
    study["meters"] = {**study.get("meters", {}), "diagnose": True}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    studied(tmp_path / "study.yaml", tmp_path / "out")
    for run in read(tmp_path / "out").runs:
        found = run.readings["diagnosis"]
        assert set(found["captures"]) == {"alpha", "beta"}
        assert all(tap["packets"] > 0 for tap in found["captures"].values())
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        assert found["payload_bytes"] >= record["workload"]["bytes"]
    assert not list(Path("/tmp").glob("framegauge-*/*.pcapng"))


def test_a_stranger_at_a_data_port_gets_nothing_and_is_counted(there: Site, tmp_path: Path) -> None:
    port = 40123
    study = study_of(there, tmp_path, seconds=1, ports=str(port))
    study.write_text(study.read_text().replace("[1500, 9000]", "[1500]").replace("control: false", "control: true"))
    process = framegauge("study", study, "--out", tmp_path / "out")
    answers: list[bytes] = []
    resets = 0
    while process.poll() is None:
        for host in there.hosts.values():
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host.address, port), 2) as call:
                call.sendall(b"GET / HTTP/1.1\r\nHost: " + bytes(64) + b"\r\n\r\n")
                try:
                    answers.append(call.recv(4096))
                except ConnectionResetError:  # what it said was not read, or the port was closed before it was accepted
                    answers.append(b"")
                    resets += 1
        time.sleep(0.05)
    said = process.communicate()[0]
    assert process.returncode in (0, 3), said
    assert len(answers) >= 4, "none met an open port"
    assert set(answers) == {b""}
    runs = read(tmp_path / "out").runs
    counted = sum(run.readings.get("refused_connections", 0) for run in runs)
    # Per run and host, the last one may have been cut off before its answer, or have waited when the port was closed.
    last = len(runs) * len(there.hosts)
    assert len(answers) - min(resets, last) <= counted <= len(answers) + last
    assert undisturbed(runs), said
    assert f"{counted} connections without their run's token were refused" in said


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
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
        runs = read(tmp_path / "out").runs
        # A load is met or not, whatever else this machine does.
        reasons = {line for run in runs for line in run.excluded if not line.startswith(("load: ", HELD_UP))}
        assert (process.returncode in (0, 3), reasons) == (True, set()), said
        assert all(run.metrics for run in runs)
        assert mtus(site) == {1500}


def hosts_of_example() -> list[object]:
    return list(yaml.safe_load((ROOT / "examples/inventory/hosts.yaml").read_text())["hosts"])
