"""The examples for one's own cluster over real ssh, in short form: they read at their rate, prove their MTUs, write nothing,
and leave nothing behind. The cluster is a real one, with the user that the page has one make. Of NFS the file is one of
the client: mounts are the kernel's, which need not have NFS."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import sshd
from helpers.over_ssh import framegauge, undisturbed
from helpers.small_ceph import SmallCeph, small_ceph
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS, ROOT

from framegauge.experiment.planning import searched
from framegauge.results.journal import Run, read
from framegauge.testbeds.base import Json
from framegauge.workloads.ceph import NEEDS

lacking = [each for each in NEEDS if not each.is_there(searched())]
pytestmark = [
    pytest.mark.needs("ssh", "sshd"), *(pytest.mark.needs(each.name, remedy=each.remedy) for each in lacking),
]  # fmt: skip
CONTENT = bytes(range(256)) * 8192  # 2 MiB
RATE = 50  # reads per second of 64 KiB
# What a client of a cluster has in /etc/ceph.
CLIENT = "[global]\nmon_host = {address}\nkeyring = {keyring}\nms_bind_ipv6 = false\nlog_file =\nadmin_socket =\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A client and two storage hosts, all with MTU 9000."""
    with sshd.site(tmp_path_factory.mktemp("site"), ["client", "storage1", "server"]) as found:
        for host in found.hosts.values():
            sshd.run("ip", "-n", host.namespace, "link", "set", "eth0", "mtu", "9000")
        yield found


@pytest.fixture(scope="module")
def ceph(site: Site) -> Iterator[SmallCeph]:
    """The cluster on storage1, with the image that the example reads."""
    there = site.hosts["storage1"]
    with small_ceph(site.folder / "ceph", there.namespace, there.address, "test", CONTENT) as found:
        yield found


@pytest.fixture(scope="module")
def reader(site: Site, ceph: SmallCeph) -> Path:
    """The configuration of the user that docs/storage.md makes, by its very lines."""
    page = (ROOT / "docs/storage.md").read_text()
    (lines,) = re.findall(r"```text\n(id=\$\(rbd info.*?)```", page, re.DOTALL)
    keyring = site.folder / "reader"
    keyring.write_text(ceph.run("sh", "-ec", lines))
    found = site.folder / "client.conf"
    found.write_text(CLIENT.format(address=site.hosts["storage1"].address, keyring=keyring))
    return found


def short(site: Site, folder: Path, name: str, parameters: dict[str, Any], **step: Any) -> Path:
    """An example in short form: two blocks of runs of a second, with these hosts and this on its step."""
    document = yaml.safe_load((ROOT / f"examples/{name}.yaml").read_text())
    machines = [each if isinstance(each, dict) else {"name": each} for each in document["testbed"].pop("machines")]
    inventory = {"hosts": machines, "options": list(site.options)}
    (folder / "hosts.yaml").write_text(json.dumps(inventory))
    document["testbed"]["inventory"] = "hosts.yaml"
    command = document["workloads"][0]["command"]
    command["parameters"] |= {"rate": RATE, **parameters}
    (client,) = command["clients"]
    client["run"] = [{"--runtime=10s": "--runtime=1s"}.get(word, word) for word in client["run"]]
    client |= step
    document |= {"blocks": 2, "stop": "blocks", "control": False, "retries": 0}
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def runs(path: Path) -> list[tuple[Run, Json]]:
    """The four runs of a study, or more if some were lost, with their records. Only what held up this machine may have
    excluded one."""
    process = framegauge("study", path, "--out", path.parent / "out")
    said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    assert (path.parent / "out/results.json").exists(), said
    found = read(path.parent / "out").runs
    assert len(found) >= 4, said
    undisturbed(found)
    return [(each, json.loads((path.parent / f"out/runs/{each.number}/record.json").read_text())) for each in found]


