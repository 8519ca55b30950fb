"""JSON Schemas (2020-12) of what `plan`, `wire`, `hosts`, `rack`, `requirements` and `estimate --model`
print with --json.

Where an agent's answer is printed, its shape is that of the pipe's schema, and is taken from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from framegauge.agents.answers import SCHEMA
from framegauge.estimate.model import COSTS

__all__ = ["cpu_model", "hosts", "plan", "rack", "requirements", "wire"]

Schema = dict[str, Any]
TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
FLAG, ANY = {"type": "boolean"}, {"type": "object"}


def plan() -> Schema:
    """Of `framegauge plan`."""
    arm = _object({"role": TEXT, "level": {}})
    # A slot has its level under the name of the treatment, too.
    slot = _object(
        {
            "run": COUNT, "block": COUNT, "workload": TEXT, "role": TEXT, "conditions": ANY,
            "expected_seconds": NUMBER,
        },
        additionalProperties=True,
    )  # fmt: skip
    reach = _object({
        "metric": TEXT, "primary": FLAG, "margin": NUMBER, "spread": NUMBER,
        "spread_is": {"enum": ["given", "pilot", "assumed", "guessed"]}, "confidence": NUMBER, "half_width": NUMBER,
        "finds_better_from": NUMBER, "finds_equality_with_probability": NUMBER, "blocks_for_equality": _maybe(COUNT),
        "ending_early_costs_at_most": NUMBER,
    })  # fmt: skip
    warning = _object({
        "level": {}, "links": _list(TEXT), "router": _maybe(TEXT), "mtu": COUNT, "packet_bytes": COUNT,
        "fate": {"enum": ["dropped", "too_big", "filtered"]}, "text": TEXT,
    })  # fmt: skip
    return _document("A plan of framegauge", _object({
        "schema": {"const": 1}, "question": TEXT, "testbed": TEXT, "treatment": TEXT, "arms": _list(arm),
        "cells": COUNT, "blocks": COUNT, "stop": {"enum": ["blocks", "settled"]}, "seed": COUNT, "runs": COUNT,
        "seconds": NUMBER, "budget_seconds": NUMBER, "comparisons": COUNT,
        "trial": _maybe(_object({"bits_per_second": _list(COUNT), "adapts": FLAG})), "order": _list(slot),
        "reach": _list(reach), "missing": _list(_ref("requirement")), "unknown": _list(TEXT),
        "warnings": _list(warning),
    }))  # fmt: skip


def wire() -> Schema:
    """Of `framegauge wire`: of one MTU, of several (--levels), of a datagram, or of RDMA."""
    level = _object({
        "mtu": COUNT, "payload_share": NUMBER, "gain": NUMBER, "gain_of_largest": _maybe(NUMBER),
        "packets_per_gigabyte": NUMBER, "packets_saved_of_largest": _maybe(NUMBER),
        "goodput_bits_per_second": _maybe(NUMBER), "wire": _ref("frames.wire.result"),
    })  # fmt: skip
    levels = _object({"family": {"enum": [4, 6]}, "encapsulations": _list(TEXT), "levels": _list(level)})
    rdma = _object({"mtu": COUNT, "enough_mtu": COUNT, "families": _list(_ref("frames.rdma.result"))})
    shape = {"anyOf": [_ref("frames.wire.result"), levels, _ref("frames.datagram.result"), rdma]}
    return _document("What framegauge wire prints", shape)


def hosts() -> Schema:
    """Of `framegauge hosts`."""
    host = _object({
        "name": TEXT, "ssh": _maybe(TEXT), "read_only": FLAG, "interface": _maybe(TEXT), "ports": _maybe(TEXT),
        "error": _maybe(TEXT), "user_id": _maybe(COUNT), "cpus": _maybe(COUNT), "agent": _maybe(TEXT),
        "facts": _maybe(_ref("check.facts.result")),
    })  # fmt: skip
    return _document("Facts about hosts", _object({"schema": {"const": 1}, "hosts": _list(host)}))


def rack() -> Schema:
    """Of `framegauge rack up` and `list`: a rack or a lab that is kept, one that is being built, or null."""
    process = _object({"pid": COUNT, "start_ticks": COUNT})
    # What a host has besides depends on whether it is one of a rack, a router or the node of a lab.
    member = {"type": "object", "required": ["name", "pid", "start_ticks"], "properties": {
        "name": TEXT, "pid": COUNT, "start_ticks": COUNT, "running": FLAG, "address": TEXT, "mtu": COUNT,
        "nics": _list(ANY),
    }}  # fmt: skip
    shape = {"type": "object", "required": ["schema", "boot_id", "state", "reason", "keeper", "testbed", "study"],
            "properties": {
        "schema": COUNT, "boot_id": TEXT, "state": {"enum": ["building", "up"]}, "reason": _maybe(TEXT),
        "keeper": process, "testbed": TEXT, "study": TEXT, "agent": process, "since": TEXT, "hosts": _list(member),
        "routers": _list(member), "conditions": ANY, "names": FLAG, "about": TEXT,
    }}  # fmt: skip
    return _document("A rack for hand use", _maybe(shape))


def requirements() -> Schema:
    """Of `framegauge requirements`; `precedence` is there where an agent could be asked."""
    lacks = _list(_ref("requirement"))
    shape = _object({"missing": lacks, "degraded": lacks})
    shape["properties"]["precedence"] = {"enum": ["real time", "nice", "ordinary"]}
    return _document("What a machine lacks for a testbed", shape)


def cpu_model() -> Schema:
    """Of `framegauge estimate --model`."""
    cost = _object({"seconds": NUMBER, "low_seconds": NUMBER, "high_seconds": NUMBER})
    return _document("What packets take of a CPU", _object({
        "schema": {"const": 1}, "source": TEXT, "runs": COUNT,
        "left_out": {"type": "object", "additionalProperties": COUNT},
        "costs": _object(dict.fromkeys(COSTS, cost)),
        "deviations": {"type": "object", "additionalProperties": NUMBER},
    }))  # fmt: skip


def _object(properties: Mapping[str, Any], **more: Any) -> Schema:
    return {
        "type": "object", "additionalProperties": False, "required": list(properties),
        "properties": dict(properties), **more,
    }  # fmt: skip


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _maybe(shape: Schema) -> Schema:
    return {"anyOf": [shape, {"type": "null"}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _document(title: str, shape: Schema) -> Schema:
    """A schema with what it takes from the pipe's."""
    pipe = json.loads(SCHEMA.read_text("utf-8"))["$defs"]
    definitions: dict[str, Any] = {}
    waiting = _names(shape)
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            definitions[name] = pipe[name]
            waiting |= _names(pipe[name])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | shape | ({"$defs": dict(sorted(definitions.items()))} if definitions else {})


def _names(shape: Any) -> set[str]:
    """What a schema refers to."""
    if isinstance(shape, list):
        return set().union(*map(_names, shape))
    if not isinstance(shape, dict):
        return set()
    names = {str(shape["$ref"]).removeprefix("#/$defs/")} if "$ref" in shape else set()
    return names.union(*(_names(part) for part in shape.values()))
