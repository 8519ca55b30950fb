"""The scenario of a run (crates/simulator/src/spec.rs), from its conditions and its work."""

from __future__ import annotations

from collections.abc import Mapping

from framegauge.study.simulated import LONGEST_SECONDS
from framegauge.testbeds.base import Conditions, Json
from framegauge.workloads.work import Work

__all__ = ["HEADERS_BYTES", "TIMESTAMPS_BYTES", "has_timestamps", "scenario"]

HEADERS_BYTES = {4: 40, 6: 60}
TIMESTAMPS_BYTES = 12
# What the rack sets in its hosts where a shaper bounds their queues (docs/why/sender-queue.md).
RACK_TCP: Mapping[str, int] = {"tso_rtt_log": 0, "output_limit_bytes": 32768}
PORT_SAMPLE_SECONDS = 10e-6  # at first; further apart in longer runs (crates/simulator/src/series.rs)
MOST_SAMPLES = 2_000_000  # of all flows together: more flows are sampled less often
USUAL_WINDOWS = (65_535, 16_777_216)  # the receive window at first and at most, as crates/simulator/src/settings.rs
USUAL_PACING = (200, 120)  # in slow start and otherwise, as there


def scenario(conditions: Conditions, work: Work, jitter_seconds: float, seed: int) -> Json:
    """The whole scenario. The seed is that of the arrivals, of the switches and of the hosts."""
    return {
        **conditions.hosts_and_link,
        **conditions.network,
        **({} if conditions.overlay is None else {"overlay": conditions.overlay}),
        "seed": seed,
        # Software merges what a NIC hands over at once as LRO does in hardware.
        "nic": {
            "moderation_seconds": conditions.moderation_seconds,
            "coalesces": bool(conditions.lro or conditions.gro),
        },
        "shaper": {"factor": conditions.shaper_factor} if conditions.shaping else None,
        "tcp": _tcp(conditions, work),
        "flows": [flow.as_json() for flow in work.flows],
        "requests": [requests.as_json() for requests in work.requests],
        **_changes(conditions),
        "end_seconds": min(work.end_seconds, LONGEST_SECONDS),
        "jitter_seconds": jitter_seconds,
        "sample_seconds": _sampling(work),
        "port_sample_seconds": PORT_SAMPLE_SECONDS if work.sample_seconds else 0.0,
    }


def _changes(conditions: Conditions) -> Json:
    """What changes meanwhile. All changes of one time are made at once: routes need not be held between them."""
    changes = [change for change in conditions.changes if "route_mtu" not in change["set"]]
    return {"changes": changes} if changes else {}


def has_timestamps(conditions: Conditions) -> bool:
    """Whether segments have the timestamps option."""
    return conditions.sysctls.get("net.ipv4.tcp_timestamps", "1") != "0"


def _sampling(work: Work) -> float:
    return max(work.sample_seconds, work.end_seconds * len(work.flows) / MOST_SAMPLES) if work.sample_seconds else 0.0


def _tcp(conditions: Conditions, work: Work) -> Json:
    settings: Json = {
        "congestion_control": conditions.congestion_control,
        "family": conditions.family,
        "nagle": "off" if work.nodelay else "on",
        # TCP builds aggregates of this size with TSO and without.
        "gso_bytes": conditions.gso_bytes or conditions.aggregate_bytes,
        **(RACK_TCP if conditions.shaping else {}),
        **_sysctls(conditions.sysctls),
        **_expiry(conditions),
    }
    if conditions.initial_window_segments is not None:
        settings["initial_window_segments"] = conditions.initial_window_segments
    if (segments := conditions.initial_receive_window_segments) is not None:
        settings["initial_receive_window_segments"] = segments
    if (segments := conditions.slow_start_threshold_segments) is not None:
        settings["slow_start_threshold_segments"] = segments
    return settings


def _expiry(conditions: Conditions) -> Json:
    """How long hosts believe what routers tell of path MTUs, if that is set for their IP version."""
    text = conditions.sysctls.get(f"net.ipv{conditions.family}.route.mtu_expires")
    return {} if text is None else {"path_mtu_expires_seconds": float(text.split()[0])}


def _sysctls(sysctls: Mapping[str, str]) -> Json:
    """The settings that the model obeys. Of a receive buffer, Linux gives half to the window."""
    settings: Json = {}
    for name, text in sysctls.items():
        values = text.split()
        match name.removeprefix("net.ipv4.tcp_"):
            case "sack" | "timestamps" | "slow_start_after_idle" as key:
                settings[key] = values[0] != "0"
            case "ecn":
                settings["ecn"] = values[0] == "1"  # 2, the default: it grants what it does not ask for
            case "mtu_probing":
                settings["mtu_probing"] = int(values[0])
            case "rto_min_us":
                settings["minimum_rto_seconds"] = int(values[0]) * 1e-6
            case "limit_output_bytes" | "tso_rtt_log" as key:
                settings[{"limit_output_bytes": "output_limit_bytes"}.get(key, key)] = int(values[0])
            case "pacing_ss_ratio":
                settings["pacing_percent"] = (int(values[0]), settings.get("pacing_percent", USUAL_PACING)[1])
            case "pacing_ca_ratio":
                settings["pacing_percent"] = (settings.get("pacing_percent", USUAL_PACING)[0], int(values[0]))
            case "rmem" if len(values) == 3:
                first, most = (int(value) // 2 for value in values[1:])
                settings["receive_window_bytes"] = (min(first, USUAL_WINDOWS[0]), max(most, 1))
    return settings
