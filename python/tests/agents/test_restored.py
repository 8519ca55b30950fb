"""What a host says of settings that were to be put back, as lines."""

from __future__ import annotations

from typing import Any

from framegauge.agents.restored import MOST, unrestored


def differing(count: int, commands: list[str]) -> dict[str, Any]:
    row = {"what": "the MTU of m0", "found": "1500", "expected": "9000", "commands": commands}
    return {"restored": False, "failed": "the MTU of m0: found 1500, expected 9000", "differs": [row] * count}


def test_each_difference_is_a_line_with_the_commands_that_mend_it() -> None:
    assert unrestored({"restored": True, "failed": None}) == []
    mended = differing(1, ["ip link set dev m0 mtu 9000", "true"])
    assert unrestored(mended) == [
        "the MTU of m0: found 1500, expected 9000; to mend it: ip link set dev m0 mtu 9000; true"
    ]
    assert unrestored(differing(1, [])) == ["the MTU of m0: found 1500, expected 9000"]


def test_what_says_only_that_it_failed_is_a_line_too() -> None:
    assert unrestored({"restored": False, "failed": "the device\n is gone"}) == ["the device is gone"]
    assert unrestored({"restored": False, "failed": None}) == ["not restored"]


def test_a_host_cannot_say_more_than_some_printable_lines() -> None:
    lines = unrestored(differing(1000, ["x\x1b[2J" * 10_000] * 1000))
    assert len(lines) == MOST + 1
    assert lines[-1] == f"and {1000 - MOST} more"
    assert all(line.isprintable() and len(line) < 1500 for line in lines)
