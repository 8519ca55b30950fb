"""Loads of many kinds, whose packets at MTU 9000 must lie within what was said of them at 1500.

    sudo .venv/bin/python -m bench.truth.estimate_loads [--blocks 3] [--keep FOLDER] [NAME ...]

The loads are programs with real sockets (`load_ends.py`) and servers of others, on hosts of the emulated rack: one run
at each MTU, in which the switch counts packets and programs their bytes. Prints a row for each load: packets at 1500
for each one at 9000, by payload, as foreseen, with the bounds of all blocks, and as they came. `--keep` writes what was
read. The exit code is 1 if the median of a load was out of its bounds."""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import say, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.estimate.document import estimate
from framegauge.testbeds.base import Conditions, Host, Json
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.programs import Running, running

RATE, SMALL, LARGE = 200_000_000, 1500, 9000
SECONDS = 3.0
PATIENCE_SECONDS = 120.0
ENDS = Path(__file__).with_name("load_ends.py")


@dataclass(frozen=True)
class Load:
    """What clients ask for at once (`load_ends.py`), or a command of a program with the server that it needs."""

    parts: Sequence[Mapping[str, Any]] = ()
    rtt_seconds: float = 0.0002
    seconds: float = SECONDS
    server: Sequence[str] = ()
    client: Sequence[str] = ()
    moved: str = ""  # a regular expression of what the client says of its bytes
    bytes_per_turn: int = 0  # or those of each of its `-n` turns


def _asks(*response: int, **more: Any) -> dict[str, Any]:
    return {"response": list(response), **more}


GRPC = _asks(120, 900, 60, 2600, 300, 12_000, 80, 5200, turns=0, depth=8, request=180, pipelined=False)
REDIS = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--port", "6400"]
NGINX = """
daemon off; worker_processes 1; error_log stderr; pid FOLDER/pid;
events { worker_connections 512; }
http { access_log off; client_body_temp_path FOLDER/a; proxy_temp_path FOLDER/b; fastcgi_temp_path FOLDER/c;
uwsgi_temp_path FOLDER/d; scgi_temp_path FOLDER/e; sendfile on; keepalive_requests 100000;
server { listen 8080; root FOLDER; } }
"""
_FOLDER = 'f=$(mktemp -d); chmod 755 $f; printf "%s" "$1" | sed "s#FOLDER#$f#g" > $f/conf; '
_PAGE = "head -c $2 /dev/zero > $f/page; echo ready; exec nginx -p $f -c $f/conf"


def _web(size: int) -> list[str]:
    return ["sh", "-c", _FOLDER + _PAGE, "sh", NGINX, str(size)]


def _curl() -> list[str]:
    """One transfer after another, each by a new process."""
    one = "n=$(curl -s -o /dev/null -w '%{size_download}' http://{server}:8080/page); t=$((t + n)); "
    begin = f"t=0; end=$(($(date +%s) + {SECONDS:.0f})); "
    return ["sh", "-c", f"{begin}while [ $(date +%s) -lt $end ]; do {one}done; echo moved $t"]


def _ab(*more: str) -> list[str]:
    return ["ab", "-q", "-t", f"{SECONDS:g}", "-n", "1000000", *more, "http://{server}:8080/page"]


