"""JSON Schemas (2020-12) of what `framegauge rollout plan` and `status` print with --json."""

from __future__ import annotations

from typing import Any

from framegauge.rollout.preflight.schema import changes_schema

__all__ = ["plan_schema", "status_schema"]

Schema = dict[str, Any]
TEXT, BYTES, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 0}
TEXTS = {"type": "array", "items": TEXT}
SETTINGS = {"type": "object", "additionalProperties": TEXT, "description": "Of mtu:IFACE, routes4:IFACE and so on."}
FAMILY = {"enum": [4, 6]}
VERDICT = {"enum": ["carries_target", "too_small", "black_hole", "unreachable", "unknown"]}


def _object(properties: Schema, **more: Any) -> Schema:
    return {
        "type": "object", "additionalProperties": False, "required": list(properties), "properties": properties, **more,
    }  # fmt: skip


def _by_host(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _or_null(value: Schema) -> Schema:
    return {"anyOf": [value, {"type": "null"}]}


def _document(title: str, properties: Schema) -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | _object({"schema": {"const": 1}, **properties})


AFTERWARDS = _object({"host": TEXT, "what": TEXT, "now": _or_null(BYTES), "mtu": BYTES, "how": TEXT})


def plan_schema() -> Schema:
    """Of what would be done."""
    group = {"type": "array", "items": SETTINGS}
    host = _object(
        {
            "wave": COUNT, "interface": TEXT, "mtu": BYTES, "hold": BYTES, "before": SETTINGS, "after": SETTINGS,
            "stages": _object({"hold": group, "link": group, "release": group}),
        }
    )  # fmt: skip
    change = _object(
        {
            "waves": {"type": "array", "items": TEXTS}, "interfaces": _by_host(TEXT), "target_mtu": BYTES,
            "scope": {"enum": ["subnets", "all"]}, "families": {"type": "array", "items": FAMILY},
            "lease_seconds": {"type": "number"}, "probes": COUNT, "wait_seconds": {"type": "number"}, "forced": TEXTS,
            "destinations": _by_host(TEXT),
        }
    )  # fmt: skip
    finding = _object(
        {
            "where": TEXT, "what": TEXT, "severity": {"enum": ["refused", "warning", "note"]}, "found": TEXT,
            "expected": TEXT, "remedy": TEXT,
        }
    )  # fmt: skip
    step = _object(
        {
            "host": TEXT, "kind": {"enum": ["hold", "link", "release"]}, "command": TEXTS, "undo": TEXTS,
            "request": _object({"method": TEXT, "settings": SETTINGS}), "back": SETTINGS,
        }
    )  # fmt: skip
    return _document(
        "framegauge rollout plan",
        {
            "question": TEXT, "asked": change, "hosts": _by_host(host), "findings": {"type": "array", "items": finding},
            "steps": {"type": "array", "items": step}, "changes": changes_schema(), "addresses": _by_host(TEXTS),
            "afterwards": {"type": "array", "items": AFTERWARDS},
            "link_loss_seconds": _by_host({"type": "number", "exclusiveMinimum": 0}),
        },
    )  # fmt: skip


def status_schema() -> Schema:
    """Of how every host is."""
    row = _object(
        {
            "interface": TEXT, "mtu": BYTES, "route_mtus": {"type": "array", "items": BYTES},
            "state": {"enum": ["unchanged", "old", "new", "held", "other"]},
        }
    )  # fmt: skip
    pair = _object(
        {
            "source": TEXT, "destination": TEXT, "family": FAMILY, "verdict": VERDICT,
            "path_mtu_bytes": _or_null(BYTES), "new_mss_bytes": _or_null(BYTES),
        }
    )  # fmt: skip
    proof = _object(
        {
            "mtu": BYTES, "verdict": {"enum": ["carries_target", "fault", "could_not_tell"]},
            "seconds": {"type": "number"}, "pairs": {"type": "array", "items": pair}, "faults": TEXTS,
            "unknown": TEXTS, "new_connections": TEXTS,
        }
    )  # fmt: skip
    connection = _object({"local": TEXT, "remote": TEXT, "mss_bytes": BYTES})
    connections = _object({"count": COUNT, "connections": {"type": "array", "items": connection}})
    return _document(
        "framegauge rollout status",
        {
            "as_it_should_be": {"type": "boolean"},
            "outcome": {"enum": ["none", "open", "finished", "put_back", "undone", "undone_in_part", "parked"]},
            "last": _or_null({"type": "object"}), "hosts": _by_host(row), "proof": _or_null(proof),
            "connections": _by_host(connections),
            "files": {"type": "array", "items": _object(
                {
                    "host": TEXT, "owner": TEXT, "path": TEXT, "why": TEXT, "confirmed": {"type": "boolean"},
                    "state": {"enum": ["kept", "gone", "other", "not_known"]},
                }
            )},
            "lost": {**_by_host(TEXT), "description": "Why hosts are not known, or their connections are not."},
        },
    )  # fmt: skip
