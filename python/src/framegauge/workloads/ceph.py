"""ceph: fio on a block device (RBD) of a Ceph cluster.

    h1 client ─┬─ h2 monitor
               ├─ h3 OSD
               ├─ h4 OSD
               └─ …

Debian's daemons, as programs of a `Command`, whose machinery starts, watches and ends them. There is neither
authentication nor a manager: RBD needs none. Everything that daemons write is in the run's folder.

The image is written once before anything is measured, so that reads find data, and writes what they replace. A client
writes a block to one OSD, which passes it on to those with the other copies: over the network of the clients, or over
a second one (`storage_network`).

As on a cluster of Hadoop, all daemons are stopped while counters are read (`frozen`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import fio, frozen
from framegauge.workloads.base import Executed, Go, Program
from framegauge.workloads.command import Command
from framegauge.workloads.programs import Running
from framegauge.workloads.tasks import Place, Readiness, Task

__all__ = ["NEEDS", "Ceph", "Cluster", "ceph"]

PACKAGES = "ceph-mon ceph-osd ceph-common ceph-base fio"
NEEDS = tuple(
    Program(name, PACKAGES) for name in ("monmaptool", "ceph-mon", "ceph-osd", "ceph", "rbd", "fio")
)  # fmt: skip
PLACEMENT_GROUPS = 16
START_SECONDS = 12.0  # for all daemons and the image, roughly
GRACE_SECONDS = 30.0  # for fio, after its own time
DAEMON_BYTES = 160 << 20  # of memory, besides data
STORE_BYTES = 1 << 30  # that bluestore takes besides data
MOST_PROBLEMS = 3
CLUSTER_ID = uuid.uuid5(uuid.NAMESPACE_DNS, "ceph.framegauge")
# What a failed assertion prints, and what Ceph's log has at its level of errors but for the signal that follows.
PROBLEMS = r"FAILED ceph_assert|^\S+ \S+ +-1 (?!\*\*\*)"
MARK = "CEPH_CONF={run}/ceph.conf"

# A monitor ends where 5 % of its file system or less are free, to have room for months; this one lives for a run.
CONFIGURATION = """\
[global]
fsid = CLUSTER
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
mon_host = {MONITOR}
mon_data = {run}/monitor
osd_data = {run}/osd
run_dir = {run}
crash_dir = {run}
keyring = {run}/keyring
admin_socket =
pid_file =
log_file =
log_to_file = false
log_to_stderr = true
err_to_stderr = true
log_max_recent = 1
debug_rocksdb = 0
debug_bluefs = 0
debug_bluestore = 0
debug_bdev = 0
mon_cluster_log_to_file = false
mon_cluster_log_to_stderr = false
mon_data_avail_warn = -1
mon_data_avail_crit = -1
ms_bind_ipv6 = false
ms_async_op_threads = 1
public_addr = {address}
CLUSTER_ADDRESS
crush_location = host={host} root=default
osd_crush_initial_weight = 1
osd_pool_default_size = COPIES
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_objectstore = STORE
memstore_device_bytes = BYTES
bluestore_block_size = BYTES
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
osd_memory_target = 939524096
rbd_cache = false
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
"""
_MADE = """\
ulimit -c 0
timeout -k 5 "$1" monmaptool --create --add a "$2" --fsid "$3" --enable-all-features --set-min-mon-release pacific map
timeout -k 5 "$1" ceph-mon -i a --mkfs --monmap map
"""
# The monitor, and the commands that it must have had before OSDs start: `cluster made` shows that it has them.
_MONITOR = """\
ulimit -c 0
ceph-mon -i a -f &
timeout -k 5 "$1" ceph < commands >&2
echo cluster made
wait $!
"""
# The file `names` has the number and the UUID of each host's OSD.
_OSD = """\
ulimit -c 0
mkdir osd
set -- "$1" $(grep "^$2 " names)
timeout -k 5 "$1" ceph-osd -i "$3" --mkfs --osd-uuid "$4"
exec ceph-osd -i "$3" -f
"""
_IMAGE = """\
timeout -k 5 "$1" rbd create "$2" --size "$3" --image-feature layering
timeout -k 5 "$1" fio --output=fill.txt fill.fio
"""


@dataclass(frozen=True)
class Cluster:
    """The daemons of a cluster, and its image. `within_seconds` is for each step of the start."""

    client: str
    monitor: str
    osds: Sequence[str]
    replication: int
    image_bytes: int
    store: str = "memstore"
    storage_network: bool = False
    within_seconds: float = 60.0

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of all programs."""
        return (self.client, self.monitor, *self.osds)

    @property
    def memory_bytes(self) -> int:
        """The memory that a run takes at most: any OSD may have a copy of the whole image, and what hosts write to
        their folders is in memory, too."""
        daemons = DAEMON_BYTES * (2 + len(self.osds))
        osd_bytes = self.image_bytes if self.store == "memstore" else self.image_bytes + STORE_BYTES
        return daemons + len(self.osds) * osd_bytes

    def prepare(self) -> list[Task]:
        """What runs before the daemons."""
        return [self._shell(self.monitor, _MADE, f"{{{self.monitor}}}", str(CLUSTER_ID))]

    def servers(self) -> list[Task]:
        """The daemons. OSDs start at once; each is ready when the monitor has it in its map."""
        commands = [f"osd new {_identity(number)}" for number in range(len(self.osds))]
        commands += [f"osd pool create {fio.POOL} {PLACEMENT_GROUPS} {PLACEMENT_GROUPS}"]
        commands += [f"osd pool application enable {fio.POOL} rbd"]
        monitor = replace(
            self._shell(self.monitor, _MONITOR), files={"commands": "\n".join(commands) + "\n"}, name="monitor",
            ready=self._ready("^cluster made$"),
        )  # fmt: skip
        names = "".join(f"{host} {number} {_identity(number)}\n" for number, host in enumerate(self.osds))
        osds = replace(
            self._shell(self.osds[0], _OSD, "{host}"), hosts=tuple(self.osds), files={"names": names},
            templates=self._configuration(self.storage_network), ready=self._ready("state: booting -> active"),
        )  # fmt: skip
        return [monitor, osds]

    def image(self) -> Task:
        """Makes the image, and writes it once."""
        task = self._shell(self.client, _IMAGE, fio.IMAGE, f"{self.image_bytes >> 20}M")
        return replace(task, files={"fill.fio": fio.fill()}, within_seconds=2 * task.within_seconds)

    def load(self, load: fio.Load) -> Task:
        """Runs fio's job."""
        return Task(
            (self.client,), ("fio", "--output-format=json", "load.fio"), load.duration_seconds + GRACE_SECONDS,
            self.environment, files={"load.fio": load.job()}, templates=self._configuration(), name="fio",
        )  # fmt: skip

    @property
    def environment(self) -> Mapping[str, str]:
        """Of all programs."""
        name, _, value = MARK.partition("=")
        return {name: value}

    def _shell(self, host: str, script: str, *words: str) -> Task:
        """A script that ends with the first program that fails; each of them has the time that is given to a step."""
        argv = ("sh", "-e", "-c", script, "sh", f"{self.within_seconds:g}", *words)
        return Task(
            (host,), argv, self.within_seconds, self.environment, templates=self._configuration(), telling=PROBLEMS
        )

    def _ready(self, words: str) -> Readiness:
        return Readiness(2 * self.within_seconds, words=words, seconds=None)

    def _configuration(self, two_networks: bool = False) -> dict[str, str]:
        capacity = 2 * self.image_bytes + STORE_BYTES  # so that no OSD is ever nearly full
        values = {
            "CLUSTER_ADDRESS": "cluster_addr = {storage}" if two_networks else "", "CLUSTER": str(CLUSTER_ID),
            "MONITOR": self.monitor, "COPIES": str(self.replication), "STORE": self.store, "BYTES": str(capacity),
        }  # fmt: skip
        text = CONFIGURATION
        for word, value in values.items():
            text = text.replace(word, value)
        return {"ceph.conf": text}


