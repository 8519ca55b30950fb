"""The switches' part of a change: text in each platform's own terms, and a user's program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helpers.processes import is_gone

from framegauge.errors import InputError, ProgramFailure
from framegauge.rollout.switches import PLATFORMS, hook, text


def test_junos_counts_the_ethernet_header_and_goes_back_by_itself() -> None:
    found = text("junos", ["xe-0/0/1", "xe-0/0/2"], 9000)
    assert found.prepare == [
        "configure exclusive",
        "set interfaces xe-0/0/1 mtu 9014",
        "set interfaces xe-0/0/2 mtu 9014",
        "show | compare",
        "commit confirmed 10",
    ]
    assert list(found.confirm) == ["commit"]
    assert found.undo[1] == "set interfaces xe-0/0/1 mtu 1514"
    assert text("junos", ["xe-0/0/1"], 9000, tags=2).mtu == 9022


def test_eos_has_a_session_with_a_timer() -> None:
    found = text("eos", ["Ethernet1"], 9000, minutes=75)
    assert found.prepare == [
        "configure session framegauge",
        "interface Ethernet1",
        "   mtu 9000",
        "show session-config diffs",
        "commit timer 01:15:00",
    ]
    assert found.confirm[0] == "configure session framegauge commit"
    assert text("eos", ["Ethernet1"], 9000, tags=1).mtu == 9000


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_platform_names_every_port_both_ways_and_is_confirmed_apart(name: str) -> None:
    found = text(name, ["Ethernet1", "Ethernet2"], 9000, old_mtu=1500, minutes=7)
    prepared = "\n".join(found.prepare)
    assert "Ethernet1" in prepared
    assert "Ethernet2" in prepared
    assert str(found.mtu) in prepared
    assert "{" not in "\n".join([*found.prepare, *found.confirm, *found.undo])
    assert not set(found.prepare) & set(found.confirm)
    assert found.undo
    # Where it goes back by itself the time is in what is typed.
    assert found.platform.by_itself == any("7" in line for line in found.prepare)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cisco", ["e1"], 9000), "--platform: found cisco, expected one of junos, eos, ios, nxos, nvue, sonic"),
        (("eos", [], 9000), "--port: found none, expected the names of ports"),
        (("eos", ["e1; reload"], 9000), "--port: found 'e1; reload', expected the name of a port, such as Ethernet1/2"),
        (
            ("ios", ["Gi1/0/1"], 9200),
            "--mtu: found 9200, expected at most 9198, which Cisco IOS and IOS XE mostly takes",
        ),
    ],
)
def test_what_cannot_be_typed_is_refused(words: tuple[str, list[str], int], told: str) -> None:
    with pytest.raises(InputError) as error:
        text(*words)
    assert str(error.value) == told


def test_a_user_s_program_is_asked_and_told(tmp_path: Path) -> None:
    program = tmp_path / "switches"
    program.write_text(
        f"#!/bin/sh\necho $1 $FRAMEGAUGE_MTU $FRAMEGAUGE_OLD_MTU $FRAMEGAUGE_HOSTS >> {tmp_path}/said\n"
        "[ $1 != undo ] || { echo no such switch; exit 3; }\n"
    )
    program.chmod(0o755)
    hosts = {"db1": "eth1", "db2": "eth1"}
    hook.run(str(program), "prepare", 9000, 1500, hosts)
    hook.run(str(program), "confirm", 9000, 1500, hosts)
    with pytest.raises(ProgramFailure, match="hook undo: exit code 3: no such switch"):
        hook.run(str(program), "undo", 9000, 1500, hosts)
    said = (tmp_path / "said").read_text().splitlines()
    assert said == [f"{action} 9000 1500 db1/eth1 db2/eth1" for action in ("prepare", "confirm", "undo")]


def test_leases_are_kept_while_it_runs_and_it_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    there = tmp_path / "pid"

    def started() -> None:
        """Called while it runs: it has its time to start, however busy the machine is."""
        while not there.exists() or not there.read_text().strip():
            time.sleep(0.01)

    command = f"sh -c 'sleep 3600 & echo $! > {there}; wait'"
    with pytest.raises(ProgramFailure, match=r"found no end within 0\.2 s"):
        hook.run(command, "prepare", 9000, 1500, {}, started, 0.2)
    assert is_gone(int(there.read_text()))
    with pytest.raises(InputError, match="found /nowhere/switches"):
        hook.run("/nowhere/switches", "prepare", 9000, 1500, {})
