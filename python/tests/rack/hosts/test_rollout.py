"""Roll-outs on hosts of a lab, under load and while things break: finished and proved, or back within the lease."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from helpers import dhcp, sshd
from helpers.rollouts import agents_in, done, entries, file_of, has, reached, rollout, until
from helpers.support import PATIENCE_SECONDS, by_length
from helpers.switched import Lab, lab, load

from framegauge.rollout.schema import plan_schema, status_schema

pytestmark = pytest.mark.needs("openssl", "ethtool")
NAMES = ["a", "b", "c", "d"]
LEASE = 8.0
SLACK_SECONDS = 10.0  # of a machine that is busy


@pytest.fixture
def there() -> Iterator[Lab]:
    with lab(NAMES) as found:
        yield found


@pytest.mark.needs("ssh", "sshd")
def test_hosts_are_raised_and_lowered_under_load_without_one_failed_request(tmp_path: Path) -> None:
    """Over ssh, by their management network: data goes by another interface."""
    folder = tmp_path / "site"
    folder.mkdir()
    with sshd.site(folder, NAMES) as site, lab(NAMES, {n: h.namespace for n, h in site.hosts.items()}) as found:
        path = file_of(found, tmp_path, hosts=NAMES, options=site.options, more="waves: [a, [b], [c, d]]")
        with load(found, tmp_path, "a", ["b", "c", "d"]) as failed:
            code, said = done("apply", path, "--gate", "true")
            assert code == 0, said
            assert {found.packet(name) for name in NAMES} == {9000}
            last = [entry["mss_bytes"] for entry in entries(path) if entry["event"] == "syns"][-1]
            assert {mss for each in last.values() for mss in each.values()} == {8960, 8940}
            code, shown = done("status", path, "--prove")
            assert (code, shown.count(": as asked")) == (0, 4), shown
            assert "connections keep an old MSS until they are opened anew" in shown
            # Days later, from another machine that has the file and the journal.
            other = tmp_path / "elsewhere"
            other.mkdir()
            shutil.copy(path, other)
            shutil.copytree(path.with_suffix(".rollout"), other / path.with_suffix(".rollout").name)
            code, said = done("undo", other / path.name)
            assert code == 0, said
            assert found.is_old()
        assert failed == {"b": [], "c": [], "d": []}
        assert not [line for line in said.splitlines() if "but " in line]
        assert "IdentityFile" not in (path.with_suffix(".rollout") / "journal.jsonl").read_text()


def test_the_same_load_notices_hosts_that_are_lowered_at_once(tmp_path: Path) -> None:
    with lab(["a", "b"], mtu=9000) as found:
        with load(found, tmp_path, "a", ["b"]) as failed:
            time.sleep(0.5)
            found.set_mtu("b", 1500)
            time.sleep(6)
        assert any(line.startswith("old connection") for line in failed["b"])


def test_the_same_load_notices_a_port_that_stays_at_1500(there: Lab, tmp_path: Path) -> None:
    there.set_port("b", 1500)
    with load(there, tmp_path, "a", ["b"]) as failed:
        for name in NAMES:
            there.set_mtu(name, 9000)
        time.sleep(6)
    assert any(line.startswith("new connection") for line in failed["b"])


def test_a_port_that_silently_stays_at_1500_ends_it_before_anything_is_lost(there: Lab, tmp_path: Path) -> None:
    there.set_port("c", 1500)
    path = file_of(there, tmp_path)
    with load(there, tmp_path, "a", ["b", "c"]) as failed:
        code, said = done("apply", path)
    assert (code, there.is_old()) == (1, True), said
    assert "black hole above 1500 bytes" in said
    assert "everything is put back" in said
    assert failed == {"b": [], "c": []}
    assert not has(path, "stage", stage="release")()
    code, said = done("status", path)
    assert code == 0, said


def test_lowering_by_a_file_ends_with_routes_that_are_not_held(tmp_path: Path) -> None:
    with lab(["a", "b"], mtu=9000) as found:
        path = file_of(found, tmp_path, mtu=1500)
        code, said = done("plan", path, "--json")
        assert code == 0, said
        jsonschema.validate(json.loads(said), plan_schema())
        assert found.is_old(9000)
        code, said = done("apply", path)
        assert (code, found.is_old()) == (0, True), said
        code, said = done("undo", path)
        assert (code, found.is_old(9000)) == (0, True), said
        code, said = done("status", path, "--json")
        assert code == 0, said
        jsonschema.validate(json.loads(said), status_schema())


def nothing_is_lost(there: Lab, path: Path) -> bool:
    """Whether every host is as it was; once stages are being kept, whether none sends more than each takes in."""
    if not has(path, "keeping")():
        return there.is_old()
    return max(there.packet(name) for name in NAMES) <= min(there.mtu(name) for name in NAMES)


def test_what_an_interface_stands_on_rises_first_and_is_put_back(tmp_path: Path) -> None:
    with lab(["a", "b"]) as found:
        for name in found.hosts:
            found.ip(name, "addr", "flush", "dev", "eth1", "scope", "global")
            found.ip(name, "link", "add", "link", "eth1", "name", "m0", "type", "macvlan", "mode", "bridge")
            found.ip(name, "addr", "add", f"{found.address(name)}/24", "dev", "m0")
            found.ip(name, "link", "set", "m0", "up")
        path = file_of(found, tmp_path)
        path.write_text(path.read_text().replace("interface: eth1", "interface: m0"))
        code, said = done("apply", path)
        assert code == 0, said
        [begun] = [entry for entry in entries(path) if entry["event"] == "begun"]
        for host in begun["hosts"].values():
            assert [list(group) for group in host["stages"]["link"]][:2] == [["mtu:eth1"], ["mtu:m0"]]
        assert {found.mtu(name, device) for name in "ab" for device in ("eth1", "m0")} == {9000}
        code, said = done("undo", path)
        assert code == 0, said
        assert {found.mtu(name, device) for name in "ab" for device in ("eth1", "m0")} == {1500}


MOMENTS = [
    {"event": "stage", "stage": "release", "wave": 1}, {"event": "keeping", "stage": "link"},
    {"event": "stage", "stage": "hold"}, {"event": "stage", "stage": "link"}, {"event": "proof", "when": "link"},
    {"event": "stage", "stage": "release", "wave": 0}, {"event": "keeping", "stage": "hold"},
]  # fmt: skip


@pytest.mark.soak(1)
@pytest.mark.parametrize("moment", by_length(MOMENTS[:2], MOMENTS), ids=lambda one: "-".join(map(str, one.values())))
def test_whenever_the_controller_is_killed_everything_is_back(
    there: Lab, tmp_path: Path, moment: dict[str, object]
) -> None:
    path = file_of(there, tmp_path, lease=LEASE)
    process = rollout("apply", path)
    try:
        reached(process, path, **moment)
        process.kill()
        killed = time.monotonic()
        assert until(lambda: nothing_is_lost(there, path), LEASE + SLACK_SECONDS)
        assert time.monotonic() - killed < LEASE + SLACK_SECONDS
    finally:
        process.kill()
        process.communicate()
    if not has(path, "kept")():
        code, said = done("undo", path)
        assert code == 0, said
        assert there.is_old()


@pytest.mark.soak(1)
@pytest.mark.parametrize("what", by_length(["routes"], ["rewritten", "routes", "agent", "cut"]))
def test_whatever_breaks_while_a_wave_is_watched_everything_is_back(there: Lab, tmp_path: Path, what: str) -> None:
    path = file_of(there, tmp_path, lease=LEASE, wait=60)
    process = rollout("apply", path)
    try:
        reached(process, path, "proof", when="release 1")
        if what == "agent":
            [agent] = agents_in(there, "b")
            os.kill(agent, signal.SIGKILL)
        elif what == "cut":
            there.cut("b")
        elif what == "rewritten":
            there.set_mtu("b", 1500)  # as a DHCP client does when it renews
        else:
            there.ip("b", "route", "flush", "dev", "eth1", "proto", "kernel")
            there.ip("b", "route", "add", "10.77.0.0/24", "dev", "eth1", "mtu", "4000")
        assert until(lambda: all(there.mtu(name) == 1500 for name in NAMES), LEASE + SLACK_SECONDS)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1, said
    assert "putting everything back" in said
    assert [entry["event"] for entry in entries(path)][-1] == "put_back"
    if what != "routes":
        assert there.is_old()


@pytest.mark.needs("dnsmasq", "busybox")
def test_a_renewal_of_dhcp_in_the_middle_puts_everything_back(there: Lab, tmp_path: Path) -> None:
    """A real one: the server says 1500, and the client sets it. It is no host of the roll-out, and takes all frames.
    What puts everything back is the watch: the lease is longer than a busy machine takes to come that far."""
    lease = 30.0
    path = file_of(there, tmp_path, lease=lease, wait=60, more="force: [neighbour]")
    with dhcp.server(there, tmp_path / "dhcp") as server, dhcp.udhcpc(server, "b") as client:
        process = rollout("apply", path)
        try:
            reached(process, path, "proof", when="release 1")
            assert there.mtu("b") == 9000
            assert client.renewed()
            assert until(there.is_old, lease + SLACK_SECONDS)
            said = process.communicate(timeout=PATIENCE_SECONDS)[0]
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 1, said
    assert "eth1: found an MTU of 1500 bytes, expected 9000" in said
    assert [entry["event"] for entry in entries(path)][-1] == "put_back"


@pytest.mark.parametrize("kilobytes", [4, 8])
def test_a_full_disk_of_the_controller_puts_everything_back(tmp_path: Path, kilobytes: int) -> None:
    """The journal is on a file system of so much: not even the plan has room there, or not the end of it."""
    folder = tmp_path / "journal"
    folder.mkdir()
    with lab(NAMES[:2]) as found:
        mounted = f'mount -t tmpfs -o size={kilobytes}k none {folder} && exec "$@"'
        words = [sys.executable, "-m", "framegauge", "rollout", "apply", str(file_of(found, tmp_path))]
        command = ["unshare", "--mount", "sh", "-c", mounted, "sh", *words, "--journal", str(folder)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert (ended.returncode, found.is_old()) == (1, True), ended.stderr
    assert "journal.jsonl: cannot be written (No space left on device)" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_puts_everything_back(tmp_path: Path, number: signal.Signals) -> None:
    with lab(NAMES[:2]) as found:
        path = file_of(found, tmp_path, wait=60)
        process = rollout("apply", path)
        try:
            reached(process, path, "proof", when="release 1")
            process.send_signal(number)
            said = process.communicate(timeout=PATIENCE_SECONDS)[0]
        finally:
            process.kill()
            process.communicate()
        assert found.is_old(), said
        assert [entry["event"] for entry in entries(path)][-1] == "put_back"
        assert "Traceback" not in said
        assert not any(agents_in(found, name) for name in NAMES[:2])


def test_ctrl_c_puts_everything_back(there: Lab, tmp_path: Path) -> None:
    path = file_of(there, tmp_path, wait=60)
    process = rollout("apply", path)
    try:
        reached(process, path, "proof", when="release 1")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, there.is_old()) == (130, True), said


def test_a_gate_that_cannot_say_keeps_the_next_wave_from_following(there: Lab, tmp_path: Path) -> None:
    code, said = done("apply", file_of(there, tmp_path), "--gate", "exit 2")
    assert (code, there.is_old()) == (1, True), said
    assert "the gate ended with exit code 2 (cannot say), expected 0: go on" in said


def test_only_the_subnet_gets_the_new_mtu_and_connections_are_opened_anew(there: Lab, tmp_path: Path) -> None:
    there.ip("a", "route", "add", "default", "via", there.address("b"))
    there.ip(
        "a", "route", "add", "192.0.2.0/24", "nexthop", "via", there.address("b"), "nexthop", "via", there.address("c")
    )
    path = file_of(there, tmp_path, more="reopen: true")
    with load(there, tmp_path, "a", ["b"]) as failed:
        code, said = done("apply", path)
        assert code == 0, said
        code, shown = done("status", path, "--prove")
        assert (code, "keep an old MSS" in shown) == (0, False), shown
    assert failed["b"]
    assert not [line for line in failed["b"] if line.startswith("new connection")]
    routes = {line.split()[0]: line for line in there.ip("a", "-4", "route", "show").replace("\n\t", " ").splitlines()}
    assert "mtu 1500" in routes["default"]
    assert "mtu 1500" in routes["192.0.2.0/24"]
    assert "mtu" not in routes["10.77.0.0/24"]
    assert there.mtu("a") == 9000
    code, said = done("undo", path)
    assert code == 0, said
    assert there.is_old()
