"""Links that are down for a while whenever the MTU of their interface changes, as many drivers have it: emulated at the
switch's port, which is what a host sees of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.rollouts import done, entries, file_of
from helpers.switched import Lab, lab

pytestmark = pytest.mark.needs("ethtool")
AWAY_SECONDS, LOOK_SECONDS = 2.0, 0.02


@contextlib.contextmanager
def link_loss(there: Lab) -> Iterator[list[set[str]]]:
    """Takes each host's link down when its MTU changes; which were down together."""
    until = dict.fromkeys(there.hosts, 0.0)
    together: list[set[str]] = []
    ended = threading.Event()

    def watch() -> None:
        mtus = {name: there.mtu(name) for name in there.hosts}
        while not ended.wait(LOOK_SECONDS):
            for name in there.hosts:
                if (mtu := there.mtu(name)) != mtus[name]:
                    mtus[name], until[name] = mtu, time.monotonic() + AWAY_SECONDS
                    there.cut(name)
                    together.append({each for each, end in until.items() if end})
                elif until[name] and time.monotonic() > until[name]:
                    until[name] = 0.0
                    there.mend(name)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield together
    finally:
        ended.set()
        thread.join()


def test_interfaces_change_wave_by_wave_and_wait_for_their_links(tmp_path: Path) -> None:
    with lab(["a", "b"]) as there, link_loss(there) as together:
        path = file_of(there, tmp_path, lease=60, more="families: 4\nlink_loss: 3 s")
        code, said = done("apply", path)
        assert code == 0, said
        assert (there.mtu("a"), there.mtu("b")) == (9000, 9000)
        assert together == [{"a"}, {"b"}]
        whens = [entry["when"] for entry in entries(path) if entry["event"] == "proof"]
        assert whens.index("link 1") < whens.index("link 2") < whens.index("link")
        assert "links may be down for 3 s" in said