def _identity(number: int) -> str:
    """The UUID of an OSD."""
    return str(uuid.uuid5(CLUSTER_ID, f"osd-{number}"))


@dataclass(frozen=True, kw_only=True)
class Ceph(Command):
    """The programs of a cluster and its client, as `ceph` makes them."""

    cluster: Cluster
    load: fio.Load
    needs: ClassVar[Sequence[Program]] = (*NEEDS, Program("bash", "bash"))

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Starts the cluster and makes the image; stops all daemons but for the time of the load."""
        with super().prepared(hosts, token) as inner:
            places = self.places(hosts, token)
            self._each(frozen.stop(self.cluster.hosts, MARK), places)

            def go(on_progress: Progress | None) -> Executed:
                self._each(frozen.resume(self.cluster.hosts, MARK), places)
                done = inner(on_progress)
                self._each(frozen.stop(self.cluster.hosts, MARK), places)
                return done

            yield go

    def own_values(self, host: Host) -> Mapping[str, str]:
        """The address of the host's last NIC, which is on the storage network if there is one."""
        return {"storage": host.addresses[-1]}

    def settle(self, places: Mapping[str, Place], servers: Sequence[tuple[Task, Running]]) -> Json:
        """Makes the image; if that fails, with the last words of the daemon that is to blame. Records the version of
        OSDs, whose messages differ."""
        try:
            self._each(self.cluster.image(), places)
        except ProgramFailure as error:
            daemons = [daemon for _, daemon in servers if daemon.wait(0.0) is not None]
            words = "; ".join(
                f"{daemon.name} on {daemon.host.name}: {daemon.last_words()}" for daemon in _first(daemons, servers)
            )
            raise ProgramFailure(f"ceph: no image: {error}; {words}") from None
        return {"ceph_version": version(servers[-1][1].output("stderr"))}

    def _files(self, task: Task) -> list[str]:
        """What is read of a client besides its output: fio's log of every block, if there is one."""
        return [fio.LOG] if self.load.logged else []

    def told(self, done: Sequence[Json], watched: Mapping[str, Json]) -> Json:
        """What fio printed, and all that the account of bytes needs."""
        report = fio.parse(done[0]["texts"][None], self.load)
        clients = {}
        if self.load.logged:
            clients = {self.cluster.client: fio.course(done[0]["texts"][fio.LOG], report.reads + report.writes)}
        account = {name: value for name, value in asdict(report).items() if name != "latency_seconds"}
        cluster = self.cluster
        return {
            "printed": report.metrics,
            "offered_bits_per_second": self.load.offered_bits_per_second,
            "ceph": {
                **account, "block_bytes": self.load.block_bytes, "replication": cluster.replication,
                "client": cluster.client, "osds": list(cluster.osds), "storage_network": cluster.storage_network,
                **({"clients": clients} if clients else {}),
            },
        }  # fmt: skip

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """What fio printed. Goodput is that of the application, too."""
        return dict(record["printed"])


def version(log: str) -> int:
    """The major version of a daemon, by its log; ProgramFailure if it does not tell."""
    if (match := re.search(r"\bceph version (\d{1,4})\.", log)) is None:
        raise ProgramFailure("ceph-osd: found no version in its log, expected a line with ceph version")
    return int(match[1])


def _first(daemons: Sequence[Running], servers: Sequence[tuple[Task, Running]]) -> Sequence[Running]:
    """The daemons to ask for their last words: those that have ended, else all."""
    return (daemons or [running for _, running in servers])[:MOST_PROBLEMS]


def ceph(cluster: Cluster, load: fio.Load, **rest: Any) -> Ceph:
    """The workload; `rest` are fields of Command."""
    return Ceph(
        name="ceph",
        prepare=cluster.prepare(),
        servers=cluster.servers(),
        clients=[cluster.load(load)],
        metrics_={},
        cluster=cluster,
        load=load,
        **rest,
    )
