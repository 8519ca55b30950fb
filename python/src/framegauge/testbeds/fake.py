"""An invented rack: answers as a rack agent would, with a simple goodput model, seeded noise and faults.

For the tests of everything above it, and for trying a study file out. It never sleeps and opens nothing.
Its figures are invented: the scope of such a study is "invented", never "emulated".
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from framegauge import __version__
from framegauge.agent import ANSWER_SECONDS, PROTOCOL
from framegauge.errors import from_agent
from framegauge.testbeds.base import Json, Progress
from framegauge.testbeds.fake_model import FAULTS, BuiltRack, FakeError, FakeModel, Fault
from framegauge.testbeds.rack import RackTestbed

__all__ = ["FAULTS", "FakeError", "FakeModel", "FakeRack", "FakeTestbed", "Fault"]


class FakeRack:
    """A rack agent in memory: `request` as Agent.request, without a pipe."""

    def __init__(self, model: FakeModel | None = None) -> None:
        self.model = model or FakeModel()
        self._random = np.random.default_rng(self.model.seed)
        self._rack: BuiltRack | None = None
        self._racks = 0
        self._spools: dict[int, bytes] = {}
        self.about: Json = {
            "protocol": PROTOCOL, "agent": __version__, "role": "rack", "pid": 0, "user_id": 0,
            "kernel": "0.0 (invented)", "cpus": 2,
        }  # fmt: skip

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = ANSWER_SECONDS,
        on_progress: Progress | None = None,
    ) -> Json:
        """The result, or the error that an agent's error answer would become."""
        try:
            return self.answer(method, dict(params or {}))
        except FakeError as error:
            raise from_agent(error.code, error.message, error.data) from None

    def close(self) -> None:
        """Nothing was started."""
        self._rack = None

    def answer(self, method: str, params: Json) -> Json:
        """The result of one request; FakeError for an error answer."""
        known: dict[str, Callable[[Json], Json]] = {
            "requirements": lambda _: {"missing": list(self.model.missing), "degraded": list(self.model.degraded)},
            "rack.up": self._up,
            "rack.down": self._down,
            "relay": self._relay,
            "measure.begin": self._begin,
            "measure.end": lambda _: self._measured(self._up_now()),
            "spool.read": self._spool_read,
            "spool.drop": self._spool_drop,
            "shutdown": lambda _: {},
        }
        if method not in known:
            raise FakeError(-32601, f"there is no method {method}", {"method": method})
        return known[method](params)

    def _up_now(self) -> BuiltRack:
        if self._rack is None:
            raise FakeError(-32006, "no rack is up: call rack.up first", {"what": "no rack is up"})
        return self._rack

    def _fault(self, kind: str) -> bool:
        rack = self._up_now()
        return any(each.kind == kind and each.when(rack.up, rack.number) for each in self.model.faults)

    def _up(self, params: Json) -> Json:
        if self.model.missing:
            raise FakeError(-32002, "something is missing", {"missing": list(self.model.missing)})
        if self._rack is not None:
            raise FakeError(-32006, "a rack is up: call rack.down first", {"what": "a rack is up"})
        for host in params["hosts"]:
            if host["mtu"] > self.model.largest_mtu:
                data = {"what": f"MTU of {host['name']}", "asked": host["mtu"], "limit": self.model.largest_mtu}
                raise FakeError(-32003, "the device cannot take this MTU", data)
        self._rack = BuiltRack(params, self._racks)
        self._racks += 1
        names = self._rack.names
        self._rack.sent = dict.fromkeys(names, 0)
        self._rack.data = dict.fromkeys(names, 0)
        hosts = [
            {
                "name": name,
                "pid": 100 + index,
                "interface": f"fg{index}",
                "address": _address(index, params),
                "mac": "02:00",
            }
            for index, name in enumerate(names)
        ]
        return {"hosts": hosts, "ceilings": {host["name"]: self._ceilings(host["mtu"]) for host in params["hosts"]}}

    def _ceilings(self, mtu: int) -> Json:
        """A stand-in for crates/frames, which this process without an agent cannot ask."""
        up = self._up_now().up
        headers = 40 if up["family"] == 4 else 60
        rate, payload = up["link"]["bits_per_second"], mtu - headers - 12
        goodput = None if rate is None else rate * payload / (mtu + 38)
        return {
            "mtu": mtu, "frame_bytes": mtu + 18, "wire_bytes": mtu + 38, "mss_bytes": mtu - headers,
            "segment_payload_bytes": payload, "goodput_bits_per_second": goodput,
        }  # fmt: skip

    def _down(self, _: Json) -> Json:
        self._up_now()
        self._rack = None
        self._spools.clear()
        return {}

    def _relay(self, params: Json) -> Json:
        rack, host, asked = self._up_now(), params["host"], params["params"]
        if host not in rack.names:
            raise FakeError(-32006, f"there is no host {host}", {"what": f"host {host}"})
        known: dict[str, Callable[[], Json]] = {
            "host.read": lambda: self._host_read(rack, host),
            "host.counters": lambda: self._counters(rack, host),
            "wire.begin": dict,
            "wire.end": lambda: self._wire(rack, host),
            "stream.serve": lambda: {"port": 40001},
            "stream.run": lambda: self._stream(rack, asked),
            "stream.close": lambda: self._close_stream(rack),
            "spool.read": lambda: self._spool_read(asked),
            "spool.drop": lambda: self._spool_drop(asked),
        }  # fmt: skip
        if params["method"] not in known:
            raise FakeError(-32601, f"there is no method {params['method']}", {"method": params["method"]})
        return known[params["method"]]()

    def _congestion_control(self, rack: BuiltRack) -> str:
        return "reno" if self._fault("congestion_control") else str(rack.up["congestion_control"])

    def _host_read(self, rack: BuiltRack, host: str) -> Json:
        up, last = rack.up, host == rack.names[-1]
        on = bool(up["nic"]["offloads"]) != (self._fault("offloads") and last)
        rate, fabric = up["link"]["bits_per_second"], up["testbed"] == "fabric"
        sysctls = {name: value.replace(" ", "\t") for name, value in up["sysctls"].items()}
        if self._fault("sysctl") and last:
            sysctls = dict.fromkeys(sysctls, "1") | {"net.ipv4.tcp_sack": str(int(rack.elapsed > 0))}
        shaped = rate is not None
        scale = (up["shaper"]["factor"] if fabric else 1) * (0.9 if self._fault("shaper") and last else 1)
        qdisc = {
            "kind": "tbf" if shaped else "noqueue",
            "bits_per_second": round(rate * scale) if shaped else None,
            "burst_bytes": up["shaper"]["burst_bytes"] if shaped else None,
            "limit_bytes": 10**6 if shaped else None,
            "sent_bytes": 0, "sent_packets": 0, "drops": 0, "overlimits": 0, "backlog_bytes": 0,
        }  # fmt: skip
        return {
            "interface": "fg0",
            "mtu": 1500 if self._fault("mtu") and last else rack.mtus[host],
            "maximum_mtu": self.model.largest_mtu,
            "offloads": dict.fromkeys(("tso", "gso", "gro", "tx_checksum"), on),
            "qdisc": qdisc,
            "congestion_control_route": up["congestion_control"],
            "sysctls": sysctls,
            "tcp_metrics_entries": int(self._fault("metrics_cache")),
        }

    def _wire(self, rack: BuiltRack, host: str) -> Json:
        syns = []
        for index, sender in enumerate(rack.names):
            mtu = 1500 if self._fault("mss") and sender == rack.names[-1] else rack.mtus[sender]
            syns.append(
                {
                    "direction": "out" if sender == host else "in",
                    "source": _socket(index, rack.up),
                    "destination": _socket(1 - index, rack.up),
                    "ack": index == 1,
                    "mss_bytes": mtu - (40 if rack.up["family"] == 4 else 60),
                    "timestamps": True,
                    "window_scale": 7,
                    "sack_permitted": True,
                }
            )
        return {"syns": syns if rack.syns else [], "lost": 0}

    def _counters(self, rack: BuiltRack, host: str) -> Json:
        other = next(name for name in rack.names if name != host)
        sent, received = rack.sent[host], rack.sent[other]
        off = 1 if rack.elapsed and self._fault("nstat") else 0
        ring = 3 if rack.elapsed and self._fault("ring") and host == rack.names[0] else 0
        interface = dict.fromkeys(("rx_bytes", "tx_bytes", "rx_dropped", "rx_errors", "tx_errors"), 0)
        interface |= {"rx_packets": received, "tx_packets": sent, "tx_dropped": ring}
        version = "IpExt" if rack.up["family"] == 4 else "Ip6"
        return {
            "interface": interface,
            "nstat": {"TcpOutSegs": sent - off, "TcpRetransSegs": 0, f"{version}InNoECTPkts": received},
        }

    def _stream(self, rack: BuiltRack, asked: Json) -> Json:
        """Rounds of equal length: handshake, slow start, then the ceiling; log-normal noise on a run."""
        if self._fault("lost_stream"):
            raise FakeError(-32007, "the far end of the stream went away", {"what": "stream"})
        flows, size = asked["flows"], asked["size_bytes"]
        mtu = min(rack.mtus.values())
        rate = (self._ceilings(mtu)["goodput_bits_per_second"] or 2e10 * mtu / (mtu + 2000)) * 0.999
        if self.model.loses(rack.up):
            rate *= 1 - self.model.goodput_loss
        rate *= math.exp(-abs(self._random.normal(0, self.model.noise)) if self.model.noise else 0)
        rate *= 1 - self.model.drift * (rack.number % 40) / 40
        if self._fault("ceiling"):
            rate *= 1.1
        rtt = rack.up["link"]["rtt_seconds"] * (0.5 if self._fault("rtt") else 1)
        payload = self._ceilings(mtu)["segment_payload_bytes"]
        if size is None:
            rounds, one = 1, float(asked["duration_seconds"])
            amount = int(rate * one / 8)
        else:
            doublings = max(0.0, math.log2(min(size, rate * rtt / 8 + 1) / (10 * payload)))
            one = rtt * (2 + doublings) + 8 * size * flows / rate
            rounds = max(1, math.ceil(asked["repeat_seconds"] / one))
            amount = size * flows * rounds
        segments = math.ceil(amount / payload)
        sender, receiver = rack.names[::-1] if asked["reverse"] else rack.names
        rack.sent[sender] += segments + 3 * rounds
        rack.data[sender] += segments
        rack.sent[receiver] += segments // 2 + 2 * rounds
        rack.elapsed += rounds * one + 0.01
        rack.syns += rounds
        samples = pa.table({"time_seconds": [0.0], "round": [0], "flow": [0], "cwnd_segments": [10]})
        said: Json = {
            "retransmits": 0,
            "srtt_median_seconds": rtt + 0.001,
            "mean_segment_payload_bytes": amount / segments,
            "path_mtu": [mtu],
            "sender_mss_bytes": [payload],
            "samples": self._spool(samples),
        }
        quiet: Json = {name: [] if isinstance(value, list) else None for name, value in said.items()}
        if asked["reverse"]:
            rack.sending = said
        return {
            "rounds": rounds,
            "bytes": amount,
            "active_seconds": rounds * one,
            "congestion_control": [rack.up["congestion_control"]],
            "transfers": self._spool(_transfers(rounds, flows, one, rtt + 1e-6, amount)),
            **(quiet if asked["reverse"] else said),
        }

    def _close_stream(self, rack: BuiltRack) -> Json:
        """The serving end's answer; its sending sockets speak only in reverse."""
        none: Json = {"retransmits": 0, "srtt_median_seconds": None, "mean_segment_payload_bytes": None}
        none |= {"path_mtu": [], "sender_mss_bytes": [], "samples": None}
        said = rack.sending or none
        return {
            "bytes": 0,
            "connections": 1,
            "refused": 0,
            "congestion_control": [self._congestion_control(rack)],
            **said,
        }

    def _measured(self, rack: BuiltRack) -> Json:
        """`measure.end`: meters that agree with the counters, unless sabotaged."""
        elapsed = rack.elapsed + 0.05
        busy = 0.99 if self._fault("host_cpu") else 0.4
        cpus = [
            {
                "cpu": index, "role": role, "user_seconds": 0.0, "nice_seconds": 0.0,
                "system_seconds": elapsed * busy, "idle_seconds": elapsed * (1 - busy), "iowait_seconds": 0.0,
                "irq_seconds": 0.0, "softirq_seconds": 0.0, "steal_seconds": 0.0,
            }
            for index, role in enumerate(("hosts", "fabric"))
        ]  # fmt: skip
        rest = {"softirqs": [{"cpu": 0, "net_rx": 5, "net_tx": 7}], "agent": {"cpu_seconds": 0.001}}
        if rack.up["testbed"] == "kernel":
            return {"elapsed_seconds": elapsed, "fabric": None, "cpus": cpus, **rest}
        lateness = 0.005 if self._fault("late") else 2e-5
        thread = {
            "cpu_seconds": elapsed * (0.95 if self._fault("fabric_cpu") else 0.5),
            "involuntary_switches": 1_000_000 if self._fault("displaced") else 2,
            "waited_seconds": 0.0, "wakeups": 1000, "scheduling": "fifo", "cpu": 1,
        }  # fmt: skip
        fabric = {
            "ports": [self._port(rack, f"{name}>switch", name) for name in rack.names],
            "hosts": [self._fabric_host(rack, name) for name in rack.names],
            "lateness": {"count": 1000, "p50_seconds": 1e-5, "p99_seconds": lateness, "max_seconds": lateness * 2},
            "thread": thread,
            "drops": self._spool(pa.table({"time_seconds": pa.array([], pa.float64())})),
        }
        return {"elapsed_seconds": elapsed, "fabric": fabric, "cpus": cpus, **rest}

    def _port(self, rack: BuiltRack, port: str, host: str) -> Json:
        sent = rack.sent[host]
        counts = {"frames": sent, "bytes": sent * 100}
        zero = {f"{what}_{unit}": 0 for what in ("dropped", "queued") for unit in counts}
        lost = 1 if self._fault("conservation") else 0
        return {
            "port": port, **zero, "giant_frames": 0, "peak_queue_bytes": 0,
            "busy_seconds": 0.0, "occupied_seconds": 0.0,
            **{f"received_{unit}": count for unit, count in counts.items()},
            **{f"sent_{unit}": count - lost for unit, count in counts.items()},
        }  # fmt: skip

    def _fabric_host(self, rack: BuiltRack, host: str) -> Json:
        other = next(name for name in rack.names if name != host)
        full = min(rack.mtus.values()) + 18 if not self._fault("frames") else 1518 // 2
        on = rack.up["nic"]["offloads"] != self._fault("aggregates")
        sent, received, data = rack.sent[host], rack.sent[other], rack.data[other]
        return {
            "host": host, "read_packets": sent, "read_bytes": 0, "read_frames": sent,
            "largest_packet_bytes": (65000 if on else full - 4) if rack.data[host] else 70,
            "aggregates": rack.data[host] // 10 if on else 0, "unroutable_packets": 0,
            "written_packets": received, "written_bytes": 0, "written_frames": received, "write_errors": 0,
            "data_frames": data, "data_frame_bytes": data * full, "largest_frame_bytes": full if data else 0,
        }  # fmt: skip

    def _spool(self, table: pa.Table) -> int:
        sink = io.BytesIO()
        with pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        number = max(self._spools, default=0) + 1
        self._spools[number] = sink.getvalue()
        return number

    def _begin(self, _: Json) -> Json:
        self._up_now()
        return {}

    def _spool_drop(self, params: Json) -> Json:
        self._spools.pop(params["spool"], None)
        return {}

    def _spool_read(self, params: Json) -> Json:
        if params["spool"] not in self._spools:
            raise FakeError(-32006, f"there is no spool {params['spool']}", {"what": f"spool {params['spool']}"})
        data = self._spools[params["spool"]]
        piece = data[params["offset_bytes"] :][: params["length_bytes"]]
        return {"data": base64.b64encode(piece).decode(), "size_bytes": len(data)}


def _address(index: int, up: Json) -> str:
    return f"10.77.0.{index + 1}" if up["family"] == 4 else f"fd77::{index + 1}"


def _socket(index: int, up: Json) -> str:
    address = _address(index, up)
    return f"{address if up['family'] == 4 else f'[{address}]'}:{40000 + index}"


def _transfers(rounds: int, flows: int, one: float, connect: float, amount: int) -> pa.Table:
    rows = [
        {
            "round": index, "flow": flow, "start_seconds": index * one, "connected_seconds": index * one + connect,
            "end_seconds": (index + 1) * one, "bytes": amount // (rounds * flows), "retransmits": 0,
        }
        for index in range(rounds)
        for flow in range(flows)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


class FakeTestbed(RackTestbed):
    """The rack testbed on a fake agent: the same code as the real one, above the pipe."""

    scope = "invented"

    def __init__(self, model: FakeModel | None = None, kind: str = "fabric") -> None:
        super().__init__(FakeRack(model))
        self.kind = kind
