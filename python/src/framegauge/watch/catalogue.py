"""The metrics that are watched if a file names none, from node_exporter's counters, or those of our own agents.

Counters are asked for as they are, series by series; rates are made here, so that a counter that begins anew, or a step
that is missing, is seen. `$hosts` is the matcher of the hosts, `$label` the name of their label, `$window` four steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["METRICS", "USUAL", "USUAL_OF_AGENTS", "Known"]

# Not those that exist once per container, nor what never leaves the host.
_DEVICES = 'device!~"lo|veth.*|cali.*|cilium.*|lxc.*|docker.*|br-.*|virbr.*|flannel.*|ifb.*"'


@dataclass(frozen=True)
class Known:
    """A metric: its query of node_exporter, how it is judged, and what it is. `counters`: the same of our own agents
    (watch/counters.py), None where they do not have it. `needs`: what node_exporter must be started with, "" for
    nothing. Without `decides`, a metric is judged and shown, and the gate does not ask it."""

    query: str
    kind: str
    better: str
    margin: float
    unit: str
    about: str
    negligible: float | None = None
    decides: bool = True
    needs: str = ""
    counters: str | None = None


def _network(direction: str, what: str) -> str:
    return f"node_network_{direction}_{what}_total{{$hosts,{_DEVICES}}}"


def _both(what: str) -> str:
    """Both directions. `or` would not do: it drops what differs in nothing but the metric's name."""
    return f'{{__name__=~"node_network_(receive|transmit)_{what}_total",$hosts,{_DEVICES}}}'


_FIELDS = "--collector.netstat.fields with this counter's name"
METRICS: Mapping[str, Known] = {
    "retransmits": Known(
        "node_netstat_Tcp_RetransSegs{$hosts}", "count", "lower", 0.2, "per second", "TCP segments sent again", 0.05,
        counters="TcpRetransSegs",
    ),
    "tcp_timeouts": Known(
        "node_netstat_TcpExt_TCPTimeouts{$hosts}", "count", "lower", 0.2, "per second",
        "retransmission timers that ran out", 0.02,
        counters="TcpExtTCPTimeouts",
    ),
    "drops": Known(
        _both("drop"), "count", "lower", 0.2, "per second",
        "packets that interfaces dropped", 0.02,
        counters="rx_dropped + tx_dropped",
    ),
    "errors": Known(
        _both("errs"), "count", "lower", 0.2, "per second",
        "packets with errors: among them frames that are too long for a NIC", 0.02,
        counters="rx_errors + tx_errors",
    ),
    "icmp_received": Known(
        '{__name__=~"node_netstat_Icmp6?_InMsgs",$hosts}', "count", "lower", 0.5, "per second",
        "ICMP messages that came in: too big, unreachable", 0.1,
        counters="IcmpInMsgs + Icmp6InMsgs",
    ),
    "received_bytes": Known(
        _network("receive", "bytes"), "rate", "higher", 0.2, "bytes per second",
        "bytes received: a collapse is an outage",
        counters="rx_bytes",
    ),
    "softirq_cpu": Known(
        'node_cpu_seconds_total{$hosts,mode="softirq"}', "rate", "lower", 0.1, "CPUs",
        "CPU time in soft interrupts, where the network stack works", 0.01,
        counters="cpu_softirq",
    ),
    "received_packets": Known(
        _network("receive", "packets"), "rate", "lower", 0.05, "per second", "packets received", decides=False,
        counters="rx_packets",
    ),
    "bytes_per_packet": Known(
        f"sum by ($label) (rate({_network('receive', 'bytes')}[$window])) / "
        f"sum by ($label) (rate({_network('receive', 'packets')}[$window]))",
        "gauge", "higher", 0.05, "bytes", "mean size of received packets: did the switch take effect?", decides=False,
        counters="rx_bytes / rx_packets",
    ),
    "fragmentation_failures": Known(
        "node_netstat_Ip_FragFails{$hosts}", "count", "lower", 0.2, "per second",
        "packets that did not fit and must not be fragmented", 0.02, needs=_FIELDS,
        counters="IpFragFails + Ip6FragFails",
    ),
    "unreachable_received": Known(
        "node_netstat_Icmp_InDestUnreachs{$hosts}", "count", "lower", 0.2, "per second",
        "ICMP unreachable, of which fragmentation needed is one code", 0.05, needs=_FIELDS,
        counters="IcmpInDestUnreachs + Icmp6InDestUnreachs",
    ),
    "mtu_probe_failures": Known(
        "node_netstat_TcpExt_TCPMTUPFail{$hosts}", "count", "lower", 0.2, "per second",
        "TCP's own path MTU probes that failed", 0.02, needs=_FIELDS,
        counters="TcpExtTCPMTUPFail",
    ),
    "too_big_received": Known(
        "node_netstat_Icmp6_InPktTooBigs{$hosts}", "count", "lower", 0.5, "per second",
        "ICMPv6 Packet Too Big, from a link that carries less", 0.1, needs=_FIELDS, counters="Icmp6InPktTooBigs",
    ),
    "reassembly_failures": Known(
        "node_netstat_Ip_ReasmFails{$hosts}", "count", "lower", 0.2, "per second",
        "packets of which a fragment was missing", 0.02, needs=_FIELDS, counters="IpReasmFails + Ip6ReasmFails",
    ),
    "conntrack_entries": Known(
        "node_nf_conntrack_entries{$hosts}", "gauge", "lower", 0.2, "entries", "connections that the firewall keeps",
        needs="the kernel's connection tracking",
    ),
}  # fmt: skip
USUAL = tuple(name for name, each in METRICS.items() if not each.needs)
USUAL_OF_AGENTS = tuple(name for name, each in METRICS.items() if each.counters is not None)
