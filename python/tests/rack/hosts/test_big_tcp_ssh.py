"""BIG TCP between hosts over ssh: three on a bridge, which cuts aggregates as a NIC does, or passes them on whole."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers import sshd
from helpers.over_ssh import framegauge, study_of, undisturbed
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")
SIZE, USUAL = 180_000, 65_536


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sshd.site(tmp_path_factory.mktemp("three"), ["alpha", "beta", "gamma"]) as found:
        yield found


def pass_whole(site: Site, size: int) -> None:
    """Sets what the bridge's ports are handed in one piece of IPv4; the kernel cuts what is larger into frames.

    By netlink, because older versions of `ip` do not know the size of IPv4 (IFLA_GSO_IPV4_MAX_SIZE).
    """
    request, acknowledged, new_link, size_of_ipv4 = 1, 4, 16, 63
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        for host in site.hosts.values():
            index = socket.if_nametoindex(f"{host.namespace}p"[:15])
            body = struct.pack("=BxHiII", 0, 0, index, 0, 0) + struct.pack("=HHI", 8, size_of_ipv4, size)
            kernel.send(struct.pack("=IHHII", 16 + len(body), new_link, request | acknowledged, 1, 0) + body)
            assert struct.unpack_from("=i", kernel.recv(4096), 16) == (0,)


def study(site: Site, folder: Path, **factors: object) -> Path:
    written = yaml.safe_load(study_of(site, folder).read_text())
    written |= {
        "factors": {"mtu": {"levels": [1500, 9000], "baseline": 1500}, "offloads": True, **factors},
        "workloads": [{"stream": {"size": "20 MB", "repeat": "0 s", "pattern": "many-to-one"}}],
        "meters": {"cpu": True, "wire": True},
        "blocks": 2,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(written))
    return folder / "study.yaml"


def test_aggregates_above_64_kib_are_seen_and_counted_right(three: Site, tmp_path: Path) -> None:
    pass_whole(three, SIZE)
    process = framegauge("study", study(three, tmp_path, gso_size=SIZE, gro_size=SIZE), "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    runs = undisturbed(read(tmp_path / "out").runs)
    assert {run.level for run in runs} == {1500, 9000}, said
    for run in runs:
        record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
        work = record["workload"]
        assert len(work["senders"]) == 2, work["senders"]
        assert not any("64 KiB" in line for line in run.degraded), run.degraded
        assert run.readings["big_aggregates_sent"] > 10, run.readings
        assert run.readings["big_aggregates"] > 10, run.readings
        for host in work["receivers"]:
            seen = record["wire"][host]["aggregates"]
            assert USUAL < seen["largest_bytes"] <= SIZE
            packets, octets = received(record, host)
            # What the stack itself counted, by other means: so many of its packets are large, and all others are not.
            assert seen["count"] <= packets
            assert seen["count"] * USUAL <= octets <= seen["count"] * SIZE + (packets - seen["count"]) * USUAL
        for host in work["senders"]:
            sent = record["wire"][host]["aggregates"]["sent"]
            assert USUAL < sent["largest_bytes"] <= SIZE
        assert run.readings["big_aggregates_sent"] == run.readings["big_aggregates"]  # each crossed the bridge whole


def test_the_usual_sizes_make_none_of_them(three: Site, tmp_path: Path) -> None:
    pass_whole(three, SIZE)
    process = framegauge("study", study(three, tmp_path, gso_size=USUAL, gro_size=USUAL), "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    runs = undisturbed(read(tmp_path / "out").runs)
    assert runs, said
    for run in runs:
        assert (run.readings["big_aggregates"], run.readings["big_aggregates_sent"]) == (0, 0)
        assert run.readings["mean_packet_bytes"] < USUAL


@pytest.mark.parametrize("merged", [{}, {"gro_size": SIZE}])
def test_where_frames_are_cut_on_the_way_senders_prove_it_and_receivers_merge_what_they_can(
    three: Site, tmp_path: Path, merged: dict[str, int]
) -> None:
    """As on a network of NICs: what is built above 64 KiB crosses it as frames."""
    pass_whole(three, USUAL)
    process = framegauge("study", study(three, tmp_path, gso_size=SIZE, **merged), "--out", tmp_path / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    runs = undisturbed(read(tmp_path / "out").runs)
    assert {run.level for run in runs} == {1500, 9000}, said
    for run in runs:
        assert run.readings["big_aggregates_sent"] > 10, run.readings
        unmerged = any("64 KiB: sent, and none was merged by a receiver" in line for line in run.degraded)
        assert unmerged == (bool(merged) and run.readings["big_aggregates"] == 0), run.degraded
        assert merged or run.readings["big_aggregates"] == 0


def received(record: dict[str, dict[str, dict[str, dict[str, int]]]], host: str) -> tuple[int, int]:
    """The packets and the bytes of IPv4 that a host's stack took in during a run."""
    before, after = (record[f"counters_{when}"][host]["nstat"] for when in ("before", "after"))
    return after["IpInReceives"] - before["IpInReceives"], after["IpExtInOctets"] - before["IpExtInOctets"]