def left(site: Site) -> set[str]:
    """What a study could leave on these hosts: their MTUs, folders and programs."""
    folders = {
        place for name in ("/tmp", "/dev/shm", "/run/user") for place in Path(name).glob("framegauge-[0-9]*-*-*")
    }
    pids = [pid for host in site.hosts.values() for pid in sshd.run("ip", "netns", "pids", host.namespace).split()]
    names = [Path("/proc", pid, "comm").read_text().strip() for pid in pids if Path("/proc", pid).exists()]
    mtus = {f"{name} {host.mtu()}" for name, host in site.hosts.items()}
    return {*map(str, folders), *mtus, *(name for name in names if name not in ("sshd", "ceph-mon", "ceph-osd"))}


def test_an_image_of_a_cluster_is_read_at_the_rate_and_left_as_it_was(
    site: Site, ceph: SmallCeph, reader: Path, tmp_path: Path
) -> None:
    before = left(site)
    found = runs(short(site, tmp_path, "own-cluster-rbd", {}, env={"CEPH_CONF": str(reader)}))
    assert {each.level if isinstance(each.level, int) else each.level["client"] for each, _ in found} == {1500, 9000}
    for each, record in found:
        work, mtus = record["workload"], {host: at["mtu"] for host, at in record["before"].items()}
        assert mtus == {"client": mtus["client"], "storage1": 9000}
        # fio has connections of its own to the cluster: they show the smaller MTU of both ends.
        ends = [row["mss_bytes"] for row in work["live"] if row["host"] == "client" and row["other"] == "storage1"]
        assert set(ends) == {mtus["client"] - 52}
        assert 5 < work["printed"]["reads"] < RATE * 1.02
        assert work["printed"]["read_p50"] <= work["printed"]["read_p95"]
        assert each.readings.get("not_measured", {}).get("reads") is None
    assert ceph.image("test") == CONTENT
    assert ceph.watchers("test") == []
    assert left(site) == before


def test_the_user_of_the_page_reads_and_cannot_write_whatever_fio_is_told(
    site: Site, ceph: SmallCeph, reader: Path, tmp_path: Path
) -> None:
    """The same command without `--readonly`: the cluster refuses, or drops, what would change data or the image."""
    client = site.hosts["client"].namespace
    environment = {**os.environ, "CEPH_CONF": str(reader)}
    fio = ["fio", "--name=all", "--ioengine=rbd", "--clientname=reader", "--pool=rbd", "--rbdname=test", "--bs=64k"]
    rbd = ["rbd", "--id", "reader"]
    writes = [
        [*fio, "--rw=randwrite", "--size=1M", "--end_fsync=1"], [*rbd, "resize", "--allow-shrink", "--size", "1M", "test"],
        [*rbd, "rm", "--no-progress", "test"], [*rbd, "snap", "create", "test@one"],
    ]  # fmt: skip
    for words in writes:
        done = subprocess.run(
            ["ip", "netns", "exec", client, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
            env=environment, cwd=tmp_path,
        )  # fmt: skip
        assert words[0] == "fio" or "Operation not permitted" in done.stderr, (words, done)
    assert ceph.run("rbd", "snap", "ls", "test") == ""
    assert ceph.image("test") == CONTENT


def test_a_file_is_read_at_the_rate_and_left_as_it_was(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "large-file"
    file.write_bytes(CONTENT)
    state = file.stat().st_mtime_ns, file.stat().st_ctime_ns
    before = left(site)
    path = short(site, tmp_path, "own-cluster-nfs", {"file": str(file)})
    # The folder may be in memory, where older kernels have no direct I/O; an NFS mount has.
    path.write_text(path.read_text().replace("--direct=1", "--direct=0"))
    for each, record in runs(path):
        mtus = {host: at["mtu"] for host, at in record["before"].items()}
        assert mtus == {"client": mtus["client"], "server": 9000}
        assert 5 < record["workload"]["printed"]["reads"] < RATE * 1.02
        # The mount's connection is the kernel's.
        assert any("MSS: no TCP connection of these programs was seen" in line for line in each.degraded)
    assert (file.stat().st_mtime_ns, file.stat().st_ctime_ns) == state
    assert file.read_bytes() == CONTENT
    assert left(site) == before
