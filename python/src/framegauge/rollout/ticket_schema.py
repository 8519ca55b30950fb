"""The JSON Schema of a change ticket."""

from __future__ import annotations

from typing import Any

__all__ = ["json_schema"]

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_ANY = {"type": "object"}
_MAYBE = {"type": ["integer", "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "required": list(properties), "properties": properties,
    }  # fmt: skip


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) that every ticket.json fulfils."""
    pair = _object(verdict=_TEXT, path_mtu_bytes=_MAYBE, mss_bytes=_MAYBE)
    of_hosts = {"type": "object", "additionalProperties": pair}
    matrix = {"type": "object", "additionalProperties": of_hosts}
    proof = _object(
        at=_TEXT, when=_TEXT, mtu={"type": "integer"}, verdict=_TEXT, hosts=_TEXTS,
        matrices={
            "type": "object", "additionalProperties": matrix,
            "description": "By IP version, source and destination.",
        },
        faults=_TEXTS,
    )  # fmt: skip
    run = _object(
        kind={"enum": ["apply", "undo"]},
        question=_TEXT,
        by=_object(user=_TEXT, machine=_TEXT),
        framegauge=_TEXT,
        began=_TEXT,
        ended={"type": ["string", "null"]},
        outcome={"enum": ["finished", "undone", "undone_in_part", "put_back", "parked", "open"]},
        sentence=_TEXT,
        why=_TEXTS,
        asked=_ANY,
        hosts=_ANY,
        findings=_list(_ANY),
        steps=_list(
            _object(
                host=_TEXT,
                kind=_TEXT,
                command=_TEXTS,
                undo=_TEXTS,
                ip={**_TEXTS, "description": "The same as lines of `ip`."},
                ip_undo=_TEXTS,
            )
        ),
        changes=_list(_ANY),
        addresses={"type": "object", "additionalProperties": _TEXTS},
        afterwards={**_list(_ANY), "description": "What containers are to have once their hosts are raised."},
        proofs=_list(proof),
        course=_list(_object(at=_TEXT, what=_TEXT)),
    )
    whole = _object(schema={"const": 1}, runs={**_list(run), "minItems": 1})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A change ticket of framegauge",
        **whole,
    }
