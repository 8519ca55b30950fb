"""ftp: files that curl fetches from vsftpd, both as packaged by Debian.

The file is sparse, in the folder of its host, which is in memory: sendfile takes the pages of a hole from the page
cache like any others, at the same speed, and a hole needs no memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import curl, live, tasks
from framegauge.workloads.base import Executed, Go, Phases, Program, jain, side_by_side
from framegauge.workloads.programs import running
from framegauge.workloads.stream import UNSHAPED_BITS_PER_SECOND, busy_seconds
from framegauge.workloads.tasks import Readiness, Task

__all__ = ["Ftp"]

SLOWEST_BITS_PER_SECOND = 1e6  # a slower transfer is considered stuck
GRACE_SECONDS = 30.0
CALL_BYTES = 100_000_000  # the amount for one call of curl to fetch, from all servers together
MOST_TRANSFERS = 25  # per call
PATIENCE_FACTOR = 3  # times `repeat`; after that no further call begins, however little was transferred

FILE = Task((), ("truncate", "--size", "{size}", "{run}/files/data"))
SERVER = Task(
    (), ("vsftpd", "{run}/vsftpd.conf"), files={"files/ready": "x"}, ready=Readiness(port="21", seconds=None),
    precedes=True,
    templates={
        "vsftpd.conf": """\
