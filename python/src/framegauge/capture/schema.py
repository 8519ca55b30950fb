"""The JSON Schema of a host's document: what its agent answers, by the schema of the pipe, and what was asked of it."""

from __future__ import annotations

import json
import re
from typing import Any

from framegauge.agents import answers
from framegauge.capture.files import SCHEMA

__all__ = ["json_schema"]

Json = dict[str, Any]
# What the controller adds.
ADDED: Json = {
    "schema": {"const": SCHEMA},
    "host": {"type": "string", "description": "As it was named."},
    "file": {"type": "string", "description": "Its capture, in the same folder."},
    "snap_bytes": {"type": "integer", "minimum": 64, "description": "Bytes of each packet that are kept."},
}
SAID = {
    "begin_seconds": "Since 1970, by the host's clock.",
    "end_seconds": "Since 1970, by the host's clock.",
    "seconds": "How long it was captured.",
    "packets": "Packets that were taken.",
    "wire_bytes": "Their bytes on the wire.",
    "dropped_packets": "Packets that found no room in a ring of the kernel.",
    "kept_packets": "Packets in the file.",
    "given_up_packets": "Packets that gave way to newer ones.",
    "cut_packets": "Packets from long before the trouble, which were not kept.",
    "cpu_seconds": "The time on a CPU of the threads that captured.",
    "watch_cpu_seconds": "The time on a CPU of the thread that watched the kernel.",
    "interfaces": "What passed the filter on each interface, and what was dropped there.",
    "counters_before": "The kernel's counters, as nstat names them.",
    "counters_after": "The same at the end.",
    "connections": "What TCP_INFO said of those that moved most; before: null for one that began later.",
    "more_connections": "Others that moved.",
    "lost_ends": "Ends of connections that the kernel could not tell of; null: nobody was told of ends.",
    "trouble": "What ended it, and how long before the end; null: nothing was looked for, or nothing came.",
}


def json_schema() -> Json:
    """The schema of HOST.json; it stands alone."""
    pipe: Json = json.loads(answers.SCHEMA.read_bytes())["$defs"]
    answer = pipe["capture.end.result"]
    shapes = {name: shape for name, shape in answer["properties"].items() if name != "spool"}
    properties = ADDED | {name: {**shape, "description": SAID[name]} for name, shape in shapes.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A host's document of a capture: HOST.json of framegauge capture",
        "type": "object",
        "additionalProperties": False,
        "required": [*ADDED, *(name for name in answer["required"] if name != "spool")],
        "properties": properties,
        "$defs": _used(properties, pipe),
    }


def _used(shape: Json, pipe: Json) -> Json:
    """The definitions to which a shape refers, and those to which they do."""
    definitions: Json = {}
    pending = [shape]
    while pending:
        for name in re.findall(r'"#/\$defs/([^"]+)"', json.dumps(pending.pop())):
            if name not in definitions:
                definitions[name] = pipe[name]
                pending.append(pipe[name])
    return dict(sorted(definitions.items()))
