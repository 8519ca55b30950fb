"""iscsi: a disk that clients read and write over iSCSI. The last host is the target, all others are clients.

The target is tgt in user space, with the disk in memory. Clients have libiscsi, by which each request has a latency of
its own (`framegauge.apps.iscsi`): `iscsi-perf` only reads, and prints no latencies, and Debian's fio has no engine for
iSCSI. Both are programs of a `Command`, whose machinery starts, watches and ends them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pyarrow as pa

from framegauge.apps.iscsi import HEADER_BYTES, LARGEST_SEGMENT_BYTES, PORT, TARGET
from framegauge.apps.iscsi.client import DRAIN_SECONDS
from framegauge.apps.iscsi.initiator import LIBRARY
from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Json
from framegauge.workloads import own
from framegauge.workloads.base import Program
from framegauge.workloads.command import Command
from framegauge.workloads.counts import QUANTILES, quantile
from framegauge.workloads.tasks import Readiness, Task

__all__ = ["NEEDS", "Iscsi", "Load", "iscsi"]

NEEDS = (
    Program("tgtd", "tgt"),
    Program("tgtadm", "tgt"),
    Program(LIBRARY, "libiscsi7", files=f"/usr/lib/*/{LIBRARY}"),
)
START_SECONDS = 2.0  # for disk, target and sessions, roughly
READY_SECONDS = 20.0
MAKE_SECONDS = 60.0  # for the disk
GRACE_SECONDS = 30.0  # for a client, after its own time
MICROSECOND = 1e-6

# The daemon has sockets of its own: their usual place is one for the whole machine. `wait` passes on how it ended.
START = """\
set -e
export TGT_IPC_SOCKET={run}/control
tgtd -f --iscsi portal=PORTAL &
adm() { timeout 10 tgtadm --lld iscsi "$@"; }
until adm --op show --mode sys >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || wait $!
    sleep 0.05
done
adm --op new --mode target --tid 1 --targetname TARGET
SETTINGS
adm --op new --mode logicalunit --tid 1 --lun 1 --backing-store {run}/disk
adm --op bind --mode target --tid 1 --initiator-address ALL
echo ready
wait $!
"""
# The PDUs of a session besides its requests, as libiscsi has it: login, two TEST UNIT READY, of which the first is told
# that the target has started (UNIT ATTENTION), and logout.
SESSION = {"sent": (480, 472, 48, 48, 48), "received": (380, 48, 68, 48, 48)}
LOGOUT_BYTES = 48  # of its request, and of its response
# Of each connection that was opened again, for which libiscsi offers the one digest that was agreed on before.
LOGIN = {"sent": (480, 464), "received": (380, 48)}
ATTENTION_BYTES = 68  # UNIT ATTENTION, the answer to the first request of such a connection
# What initiators of Linux and libiscsi offer, so that each block is one PDU; a write needs no permission before it.
SETTINGS = {
    "MaxRecvDataSegmentLength": LARGEST_SEGMENT_BYTES, "MaxXmitDataSegmentLength": LARGEST_SEGMENT_BYTES,
    "FirstBurstLength": LARGEST_SEGMENT_BYTES, "MaxBurstLength": LARGEST_SEGMENT_BYTES, "InitialR2T": "No",
    "ImmediateData": "Yes",
}  # fmt: skip


@dataclass(frozen=True)
class Load:
    """What each client does, in base units; as `framegauge.apps.iscsi.client.Asked`."""

    operation: str = "read"
    access: str = "random"
    block_bytes: int = 8 << 10
    depth: int = 1  # at a rate, there is none
    rate_per_second: float | None = None
    duration_seconds: float = 2.0
    disk_bytes: int = 64 << 20
    seed: int = 1
    reconnects: int = 0  # of each client, which changes of the study end connections


@dataclass(frozen=True)
class Iscsi(Command):
    """The programs, as `iscsi` makes them."""

    load: Load = Load()
    needs: ClassVar[Sequence[Program]] = NEEDS

    def told(self, done: Sequence[Json], watched: Mapping[str, Json]) -> Json:
        """The clients' account of requests, PDUs and latencies; ProgramFailure if it does not add up."""
        (target,) = self.roles["target"]
        clients: dict[str, Json] = {account["host"]: json.loads(account["texts"][None]) for account in done}
        for host, account in clients.items():
            _check(host, account, self.load)
        counts: Counter[int] = Counter()
        for account in clients.values():
            counts.update({int(latency): count for latency, count in account.pop("latency_microseconds").items()})
        unanswered = sum(account["unanswered"] for account in clients.values())
        quantiles = {name: quantile(counts, share, unanswered) for name, share in QUANTILES.items()}
        latencies = {name: None if value is None else value * MICROSECOND for name, value in quantiles.items()}
        slowest = max(counts, default=0) * MICROSECOND
        reads = self.load.operation == "read"
        names, payloads = list(clients), {host: account["payload_bytes"] for host, account in clients.items()}
        total = sum(payloads.values())
        return {
            "senders": [target] if reads else names,
            "receivers": names if reads else [target],
            "received_bytes": payloads if reads else {target: total},
            "bytes": total,
            "active_seconds": max(account["ended_seconds"] for account in clients.values())
            - min(account["began_seconds"] for account in clients.values()),
            "transport": "tcp",
            "calls": sum(account["answered"] for account in clients.values()),
            "answers": {
                host: {"asked": account["requests"], "answered": account["answered"]}
                for host, account in clients.items()
            },
            "messages": {
                "server": target,
                "clients": {host: messages(self.load, account) for host, account in clients.items()},
            },
            "iscsi": {"clients": clients, "load": asdict(self.load), **latencies, "slowest_seconds": slowest},
            "not_measured": {
                name: f"{sum(counts.values())} requests were answered and {unanswered} not: too few for that quantile"
                for name, value in latencies.items()
                if value is None
            },
        }

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """goodput: bytes of blocks, over the time from the first request to the last answer; operations: requests
        answered per second of it; and the latencies of all requests of all clients, from when a request was due
        or, in a closed loop, sent."""
        account, active = record["iscsi"], record["active_seconds"]
        values: dict[str, float] = {name: account[name] for name in QUANTILES if account[name] is not None}
        if record["bytes"] > 0 and active > 0:
            values["goodput"] = 8.0 * record["bytes"] / active
            values["operations"] = record["calls"] / active
        return values