LOADS: Mapping[str, Load] = {
    "HTTP, a connection for each 3 kB": Load([_asks(3_000)]),
    "HTTP, a connection for each 30 kB": Load([_asks(30_000)]),
    "HTTP, a connection for each 100 kB": Load([_asks(100_000)]),
    "HTTP, the same, four at once": Load([_asks(100_000, connections=4)]),
    "HTTP, a connection for each 1 MB": Load([_asks(1_000_000)]),
    "HTTP, new connections, 2 to 200 kB": Load([_asks(2_000, 12_000, 45_000, 200_000, 8_000, connections=2)]),
    "HTTP, four answers per connection": Load([_asks(24_000, turns=4, first_write=300)]),
    "HTTP, persistent, 100 kB": Load([_asks(100_000, turns=0, connections=2)]),
    "HTTP, new connections, RTT of 5 ms": Load([_asks(100_000, connections=8)], rtt_seconds=0.005),
    "uploads, a connection for each 100 kB": Load([_asks(150, request=100_000)]),
    "nginx and ab, 50 kB, new connections": Load(
        server=_web(50_000), client=_ab("-c", "4"), moved=r"Total transferred:\s+(\d+)"
    ),
    "nginx and ab, 20 kB, kept alive": Load(
        server=_web(20_000), client=_ab("-k", "-c", "4"), moved=r"Total transferred:\s+(\d+)"
    ),
    "gRPC-like, eight calls under way": Load([{**GRPC, "connections": 2}]),
    "Redis pipelines, 50 answers of 100 B": Load([_asks(100, turns=0, depth=50, request=28)]),
    "redis-benchmark, 16 values of 1 kB": Load(
        server=REDIS, bytes_per_turn=2000,
        client=["redis-benchmark", "-h", "{server}", "-p", "6400", "-t", "set,get", "-d", "1000", "-P", "16", "-c", "4",
                "-n", "40000", "--csv"],
    ),
    "NFS-like, reads of 64 KiB, four under way": Load([_asks(65_660, turns=0, depth=4, request=130)]),
    "NFS-like, writes of 32 KiB, two under way": Load([_asks(160, turns=0, depth=2, request=32_900)]),
    "TLS, a connection for each 40 kB": Load([_asks(40_000, tls=True)]),
    "TLS, persistent, 50 kB": Load([_asks(50_000, tls=True, turns=0, connections=2)]),
    "window of 64 KiB, RTT of 10 ms": Load([_asks(5_000_000, turns=0, receive_buffer=32_768)], rtt_seconds=0.010),
    "window of 8 KiB, uploads, RTT of 5 ms": Load(
        [_asks(100, turns=0, request=1_000_000, receive_buffer=8192)], rtt_seconds=0.005
    ),
    "window of 20 kB, a slow reader": Load(
        [_asks(400_000, turns=0, read_at_once=2000, receive_buffer=20_000)], rtt_seconds=0.001
    ),
    "window of 12 kB, three answers per connection": Load(
        [_asks(60_000, turns=3, receive_buffer=12_000, connections=2)], rtt_seconds=0.001
    ),
    "200 kB both ways at once": Load([_asks(200_000, turns=0, depth=2, request=200_000)]),
    "nginx and curl, 90 kB, one after another": Load(server=_web(90_000), client=_curl(), moved=r"moved (\d+)"),
    "new connections, 300 kB, RTT of 40 ms": Load([_asks(300_000, connections=6)], rtt_seconds=0.040),
    "short, persistent and bulk at once": Load(
        [
            _asks(30_000, most_turns=250), _asks(600, turns=0, think_seconds=0.002, most_turns=700),
            _asks(2_000_000, turns=0, think_seconds=0.05, most_turns=14),
        ],
        seconds=30.0,
    ),
}  # fmt: skip


def conditions(load: Load, mtu: int) -> Conditions:
    """Two hosts without offloads, so that what the switch counts is what hosts count."""
    return Conditions(
        testbed="fabric", mtu={"h1": mtu, "h2": mtu}, rtt_seconds=load.rtt_seconds, bits_per_second=RATE,
        buffer_bytes=1_000_000, port_mtu=9216, tso=False, lro=False, gro=False, checksum=False,
        congestion_control="cubic", moderation_seconds=0.0, aggregate_bytes=65_536, shaper_factor=0.98,
        shaper_burst_bytes=max(2000, mtu + 100), family=4,
        sysctls={"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 16384 4194304"},
    )  # fmt: skip


@contextmanager
def _serving(load: Load, server: Host) -> Iterator[None]:
    with ExitStack() as stack:
        if load.server:
            stack.enter_context(running(server, "server", load.server)).await_words("eady")
        for number in range(len(load.parts)):
            started = stack.enter_context(running(server, "server", _argv(load, "server", number, server)))
            started.await_words("ready")
        yield


def _argv(load: Load, role: str, number: int, server: Host) -> list[str]:
    more = {"role": role, "number": number, "address": server.address, "seconds": load.seconds}
    asked = {**load.parts[number], **more}
    return [sys.executable, str(ENDS), json.dumps(asked)]


