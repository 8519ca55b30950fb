"""An undo while a host cannot be reached: nothing is lost whether or not it still sends, and a later one finishes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from helpers import sshd
from helpers.rollouts import done, entries, file_of
from helpers.sshd import Site, run
from helpers.support import by_length
from helpers.switched import lab

pytestmark = pytest.mark.needs("ssh", "sshd", "ethtool", "ping")
NAMES = ["a", "b", "c"]
IN_PART = 3
LINE = "run there: ip link set dev eth1 mtu 1500"


def stop(site: Site, name: str) -> None:
    """Nobody can log in any more."""
    os.kill(site.hosts[name].process, signal.SIGTERM)


def start(site: Site, name: str) -> None:
    host = site.hosts[name]
    run("ip", "netns", "exec", host.namespace, sshd.SSHD, "-f", str(host.folder / "sshd_config"))


@pytest.mark.soak(1)
@pytest.mark.parametrize("end", by_length(["there again"], ["there again", "gone for good"]))
def test_what_can_be_reached_is_undone_unless_the_other_may_still_send(tmp_path: Path, end: str) -> None:
    """Hosts are reached by another interface than the one whose MTU is raised."""
    folder = tmp_path / "site"
    folder.mkdir()
    with sshd.site(folder, NAMES) as site, lab(NAMES, {n: h.namespace for n, h in site.hosts.items()}) as found:
        path = file_of(found, tmp_path, hosts=NAMES, options=site.options, more="families: 4")
        code, said = done("apply", path)
        assert code == 0, said
        for name in ("b", "c"):
            stop(site, name)
        code, said = done("undo", path)
        assert (code, f"c: to be {LINE}" in said) == (1, True), said
        assert "found 1 of its hosts that can be reached, expected two or more" in said
        assert {found.packet(name) for name in NAMES} == {9000}
        # c still sends 9000 bytes, so the others go on taking them in.
        start(site, "b")
        code, said = done("undo", path)
        assert (code, f"c: {LINE}" in said) == (IN_PART, True), said
        assert "c: it may still send large packets (a hears from it at " in said
        assert [found.mtu(name) for name in NAMES] == [9000, 9000, 9000]
        assert [found.packet(name) for name in NAMES] == [1500, 1500, 9000]
        # It is off the network altogether, and not since a moment ago.
        found.cut("c")
        for name in "ab":
            found.ip(name, "neigh", "flush", "dev", "eth1")
        code, said = done("undo", path)
        assert (code, f"c: {LINE}" in said, "may still send" in said) == (IN_PART, True, False), said
        assert [found.packet(name) for name in NAMES] == [1500, 1500, 9000]
        assert [found.mtu(name) for name in NAMES] == [1500, 1500, 9000]
        assert [each["event"] for each in entries(path)][-1] == "undone_in_part"
        found.mend("c")
        if end == "gone for good":  # or its line was typed at its console
            found.set_mtu("c", 1500)
            code, said = done("undo", path, "--without", "x")
            assert (code, "--without x: expected a host that is to be taken back: c" in said) == (2, True), said
            assert "nothing is to be undone" in done("undo", path, "--without", "c")[1]
            assert "nothing is to be undone" in done("undo", path)[1]
            return
        start(site, "c")
        code, said = done("status", path, "--json")
        states = {name: row["state"] for name, row in json.loads(said)["hosts"].items()}
        assert (code, states) == (1, {"a": "old", "b": "old", "c": "new"}), said
        code, said = done("undo", path)
        assert (code, found.is_old()) == (0, True), said
        assert [each for each in entries(path) if each["event"] == "begun"][-1]["hosts"].keys() == {"c"}
        code, said = done("status", path)
        assert (code, said.count(": as it was")) == (0, 3), said
