"""The workload `ceph` on the real rack: what fio, the daemons' sockets and the switch say of the same bytes, and what is
said of a cluster that does not start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.captures import Captured, payloads_out
from helpers.real import alone, held_up, run, study
from helpers.support import PATIENCE_SECONDS, SOAK, by_length

from framegauge.agents.pipe import Agent
from framegauge.estimate.packets import Way, predict, runs
from framegauge.evidence.blocks import payload_bytes
from framegauge.evidence.nic import deltas, fabric_hosts
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads import ceph
from framegauge.workloads.ceph import NEEDS, Cluster

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]
BED = {"kind": "rack", "topology": "rack", "hosts": 4, "link": {"rate": "200 Mb/s"}}
SYSTEM = [Path(each) for each in ("/etc/ceph", "/var/lib/ceph", "/var/log/ceph", "/run/ceph")]


def runs_of(agent: Agent, folder: Path, ceph: dict[str, Any], bed: RackTestbed | None = None, **rest: Any) -> list[Run]:
    asked = study(
        blocks=1, workloads=[{"ceph": ceph}], **{"retries": 0, "testbed": BED, "margins": {"iops": "5 %"}, **rest}
    )  # fmt: skip
    return run(agent, asked, folder, bed)


def made(found: Sequence[Run]) -> list[Run]:
    """Those with an image. On a busy machine a cluster may not make it in its time: then the study tries again."""
    return [each for each in found if not any(line.startswith("error: ceph: no image") for line in each.excluded)]


def record_of(folder: Path, each: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"runs/{each.number}/record.json").read_text())
    return found


def reasons(each: Run) -> list[str]:
    """Why a run is excluded, but for a machine that is too busy: that is not the question here."""
    return [line for line in each.excluded if not line.startswith(("fidelity: ", "load: "))]


def of_the_system() -> set[tuple[str, float]]:
    files = (file for place in SYSTEM for file in (place, *place.rglob("*")) if file.exists())
    return {(str(file), file.lstat().st_mtime) for file in files}


@pytest.mark.soak(1)
def test_fio_and_the_switch_count_the_same_bytes_whatever_the_frames(rack_agent: Agent, tmp_path: Path) -> None:
    """Both ways at once, so that OSDs and the client are looked at; and nothing is written beside the run's folder."""
    before = of_the_system()
    asked = {
        "operation": "mixed", "block": "64 KiB", "rate": 40, "replication": 2, "image": "16 MiB",
        "duration": by_length("2 s", "10 s"),
    }  # fmt: skip
    bed = Captured(rack_agent, tmp_path)
    done_runs = made(runs_of(rack_agent, tmp_path, asked, bed, retries=1))
    found = {each.level: each for each in done_runs}
    assert set(found) == {1500, 9000}
    sizes, reads = {}, {}
    for level, each in found.items():
        assert reasons(each) == []
        record = record_of(tmp_path, each)
        work, done = record["workload"], record["workload"]["ceph"]
        assert work["ceph_version"] >= 16
        assert done["reads"] > 0
        assert done["writes"] > 0
        reads[level] = done["reads"] / (done["reads"] + done["writes"])
        # That the account closes within 3 % is checked with the run. Copies are really made, and the payload of ports
        # is that which sockets had.
        assert payload_bytes(record, done["osds"]) > 2 * done["written_bytes"]
        for host in done["osds"]:
            sockets = work["received_bytes"][host]
            again = 9000 * sum(deltas(record, host, "nstat")["TcpRetransSegs"] for host in record["counters_after"])
            # Sockets of heartbeats may open and close between two looks.
            assert sockets - 2000 <= payload_bytes(record, [host]) <= sockets + 20_000 + again
        # Of few operations, which are all that a busy cluster does, there is no 99th percentile.
        latencies = [
            each.metrics[name] for name in ("latency_p50", "latency_p95", "latency_p99") if name in each.metrics
        ]
        assert latencies == sorted(latencies) != []
        assert each.metrics["goodput"] == pytest.approx(8 * 65_536 * each.metrics["iops"])
        assert set(each.readings["osds"]) == {"h3", "h4"}
        sizes[level] = data_frame_bytes(fabric_hosts(record))
        assert {row["mss_bytes"] for row in work["live"]} == {level - 52}
    assert sizes[9000] > 2 * sizes[1500]
    assert of_the_system() == before
    seen = {each.level: payloads_out(file.read_bytes()) for each, file in zip(done_runs, bed.files, strict=True)}
    # How many segments one acknowledgement answers hangs on when programs read, so on what runs beside; and how much of
    # heartbeats and maps there is, on how much the cluster does in its time.
    with_data = {level: bulk(each, level - 52) for level, each in seen.items()}
    foreseen = predict(*ways(with_data[1500], 1448), 1448, 8948)
    # A busy cluster does less in its time: packets are compared for the same number of bytes.
    amounts = {level: sum(map(sum, each.values())) for level, each in with_data.items()}
    there = sum(map(len, with_data[9000].values())) * amounts[1500] / amounts[9000]
    # Reads and writes are drawn at random, and their messages have other sizes: the more the runs differ in that, the
    # less the packets of one tell of the other's.
    within = 0.05 + abs(reads[1500] - reads[9000])
    # Programs that come late hand over more at once, which leaves in fewer and fuller segments: that many at least.
    fullest = sum(-(-sum(each) // 8948) for each in with_data[9000].values()) * amounts[1500] / amounts[9000]
    assert fullest <= there <= (1 + within) * foreseen.after
    if not any(map(held_up, done_runs)):
        assert foreseen.after == pytest.approx(there, rel=within)
    # A published cluster had 4, and not the 6 of the MTUs.
    assert 3.5 < sum(map(len, with_data[1500].values())) / there < 5.5


def bulk(
    seen: dict[tuple[bytes, bytes, int, int], list[int]], full: int
) -> dict[tuple[bytes, bytes, int, int], list[int]]:
    """What has data of those connections that carried a full segment either way."""
    mine = {key for key, sizes in seen.items() if full in sizes}
    mine |= {(to, source, to_port, port) for source, to, port, to_port in mine}
    return {key: [size for size in sizes if size] for key, sizes in seen.items() if key in mine}


def ways(seen: dict[tuple[bytes, bytes, int, int], list[int]], segment: int) -> tuple[Way, Way]:
    """The packets of both directions between all pairs of hosts, with the order in which each connection had them."""
    found = []
    for direction in (True, False):
        mine = [sizes for (source, to, *_), sizes in seen.items() if (source < to) is direction]
        messages = sum((Counter(runs(sizes, segment)) for sizes in mine), Counter())
        found.append(Way(Counter(size for sizes in mine for size in sizes), messages))
    return found[0], found[1]


def data_frame_bytes(sent: Sequence[Json]) -> float:
    """The mean size of frames with data. How many acknowledgements lie between them hangs on what runs beside."""
    frames, amount = (sum(each[name] for each in sent) for name in ("data_frames", "data_frame_bytes"))
    return float(amount / frames)


@pytest.mark.soak(0.5)
def test_replication_has_a_network_and_large_frames_of_its_own(rack_agent: Agent, tmp_path: Path) -> None:
    """With MTU 9000 on the storage network alone, the client's connections keep segments for 1500, by their SYNs, by the
    live sockets and by the frames that each network carries. OSDs keep data in bluestore here."""
    storage_alone = {"default": 1500, "storage": 9000}
    asked = study(
        workloads=[{"ceph": {
            "replication": 2, "image": "16 MiB", "rate": 40, "duration": "2 s", "storage_network": True, "store": "bluestore",
        }}],
        testbed={**BED, "topology": {"rack": {"nics": 2}}}, margins={"iops": "5 %"},
        factors={"mtu": {"levels": [1500, storage_alone], "baseline": 1500}},
    )  # fmt: skip
    chosen = asked if SOAK else alone(asked, mtu=storage_alone)
    done_runs = run(rack_agent, chosen.model_copy(update={"blocks": 1, "retries": 1}), tmp_path)
    sizes: dict[int, float] = {}
    for each in made(done_runs):
        assert reasons(each) == []
        record = record_of(tmp_path, each)
        done, storage = record["workload"]["ceph"], 1500 if each.level == 1500 else 9000
        by_port = {
            port["port"]: port["sent_bytes"] - 70 * port["sent_frames"] for port in record["measure"]["fabric"]["ports"]
        }
        # Each block goes to one OSD by the first network, and from there to the other by the second.
        for nic in (1, 2):
            payload = sum(by_port[f"switch>{host}.{nic}"] for host in ("h3", "h4"))
            assert done["written_bytes"] < payload < 1.2 * done["written_bytes"]
        segments: dict[int, set[int]] = {1: set(), 2: set()}
        for row in record["workload"]["live"]:
            segments[row["nic"]].add(row["mss_bytes"])
        assert segments == {1: {1448}, 2: {storage - 52}}
        number = {nic["address"]: int(nic["end"][-1]) for host in record["rack"]["hosts"] for nic in host["nics"]}
        syns = {
            (number[syn["source"].rpartition(":")[0]], syn["mss_bytes"])
            for wire in record["wire"].values()
            for syn in wire["syns"]
        }
        assert syns == {(1, 1460), (2, storage - 40)}
        assert {nic["mtu"] for reading in record["before"].values() for nic in reading["nics"][1:]} == {storage}
        assert all(host["nics"][0]["largest_frame_bytes"] <= 1518 for host in fabric_hosts(record))
        osds = [host for host in fabric_hosts(record) if host["host"] in done["osds"]]
        # One OSD may be the first of all objects that were written, and the other sends replies alone.
        assert max(host["nics"][1]["largest_frame_bytes"] for host in osds) == storage + 18
        sizes[storage] = data_frame_bytes([host["nics"][1] for host in osds])
        assert all(one["storage"]["received_frames"] > 0 for one in each.readings["osds"].values())
    assert set(sizes) == ({1500, 9000} if SOAK else {9000})
    # No frame of 1500 is larger, whatever it carries.
    assert sizes[9000] > 2 * 1518


# A mount and a network of its own: 500 MB of which 2 % are free, and a monitor that is stopped if it lives.
NEARLY_FULL = """\
ip link set lo up
mount -t tmpfs -o size=500m tmpfs "$1"
fallocate -l 490m "$1/others"
cat > "$1/ceph.conf"
cd "$1"
monmaptool --create --add a 127.0.0.1 --fsid "$2" --enable-all-features --set-min-mon-release pacific map
ceph-mon -i a --mkfs --monmap map
timeout -s KILL 3 ceph-mon -i a -f
"""


def test_a_monitor_lives_where_the_files_of_others_leave_little_room(tmp_path: Path) -> None:
    configuration = Cluster("h1", "h2", ("h3",), 1, 1 << 24).servers()[0].templates["ceph.conf"]
    filled = configuration.format(run=tmp_path, h2="127.0.0.1", address="127.0.0.1", host="h2")
    (place := tmp_path / "full").mkdir()
    process = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-ec", NEARLY_FULL, "sh", str(place), str(ceph.CLUSTER_ID)],
        input=filled.replace(str(tmp_path), str(place)), capture_output=True, text=True, check=False,
        timeout=PATIENCE_SECONDS, env={**os.environ, "CEPH_CONF": str(place / "ceph.conf")},
    )  # fmt: skip
    # It was stopped; the monitor that minds ends at once, with its reason.
    assert process.returncode == 128 + signal.SIGKILL, process.stderr


def test_a_cluster_that_does_not_start_has_its_own_last_words(
    rack_agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OSDs have no folder for their data: their log, and nothing else, has the reason, long before its end."""
    monkeypatch.setattr(ceph, "CONFIGURATION", ceph.CONFIGURATION.replace("{run}/osd", "{run}/nowhere"))
    for each in runs_of(rack_agent, tmp_path, {"replication": 2, "image": "16 MiB"}):
        (line,) = each.excluded
        assert line.startswith("error: sh on h")
        assert "ended before it was ready" in line
        assert "FAILED ceph_assert" in line
