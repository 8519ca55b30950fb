"""Whatever is not of its type in a file of a results folder is refused, with its place."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from framegauge.errors import CorruptResults
from framegauge.results import shapes

# Every key that a shape names, once, with a value that is right.
PLAN = {
    "metrics": {"gets": {"unit": "per_second", "higher_is_better": True, "hull": 1.5, "margin": 0.05}},
    "question": "?", "scope": "emulated", "treatment": "mtu", "margins": {"gets": 0.05}, "primary": ["gets"],
    "estimators": {"gets": "mean"},
    "ask": "difference", "planned_runs": 4, "planned_blocks": 6, "stop": "settled", "framegauge": "0.1.0",
    "extended_from": [4], "files": {"study.yaml": "0123456789abcdef0123456789abcdef"},
    "sealed_again": [{"at": "2026-11-21T10:00:00+00:00", "changed": ["runs.jsonl:3"]}],
    "trial": {
        "asked_bits_per_second": 10**9, "bits_per_second": 10**8,
        "attempts": [{"bits_per_second": 10**9, "seconds": 1.5, "reasons": ["why"]}],
    },
}  # fmt: skip
LINE = {
    "number": 1, "block": 0, "cell": 0, "arm": "baseline", "role": "baseline", "level": 1500, "attempt": 0,
    "workload": "stream", "conditions": {"flows": 1}, "metrics": {"goodput": 1e9}, "excluded": ["why"],
    "degraded": ["what"], "seconds": 1.5, "began": "2026-11-21T10:00:00+00:00",
    "files": {"record.json": "0123456789abcdef0123456789abcdef"},
    "readings": {
        "ceiling_bits_per_second": 1e9, "predicted_seconds": 0.5, "idle_share_hosts": 0.5, "frames_per_gigabyte": 1e5,
        "frames_per_interrupt": 2.5, "cpu_system_seconds": 0.5, "cpu_share_hosts": 0.5, "cpu_share_fabric": 0.5,
        "cpu_share_framegauge": 0.5, "cpu_share_unattributed": 0.5, "meter_seconds": 0.5, "refused_connections": 1,
        "lasting_runs": 2, "not_measured": {"latency_p99": "too few"},
        "diagnosis": {
            "connections": 1, "payload_bytes": 1, "seconds": {"rto_stall": 0.5},
            "captures": {
                "h1": {"packets": 1, "given_up_packets": 1, "dropped_packets": 1, "cpu_seconds": 0.5},
            },
        },
        "old_connections": {
            "h1": {"count": 1, "connections": [{"local": "10.0.0.1:1", "remote": "10.0.0.2:2", "mss_bytes": 1448}]}
        },
        "steady": {"begin_seconds": 0.1, "end_seconds": 0.9, "of_seconds": 1.5},
        "few": {"senders": ["h1"], "flows": 1, "many": 12, "floored": True},
        "switch": {
            "begun_seconds": 1.5, "ended_seconds": 1.6,
            "clients": [
                {
                    "host": "h1", "switched": True, "usual_gap_seconds": 0.01, "stall_seconds": 0.2,
                    "before": {"seconds": 1.5, "operations_per_second": 100.5, "mean_latency_seconds": 0.001, "packets_per_second": 700.5},
                    "after": {"seconds": 1.5, "operations_per_second": 100.5, "mean_latency_seconds": 0.001, "packets_per_second": 700.5},
                }
            ],
            "kept": [{"host": "h1", "other": "h2", "mss_bytes": [1448], "seconds": 1.5}],
        },
        "carried": {
            "frames": 7, "frames_per_call": 7.5, "bytes_per_frame": 1518.5,
            "datagrams": {"sent": 3, "answered": 2, "lost_calls": 1, "lost_in_server": 1, "lost_replies": 1},
        },
        "osds": {
            "h3": {
                "received_frames": 1, "received_frame_bytes": 1518.5, "sent_frames": 1, "sent_frame_bytes": 70.5,
                "cpu_seconds": 0.5,
                "storage": {
                    "received_frames": 1, "received_frame_bytes": 9018.5, "sent_frames": 1, "sent_frame_bytes": 70.5,
                },
            },
        },
    },
}  # fmt: skip
ENVIRONMENT = {
    "agent": {"version": "0.1.0"}, "python": "3.11", "platform": "Linux",
    "degraded": [{"name": "perf", "found": "none", "needed_for": "cycles"}],
}  # fmt: skip
TIMES = {"count": 3, "mean_seconds": 0.5, "p90_seconds": 0.5}
RECORD = {
    "conditions": {"bits_per_second": 1e9}, "begun_seconds": 0.5,
    "rack": {"network": {"ports": [{"port": "h1", "bits_per_second": 1e9, "from": "h1", "to": "s1"}]}},
    "before": {"h1": {"mtu": 1500, "nics": [{"mtu": 1500}]}}, "wire": {"h1": {"syns": [{"mss_bytes": 1460}]}},
    "workload": {
        "bytes": 1e6, "mean_segment_payload_bytes": 1448.5, "congestion_control": {"h1": ["cubic"]}, "retransmits": 1,
        "runs": [
            {
                "transfers": "transfers", "client": "h1", "server": "h2", "reverse": True,
                "result": {"started_seconds": 0.5},
            }
        ],
        "web": {
            "cpu": {"h1": {"mean": 0.5, "most": 0.9, "least": 0.1}},
            "flows": {"h1": {"connections": 1, "bytes": [5.5]}}, "by_operation": {"home": dict(TIMES)},
            "parts": {"page": dict(TIMES)},
            "steps": [
                {
                    "users": 5, "operations_per_second": 1.5, "beyond": ["home"],
                    "judged": {"home": {"found_seconds": 0.5, "limit_seconds": 1.5}},
                }
            ],
        },
    },
    "measure": {
        "cpus": [
            {
                "user_seconds": 0.5, "nice_seconds": 0.5, "system_seconds": 0.5, "irq_seconds": 0.5,
                "softirq_seconds": 0.5, "idle_seconds": 0.5, "iowait_seconds": 0.5, "steal_seconds": 0.5,
            }
        ],
        "softirqs": [{"net_rx": 1.5, "net_tx": 1.5}], "elapsed_seconds": 1.5,
        "fabric": {
            "ports": [{"port": "h1", "dropped_frames": 1, "marked_frames": 1, "peak_queue_bytes": 1.5}],
            "waits": [{"port": "h1", "input_port": "h2", "frames": 1}],
        },
    },
    "counters_before": {"h1": {"interface": {"rx_packets": 1}, "nstat": {"TcpInSegs": 1.5}}},
    "counters_after": {"h1": {"interface": {"rx_packets": 1}, "nstat": {"TcpInSegs": 1.5}}},
    "changes": [{"at_seconds": 0.5, "made_seconds": 0.6, "set": {"mtu": 9000}}],
}  # fmt: skip
WHOLE = {shapes.Plan: PLAN, shapes.Line: LINE, shapes.Environment: ENVIRONMENT, shapes.Record: RECORD}
IDS = [shape.__name__ for shape in WHOLE]
# Of these two any value will do: what they are is judged elsewhere.
FREE = {
    "level",
    "conditions.flows",
    "agent.version",
    "changes.0.set.mtu",
}


def places(found: Any, *before: str | int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every place in a document, with its value."""
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inner:
        yield (*before, key), value
        yield from places(value, *before, key)


