"""nfs: files that clients read and write over NFS. The last host is the server, all others are clients.

The server is nfs-ganesha, with its files in memory; clients have an RPC client of our own (`framegauge.apps.nfs`), the
same for both transports and versions, which measures every call. Both are programs of a `Command`, whose machinery
starts, watches and ends them.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from framegauge.apps.nfs import FOLDER, LARGEST_BLOCK, MOUNT_PORT, PORT
from framegauge.apps.nfs.client import DRAIN_SECONDS
from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Json
from framegauge.workloads.base import Program
from framegauge.workloads.command import Command
from framegauge.workloads.counts import QUANTILES, quantile
from framegauge.workloads.own import modules, python
from framegauge.workloads.tasks import Readiness, Task

__all__ = ["NEEDS", "Load", "Nfs", "nfs"]

PLUGINS = "/usr/lib/*/ganesha/libfsalvfs.so"
NEEDS = (
    Program("ganesha.nfsd", "nfs-ganesha"),
    Program("libfsalvfs.so", "nfs-ganesha-vfs", files=PLUGINS),
    Program("rpcbind", "rpcbind"),
    Program("unshare", "util-linux"),
)
START_SECONDS = 2.0  # for files, server and mount, roughly
READY_SECONDS = 30.0
MAKE_SECONDS = 60.0  # for the files of all clients
INITIALIZED = "NFS SERVER INITIALIZED"  # its ports are open before that, and it may still give up
GRACE_SECONDS = 30.0  # for a client, after its own time: start, mount, COMMIT
MICROSECOND = 1e-6
AROUND_BYTES = 512  # more than a call or its answer has besides data

CONFIGURATION = """\
NFS_CORE_PARAM { Protocols = VERSION; NFS_Port = PORT; MNT_Port = MOUNTS; Enable_UDP = UDP; Enable_NLM = false;
    Enable_RQUOTA = false; mount_path_pseudo = true; Plugins_Dir = "PLUGINS"; }
NFSV4 { Graceless = true; RecoveryBackend = "fs"; }
EXPORT { Export_Id = 1; Path = "{run}/files"; Pseudo = "FOLDER"; Protocols = VERSION; Transports = TRANSPORT;
    Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; }
    MaxRead = LARGEST; MaxWrite = LARGEST; PrefRead = LARGEST; PrefWrite = LARGEST; }
"""
# Both write to folders of the system: they get their own, in a mount namespace that ends with them. Version 3 needs
# rpcbind to register with, and does not start without: it is there when its socket is.
START = """\
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/ganesha /run/rpcbind
[ ! -d /var/lib/nfs ] || { mount -t tmpfs tmpfs /var/lib/nfs; mkdir -p /var/lib/nfs/ganesha; }
rpcbind -w -f &
until [ -S /run/rpcbind.sock ]; do
    kill -0 $! 2>/dev/null || wait $!
    sleep 0.01
done
exec ganesha.nfsd -f {run}/ganesha.conf -L STDERR -p /run/ganesha.pid -F
"""


@dataclass(frozen=True)
class Load:
    """What each client does, in base units; as `framegauge.apps.nfs.client.Asked`."""

    version: int = 3
    transport: str = "tcp"
    operation: str = "read"
    access: str = "sequential"
    block_bytes: int = 64 << 10
    depth: int = 1  # at a rate, there is none
    rate_per_second: float | None = None
    duration_seconds: float = 2.0
    file_bytes: int = 16 << 20
    retransmit_seconds: float = 1.1
    seed: int = 1
    reconnects: int = 0  # of each client, which changes of the study end connections


@dataclass(frozen=True)
class Nfs(Command):
    """The programs, as `nfs` makes them."""

    load: Load = Load()
    needs: ClassVar[Sequence[Program]] = NEEDS

    def told(self, done: Sequence[Json], watched: Mapping[str, Json]) -> Json:
        """The clients' account of calls, messages and latencies; ProgramFailure if it does not add up."""
        (server,) = self.roles["server"]
        clients: dict[str, Json] = {account["host"]: json.loads(account["texts"][None]) for account in done}
        for host, account in clients.items():
            _check(host, account, self.load)
        latencies: Counter[int] = Counter()
        for account in clients.values():
            latencies.update({int(latency): count for latency, count in account.pop("latency_microseconds").items()})
        reads = self.load.operation == "read"
        names, payloads = list(clients), {host: account["payload_bytes"] for host, account in clients.items()}
        total, unanswered = sum(payloads.values()), sum(account["unanswered"] for account in clients.values())
        record: Json = {
            "senders": [server] if reads else names,
            "receivers": names if reads else [server],
            "received_bytes": payloads if reads else {server: total},
            "bytes": total,
            "active_seconds": max(account["ended_seconds"] for account in clients.values())
            - min(account["began_seconds"] for account in clients.values()),
            "transport": self.load.transport,
            "messages": {
                "server": server,
                "clients": {host: _messages(account, self.load) for host, account in clients.items()},
            },
            "calls": sum(account["answered"] for account in clients.values()),
            "answers": {
                host: {"asked": account["calls"], "answered": account["answered"]} for host, account in clients.items()
            },
            "nfs": {
                "clients": clients,
                "load": asdict(self.load),
                "slowest_seconds": MICROSECOND * max(latencies, default=0),
                **_latencies(latencies, unanswered),
            },
        }
        if self.load.transport == "udp":
            record["not_proved"] = []  # of TCP there is nothing to prove
        record["not_measured"] = {
            name: f"{record['calls']} calls were answered and {unanswered} not: too few for that quantile"
            for name in QUANTILES
            if record["nfs"][name] is None
        }
        return record

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """goodput: bytes of files, over the time from the first call to the last answer; operations: calls answered per
        second of it; and the latencies of all calls of all clients, from when a call was due or, in a closed loop,
        sent."""
        account, active = record["nfs"], record["active_seconds"]
        values = {name: account[name] for name in QUANTILES if account[name] is not None}
        if record["bytes"] > 0 and active > 0:
            values["goodput"] = 8.0 * record["bytes"] / active
            values["operations"] = record["calls"] / active
        return values