listen={four}
listen_ipv6={six}
listen_address{option}={address}
background=NO
anonymous_enable=YES
no_anon_password=YES
local_enable=NO
write_enable=NO
anon_root={run}/files
secure_chroot_dir={run}/empty
ftp_username=ftp
nopriv_user=nobody
seccomp_sandbox=NO
isolate_network=NO
xferlog_enable=NO
tcp_wrappers=NO
"""
    },
)  # fmt: skip


class FtpRecord(Record):
    """`fetched`: by server, all calls of curl with their transfers."""

    fetched: list[Json]


@dataclass(frozen=True)
class Ftp(Phases):
    """The first host fetches from the second, or (many-to-one) from all others at the same time.

    Each call of curl logs in with a file of one byte, which does not count, and then fetches the file
    over and over; calls are repeated until `repeat_seconds` of transfers have passed.
    """

    size_bytes: int
    pattern: str = "one-to-one"
    repeat_seconds: float = 0.5
    name: str = "ftp"
    needs: ClassVar[Sequence[Program]] = (Program("vsftpd", "vsftpd"), Program("curl", "curl"))

    def _transfers(self, servers: int) -> int:
        """The number of files that one call fetches from each server."""
        return max(1, min(MOST_TRANSFERS, CALL_BYTES // (self.size_bytes * servers)))

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The time for one server; the runner learns the time for several."""
        bits = 8.0 * self.size_bytes * self._transfers(1)
        return max(self.repeat_seconds, bits / (bits_per_second or UNSHAPED_BITS_PER_SECOND)) + 0.3

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Starts a server on each serving host, and waits until all listen. Then fetches from all at the same time."""
        client, servers = hosts[0], hosts[1:2] if self.pattern == "one-to-one" else hosts[1:]
        with ExitStack() as stack:
            for server in servers:
                stack.enter_context(_serving(server, token, self.size_bytes))
            watch = live.Watch([client, *servers])
            watch.begin()

            def go(_: Progress | None) -> Executed:
                results = side_by_side([(client, partial(self._fetch, server, len(servers))) for server in servers])
                control = live.evidence([client, *servers], watch.end(), ())["congestion_control"]
                return Executed(self._record(client, servers, results, control), [])

            yield go

    def _fetch(self, server: Host, servers: int, client: Host) -> list[Json]:
        """All calls of curl for one server: every transfer with its times."""
        calls: list[Json] = []
        while not calls or (
            sum(call["active_seconds"] for call in calls) < self.repeat_seconds
            and sum(call["whole_seconds"] for call in calls) < PATIENCE_FACTOR * self.repeat_seconds
        ):
            calls.append(self._call(server, servers, client))
        return calls

    def _call(self, server: Host, servers: int, client: Host) -> Json:
        count = self._transfers(servers)
        patience = GRACE_SECONDS + 8.0 * self.size_bytes * count * servers / SLOWEST_BITS_PER_SECOND
        with running(client, "curl", curl.command(server.address, count, patience), precedes=True) as fetching:
            if fetching.wait(patience) is None:
                raise ProgramFailure(f"curl on {client.name} did not end within {patience:.0f} s")
            output, log = fetching.output(), fetching.output("stderr")
            if "\n{" not in output:  # what it says of a transfer; before that it has failed
                raise ProgramFailure(f"curl on {client.name}: {fetching.last_words()}")
        start_seconds, transfers = curl.transfers(output, log, self.size_bytes, count)
        # The first transfer is part of the login. If an answer arrives at once, curl 7.88 may wait a second before it
        # opens a data connection (it polls no socket then): this affects the total time, but neither goodput nor the
        # median.
        active = sum(transfer["total_seconds"] - transfer["connected_seconds"] for transfer in transfers[1:])
        total_seconds = sum(transfer["total_seconds"] for transfer in transfers)
        return {
            "begun_seconds": start_seconds,
            "active_seconds": active,
            "whole_seconds": total_seconds,
            "transfers": transfers,
        }

    def _record(
        self, client: Host, servers: Sequence[Host], results: Sequence[Sequence[Json]], control: Mapping[str, list[str]]
    ) -> FtpRecord:
        fetched = [{"server": server.name, "calls": calls} for server, calls in zip(servers, results, strict=True)]
        total_bytes = sum(transfer["bytes"] for session in fetched for transfer in _counted(session))
        return {
            "senders": [server.name for server in servers],
            "receivers": [client.name],
            "received_bytes": {client.name: total_bytes},
            "bytes": total_bytes,
            "transfer_bytes": self.size_bytes,
            "congestion_control": {host.name: sorted(control.get(host.name, [])) for host in (client, *servers)},
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": None,
            "active_seconds": busy_seconds(interval for session in fetched for interval in _intervals(session)),
            "refused": 0,
            "fetched": fetched,
        }

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing, because there are no spools."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """The metrics of a run.

        goodput: bytes over the time in which data connections existed, each from its set-up until the server has
        confirmed the file, without login and commands. (`time_pretransfer`, curl's own start of a transfer, may come
        after data has arrived, and would give more than the line rate for small files.) completion_time: the median
        time of a file within a session, including commands and the set-up of the data connection. fairness: Jain's
        index over the servers.
        """
        values: dict[str, float] = {}
        if record["bytes"] > 0 and record["active_seconds"] > 0:
            values["goodput"] = 8.0 * record["bytes"] / record["active_seconds"]
        times = [transfer["total_seconds"] for session in record["fetched"] for transfer in _counted(session)]
        if times:
            values["completion_time"] = statistics.median(times)
        rates = [
            sum(transfer["bytes"] for transfer in _counted(session)) / busy
            for session in record["fetched"]
            if (busy := sum(end - begin for begin, end in _intervals(session))) > 0
        ]
        if len(rates) > 1:
            values["fairness"] = jain(rates)
        return values


def _counted(session: Json) -> Iterator[Json]:
    """The transfers of one server that count."""
    for call in session["calls"]:
        yield from call["transfers"][1:]


def _intervals(session: Json) -> Iterator[tuple[float, float]]:
    """The times in which data connections of one server existed, up to the confirmation, in seconds of uptime."""
    for transfer in _counted(session):
        open_seconds = transfer["total_seconds"] - transfer["connected_seconds"]
        yield transfer["ended_seconds"] - open_seconds, transfer["ended_seconds"]


@contextmanager
def _serving(host: Host, token: str, size_bytes: int) -> Iterator[None]:
    """A server with its file on that host, until the block is left."""
    four, six, option = ("YES", "NO", "") if ":" not in host.address else ("NO", "YES", "6")
    values = {"four": four, "six": six, "option": option, "size": str(size_bytes)}
    with tasks.placed(host, token, values, ("empty", "files")) as place:
        with tasks.started(FILE, place) as truncate:
            tasks.finish(FILE, truncate)
        with tasks.started(SERVER, place) as vsftpd:
            tasks.await_ready(SERVER, vsftpd, place)
            yield
