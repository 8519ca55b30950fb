"""What the way back of a change may do: an entry that was changed by somebody else runs and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from framegauge.rollout.owners import Edit, lawful
from framegauge.rollout.owners.model import Trouble

INTERFACES = "iface eth1 inet static\n    address 192.0.2.1/24\n    mtu 1500\n"
REAPPLY = ("nmcli", "device", "reapply", "eth1")
MODIFY = ("nmcli", "connection", "modify", "uuid", "5a1f", "802-3-ethernet.mtu")


def entry(owner: str = "ifupdown") -> dict[str, Any]:
    """A change of a file, as a journal has it."""
    edits = {
        "ifupdown": Edit("ifupdown", "/etc/network/interfaces", INTERFACES, INTERFACES.replace("1500", "9000")),
        "netplan": Edit("netplan", "/etc/netplan/01.yaml", "mtu: 1500\n", "mtu: 9000\n", (("netplan", "apply"),)),
        "NetworkManager": Edit(
            "NetworkManager", "/etc/NetworkManager/system-connections/a.nmconnection", "mtu=1500\n", "mtu=9000\n",
            ((*MODIFY, "9000"), REAPPLY), 0o600, whole=False, back=((*MODIFY, "1500"), REAPPLY),
        ),
    }  # fmt: skip
    document: dict[str, Any] = json.loads(json.dumps(edits[owner].as_document()))
    return document


@pytest.mark.parametrize("owner", ["ifupdown", "netplan", "NetworkManager"])
def test_what_a_rollout_writes_can_be_undone(owner: str) -> None:
    made = entry(owner)
    assert [list(command) for command in lawful.reload_of(made, "eth1")] == made["undo"]["reload"]


def reload(*commands: list[str]) -> Callable[[dict[str, Any]], None]:
    """Other commands."""
    return lambda made: made["undo"].update(reload=list(commands))


def value(name: str, new: object) -> Callable[[dict[str, Any]], None]:
    """Another value."""
    return lambda made: made.update({name: new})


def line(new: str) -> Callable[[dict[str, Any]], None]:
    """One more line that comes back."""
    return lambda made: made["undo"].update(diff=made["undo"]["diff"] + f"+{new}\n")


@pytest.mark.parametrize(
    ("owner", "change", "refused"),
    [
        ("ifupdown", reload(["sh", "-c", "id"]), "the commands sh -c id, expected none"),
        ("netplan", reload(["sh", "-c", "id"]), "the commands sh -c id, expected netplan apply"),
        ("netplan", reload(["netplan", "apply"], ["id"]), "expected netplan apply"),
        ("NetworkManager", reload([*MODIFY, "1500"], ["sh"]), "expected those that set the MTU of a profile"),
        ("NetworkManager", reload([*MODIFY, "1500", "ipv4.routes"], [*REAPPLY]), "expected those that set"),
        ("NetworkManager", reload([*MODIFY, "1500", "vpn.data", "x"], [*REAPPLY]), "expected those that set"),
        ("NetworkManager", reload([*MODIFY[:4], "--x", MODIFY[5], "1500"], [*REAPPLY]), "expected those that set"),
        ("NetworkManager", reload([*MODIFY, "1500"], [*REAPPLY[:3], "eth0"]), "expected those that set"),
        ("NetworkManager", value("whole", True), "another file than a profile"),
        ("ifupdown", value("whole", False), "a file of ifupdown, expected one that a roll-out changes"),
        ("ifupdown", value("path", "/etc/cron.d/x"), "a file of ifupdown, expected one that a roll-out changes"),
        ("ifupdown", value("path", "/etc/network/interfaces.d/../../cron.d"), "a file of ifupdown"),
        ("ifupdown", value("owner", "cron"), "a file of cron, expected one that a roll-out changes"),
        ("ifupdown", value("mode", "4755"), "the mode 4755, expected 0600 or 0644"),
        ("ifupdown", line("    up id"), "expected lines that were there, but for numbers"),
        ("ifupdown", line("    mtu $(id)"), "expected lines that were there, but for numbers"),
    ],
)
def test_what_no_rollout_writes_is_refused(owner: str, change: Callable[[dict[str, Any]], None], refused: str) -> None:
    made = entry(owner)
    change(made)
    with pytest.raises(Trouble) as error:
        lawful.reload_of(made, "eth1")
    assert refused in str(error.value)
