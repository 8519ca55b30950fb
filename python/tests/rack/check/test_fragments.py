"""A router that takes DF from packets and cuts them: they arrive, and were not carried. On real kernels."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from helpers.real import leaves_nothing
from helpers.support import PATIENCE_SECONDS

CLEARS = "table ip framegauge { chain clears { type filter hook prerouting priority raw; ip frag-off set 0; }; }"


@contextlib.contextmanager
def routed() -> Iterator[tuple[str, str]]:
    """Two namespaces with a router between that clears DF and sends at most 1500 bytes to the second; gone afterwards."""
    a, router, b = (f"fgtest-{name}-{os.getpid()}" for name in "arb")

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in (a, router, b):
            ip("netns", "add", name)
        for number, name in enumerate((a, b), 1):
            own, there = "to-r", f"to-{number}"
            ip("link", "add", own, "mtu", "9000", "netns", name, "type", "veth", "peer", "name", there, "mtu", "9000",
               "netns", router)  # fmt: skip
            ip("-n", name, "addr", "add", f"10.99.{number}.1/24", "dev", own)
            ip("-n", router, "addr", "add", f"10.99.{number}.254/24", "dev", there)
            ip("-n", name, "link", "set", own, "up")
            ip("-n", router, "link", "set", there, "up")
            ip("-n", name, "route", "add", "default", "via", f"10.99.{number}.254")
        ip("-n", router, "route", "add", "10.99.2.1", "dev", "to-2", "mtu", "lock", "1500")
        ip("netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ip("netns", "exec", router, "nft", CLEARS)
        yield a, b
    finally:
        for name in (a, router, b):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_what_arrives_in_fragments_is_not_carried_and_nobody_is_said_to_have_refused_it() -> None:
    with leaves_nothing(), routed() as (a, b):
        done = subprocess.run(
            [sys.executable, "-m", "framegauge", "check", f"netns:{a}", f"netns:{b}", "-4", "--json", "--rate", "unlimited"],
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    there, back = document["pairs"]
    assert (there["verdict"], there["path_mtu_bytes"], there["told_by"]) == ("too_small", 1500, [])
    assert there["flows"]["fragmented"] == there["flows"]["bad"] == there["flows"]["probed"]
    assert (back["verdict"], back["flows"]["fragmented"]) == ("carries_target", 0)
    (found,) = document["findings"]
    assert found["kind"] == "fragmented_on_the_way"
    assert found["pairs"] == [[there["source"], there["destination"], 4]]
    assert "1500" in found["evidence"]
