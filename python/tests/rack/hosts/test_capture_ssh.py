"""Captures and estimates over real ssh: as root, as a guest through sudo, and where neither may; without the
connection itself."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import sshd
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

pytestmark = pytest.mark.needs("ssh", "sshd")


def inventory(site: Site, place: Path) -> Path:
    path = place / "hosts.yaml"
    hosts = [{"name": name} for name in site.hosts]
    path.write_text(json.dumps({"hosts": hosts, "options": list(site.options)}))
    return path


def captured(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "framegauge", "capture", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def ports(path: Path) -> set[int]:
    """The ports of all TCP of IPv4 in a pcapng of ours."""
    data, place, found = path.read_bytes(), 0, set()
    while place < len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6 and data[place + 40 : place + 42] == b"\x08\x00" and data[place + 51] == 6:
            found |= set(struct.unpack_from("!HH", data, place + 62))
        place += length
    return found


def test_the_connection_that_controls_a_host_is_left_out(there: Site, tmp_path: Path) -> None:
    words = ("--hosts", inventory(there, tmp_path), "--for", "3s", "--out")
    without = captured(*words, tmp_path / "without")
    assert without.returncode == 0, without.stderr
    for name in there.hosts:
        assert 22 not in ports(tmp_path / "without" / f"{name}.pcapng")
        about = json.loads((tmp_path / "without" / f"{name}.json").read_text())
        # What ssh carried meanwhile is in the kernel's counters all the same.
        assert about["counters_after"]["TcpInSegs"] > about["counters_before"]["TcpInSegs"]
    whole = captured(*words, tmp_path / "with", "--with-ssh")
    assert whole.returncode == 0, whole.stderr
    assert all(22 in ports(tmp_path / "with" / f"{name}.pcapng") for name in there.hosts)
    assert re.search(r"cost: 0\.\d+ s of a CPU to capture", whole.stdout)


def test_an_estimate_leaves_it_out_too(there: Site, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "framegauge",
        "estimate",
        "--hosts",
        inventory(there, tmp_path),
        "--for",
        "1s",
        "--json",
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert [host["host"] for host in document["hosts"]] == list(there.hosts)
    for host in document["hosts"]:
        # The interface has carried it, and it is neither a connection nor in the sample.
        assert sum(each["received"]["packets_per_second"] for each in host["interfaces"]) > 0
        assert host["limits"]["connections"] == 0
        assert all(each["full_share"] in (None, {"kind": "measurement", "value": 0}) for each in host["interfaces"])


@pytest.mark.needs("sudo")
@pytest.mark.parametrize("rules", ["", f"{sshd.GUEST} ALL=(root) NOPASSWD: ALL"])
def test_a_guest_captures_through_sudo_or_is_told_what_is_missing(roomy: Path, tmp_path: Path, rules: str) -> None:
    place = roomy / ("captures" if rules else "captures-not")
    place.mkdir()
    with sshd.site(place, ["alpha"], sudoers=rules) as site:
        (place / "key").chmod(0o600)
        found = captured("--hosts", inventory(site, tmp_path), "--for", "2s", "--with-ssh", "--out", tmp_path / "out")
    if rules:
        assert found.returncode == 0, found.stderr
        assert 22 in ports(tmp_path / "out/alpha.pcapng")
    else:
        assert found.returncode == 2
        missing = r"alpha: missing CAP_NET_RAW \(needed for capturing packets\): found alpha: user \d+ without it, and sudo: .*"
        assert re.search(missing, found.stderr), found.stderr
        assert not (tmp_path / "out").exists()


def test_a_host_that_nobody_knows_is_named_and_the_others_begin(there: Site, tmp_path: Path) -> None:
    path = inventory(there, tmp_path)
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "hosts": [*known["hosts"], {"name": "no-such-host.invalid"}]}))
    found = captured("--hosts", path, "--for", "1s", "--out", tmp_path / "out")
    assert found.returncode == 1
    assert "no-such-host.invalid: " in found.stderr
    assert "; the others go on" in found.stderr
    assert {path.stem for path in (tmp_path / "out").glob("*.pcapng")} == {each["name"] for each in known["hosts"]}


@pytest.mark.parametrize("verb", ["estimate", "rollout plan"])
def test_a_host_that_nobody_knows_is_told_once_at_a_time(verb: str, there: Site, tmp_path: Path) -> None:
    path = inventory(there, tmp_path)
    known = json.loads(path.read_text())
    hosts = {**known, "hosts": [*known["hosts"], {"name": "no-such-host.invalid"}]}
    plans = verb.startswith("rollout")
    path.write_text(json.dumps({**hosts, "mtu": 9000, "interface": "eth0"} if plans else hosts))
    words = [*verb.split(), *([] if plans else ["--for", "1s", "--hosts"]), str(path)]
    found = subprocess.run(
        [sys.executable, "-m", "framegauge", *words],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert "".join(found.stdout.split()).count("Couldnotresolvehostname") == (1 if plans else 2), found.stdout
    # At once, and in what the others came to, which is not of all.
    assert plans or "those that were read, together:" in found.stdout