def _moved(load: Load, program: Running) -> float:
    ended = program.wait(PATIENCE_SECONDS)
    if ended is None or ended["exit_code"] != 0:
        raise RuntimeError(f"{program.name}: {program.last_words()}")
    if not load.client:
        return float(json.loads(program.output().splitlines()[-1])["bytes"])
    if load.bytes_per_turn:
        return float(load.client[load.client.index("-n") + 1]) * load.bytes_per_turn
    matched = re.search(load.moved, program.output())
    if matched is None:
        raise RuntimeError(f"{program.name}: {program.last_words()}")
    return float(matched[1])


def run(agent: Agent, load: Load, mtu: int) -> tuple[float, dict[str, Json]]:
    """Packets per byte of payload, and what was read of both hosts for an estimate."""
    bed = RackTestbed(agent)
    bed.up(conditions(load, mtu))
    try:
        client, server = bed.hosts()
        with _serving(load, server):
            for host in (client, server):
                asked = {"interfaces": [], "target_mtus": [LARGE], "sudo": False}
                host.agent.request("estimate.begin", asked)
            bed.begin()
            commands = [_argv(load, "client", number, server) for number in range(len(load.parts))]
            if load.client:
                commands.append([word.replace("{server}", server.address) for word in load.client])
            with ExitStack() as stack:
                programs = [stack.enter_context(running(client, argv[0], argv)) for argv in commands]
                moved = sum(_moved(load, each) for each in programs)
            ports = bed.end()["fabric"]["ports"]
            readings = {host.name: host.agent.request("estimate.end") for host in (client, server)}
    finally:
        bed.down()
    frames = sum(port["sent_frames"] for port in ports if port["port"].rpartition(">")[2] in readings)
    return frames / moved, readings


def block(agent: Agent, load: Load) -> tuple[Json, float, dict[str, Json]]:
    """The estimate of packets, how many at 1500 came for each one at 9000, and the readings."""
    before, readings = run(agent, load, SMALL)
    after, _ = run(agent, load, LARGE)
    packets: Json = estimate(readings, [LARGE], RATE)["total"][0]["packets"]
    return packets["ratio"], before / after, readings


def row(name: str, found: Sequence[tuple[Json, float]]) -> tuple[str, bool]:
    """A line of the table, and whether the median was within those of the bounds: no single run is the effect."""
    within = [ratio["least"] <= came <= ratio["most"] for ratio, came in found]
    bounds = [statistics.median(ratio[end] for ratio, _ in found) for end in ("least", "most")]
    is_within = bounds[0] <= statistics.median(came for _, came in found) <= bounds[1]
    least, most = min(ratio["least"] for ratio, _ in found), max(ratio["most"] for ratio, _ in found)
    likely = statistics.median(ratio["estimate"] for ratio, _ in found)
    came = [each for _, each in found]
    off = statistics.median(ratio["estimate"] / each - 1 for ratio, each in found)
    shown = f"{statistics.median(came):.2f} ({min(came):.2f} to {max(came):.2f})"
    width = statistics.median(ratio["most"] / ratio["least"] for ratio, _ in found)
    cells = (f"{likely:.2f}", f"{least:.2f} to {most:.2f}", f"{width:.2f}", shown, f"{off:+.1%}".replace("-", "−"))
    return f"| {name} | {' | '.join(cells)} | {sum(within)} of {len(within)} |", is_within


def main() -> int:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(LOADS))
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    names = [name for name in LOADS if not options.names or any(part in name for part in options.names)]
    warn_if_busy()
    print("| load | foreseen | bounds | width | came | off | within |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    out = 0
    with Agent.open([find_agent(), "rack"]) as agent:
        for name in names:
            blocks = []
            for number in range(1, options.blocks + 1):
                ratio, came, readings = block(agent, LOADS[name])
                blocks.append((ratio, came))
                if options.keep is not None:
                    _keep(options.keep, name, number, came, readings)
            line, is_within = row(name, blocks)
            print(line, flush=True)
            out += not is_within
    say(f"{len(names) - out} of {len(names)} loads within their bounds")
    return 1 if out else 0


def _keep(folder: Path, name: str, number: int, came: float, readings: Mapping[str, Json]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}-{number}.json"
    path.write_text(json.dumps({"load": name, "came": came, "readings": readings}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