def wrong(value: Any) -> list[Any]:
    """Values of another type, and numbers that are none."""
    if isinstance(value, bool):
        return ["yes", 1, [], {}]
    if isinstance(value, int | float):
        return ["1", True, [], {}, float("nan"), float("inf"), 1e300]
    if isinstance(value, str):
        return [1, True, [], {}]
    return ["text", 1, {} if isinstance(value, list) else []]


def replaced(whole: Any, place: tuple[str | int, ...], value: Any) -> Any:
    made = inner = copy.deepcopy(whole)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return made


@pytest.mark.parametrize(("shape", "whole"), WHOLE.items(), ids=IDS)
def test_what_is_right_is_taken(shape: type[BaseModel], whole: dict[str, Any]) -> None:
    assert shapes.checked(whole, shape, "here") is whole


@pytest.mark.parametrize(("shape", "whole"), WHOLE.items(), ids=IDS)
def test_every_value_of_another_type_is_refused_with_its_place(shape: type[BaseModel], whole: dict[str, Any]) -> None:
    tried = 0
    for place, value in places(whole):
        name = ".".join(map(str, place))
        if name in FREE:
            continue
        for other in wrong(value):
            with pytest.raises(CorruptResults, match=rf"^here: {re.escape(name)}[.:a-z]* .*expected"):
                shapes.checked(replaced(whole, place, other), shape, "here")
            tried += 1
    assert tried > 20


@pytest.mark.parametrize(
    ("shape", "place", "value"),
    [
        (shapes.Plan, ("margins", "speed"), 0.1), (shapes.Plan, ("margins", "gets"), 1), (shapes.Plan, ("primary", 0), "x"),
        (shapes.Plan, ("ask",), "equal"), (shapes.Plan, ("stop",), "never"), (shapes.Plan, ("planned_blocks",), 0),
        (shapes.Plan, ("planned_runs",), -1), (shapes.Plan, ("planned_runs",), 10**7), (shapes.Plan, ("extended_from", 0), 0),
        (shapes.Plan, ("trial", "bits_per_second"), 0), (shapes.Plan, ("trial", "attempts"), []),
        (shapes.Plan, ("trial", "attempts", 0, "seconds"), -1), (shapes.Plan, ("trial", "asked_bits_per_second"), 1e9),
        (shapes.Plan, ("metrics", "a b"), {"unit": "bytes", "higher_is_better": True}),
        (shapes.Plan, ("metrics", "gets", "unit"), "Per Second"), (shapes.Plan, ("metrics", "gets", "margin"), 0),
        (shapes.Plan, ("metrics", "gets", "hull"), -1), (shapes.Line, ("number",), 0), (shapes.Line, ("block",), -1),
        (shapes.Line, ("role",), "other"), (shapes.Line, ("began",), "yesterday"), (shapes.Line, ("seconds",), -1),
        (shapes.Line, ("conditions", "flows"), []), (shapes.Line, ("readings", "steady", "of_seconds"), -0.1),
        (shapes.Record, ("workload", "runs", 0, "transfers"), "../../etc/passwd"),
        (shapes.Record, ("workload", "web", "steps", 0, "judged", "home", "limit_seconds"), 0),
        (shapes.Record, ("before", "h1", "mtu"), -1), (shapes.Record, ("changes", 0, "at_seconds"), -1),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_out_of_its_range_is_refused(shape: type[BaseModel], place: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(CorruptResults, match=r"^here: .*expected"):
        shapes.checked(replaced(WHOLE[shape], place, value), shape, "here")


def named(shape: type[BaseModel]) -> Iterator[str]:
    """The keys that a shape and those within it name."""
    for name, field in shape.model_fields.items():
        yield field.alias or name
        for inner in re.findall(r"framegauge\.results\.shapes\.(\w+)", str(field.annotation)):
            yield from named(getattr(shapes, inner))


@pytest.mark.parametrize(("shape", "whole"), WHOLE.items(), ids=IDS)
def test_no_key_is_left_out_here(shape: type[BaseModel], whole: dict[str, Any]) -> None:
    assert set(named(shape)) <= {place[-1] for place, _ in places(whole)}