def messages(load: Load, one: Json) -> Json:
    """The PDUs of a client by their bytes (RFC 7143 section 11.1): a command and its response are a header of 48 bytes
    each, and the block follows the command of a write, or is in the response to a read. `given_up`: how many bytes may
    not have been sent, or twice, or without arriving."""
    bare, full = HEADER_BYTES, HEADER_BYTES + load.block_bytes
    command, response = (bare, full) if load.operation == "read" else (full, bare)
    counts = {direction: Counter(sizes) for direction, sizes in SESSION.items()}
    counts["sent"][command] += one["begun"]
    counts["received"][response] += one["answered"]
    # To a read, tgt sends the block and then UNIT ATTENTION.
    attention = (ATTENTION_BYTES, response) if load.operation == "read" else (ATTENTION_BYTES,)
    repeats = {"sent": (command,), "received": attention}
    for exchange, times in ((LOGIN, one["logged_in_again"]), (repeats, one["asked_again"])):
        for direction, sizes in exchange.items():
            counts[direction].update(dict.fromkeys(sizes, times))
    record: Json = {
        direction: {str(size): count for size, count in sizes.items()} for direction, sizes in counts.items()
    }
    # A request that was under way when a connection was opened again may have been sent on both, and answered on both.
    loose = {"sent": one["sent_again"] * command, "received": one["sent_again"] * response}
    if given_up := one["begun"] - one["answered"]:
        # There is no logout then.
        loose["sent"] += given_up * command + LOGOUT_BYTES
        loose["received"] += given_up * response + LOGOUT_BYTES
    elif one["logged_in_again"] > one["asked_again"]:
        # No request was under way when one of the connections was opened again: a logout may have been, and on both.
        loose = {direction: loose_bytes + LOGOUT_BYTES for direction, loose_bytes in loose.items()}
    if any(loose.values()):
        record["given_up"] = loose
    return record


def _check(host: str, account: Json, load: Load) -> None:
    """ProgramFailure if a request is not accounted for. None answered at all is a result (`evidence.unanswered`)."""
    requests, answered, unanswered = account["requests"], account["answered"], account["unanswered"]
    if requests != answered + unanswered:
        raise ProgramFailure(
            f"iscsi: {host}: found {requests} requests, {answered} answered and {unanswered} not, expected all "
            "accounted for"
        )
    if account["payload_bytes"] != answered * load.block_bytes:
        payload_bytes = account["payload_bytes"]
        raise ProgramFailure(
            f"iscsi: {host}: found {payload_bytes} bytes, expected {load.block_bytes} for each of {answered} requests"
        )


def iscsi(load: Load, hosts: Sequence[str], family: int = 4, **rest: Any) -> Iscsi:
    """The target on the last host, clients on all others, over IP of this version; `rest` are fields of Command."""
    *clients, target = hosts
    make_argv = own.python("iscsi.store", "{run}/disk", "--size-bytes", str(load.disk_bytes))
    return Iscsi(
        name="iscsi",
        roles={"target": (target,), "clients": tuple(clients)},
        prepare=[Task((target,), make_argv, MAKE_SECONDS, own.modules())],
        servers=[_target(target, family)],
        clients=[_client(clients, load, index, family) for index in range(len(clients))],
        metrics_={},
        expect_seconds=START_SECONDS + load.duration_seconds,
        load=load,
        **rest,
    )


def _portal(address: str, family: int) -> str:
    """An address and the port; IPv6 addresses have colons of their own (RFC 3986 section 3.2.2)."""
    return f"{address}:{PORT}" if family == 4 else f"[{address}]:{PORT}"


def _target(host: str, family: int) -> Task:
    update = "adm --op update --mode target --tid 1"
    settings = "\n".join(f"{update} --name {name} --value {value}" for name, value in SETTINGS.items())
    script = (
        START.replace("PORTAL", _portal("{address}", family)).replace("TARGET", TARGET).replace("SETTINGS", settings)
    )
    ready = Readiness(READY_SECONDS, words="^ready$", seconds=None)
    return Task((host,), ("sh", "target"), templates={"target": script}, name="target", ready=ready, precedes=True)


def _client(hosts: Sequence[str], load: Load, index: int, family: int) -> Task:
    options: dict[str, object] = {
        "portal": _portal("{target}", family), "operation": load.operation, "access": load.access,
        "block-bytes": load.block_bytes, "size-bytes": load.disk_bytes, "depth": load.depth,
        "duration-seconds": load.duration_seconds, "seed": load.seed + index, "place": index, "clients": len(hosts),
        "reconnects": load.reconnects,
    }  # fmt: skip
    if load.rate_per_second is not None:
        options["rate-per-second"] = load.rate_per_second
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    limit_seconds = load.duration_seconds + DRAIN_SECONDS + GRACE_SECONDS
    argv = own.python("iscsi.client", *words)
    return Task((hosts[index],), argv, limit_seconds, own.modules(), name=hosts[index], precedes=True)
