"""What `rack set` asks for: quantities in base units, and every mistake in one line."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.errors import InputError
from framegauge.networks import settings as rack_settings


@pytest.mark.parametrize(
    ("where", "options", "up", "asked"),
    [
        ("switch>h1", {"rate": "100Mb/s"}, None, {"from": "switch", "to": "h1", "bits_per_second": 100_000_000}),
        ("switch:h1", {"delay": "1ms", "mtu": "9000"}, None, {"from": "switch", "to": "h1", "delay_seconds": 1e-3, "mtu": 9000}),
        ("leaf*>*", {"buffer": "64KiB", "queue": "red"}, True,
         {"from": "leaf*", "to": "*", "buffer_bytes": 65536, "queue": {"kind": "red"}, "up": True}),
        ("switch>h1", {}, False, {"from": "switch", "to": "h1", "up": False}),
        ("h1", {"mtu": "9000"}, None, {"host": "h1", "mtu": 9000}),
    ],
)  # fmt: skip
def test_what_is_asked(where: str, options: dict[str, str], up: bool | None, asked: dict[str, Any]) -> None:
    assert rack_settings.params(where, {"rate": None, **options}, up) == asked


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("switch>h1", {}, "found nothing to set, expected --rate"),
        ("h1", {}, "found nothing to set, expected --mtu after h1"),
        (
            "h1",
            {"rate": "1 Gb/s"},
            'found more than --mtu, expected only --mtu for host or router h1; .* "switch>h1"',
        ),
        ("switch>", {"mtu": "9000"}, 'found "switch>", expected a port such as "switch>h1"'),
        ("a>b>c", {"mtu": "9000"}, 'found "a>b>c", expected a port'),
        ("switch>h1", {"rate": "100"}, '--rate: found "100", expected a rate such as 1 Gb/s'),
        ("switch>h1", {"delay": "1"}, '--delay: found "1", expected a time'),
        ("switch>h1", {"mtu": "jumbo"}, '--mtu: found "jumbo", expected bytes'),
        ("switch>h1", {"buffer": "-1"}, '--buffer: found "-1", expected bytes'),
    ],
)
def test_what_is_wrong_is_one_line(where: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        rack_settings.params(where, options)
    assert str(error.value).startswith("rack set: ")
    assert "\n" not in str(error.value)


def test_what_is_set_is_told_as_it_is_typed() -> None:
    options = {"rate": "100Mb/s", "delay": "1 ms", "mtu": "9000", "buffer": "64 KiB", "queue": "red"}
    asked = rack_settings.params("switch>h1", options, False)
    told = ["rate 100 Mb/s", "delay 1 ms", "MTU 9000", "buffer 64 KiB", "queue red", "down"]
    assert rack_settings.described(asked) == told


PORTS = [f"{name}>switch" for name in ("h1", "h2", "h10")] + ["switch>h1", "switch>h1#2", "switch>h2", "switch>h10"]


@pytest.mark.parametrize(("sender", "receiver"), [("switch", "h1"), ("*", "*"), ("h*", "switch"), ("sw*ch", "h*0")])
def test_a_port_that_is_meant_is_known(sender: str, receiver: str) -> None:
    assert rack_settings.unknown_port({"from": sender, "to": receiver}, PORTS) is None


@pytest.mark.parametrize(
    ("sender", "receiver", "known"),
    [
        ("h1", "switch", True),
        ("h1.2", "switch", True),
        ("switch", "r1", True),
        ("r1.2", "*", False),
        ("h", "switch", False),
    ],
)
def test_the_name_of_a_node_stands_for_all_of_its_ends(sender: str, receiver: str, known: bool) -> None:
    ports = ["h1.1>switch", "h1.2>switch", "switch>r1.1", "r1.1>switch"]
    assert (rack_settings.unknown_port({"from": sender, "to": receiver}, ports) is None) == known


@pytest.mark.parametrize(
    ("sender", "receiver", "nearest"),
    [("swich", "h1", "switch>h1, "), ("switch", "h*3", "switch>h1"), ("s.*", "h1", ""), ("h1", "h2", "h1>switch")],
)
def test_of_a_port_that_is_not_there_the_nearest_are_named(sender: str, receiver: str, nearest: str) -> None:
    message = rack_settings.unknown_port({"from": sender, "to": receiver}, PORTS)
    assert message is not None
    assert message.startswith(f'rack set: found no port "{sender}>{receiver}", expected one such as ')
    assert nearest in message


def test_of_many_hosts_some_are_named() -> None:
    hosts = [f"h{number}" for number in range(1, 101)]
    message = rack_settings.unknown_host("x", hosts)
    assert message == 'rack set: found no host "x", expected one such as h1, h2, h3, h4, h5, h6 (100 hosts in all)'
