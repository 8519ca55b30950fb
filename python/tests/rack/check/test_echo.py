"""The one-ended check on real kernels: targets that run no agent, whose truth the labs know."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.checks import ask_all, lab, namespaces, run
from helpers.real import leaves_nothing, shell
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS, ROOT, by_length

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.check import echo as check_echo, plan as check_plan, run as check
from framegauge.check.judgement import schema
from framegauge.testbeds.base import Host
from framegauge.testbeds.lab import LabTestbed
from framegauge.workloads.programs import running

Json = dict[str, Any]
OPEN = "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range"
DEAF = "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all; echo 1 > /proc/sys/net/ipv6/icmp/echo_ignore_all"


@pytest.fixture(autouse=True)
def answers_fit_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_echo, "ask_all", ask_all)


def echoes(bed: LabTestbed, source: str, target: str, **more: Any) -> tuple[dict[int, Json], Json]:
    """Pairs by family, and the whole document."""
    member = next(check_plan.Member(host) for host in bed.hosts() if host.name == source)
    asked = check_plan.Asked(9000, flows=1, bits_per_second=float("inf"), **{"tcp_port": 443} | more)
    prepared = check_echo.prepare([member], [check_plan.Target(target, bed.addresses(target))], asked)
    document = check.run(prepared, asked).document
    conforms(document, schema.json_schema())
    assert {pair["method"] for pair in document["pairs"]} == {"one_ended"}
    return {pair["family"]: pair for pair in document["pairs"]}, document


def kinds(document: Mapping[str, Any]) -> set[str]:
    return {each["kind"] for each in document["findings"]}


def verdicts(pairs: Mapping[int, Json]) -> dict[int, tuple[str, int | None, str | None]]:
    return {family: (each["verdict"], each["path_mtu_bytes"], each["direction"]) for family, each in pairs.items()}


BOTH = (4, 6)
CARRIES = dict.fromkeys(BOTH, ("carries_target", 9000, None))
SILENT = dict.fromkeys(BOTH, ("black_hole", 1500, "unknown"))
TOLD = dict.fromkeys(BOTH, ("too_small", 1500, "out"))


@pytest.mark.parametrize("kind", ["ping", "raw"])
@pytest.mark.parametrize(
    ("name", "source", "target", "expected", "found"),
    [
        ("clean", "a", "b", CARRIES, set()),
        ("hop-1500", "a", "b", TOLD, {"router_too_small"}),
        ("hop-1500-icmp-blocked", "a", "b", SILENT, {"direction_unknown", "tcp_probing_off"}),
        # Only one way is bad: from either end it looks the same.
        ("reverse-only", "a", "b", SILENT, {"direction_unknown", "tcp_probing_off"}),
        ("reverse-only", "b", "a", SILENT, {"direction_unknown", "tcp_probing_off"}),
        ("ipv6-too-big-blocked", "a", "b", {4: TOLD[4], 6: SILENT[6]}, {"router_too_small", "direction_unknown"}),
        ("stale-cache", "a", "b", CARRIES, {"stale_path_mtu"}),
        # A router takes in 1504, and sends back what is above 1500 in pieces.
        ("far-side-silent", "a", "b", dict.fromkeys(BOTH, ("too_small", 1500, "back")), {"reply_fragmented"}),
        # The target's own route makes it cut its replies.
        ("route-mtu", "b", "a", dict.fromkeys(BOTH, ("too_small", 1500, "back")), {"reply_fragmented"}),
    ],
)
def test_the_truth_as_far_as_one_end_can_know_it(
    name: str, source: str, target: str, expected: Json, found: set[str], kind: str
) -> None:
    with leaves_nothing(), lab(name) as bed:
        if kind == "ping":
            shell(bed.nodes()[source].agent, OPEN)
        pairs, document = echoes(bed, source, target)
    assert verdicts(pairs) == expected, document["pairs"]
    assert kinds(document) >= found if found else kinds(document) == set(), document["findings"]
    assert document["verdict"] == ("carries_target" if expected == CARRIES else "fault")
    if name == "hop-1500":
        assert [told["address"] for told in pairs[4]["told_by"]] == ["10.78.1.254"]
    second = [each for each in document["findings"] if "a second limit" in each["evidence"]]
    assert bool(second) == (name == "far-side-silent")
    silent = [each for each in document["findings"] if each["kind"] == "direction_unknown"]
    assert all("Run an agent at the far end" in each["fix"] for each in silent)


@pytest.mark.soak(0.5)
@pytest.mark.parametrize("name", ["loss-1", "loss-10"])
def test_loss_on_a_healthy_path_is_no_fault(name: str) -> None:
    with leaves_nothing(), lab(name) as bed:
        for _ in range(by_length(1, 5)):
            pairs, document = echoes(bed, "a", "b")
            assert verdicts(pairs) == CARRIES, document["pairs"]


def test_a_limit_on_answers_ends_in_could_not_tell_or_is_waited_out() -> None:
    rule = "nft -f - <<'END'\ntable inet t {\nchain c {\ntype filter hook input priority 0;\n%s\n}\n}\nEND"
    rule %= "meta l4proto {icmp, ipv6-icmp} limit rate over 10/second burst 3 packets drop"
    with leaves_nothing(), lab("clean") as bed:
        shell(bed.nodes()["b"].agent, rule)
        pairs, document = echoes(bed, "a", "b")
    assert {pair["verdict"] for pair in pairs.values()} <= {"carries_target", "unknown"}, document["pairs"]


def test_a_target_without_echoes_is_there_if_tcp_says_so_and_unknown_if_nothing_answers() -> None:
    with leaves_nothing(), lab("clean") as bed:
        shell(bed.nodes()["b"].agent, DEAF)
        pairs, document = echoes(bed, "a", "b")
        assert {pair["verdict"] for pair in pairs.values()} == {"unknown"}
        assert document["verdict"] == "could_not_tell"
        assert "TCP port 443 refuses, so that something is there" in document["findings"][0]["evidence"]
        alone, _ = echoes(bed, "a", "b", tcp_port=None)
        assert {pair["verdict"] for pair in alone.values()} == {"unknown"}
        shell(
            bed.nodes()["b"].agent,
            "nft 'add table inet t; add chain inet t c {type filter hook input priority 0; policy drop;}'",
        )
        pairs, document = echoes(bed, "a", "b")
        assert {pair["verdict"] for pair in pairs.values()} == {"unknown"}
        assert kinds(document) == {"could_not_tell"}
        assert "TCP port 443 was not answered either" in document["findings"][0]["evidence"]


# Answers every echo request with its first bytes alone.
CUTS = """
import socket
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[place:place + 2], "big") for place in range(0, len(data), 2))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff
while True:
    packet, sender = raw.recvfrom(65536)
    asked = packet[20:]
    if asked[0] == 8:
        reply = bytearray(b"\\0\\0\\0\\0" + asked[4:64])
        reply[2:4] = checksum(bytes(reply)).to_bytes(2, "big")
        raw.sendto(reply, sender)
