"""The readings, counters and meters of the invented rack, which agree unless sabotaged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from framegauge.networks import topologies
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake import network as fake_network
from framegauge.testbeds.fake.model import AGGREGATE_FRAMES, BuiltRack, FakeModel

__all__ = ["FakeReadings", "ceilings"]

AROUND_SECONDS = 0.05  # that an interval is longer than the workload in it


def ceilings(up: Json, mtu: int) -> Json:
    """Ceilings without crates/frames, which are not available in a process without an agent."""
    headers = 40 if up["family"] == 4 else 60
    rate, payload = up["link"]["bits_per_second"], mtu - headers - 12
    goodput = None if rate is None else rate * payload / (mtu + 38)
    return {
        "mtu": mtu, "frame_bytes": mtu + 18, "wire_bytes": mtu + 38, "mss_bytes": mtu - headers,
        "segment_payload_bytes": payload, "goodput_bits_per_second": goodput,
    }  # fmt: skip


@dataclass(frozen=True)
class FakeReadings:
    """The readings of one rack, with its faults."""

    model: FakeModel
    rack: BuiltRack
    fault: Callable[[str], bool]

    def host_read(self, host: str) -> Json:
        """`host.read`."""
        rack, up, is_last = self.rack, self.rack.up, host == self.rack.names[-1]
        flip = self.fault("offloads") and is_last
        keys_by_name = {"tso": "tso", "gso": "tso", "gro": "gro", "tx_checksum": "checksum"}
        fabric = up["testbed"] == "fabric"
        rate = fake_network.own_rate(rack, host)
        sysctls = {name: value.replace(" ", "\t") for name, value in up["sysctls"].items()}
        if self.fault("sysctl") and is_last:
            sysctls = dict.fromkeys(sysctls, "1") | {"net.ipv4.tcp_sack": str(int(rack.elapsed > 0))}
        shaped = rate is not None and (up["shaper"] is not None or self.fault("unshaped"))
        shaper = up["shaper"] or {"factor": 1, "burst_bytes": 0}
        scale = (shaper["factor"] if fabric else 1) * (0.9 if self.fault("shaper") and is_last else 1)
        qdisc = {
            "kind": "tbf" if shaped else "noqueue",
            "default": not shaped,
            "bits_per_second": round((rate or 0) * scale) if shaped else None,
            "burst_bytes": shaper["burst_bytes"] if shaped else None,
            "limit_bytes": 10**6 if shaped else None,
            "sent_bytes": 0, "sent_packets": 0, "drops": 0, "overlimits": 0, "backlog_bytes": 0,
        }  # fmt: skip
        nics = fake_network.nics(rack, host)
        nic = {
            "interface": nics[0]["interface"],
            "mtu": 1500 if self.fault("mtu") and is_last else rack.mtus_at(math.inf)[host],
            "maximum_mtu": self.model.largest_mtu,
            "offloads": {name: bool(up["nic"][key]) != flip for name, key in keys_by_name.items()} | {"lro": False},
            "aggregates": self._sizes(up["nic"], is_last),
            "moderation_seconds": None if fabric else up["nic"]["moderation_seconds"],
            "qdisc": qdisc,
            "congestion_control_route": up["congestion_control"],
            "route_windows": self._windows(host),
        }
        return {
            **nic,
            "nics": [
                {**nic, "interface": nic_row["interface"]} | (self._other(host) if index else {})
                for index, nic_row in enumerate(nics)
            ],
            "sysctls": sysctls,
            "tcp_metrics_entries": int(self.fault("metrics_cache")),
            "path_mtu_exceptions": self._exceptions(),
        }

    def _windows(self, host: str) -> list[Json]:
        """The initial windows of the one route; sabotage makes the kernel forget them during the run."""
        is_lost = self.fault("windows") and host == self.rack.names[-1] and self.rack.elapsed > 0
        names = ("initial_window_segments", "initial_receive_window_segments")
        windows = {name: None if is_lost else self.rack.up.get(name) for name in names}
        return [{"destination": "10.77.0.0/24" if self.rack.up["family"] == 4 else "fd77::/64", **windows}]

    def _exceptions(self) -> list[Json]:
        """A path MTU from an earlier arm, if that is the sabotage."""
        rack = self.rack
        return [{"destination": rack.address(rack.names[0]), "mtu": 1400}] if self.fault("path_mtu") else []

    def _sizes(self, nic: Json, is_last: bool) -> Json:
        """The largest aggregates; sabotage resets those of IPv4, as setting IPv6's may."""
        sizes = {f"{name}_bytes": nic.get(f"{name}_bytes", USUAL_BYTES) for name in ("gso", "gro")}
        reset = self.fault("sizes") and is_last
        ipv4 = {key.replace("_", "_ipv4_"): USUAL_BYTES - 1 if reset else size for key, size in sizes.items()}
        return {**sizes, **ipv4, "tso_maximum_bytes": USUAL_BYTES}

    def _other(self, host: str) -> Json:
        """The values in which a second NIC may differ."""
        return {"mtu": self.rack.mtus_at(math.inf, 1)[host] - self.fault("second_nic")}

    def counters(self, host: str) -> Json:
        """`host.counters`."""
        rack = self.rack
        deviation = 1 if rack.elapsed and self.fault("nstat") else 0
        lost_packets = 1 if rack.elapsed and self.fault("bridge") and host == rack.names[-1] else 0
        spread = 3 if self.fault("segments") else 1
        ring = 3 if rack.elapsed and self.fault("ring") and host == rack.names[0] else 0
        interface = dict.fromkeys(("rx_bytes", "tx_bytes", "rx_dropped", "rx_errors", "tx_errors"), 0)
        interface |= {"rx_packets": rack.packets(host, "received"), "tx_packets": rack.packets(host, "sent")}
        segments, packets = "IpExtInNoECTPkts", "IpInReceives"
        if rack.up["family"] == 6:
            segments, packets = "Ip6InNoECTPkts", "Ip6InReceives"
        # An aggregate from a TAP counts as one segment; the kernel's own link passes on the number of segments.
        fabric = rack.up["testbed"] == "fabric"
        received = (rack.packets(host, "received") if fabric else rack.received[host]) * spread - lost_packets
        capable = (rack.up["sysctls"].get("net.ipv4.tcp_ecn") == "1") != self.fault("ecn")
        ecn = rack.data_received[host] // AGGREGATE_FRAMES if capable else 0  # packets with data, or some of them
        return {
            "interface": interface | {"tx_dropped": ring},
            "nstat": {
                "TcpOutSegs": (rack.sent[host] - rack.datagram_packets(host)) * spread - deviation,
                **rack.udp.get(host, {}),
                "TcpRetransSegs": 0,
                "TcpInCsumErrors": 2 if rack.elapsed and self.fault("checksums") else 0,
                segments: received - ecn,
                segments.replace("NoECT", "ECT0"): ecn,
                packets: self._stack_packets(host, received),
            },
            "scheduling": self._scheduling(),
        }

    def _scheduling(self) -> Json:
        """Of hosts that share one CPU with nobody, and have precedence."""
        busy = 0.99 if self.fault("host_cpu") else 0.4
        run_seconds = (self.rack.elapsed + AROUND_SECONDS) * busy / len(self.rack.names) if self.rack.elapsed else 0.0
        zeros = {"run_seconds": 0.0, "waited_seconds": 0.0, "turns": 0}
        return {
            "precedence": "real time",
            "generators": {**zeros, "run_seconds": run_seconds, "turns": 1},
            "receive_path": zeros,
            "programs": {"run_seconds": 0.0, "waited_seconds": 0.0, "gave_way_seconds": 0.0},
        }

    def _stack_packets(self, host: str, segments: int) -> int:
        """Packets that the stack takes in, after LRO and GRO."""
        nic = self.rack.up["nic"]
        if (nic["lro"] or nic["gro"]) == self.fault("coalesced"):
            return segments
        merged = self.rack.up["testbed"] == "fabric" and nic["lro"]
        data = 0 if merged else self.rack.data_received[host]
        return max(1, segments - data + math.ceil(data / AGGREGATE_FRAMES)) if segments else 0

    def cpu_begin(self, host: str) -> Json:
        """`cpu.begin`."""
        self.rack.metered_from[host] = self.rack.elapsed
        return {}

    def cpu_end(self, host: str) -> Json:
        """`cpu.end`: a cost per frame in addition to a small constant; instructions are not counted."""
        rack = self.rack
        frames = rack.sent[host] + rack.received[host] if rack.elapsed else 0
        seconds = 2e-7 * frames * rack.noise + 0.0001
        if self.fault("account"):
            seconds = 100.0
        use = {"cpu_seconds": seconds / 2, "instructions": None, "cycles": None}
        return {
            "elapsed_seconds": rack.elapsed - rack.metered_from[host] + 0.05, "programs": use, "receive_path": use,
            "polls": frames // 4, "meter_seconds": 0.0001, "not_measured": ["instructions and cycles: invented"],
        }  # fmt: skip

    def cpu_read(self, host: str) -> Json:
        """`cpu.read`."""
        interface = self.counters(host)["interface"]
        return {**self.cpu_end(host), "packets": interface["rx_packets"] + interface["tx_packets"]}

    def wire(self, host: str) -> Json:
        """`wire.end`: the SYN and SYN-ACK of every pair that the host belongs to, and aggregates above 64 KiB."""
        rack, syns = self.rack, []
        headers = 40 if rack.up["family"] == 4 else 60
        for client, server, nic, mtus in self._opened():
            for sender, receiver, ack in ((client, server, False), (server, client, True)):
                if host not in (sender, receiver):
                    continue
                mtu = 1500 if self.fault("mss") and sender == rack.names[-1] else mtus[sender]
                mtu = rack.mtus[sender] if self.fault("storage_mss") else mtu
                syns.append(
                    {
                        "direction": "out" if sender == host else "in",
                        "source": _socket_at(rack, sender, 40000 + ack, nic),
                        "destination": _socket_at(rack, receiver, 40001 - ack, nic),
                        "ack": ack,
                        "mss_bytes": mtu - headers,
                        "timestamps": True,
                        "window_scale": 7,
                        "sack_permitted": True,
                    }
                )
        result: Json = {"syns": syns, "lost": 0}
        if {"gso_bytes", "gro_bytes"} & rack.up["nic"].keys():
            count = 3 if self.fault("big") else 0
            result["aggregates"] = {"count": count, "largest_bytes": 180_000 if count else None}
        return result

    def _opened(self) -> Iterator[tuple[str, str, int, dict[str, int]]]:
        """The connections of every pair and the number of their NICs, one for each state of the MTUs, in order."""
        for (client, server, nic), states in sorted(self.rack.connections.items(), key=lambda item: item[0]):
            for mtus in states[:1] if self.fault("old_mss") else states:
                yield client, server, nic, mtus

    def measured(self, drops: int) -> Json:
        """`measure.end`; `drops` is the spool."""
        rack = self.rack
        elapsed = rack.elapsed + AROUND_SECONDS
        busy = 0.99 if self.fault("host_cpu") else 0.4
        cpus = [
            {
                "cpu": index, "role": role, "user_seconds": 0.0, "nice_seconds": 0.0,
                "system_seconds": elapsed * busy, "idle_seconds": elapsed * (1 - busy), "iowait_seconds": 0.0,
                "irq_seconds": 0.0, "softirq_seconds": 0.0, "steal_seconds": 0.0,
            }
            for index, role in enumerate(("hosts", "fabric"))
        ]  # fmt: skip
        result: Json = {"elapsed_seconds": elapsed, "fabric": None, "kernel_ports": None, "cpus": cpus}
        result |= {"softirqs": [{"cpu": 0, "net_rx": 5, "net_tx": 7}], "agent": {"cpu_seconds": 0.001}}
        rivals = {"cpu_seconds": elapsed / 5, "names": ["framegauge-agent (4711)"]}
        result["rivals"] = rivals if self.fault("rivals") else {"cpu_seconds": 0.0, "names": []}
        longest = elapsed / 50 if self.fault("held") else 0.0
        result["held"] = [{"cpu": 0, "count": 2, "seconds": 1.5 * longest, "longest_seconds": longest}]
        if rack.up["testbed"] == "kernel":
            if len(rack.names) > 2 and rack.up["link"]["bits_per_second"] is not None:
                result["kernel_ports"] = [
                    {
                        "port": f"switch>{name}", "sent_bytes": 0, "sent_packets": rack.received[name], "drops": 0,
                        "backlog_bytes": 0,
                    }
                    for name in rack.names
                ]  # fmt: skip
            return result
        lateness = 0.005 if self.fault("late") else 2e-5
        thread = {
            "cpu_seconds": elapsed * (0.95 if self.fault("fabric_cpu") else 0.5),
            "involuntary_switches": 1_000_000 if self.fault("displaced") else 2,
            "waited_seconds": elapsed / 4 if self.fault("waited") else 0.0,
            "wakeups": 1000, "scheduling": "fifo", "cpu": 1,
        }  # fmt: skip
        result["fabric"] = {
            "ports": fake_network.port_counts(rack, self.fault),
            "hosts": [self._fabric_host(name, elapsed) for name in rack.names],
            "lateness": {"count": 1000, "p50_seconds": 1e-5, "p99_seconds": lateness, "max_seconds": lateness * 2},
            "waits": self._waits(),
            "thread": thread,
            "drops": drops,
            "background": fake_network.background(rack, elapsed, self.fault),
        }
        return result

    def _waits(self) -> list[Json]:
        """The waiting times, as if each frame found half of another one being sent."""
        rack = self.rack
        half = 4.0 * (max(rack.mtus.values()) + 38) / rack.up["link"]["bits_per_second"]
        quantiles = {f"{name}_seconds": half for name in ("mean", "p50", "p99", "p999", "max")}
        pairs = {(client, server) for client, server, _ in rack.connections}
        directions = sorted({*pairs, *((server, client) for client, server in pairs)})
        return [
            {"port": f"{leaf}>{target}", "input_port": f"{source}>{leaf}", "frames": rack.sent_by[source], **quantiles}
            for client, server in directions
            for source, leaf, target in fake_network.common_switches(rack, client, server)
            if rack.sent_by[source]
        ]

    def _fabric_host(self, host: str, elapsed: float) -> Json:
        rack, nic = self.rack, self.rack.up["nic"]
        data, scale = rack.data_sent[host], 2 if self.fault("frames") else 1
        largest = rack.largest.get(host, 0)
        sends_aggregates = bool(nic["tso"]) != self.fault("aggregates")
        merges = bool(nic["lro"]) != self.fault("merged")
        offloaded = bool(nic["checksum"]) != self.fault("unfinished")
        moderation = nic["moderation_seconds"]
        most_interrupts = elapsed / moderation if moderation else math.inf
        interrupts = min(rack.received[host], most_interrupts) * (1 if not self.fault("interrupts") else 10**6)
        return {
            "host": host,
            "read_packets": rack.packets(host, "sent"), "read_bytes": rack.read_bytes[host],
            "read_frames": rack.sent[host],
            "largest_packet_bytes": 70 if not data else 65000 if sends_aggregates else largest - 4,
            "aggregates": math.ceil(data / AGGREGATE_FRAMES) if sends_aggregates else 0,
            "unroutable_packets": 0, "unfinished_checksums": rack.packets(host, "sent") if offloaded else 0,
            "written_packets": rack.packets(host, "received"), "written_bytes": 0,
            "written_frames": rack.received[host], "write_errors": 0,
            "interrupts": int(interrupts), "merged_frames": rack.data_received[host] if merges else 0,
            "data_frames": data, "data_frame_bytes": rack.data_bytes[host] // scale,
            "largest_frame_bytes": largest // scale, "nics": [self._fabric_nic(end, scale) for end in rack.ends(host)],
        }  # fmt: skip

    def _fabric_nic(self, end: str, scale: int) -> Json:
        """What one NIC of a host sent."""
        if self.fault("storage_frames"):  # those of the host's other NIC
            end = next((host_end for host_end in self.rack.ends(topologies.node_of(end)) if host_end != end), end)
        counts: Mapping[str, int] = self.rack.data_by.get(end, {})
        return {
            "data_frames": counts.get("frames", 0), "data_frame_bytes": counts.get("bytes", 0) // scale,
            "largest_frame_bytes": counts.get("largest", 0) // scale,
        }  # fmt: skip


def _socket_at(rack: BuiltRack, host: str, port: int, nic: int) -> str:
    """The address and port as the agent writes them."""
    address = rack.address(host, nic)
    return f"{address if rack.up['family'] == 4 else f'[{address}]'}:{port}"
