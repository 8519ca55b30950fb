"""ftp: files that curl fetches from vsftpd, both as packaged by Debian.

A server's files are on a tmpfs in its own mount namespace, which the kernel removes with the server, however that ends.
The file is sparse: sendfile takes the pages of a hole from the page cache like any others, at the same speed, and a
hole needs no memory.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads.base import Executed, Go, Phases, Program, jain, side_by_side
from framegauge.workloads.programs import Running, running
from framegauge.workloads.stream import UNSHAPED_BITS_PER_SECOND, busy_seconds

__all__ = ["Ftp", "completions", "parse"]

SLOWEST_BITS_PER_SECOND = 1e6  # a slower transfer is considered stuck
GRACE_SECONDS = 30.0
CALL_BYTES = 100_000_000  # the amount for one call of curl to fetch, from all servers together
MOST_TRANSFERS = 25  # per call
PATIENCE_FACTOR = 3  # times `repeat`; after that no further call begins, however little was transferred
DAY_SECONDS = 86_400.0
START_SECONDS = 0.3  # for curl to start while others share its CPU
_COMPLETED = re.compile(r"^(\d\d):(\d\d):(\d\d\.\d{6}) < 226 ", re.MULTILINE)
LOOK_SECONDS = 0.02  # between two readings of sockets, until one was seen

# Starts a program and prints the machine's uptime before that, in hundredths of a second.
UPTIME = ("sh", "-c", 'read up idle < /proc/uptime; echo "$up"; exec "$@"', "sh")

# $1 address, $2 bytes of the file, $3 and $4 listen and listen_ipv6. The watcher is orphaned on purpose, because vsftpd
# takes every child for a session. It prints "listening" once port 21 is open.
SERVER = """\
set -e
for place in /mnt /media; do [ -d $place ] && break; done
mount -t tmpfs -o mode=755 tmpfs $place
mkdir $place/empty $place/files
truncate -s "$2" $place/files/data
printf x > $place/files/ready
cat > $place/vsftpd.conf <<END
listen=$3
listen_ipv6=$4
listen_address${5}=$1
background=NO
anonymous_enable=YES
no_anon_password=YES
local_enable=NO
write_enable=NO
anon_root=$place/files
secure_chroot_dir=$place/empty
ftp_username=ftp
nopriv_user=nobody
seccomp_sandbox=NO
isolate_network=NO
xferlog_enable=NO
tcp_wrappers=NO
END
( ( until grep -qi ':0015 [0-9A-F]*:0000 0A' /proc/net/tcp /proc/net/tcp6 2>/dev/null; do sleep 0.01; done
    echo listening ) & )
