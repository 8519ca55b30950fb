"""`check --encap` through the kernel's own VXLAN: what is inside of it is proved for each peer, or is not."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.needs("ip")
PEERS = ("b", "c")


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def there() -> Iterator[dict[str, str]]:
    """A host with a VXLAN to each of two peers, over a link of its own; that to c is 20 bytes smaller than it seems."""
    tag = secrets.token_hex(2)
    names = {name: f"fgtest-{tag}-{name}" for name in ("a", *PEERS)}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
        for number, peer in enumerate(PEERS, 1):
            pair = {"a": f"to-{peer}", peer: "net0"}
            run(
                "ip",
                "-n",
                names["a"],
                "link",
                "add",
                pair["a"],
                "type",
                "veth",
                "peer",
                "name",
                "net0",
                "netns",
                names[peer],
            )
            for end, (name, device) in enumerate(pair.items(), 1):
                at = ("ip", "-n", names[name])
                run(*at, "addr", "add", f"10.98.{number}.{end}/24", "dev", device)
                run(*at, "link", "set", device, "mtu", "1480" if (name, peer) == ("c", "c") else "1500", "up")
                other = f"10.98.{number}.{3 - end}"
                over = f"over{number}" if name == "a" else "over"
                run(*at, "link", "add", over, "type", "vxlan", "id", str(number), "dstport", "4789", "remote", other)
                run(*at, "link", "set", over, "mtu", "1450", "up")
                run(*at, "addr", "add", f"10.99.{number}.{end}/24", "dev", over)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def checked(there: dict[str, str], over: str, peer: str) -> tuple[int, dict[str, Any]]:
    words = [f"netns:{there['a']}%{over}", f"netns:{there[peer]}%over", "--mtu", "1500", "--encap", "vxlan", "--json"]
    command = [sys.executable, "-m", "framegauge", "check", *words, "--rate", "unlimited", "--no-blame"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)["encapsulation"]


def test_each_peer_is_proved_or_not(there: dict[str, str]) -> None:
    code, inside = checked(there, "over1", "b")
    assert (code, inside["inner_mtu"], inside["layers"]) == (0, 1450, ["vxlan"])
    assert {(peer["verdict"], peer["is_tunnel"], peer["overhead_bytes"]) for peer in inside["peers"]} == {
        ("carries_target", True, 50)
    }
    code, inside = checked(there, "over2", "c")
    assert code == 1
    assert {peer["verdict"] for peer in inside["peers"]} != {"carries_target"}