def _check(host: str, account: Json, load: Load) -> None:
    """ProgramFailure if a call is not accounted for. None answered at all is a result (`evidence.unanswered`)."""
    calls, answered, unanswered = account["calls"], account["answered"], account["unanswered"]
    if calls != answered + unanswered:
        raise ProgramFailure(f"nfs: {host}: found {calls} calls, {answered} answered and {unanswered} not: not all")
    if account["payload_bytes"] != answered * load.block_bytes:
        payload_bytes = account["payload_bytes"]
        raise ProgramFailure(f"nfs: {host}: found {payload_bytes} bytes, expected {answered} times {load.block_bytes}")
    if answered and unanswered and load.transport == "tcp":
        raise ProgramFailure(
            f"nfs: {host}: found {unanswered} of {calls} calls without an answer {DRAIN_SECONDS:g} s after the end, "
            "expected none over TCP"
        )


def _messages(account: Json, load: Load) -> Json:
    """What a client sent and received by bytes; and `given_up`, how many bytes of a connection may not have been sent,
    or have been without arriving."""
    messages = {direction: account.pop(direction) for direction in ("sent", "received")}
    if account["unanswered"] and load.transport == "tcp":
        most_bytes = account["unanswered"] * (load.block_bytes + AROUND_BYTES)
        messages["given_up"] = {"sent": most_bytes, "received": most_bytes}
    return messages


def _latencies(latencies: Counter[int], unanswered: int) -> Json:
    """The quantiles; calls without an answer count as slower than all others."""
    quantiles = {name: quantile(latencies, share, unanswered) for name, share in QUANTILES.items()}
    return {name: None if value is None else value * MICROSECOND for name, value in quantiles.items()}


def nfs(load: Load, hosts: Sequence[str], **rest: Any) -> Nfs:
    """The server on the last host, clients on all others; `rest` are fields of Command."""
    *clients, server = hosts
    words = [*clients, "--size-bytes", str(load.file_bytes)]
    return Nfs(
        name="nfs",
        roles={"server": (server,), "clients": tuple(clients)},
        prepare=[Task((server,), python("nfs.files", "{run}/files", *words), MAKE_SECONDS, modules())],
        servers=[_server(server, load)],
        clients=[_client(clients, load, index) for index in range(len(clients))],
        metrics_={},
        expect_seconds=START_SECONDS + load.duration_seconds,
        load=load,
        **rest,
    )


def _server(host: str, load: Load) -> Task:
    plugins = max(glob.glob(PLUGINS), default=PLUGINS, key=lambda path: (len(path), path))
    values = {
        "VERSION": str(load.version), "UDP": str(load.transport == "udp").lower(), "PORT": str(PORT),
        "MOUNTS": str(MOUNT_PORT), "PLUGINS": str(Path(plugins).parent), "FOLDER": FOLDER,
        "TRANSPORT": load.transport.upper(), "LARGEST": str(LARGEST_BLOCK),
    }  # fmt: skip
    text = CONFIGURATION
    for name, value in values.items():
        text = text.replace(f"= {name};", f"= {value};").replace(f'"{name}"', f'"{value}"')
    return Task(
        (host,), ("unshare", "--mount", "sh", "-c", START), templates={"ganesha.conf": text}, name="server",
        ready=Readiness(READY_SECONDS, words=INITIALIZED, seconds=None), precedes=True,
    )  # fmt: skip


def _client(hosts: Sequence[str], load: Load, index: int) -> Task:
    options = {
        "server": "{server}", "name": "{host}", "version": load.version, "transport": load.transport,
        "operation": load.operation, "access": load.access,
        "block-bytes": load.block_bytes, "size-bytes": load.file_bytes, "depth": load.depth,
        "duration-seconds": load.duration_seconds, "retransmit-seconds": load.retransmit_seconds,
        "seed": load.seed + index, "reconnects": load.reconnects,
    }  # fmt: skip
    if load.rate_per_second is not None:
        options["rate-per-second"] = load.rate_per_second
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    limit_seconds = load.duration_seconds + DRAIN_SECONDS + GRACE_SECONDS
    return Task(
        (hosts[index],),
        python("nfs.client", *words),
        limit_seconds,
        environment=modules(),
        name=hosts[index],
        precedes=True,
    )