exec vsftpd $place/vsftpd.conf
"""


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
    needs: ClassVar[Sequence[Program]] = (
        Program("vsftpd", "vsftpd"),
        Program("curl", "curl"),
        Program("unshare", "util-linux"),
    )

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
        client = hosts[0]
        servers = list(hosts[1:2] if self.pattern == "one-to-one" else hosts[1:])
        with ExitStack() as stack:
            started = [
                stack.enter_context(running(server, "vsftpd", _server(server.address, self.size_bytes)))
                for server in servers
            ]
            for each in started:
                each.await_words("listening")

            def go(_: Progress | None) -> Executed:
                found = side_by_side([(client, partial(self._fetch, server, len(servers))) for server in servers])
                stack.close()
                return Executed(self._record(client, servers, found), [])

            yield go

    def _fetch(self, server: Host, servers: int, client: Host) -> Json:
        """All calls of curl for one server: every transfer with its times, and the sockets' congestion control."""
        count = self._transfers(servers)
        calls: list[Json] = []
        control: dict[str, set[str]] = {client.name: set(), server.name: set()}
        patience = GRACE_SECONDS + 8.0 * self.size_bytes * count * servers / SLOWEST_BITS_PER_SECOND
        while not calls or (
            sum(call["active_seconds"] for call in calls) < self.repeat_seconds
            and sum(call["whole_seconds"] for call in calls) < PATIENCE_FACTOR * self.repeat_seconds
        ):
            with running(client, "curl", [*UPTIME, *_curl(server.address, count, patience)]) as curl:
                ended = _watch(curl, server, control, patience)
                if ended is None:
                    raise ProgramFailure(f"curl on {client.name} did not end within {patience:.0f} s")
                begun, text = _taken_uptime(curl.output())
                if ended["exit_code"] != 0 and not text.strip():
                    raise ProgramFailure(f"curl on {client.name}: {curl.last_words()}")
                transfers = parse(text, self.size_bytes, count)
                first = begun + START_SECONDS + transfers[0]["total_seconds"]
                for each, end in zip(transfers, completions(curl.output("stderr"), first, len(transfers)), strict=True):
                    each["ended_seconds"] = end
            # The first transfer is part of the login. If an answer arrives at once, curl 7.88 may wait a second before
            # it opens a data connection (it polls no socket then): this affects the total time, but neither goodput nor
            # the median.
            active = sum(each["total_seconds"] - each["connected_seconds"] for each in transfers[1:])
            whole = sum(each["total_seconds"] for each in transfers)
            calls.append(
                {"begun_seconds": begun, "active_seconds": active, "whole_seconds": whole, "transfers": transfers}
            )
        return {"calls": calls, "congestion_control": {host: sorted(names) for host, names in control.items()}}

    def _record(self, client: Host, servers: Sequence[Host], found: Sequence[Json]) -> Json:
        amount = sum(each["bytes"] for one in found for each in _counted(one))
        control: dict[str, set[str]] = {}
        for one in found:
            for host, names in one["congestion_control"].items():
                control.setdefault(host, set()).update(names)
        return {
            "senders": [server.name for server in servers],
            "receivers": [client.name],
            "received_bytes": {client.name: amount},
            "bytes": amount,
            "transfer_bytes": self.size_bytes,
            "congestion_control": {host: sorted(names) for host, names in control.items()},
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": None,
            "active_seconds": busy_seconds(interval for one in found for interval in _intervals(one)),
            "refused": 0,
            "fetched": [{"server": server.name, **one} for server, one in zip(servers, found, strict=True)],
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
        found: dict[str, float] = {}
        if record["bytes"] > 0 and record["active_seconds"] > 0:
            found["goodput"] = 8.0 * record["bytes"] / record["active_seconds"]
        times = [each["total_seconds"] for one in record["fetched"] for each in _counted(one)]
        if times:
            found["completion_time"] = statistics.median(times)
        rates = [
            sum(each["bytes"] for each in _counted(one)) / busy
            for one in record["fetched"]
            if (busy := sum(end - begin for begin, end in _intervals(one))) > 0
        ]
        if len(rates) > 1:
            found["fairness"] = jain(rates)
        return found


def _counted(one: Json) -> Iterator[Json]:
    """The transfers of one server that count."""
    for call in one["calls"]:
        yield from call["transfers"][1:]


def _intervals(one: Json) -> Iterator[tuple[float, float]]:
    """The times in which data connections of one server existed, up to the confirmation, in seconds of uptime."""
    for each in _counted(one):
        stood = each["total_seconds"] - each["connected_seconds"]
        yield each["ended_seconds"] - stood, each["ended_seconds"]


def _server(address: str, size_bytes: int) -> list[str]:
    four = ":" not in address
    listen = ("YES", "NO", "") if four else ("NO", "YES", "6")
    return ["unshare", "--mount", "sh", "-c", SERVER, "sh", address, str(size_bytes), *listen]


def _curl(address: str, count: int, patience: float) -> list[str]:
    base = f"ftp://{address}" if ":" not in address else f"ftp://[{address}]"
    argv = ["curl", "-q", "--globoff", "--silent", "--show-error", "--noproxy", "*", "--connect-timeout", "10"]
    argv += ["--max-time", str(math.ceil(patience)), "--write-out", "%{json}\\n"]
    # Between two transfers curl may wait for the CPU. Its times do not show that, but its log does.
    argv += ["--verbose", "--trace-time"]
    for name in ("ready", *["data"] * count):
        argv += ["--output", "/dev/null", f"{base}/{name}"]
    return argv


def _watch(curl: Running, server: Host, control: Mapping[str, set[str]], patience: float) -> Json | None:
    """Waits until curl has ended and returns how. Meanwhile it reads the congestion control of both ends' sockets."""
    client = curl.host
    while True:
        if all(control.values()):
            return curl.wait(patience)
        ended = curl.wait(LOOK_SECONDS)
        if ended is not None:
            return ended
        for host, other in ((client, server), (server, client)):
            for each in host.agent.request("sockets.read")["sockets"]:
                peer = each["remote"].rpartition(":")[0].strip("[]")
                if peer == other.address and each["congestion_control"] is not None:
                    control[host.name].add(each["congestion_control"])


def parse(text: str, size_bytes: int, count: int) -> list[Json]:
    """The transfers that curl's `--write-out %{json}` reports, one per line: the login's and `count` files.

    ProgramFailure if the output is not as expected, or a transfer has failed.
    """
    lines = text.splitlines()
    found = [_transfer(line, index) for index, line in enumerate(lines)]
    if len(found) != count + 1:
        raise ProgramFailure(f"curl: found {len(found)} transfers, expected {count + 1}")
    for index, each in enumerate(found):
        expected = size_bytes if index else 1
        if each["bytes"] != expected:
            raise ProgramFailure(f"curl: transfer {index}: found {each['bytes']} bytes, expected {expected}")
    return found


def _taken_uptime(text: str) -> tuple[float, str]:
    line, _, rest = text.partition("\n")
    try:
        return float(line), rest
    except ValueError:
        raise ProgramFailure(f"curl: found {line[:60]!r}, expected the machine's uptime first") from None


def completions(trace: str, first_seconds: float, count: int) -> list[float]:
    """The time at which each transfer was confirmed (FTP's 226, RFC 959), in seconds of the machine's uptime.

    `trace` is the log of `curl --verbose --trace-time`: its times are that clock to the microsecond, plus a whole
    number of seconds that turns it into the time of day (curl's `tool_cb_dbg.c`: the offset is taken once, in seconds).
    `first_seconds`: the time of the first confirmation, to half a second. ProgramFailure if there are not `count`.
    """
    found: list[float] = []
    for hours, minutes, seconds in _COMPLETED.findall(trace):
        of_day = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
        if not found:
            offset = round(of_day - first_seconds)
        at = of_day - offset
        found.append(at if not found else found[-1] + (at - found[-1]) % DAY_SECONDS)
    if len(found) != count:
        raise ProgramFailure(f"curl: found {len(found)} confirmed transfers, expected {count}")
    return found


def _transfer(line: str, index: int) -> Json:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProgramFailure(f"curl: transfer {index}: found {line[:60]!r}, expected a JSON object")
    if found.get("exitcode") != 0:
        why = str(found.get("errormsg"))[:200]
        raise ProgramFailure(f"curl: transfer {index}: found exit code {found.get('exitcode')} ({why}), expected 0")
    names = {"bytes": "size_download", "connected_seconds": "time_connect", "total_seconds": "time_total"}
    values: Json = {name: found.get(key) for name, key in names.items()}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            raise ProgramFailure(f"curl: transfer {index}: {names[name]}: found {value!r}, expected a number from 0")
    # Only the login's transfer may have a later time, that of the control connection.
    if index and not values["connected_seconds"] < values["total_seconds"]:
        raise ProgramFailure(f"curl: transfer {index}: found an end before its connection, expected it after that")
    return values
