"""Captures that others made, reduced: what each must be called, and what it must not.

Addresses are rewritten and payloads zeroed. Those with K come from kernel sockets, with P from public captures, with S
from packets that were written one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers.captures import ACK, ETHERNET, packets_in, pcap, pcapng, segment
from helpers.support import ROOT

from framegauge.cli.main import main
from framegauge.diagnose import run as diagnosis

pytestmark = pytest.mark.agent
FIELD = ROOT / "python/tests/recorded/field"
# What every connection has, and what only limits the view.
ASIDE = {"application_limited", "network_limited", "truncated", "aggregates", "checksum_offload"}
CHECK = "`framegauge check` finds the link"


JOINED = ("29_joined_a_sender", "29_joined_b_receiver")


@dataclass(frozen=True)
class Case:
    """Its right findings with their counts, and words that their texts have."""

    reason: str
    right: dict[str, int] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    remedy: str = ""


CASES = {
    "01_jumbo_lost_small_passed_sender": Case(
        "K: 517 bytes passed, 8948 never did, and the other end had lived", {"pmtu_black_hole": 1},
        ("No segment of 8948 bytes was ever acknowledged; the largest that was has 517 bytes",), CHECK,
    ),
    "02_blackhole_tls_server_tap": Case(
        "K: SACK says that the smaller, later one arrived", {"pmtu_black_hole": 1},
        ("No segment of 1448 bytes was ever acknowledged; the largest that was has 700 bytes",), CHECK,
    ),
    "02b_blackhole_tls_server_tap_with_fin": Case(
        "K: the same, and the client's FIN shows that it lived", {"pmtu_black_hole": 1}, (), CHECK
    ),
    "04_jumbo_all_lost_after_handshake": Case(
        "K: nothing but 8948 bytes was sent: peer dead or MTU", {"rto_stall": 1},
        ("No segment of 8948 bytes was ever acknowledged", "or the other end died"), CHECK,
    ),
    "05_idle_server_closes_after_5s": Case("S: a FIN after a rest is no late answer"),
    "05b_idle_close_kernel": Case("K: the same"),
    "06_hole_acked_then_fin": Case("S: what is missing was acknowledged, and nothing sent again", {"capture_loss": 1}),
    "08_fin_overtook_data": Case("S: the FIN was recorded before its data", {"reordering": 1}),
    "08b_first_of_burst_overtaken": Case("S: two segments swapped after a rest of 10 s", {"reordering": 1}),
    "09_ipid_step_then_fin": Case("P: Windows counts all connections together"),
    "09c_windows_smb_echo_after_10s": Case("P: Windows", {"reset": 1}),
    "10_ipid_one_missing_long_idle": Case("S: one lost copy costs one timeout, and no 100 s"),
    "11_display_filtered_no_acks": Case("S: a display filter took the pure acknowledgements"),
    "12_duplicates_5ms_same_ipid": Case("S: no stack repeats an identification", {"capture_duplicates": 20}),
    "13_contiguous_yet_capture_loss": Case("P: every byte that is acknowledged is in the file"),
    "15_spurious_counted_twice": Case("K: one probe, one D-SACK", {"zero_window": 1, "spurious_retransmit": 1}),
    "17_challenge_ack": Case("S: the peer has an older connection", {"challenge_ack": 1}, ("took 1.02 s longer",)),
    "18_paws": Case("S: segments arrive, and are discarded", {"paws": 1}, ("arrived, and were discarded",)),
    "20_simultaneous_open": Case("S: RFC 9293 figure 7, nothing is lost"),
    "21_keepalive_unanswered": Case("S: dead for 675 s; its own end gave up", {"dead_peer": 9}, ("in 675.00 s",)),
    "22_vxlan_bad_checksum_syn": Case("S: the tunnel's checksums are wrong", {"syn_loss": 6}, ("wrong checksum",)),
    "23_rst_wrong_ack": Case("S: resets of something else", {"syn_loss": 3}, ("do not acknowledge the SYN",)),
    "26_one_sided_three_packets": Case("P: acknowledgements go on of what nobody sent", {"half_capture": 1}),
    "24_icmp_frag_needed_only": Case(
        "S: nothing but a router that asks for smaller packets", {"packet_too_big": 1},
        ("the next link carries at most 1400 bytes (ICMP, packet 1)",), "`framegauge check` says",
    ),
    "28_one_closing_counted_13": Case("P: the window closes once", {"zero_window": 1, "capture_loss": 1}),
    "30_path_mtu_falls_a_sender": Case(
        "K: the path MTU falls from 9000 to 1500: 500 bytes pass on, 8948 no more",
        {"pmtu_black_hole": 1, "spurious_retransmit": 5}, ("none above 500 did: the path MTU has fallen.",),
    ),
    "30_path_mtu_falls_b_receiver": Case(
        "K: its own 1,000 bytes arrive, but their acknowledgements ride on what is too large",
        {"pmtu_black_hole": 1, "rto_stall": 1}, ("The receiver asked for 17896 bytes", "none above 500 did"),
    ),
    "31_path_mtu_falls_server": Case(
        "K: answers of 18,396 bytes, the last 500 of which come through", {"pmtu_black_hole": 1},
        ("none above 500 did: the path MTU has fallen, or the way was interrupted, or the other end died",), CHECK,
    ),
    "32_path_mtu_falls_only_large": Case(
        "K: nothing small was sent that would tell", {"rto_stall": 1}, ("the path MTU may have fallen",), CHECK,
    ),
}  # fmt: skip


def findings(name: str) -> list[dict[str, Any]]:
    found = diagnosis.diagnose([FIELD / f"{name}.pcap"])["findings"]
    return [each for each in found if each["kind"] not in ASIDE]


@pytest.mark.parametrize("name", CASES)
def test_a_capture_of_others_is_called_what_it_is(name: str) -> None:
    case = CASES[name]
    found = findings(name)
    assert {each["kind"]: each["count"] for each in found} == case.right, case.reason
    text = " ".join(each["text"] for each in found)
    for words in case.words:
        assert words in text
    assert all(case.remedy in each["remedy"] for each in found)


def test_where_nothing_could_be_judged_nothing_is_acquitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "udp.pcap"
    udp = bytearray(segment("10.0.0.1:40000", "10.0.0.2:80", ACK, 1, 1))
    udp[9] = 17
    path.write_bytes(pcap([(1.0, bytes(udp))]))
    assert main(["diagnose", str(path)]) == 2
    assert "Cannot tell: there is no TCP connection in 1 packet (1 of another protocol: 17)." in capsys.readouterr().out


def test_a_router_that_asks_for_smaller_packets_is_told_without_any_tcp(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(FIELD / "24_icmp_frag_needed_only.pcap")]) == 1
    assert "1. packet_too_big" in capsys.readouterr().out


def test_the_last_packet_of_a_file_is_not_the_end_of_its_capture(capsys: pytest.CaptureFixture[str]) -> None:
    """K: 21 packets of 8,948 bytes at the sender, none of them at the receiver, whose capture ran to the end."""
    sender, receiver = (str(FIELD / f"{name}.pcap") for name in JOINED)
    assert main(["diagnose", "--host", f"a={sender}", "--host", f"b={receiver}"]) == 1
    printed = capsys.readouterr().out
    assert "cannot tell whether 21 packets of a came to b" in printed
    assert "no packet was lost" not in printed
    assert "pmtu_black_hole" in printed


def test_the_statistics_of_an_interface_tell_how_long_its_capture_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S: the same two, the receiver's as dumpcap saves it, which ran a minute before and after."""
    sender, receiver = (FIELD / f"{name}.pcap" for name in JOINED)
    packets = list(packets_in(receiver.read_bytes()))
    saved = tmp_path / "receiver.pcapng"
    ran = (packets[0][0] - 60, packets[-1][0] + 60)
    saved.write_bytes(pcapng(packets, ["eth0"], link=ETHERNET, ran=ran))
    assert main(["diagnose", "--host", f"a={sender}", "--host", f"b={saved}"]) == 1
    printed = capsys.readouterr().out
    assert "21 of 25 packets" in printed
    assert "cannot tell whether" not in printed


def test_two_captures_of_a_path_mtu_that_falls_tell_it_for_certain(capsys: pytest.CaptureFixture[str]) -> None:
    sender, receiver = (str(FIELD / f"30_path_mtu_falls_{name}.pcap") for name in ("a_sender", "b_receiver"))
    found = diagnosis.diagnose([Path(sender), Path(receiver)])
    hop = next(each for each in found["joined"]["connections"][0]["directions"][0]["hops"])
    assert (hop["sizes"]["lost_bytes"], hop["sizes"]["passed_bytes"], hop["sizes"]["before_bytes"]) == (8936, 500, 8948)
    assert main(["diagnose", "--host", f"a={sender}", "--host", f"b={receiver}"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "packets of 8936 bytes or more were lost between a and b" in printed
    assert "smaller ones arrived; the largest has 500 bytes. Until then 8948 bytes passed" in printed


def test_every_capture_has_its_case() -> None:
    assert {path.stem for path in FIELD.iterdir()} == {*CASES, *JOINED}
