"""The workload `ceph` without a cluster: what its programs are told, the memory that they take, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from framegauge.errors import ProgramFailure, StudyError
from framegauge.experiment.planning import missing_programs, stated_conditions, workload_of
from framegauge.experiment.storage import available_bytes, lacking_memory
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads.ceph import Ceph, Cluster, version

MIB = 1 << 20
CLUSTER = Cluster("h1", "h2", ("h3", "h4", "h5"), 3, 64 * MIB)


def study(nics: int = 1, family: int = 4, hosts: int = 5, margins: Any = None, **asked: Any) -> Study:
    bed = {"kind": "rack", "topology": {"rack": {"nics": nics}}, "hosts": hosts, "family": family}
    words = {
        "testbed": bed, "factors": {"mtu": [1500, 9000]}, "workloads": [{"ceph": asked}],
        **({"margins": margins} if margins else {}),
    }  # fmt: skip
    return study_file.parse(yaml.safe_dump(words), "study.yaml")


def workload(asked: Study) -> Ceph:
    found = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(found, Ceph)
    return found


def test_hosts_have_their_parts_by_position() -> None:
    found = workload(study(replication=2))
    assert (found.cluster.client, found.cluster.monitor, list(found.cluster.osds)) == ("h1", "h2", ["h3", "h4", "h5"])
    assert [task.hosts for task in found.servers] == [("h2",), ("h3", "h4", "h5")]
    assert [task.hosts for task in found.clients] == [("h1",)]


def test_the_configuration_names_nothing_outside_of_the_run() -> None:
    texts = [task.templates["ceph.conf"] for task in (*CLUSTER.prepare(), *CLUSTER.servers(), CLUSTER.image())]
    assert len(set(texts)) == 1
    lines = dict(line.split(" =", 1) for line in texts[0].splitlines() if " =" in line)
    assert all(value.strip().startswith("{run}/") for value in lines.values() if "/" in value)
    for name in ("run_dir", "crash_dir", "mon_data", "osd_data", "keyring"):
        assert lines[name].strip().startswith("{run}")
    for name in ("admin_socket", "pid_file", "log_file"):  # their defaults are in /var
        assert lines[name] == ""
    assert (lines["mon_host"], lines["osd_pool_default_size"]) == (" {h2}", " 3")


def test_only_osds_with_two_networks_have_a_second_address() -> None:
    osds = replace(CLUSTER, storage_network=True).servers()[1].templates["ceph.conf"]
    assert "cluster_addr = {storage}\n" in osds
    for each in (*CLUSTER.servers(), CLUSTER.image(), replace(CLUSTER, storage_network=True).servers()[0]):
        assert "cluster_addr" not in each.templates["ceph.conf"]


def test_every_program_of_the_start_has_a_limit() -> None:
    for task in (*CLUSTER.prepare(), *CLUSTER.servers(), CLUSTER.image()):
        script = task.argv[3]
        first = {line.split()[0] for line in script.splitlines()}
        # Daemons run for as long as they are wanted, everything else for as long as a step may take.
        assert first <= {"ulimit", "mkdir", "set", "timeout", "ceph-mon", "exec", "echo", "wait"}
        assert task.argv[5] == "60"
        assert task.within_seconds <= 120
    assert all(task.ready.within_seconds == 120 for task in CLUSTER.servers() if task.ready is not None)


def test_memory_is_that_of_daemons_and_of_the_copies_that_osds_may_have() -> None:
    daemons = 5 * 160 * MIB
    assert CLUSTER.memory_bytes == daemons + 3 * 64 * MIB
    assert replace(CLUSTER, store="bluestore").memory_bytes == daemons + 3 * (64 + 1024) * MIB
    asked = study(image="2 GiB")
    need = daemons + 3 * 2048 * MIB
    assert lacking_memory(asked, need) == []
    assert lacking_memory(asked, need - 1) == [
        {
            "name": "7.281 GB of memory", "needed_for": "workload ceph", "found": "7.281 GB available",
            "remedy": "a smaller `image`, fewer hosts, or store: memstore",
        }
    ]  # fmt: skip
    assert available_bytes("MemTotal: 9 kB\nMemAvailable:   24 kB\n") == 24_576
    assert available_bytes("MemTotal: 9 kB\n") is None


def test_what_is_missing_is_named_with_all_packages() -> None:
    missing = {each["name"]: each["remedy"] for each in missing_programs(study(), "/nowhere")}
    assert missing["ceph-osd"] == "apt-get install ceph-mon ceph-osd ceph-common ceph-base fio"
    assert {"ceph-mon", "ceph", "rbd", "monmaptool", "fio"} <= missing.keys()


def test_latency_and_blocks_are_judged_and_lists_are_conditions() -> None:
    asked = study(block=["4 KiB", "64 KiB"], operation=["write", "read"], rate=200, replication=2)
    assert {"goodput", "iops", "latency_p50", "latency_p95", "latency_p99"} <= asked.margin().keys()
    slots = block_order(asked, 0)
    assert {(slot.cell.parameters["operation"], slot.cell.parameters["block_bytes"]) for slot in slots} == {
        (operation, size) for operation in ("write", "read") for size in (4096, 65_536)
    }
    stated = stated_conditions(asked, slots[0])
    assert (stated["rate_per_second"], stated["replication"], stated["store"]) == (200, 2, "memstore")
    seeds = {slot.arm.name: workload_of(asked, slot).load.seed for slot in slots}  # type: ignore[attr-defined]
    assert len(set(seeds.values())) == 1


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"hosts": 4}, 'workloads.0.ceph: found "4 hosts", expected topology: rack with at least 5 hosts'),
        ({"block": "8 MiB"}, "expected a multiple of 512 bytes up to 4 MiB"),
        ({"image": "5 MB"}, "expected a multiple of 4 MiB"),
        ({"read_share": "70 %"}, "expected no such key without operation: mixed"),
        ({"family": 6}, "expected testbed.family 4"),
        ({"storage_network": True}, "expected false, or hosts with two NICs (topology: {rack: {nics: 2}} gives"),
        ({"operation": "trim"}, "operation"),
        ({"duration": 0}, "more than 0"),
        ({"operation": "mixed", "read_share": "33.5 %"}, "expected 1 % to 99 %, without fractions"),
        ({"rate": 0.5}, "expected a whole number of blocks per second"),
        ({"rate": 10, "operation": "mixed", "read_share": "99 %"}, "at least one is read and one written"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_place(asked: dict[str, Any], line: str) -> None:
    with pytest.raises(StudyError) as failed:
        study(**asked)
    assert line in str(failed.value)
    assert workload(study(nics=2, storage_network=True)).cluster.storage_network


def test_the_version_is_that_of_the_log() -> None:
    assert version("2026-11-27T12:21:56 7f0 0 ceph version 16.2.15 (618f) pacific (stable), process ceph-osd\n") == 16
    with pytest.raises(ProgramFailure, match="found no version in its log"):
        version("nothing")
