"""The JSON Schema of the document of a preflight."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMA", "changes_schema", "json_schema"]

SCHEMA = 1

_TEXT = {"type": "string"}
_COMMANDS = {"type": "array", "items": {"type": "array", "items": _TEXT, "minItems": 1}}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "required": list(properties), "properties": properties,
    }  # fmt: skip


def _said(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def changes_schema() -> dict[str, Any]:
    """Of the changes of files that have owners keep an MTU."""
    way_back = _object(diff=_said(_TEXT, "Undoes `diff`."), reload=_COMMANDS)
    return {
        "type": "array",
        "items": _object(
            host=_TEXT, owner=_TEXT, path=_TEXT,
            whole={"type": "boolean", "description": "False: `reload` makes the change; the file is not written."},
            mode=_said(_TEXT, "Of a file that is made, in octal digits."),
            diff=_said(_TEXT, "The change of the file, for patch -p0."),
            reload=_said(_COMMANDS, "What has the owner take it."), undo=way_back,
        ),
    }  # fmt: skip


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) that every document of `framegauge rollout preflight --json` fulfils."""
    mtu = {"type": ["integer", "null"], "minimum": 0}
    whole = _object(
        schema={"const": SCHEMA},
        target_mtu={"type": "integer", "minimum": 68, "description": "What is asked for, in bytes."},
        scope={"enum": ["subnets", "all"], "description": "Whether routes through a gateway get it, too."},
        lease_seconds={"type": "number", "exclusiveMinimum": 0},
        forced={"type": "array", "items": _TEXT, "description": "Kinds that only warn."},
        verdict={
            "enum": ["clear", "warnings", "refused", "could_not_tell"],
            "description": "The gravest finding; could_not_tell: a host has no facts.",
        },
        hosts={
            "type": "array",
            "items": _object(
                name=_TEXT, interface=_TEXT, mtu=mtu, maximum_mtu=mtu,
                error={"type": ["string", "null"], "description": "Why it has no facts."},
            ),
        },
        findings={
            "type": "array",
            "items": _object(
                where=_said(_TEXT, "HOST/INTERFACE, or HOST."), what=_said(_TEXT, "Its kind, one word."),
                severity={"enum": ["refused", "warning", "note"]}, found=_TEXT, expected=_TEXT, remedy=_TEXT,
            ),
        },
        changes=changes_schema(),
    )  # fmt: skip
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A preflight of framegauge", **whole}