"""


def only_ipv4(bed: LabTestbed, source: str, target: str) -> Json:
    """Asked until the responder is up: before, nothing answers at all."""
    for _ in range(5):
        found = echoes(bed, source, target, families=(4,))[0][4]
        if found["controls"]["lost"] < 36:
            return found
    raise AssertionError(found)


@pytest.mark.parametrize(
    ("name", "verdict", "size", "direction"),
    [("clean", "unknown", None, None), ("hop-1500-icmp-blocked", "black_hole", 1500, "out")],
)
def test_replies_that_are_cut_leave_the_way_back_untested(
    name: str, verdict: str, size: int | None, direction: str | None
) -> None:
    with leaves_nothing(), lab(name) as bed:
        shell(bed.nodes()["b"].agent, DEAF)
        host: Host = next(host for host in bed.hosts() if host.name == "b")
        with running(host, "answers", [sys.executable, "-c", CUTS]):
            pair = only_ipv4(bed, "a", "b")
    assert (pair["verdict"], pair["path_mtu_bytes"], pair["direction"]) == (verdict, size, direction), pair
    assert pair["reply_cut_bytes"] == 84
    assert "the way back was not tested" in (pair["said"] or "") or verdict != "unknown"


def test_a_connection_shows_the_mss_of_the_target_and_is_a_hint() -> None:
    listens = "import socket, time; s = socket.create_server(('0.0.0.0', 8443)); time.sleep(60)"
    with leaves_nothing(), lab("reverse-only") as bed:
        shell(bed.nodes()["b"].agent, "ip route change 10.78.1.0/24 via 10.78.3.254 advmss 1460")
        host = next(host for host in bed.hosts() if host.name == "b")
        with running(host, "listens", [sys.executable, "-c", listens]):
            for _ in range(20):
                pairs, document = echoes(bed, "a", "b", tcp_port=8443, families=(4,))
                if pairs[4]["tcp"]["connected"]:
                    break
    assert pairs[4]["tcp"]["peer_announced_mss_bytes"] == 1460
    assert any("an MSS of 1460: a hint" in each["evidence"] for each in document["findings"])


def asked_of(command: Sequence[str], source: str, target: str) -> Json:
    """What an agent that is started so says to `check.echo`."""
    with Agent.open(command) as agent:
        answer: Json = agent.request("check.echo", {
            "token": "00" * 16, "target_mtu": 9000, "false_claim": 1e-6, "bits_per_second": None, "in_flight_bytes": 32768,
            "gap_seconds": 0.005, "patience_seconds": 20.0,
            "paths": [{"source": source, "destination": target, "tcp_port": 443}],
        }, timeout_seconds=PATIENCE_SECONDS)  # fmt: skip
        return answer


@pytest.mark.needs("setpriv")
def test_without_privilege_a_sysctl_is_enough_and_without_either_tcp_alone_is_asked() -> None:
    with leaves_nothing(), namespaces(9000) as (a, _):
        enter = ["ip", "netns", "exec", a]
        unprivileged = [*enter, "setpriv", "--bounding-set=-net_raw", find_agent(), "host"]
        answer = asked_of(unprivileged, "10.99.0.1", "10.99.0.2")
        assert answer["missing"] == (
            "open a ping socket: Permission denied (os error 13); expected a group of this user in the sysctl "
            "net.ipv4.ping_group_range, or the capability CAP_NET_RAW"
        )
        assert (answer["paths"][0]["flows"], answer["paths"][0]["tcp"]["refused"]) == ([], True)
        subprocess.run([*enter, "sh", "-ec", OPEN], check=True)
        answer = asked_of(unprivileged, "10.99.0.1", "10.99.0.2")
        assert (answer["missing"], answer["paths"][0]["flows"][0]["verdict"]) == (None, "carries_target")


def test_from_the_command_line_with_exit_codes(tmp_path: Path) -> None:
    with leaves_nothing():
        with namespaces(9000) as (a, _):
            good = run(f"netns:{a}", "--one-ended", "10.99.0.2", "--json", "--html", str(tmp_path / "page.html"))
            assert (good.returncode, json.loads(good.stdout)["verdict"]) == (0, "carries_target"), good.stderr
            wrong = run(f"netns:{a}", "--one-ended", "fd99::1")
            assert wrong.returncode == 2
            assert "fd99::1: found fd99::1, expected an address of a family" in wrong.stderr
        assert "one-ended" in (tmp_path / "page.html").read_text()
        bad = run("--testbed", str(ROOT / "examples/faults/hop-1500-icmp-blocked.yaml"), "--one-ended", "b", "-4")
        assert bad.returncode == 1, bad.stderr
        assert "direction is unknown" in bad.stdout
        assert "1500!°" in bad.stdout
