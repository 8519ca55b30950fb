"""A roll-out that its owners keep: files changed after it has finished, taken back days later, and its ticket."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from helpers import sshd
from helpers.rollouts import done, entries, file_of
from helpers.switched import lab

from framegauge.rollout import ticket

pytestmark = pytest.mark.needs("ssh", "sshd", "openssl", "ethtool")
INTERFACES = "auto eth1\niface eth1 inet static\n    mtu 1500\n    address 192.0.2.1/24\n"


def etc_of(folder: Path) -> Path:
    """A host's own /etc, in which ifupdown owns eth1."""
    sshd.own_etc(folder)
    (folder / "network").mkdir()
    (folder / "network/interfaces").write_text(INTERFACES)
    return folder


def test_owners_keep_it_and_give_it_up_whatever_else_is_in_their_files(tmp_path: Path) -> None:
    names = ["a", "b"]
    etc = {name: etc_of(tmp_path / name / "etc") for name in names}
    files = {name: folder / "network/interfaces" for name, folder in etc.items()}
    (tmp_path / "site").mkdir()
    with (
        sshd.site(tmp_path / "site", names, etc=etc) as site,
        lab(names, {name: host.namespace for name, host in site.hosts.items()}) as found,
    ):
        program = tmp_path / "switches"
        program.write_text(f"#!/bin/sh\necho $1 $FRAMEGAUGE_OLD_MTU $FRAMEGAUGE_MTU >> {tmp_path}/asked\n")
        program.chmod(0o755)
        path = file_of(found, tmp_path, hosts=names, options=site.options, more=f"switches: {program}")
        assert done("apply", path, "--dry-run", "--persist")[0] == 0
        assert {file.read_text() for file in files.values()} == {INTERFACES}
        code, said = done("apply", path, "--persist")
        assert (code, said.count(": as asked")) == (0, 2), said
        assert (tmp_path / "asked").read_text() == "prepare 1500 9000\nconfirm 1500 9000\n"
        assert {file.read_text() for file in files.values()} == {INTERFACES.replace("1500", "9000")}
        events = [entry["event"] for entry in entries(path)]
        assert events[events.index("finished") + 1 :] == ["switches", *["persisting", "persisted"] * 2]

        made = tmp_path / "ticket"
        assert done("ticket", path.with_suffix(".rollout"), "--out", made)[0] == 0
        assert ticket.differences(made) == []
        page = (made / "ticket.html").read_text()
        assert "+    mtu 9000" in page
        assert "persisted: /etc/network/interfaces on a" in page

        # As if it had been killed after it had changed the last file, and before that was in the journal.
        journal = path.with_suffix(".rollout") / "journal.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
        code, said = done("status", path)
        assert "b: /etc/network/interfaces keeps the new MTU (persist was cut off while it changed this file)" in said
        assert "a: /etc/network/interfaces keeps the new MTU\n" in said

        # Somebody adds an interface before it is taken back.
        files["a"].write_text("auto lo\niface lo inet loopback\n\n" + files["a"].read_text())
        # Nobody can log in to the other host at first.
        os.kill(site.hosts["b"].process, signal.SIGTERM)
        code, said = done("persist", path, "--undo")
        assert (code, "b: cannot be reached, so /etc/network/interfaces still keeps it" in said) == (1, True), said
        assert files["a"].read_text() == "auto lo\niface lo inet loopback\n\n" + INTERFACES
        assert files["b"].read_text() == INTERFACES.replace("1500", "9000")
        host = site.hosts["b"]
        again = f"mount --bind {etc['b']} /etc; exec {sshd.SSHD} -f {host.folder}/sshd_config"
        sshd.run("ip", "netns", "exec", host.namespace, "sh", "-ec", again)
        code, said = done("persist", path, "--undo")
        assert "cannot be reached" not in said
        assert files["b"].read_text() == INTERFACES
        assert [entry["event"] for entry in entries(path)].count("persist_undone") == 2
        assert done("undo", path)[0] == 0
        assert found.is_old()
