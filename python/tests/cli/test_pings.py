"""`framegauge wire --ping`: the sizes that each system's ping takes for one MTU."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from framegauge.cli import main as cli, pings


def commands(mtu: int) -> dict[str, str]:
    return {each["system"]: each["command"] for each in pings.document(mtu, "192.0.2.7")["commands"]}


def test_each_system_counts_in_its_own_way() -> None:
    found = commands(9000)
    assert found["Linux"] == "ping -4 -M do -s 8972 192.0.2.7"
    assert found["Windows"] == "ping -4 -f -l 8972 192.0.2.7"
    assert found["Junos"] == "ping 192.0.2.7 size 8972 do-not-fragment"
    assert found["NX-OS"] == "ping 192.0.2.7 packet-size 8972 df-bit"
    assert found["IOS, IOS XE"] == "ping 192.0.2.7 size 9000 df-bit"
    assert found["EOS"] == "ping 192.0.2.7 size 9000 df-bit"


@given(st.integers(pings.LEAST, pings.LARGEST))
def test_the_packet_has_the_mtu(mtu: int) -> None:
    """20 bytes of IPv4, 8 of ICMP, and the payload."""
    for system in pings.SYSTEMS:
        packet = system.size(mtu) if system.counts_packet else system.size(mtu) + 20 + 8
        assert packet == mtu


@pytest.mark.agent
def test_inside_of_a_tunnel_it_is_what_that_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["wire", "--mtu", "1500", "--encap", "wireguard", "--ping", "10.0.0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mtu"] == 1440
    assert found["commands"][0]["command"] == "ping -4 -M do -s 1412 10.0.0.2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mtu", "9000", "--ping", "-f"], "found nothing behind it"),
        (["--mtu", "9000", "--ping", "a b; rm"], "expected an IPv4 address or the name of a host"),
        (["--mtu", "9000", "--ping", "a", "--rate", "1 Gb/s"], "expected --mtu, --encap and --json alone"),
        (["--mtu", "20", "--ping", "a"], "expected one of IPv4 from 68 to 65535"),
        (["--datagram", "9000", "--ping", "a"], "expected only --mtu and --json"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = cli.main(["wire", *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr().err
    assert (code, message in said or "-f" in words) == (2, True), said
