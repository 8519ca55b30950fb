"""What an agent may send: bounded lines of JSON, and answers as pipe/schema.json says.

A host may be in other hands, so nothing of an answer is believed before it has passed here. The schema is turned into
validators of pydantic-core, which take a microsecond where jsonschema takes a millisecond, and which, unlike JSON
Schema, do not take 1.0 for a whole number.
"""

from __future__ import annotations

import base64
import functools
import ipaddress
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framegauge.errors import BadAnswer, FramegaugeError, from_agent
from framegauge.printable import one_line

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaValidator

__all__ = ["LINE_BYTES", "error_of", "load", "message_of", "progress_of", "result_of", "shape", "simulation_of"]

SCHEMA = Path(__file__).with_name("pipe.schema.json")  # a link to pipe/schema.json
# The longest honest line is a check's answer: 126 paths of 1,024 flows are 14 MB, with 650,000 values. A value takes
# the controller about a hundred bytes.
LINE_BYTES = 16 << 20
MOST_VALUES = 1_000_000
ALTERNATIVE = "|"  # in places of errors
MOST_SHOWN = 60  # characters of what was found
# Every whole number that an agent can send fits 64 bits.
LEAST, MOST = -(1 << 63), (1 << 64) - 1

Json = dict[str, Any]


def load() -> None:
    """Import the checker and build what the first answer needs, which takes some 60 ms once in a process."""
    _validator("hello.result")


def message_of(line: bytes) -> Json:
    """The message in a line; BadAnswer unless it is a JSON object of a bearable size and depth."""
    from pydantic_core import from_json

    if len(line) > LINE_BYTES:
        raise BadAnswer(f"found a line of more than {LINE_BYTES >> 20} MiB, expected a shorter one")
    if line.count(b",") + line.count(b"[") + line.count(b"{") > MOST_VALUES:
        raise BadAnswer(f"found a line of more than {MOST_VALUES} values, expected fewer")
    try:
        # No NaN, no half of a surrogate pair, no more than 200 levels.
        message: Json = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise BadAnswer(f"found {_text(repr(line[:MOST_SHOWN]))}, expected JSON ({error})") from None
    if not isinstance(message, dict):
        raise BadAnswer(f"found {_shown(message)}, expected an object")
    return message


def progress_of(message: Json) -> Json:
    """The params of a notification of progress; BadAnswer if they are not as they must be."""
    _check("notification", message, "a notification")
    params: Json = message["params"]
    return params


def result_of(method: str, message: Json) -> Json:
    """The result in an answer to a method; BadAnswer if there is none, or it is not as the schema says."""
    if "result" not in message:
        raise BadAnswer(f"{method}: found an answer without a result, expected a result or an error")
    result: Json = message["result"]
    if not isinstance(result, dict):
        raise BadAnswer(f"{method}: found {_shown(result)} as result, expected an object")
    _check(f"{method}.result", result, method)
    return result


def error_of(method: str, message: Json) -> FramegaugeError:
    """The error of an error answer to a method; a BadAnswer if it is not as the schema says."""
    try:
        _check("error", message["error"], f"{method}: its error")
    except BadAnswer as bad:
        return bad
    return from_agent(**message["error"])


def shape(method: str, params: Mapping[str, Any]) -> str:
    """The method whose result the answer to a request has: that of a relay is the relayed method's."""
    return str(params.get("method")) if method == "relay" else method


def simulation_of(value: object, part: str = "") -> Json:
    """What a simulation printed: its result, or with `part` its "progress" or "memory"; BadAnswer if it is not as the
    schema says."""
    if not isinstance(value, dict):
        raise BadAnswer(f"simulate: found {_shown(value)}, expected an object")
    _check(f"simulation.{part}" if part else "simulation", value, f"simulate: {part or 'result'}")
    simulation: Json = value
    return simulation


def _check(name: str, value: object, subject: str) -> None:
    """BadAnswer, in one line, unless a value is as a definition of the schema says; of methods that it does not know,
    which only tests have, everything is taken."""
    from pydantic_core import ValidationError

    validator = _validator(name)
    if validator is None:
        return
    try:
        validator.validate_python(value)
    except ValidationError as error:
        # Of alternatives, the one that got furthest.
        first = max(error.errors(include_url=False, include_context=False), key=lambda item: len(item["loc"]))
        location = ".".join(str(item) for item in first["loc"] if item != ALTERNATIVE)
        raise BadAnswer(f"{subject}: {_text(location) + ': ' if location else ''}{_problem(first)}") from None


def _problem(error: Mapping[str, Any]) -> str:
    """What was found and what was expected, from an error of pydantic."""
    if error["type"] == "missing":
        return "found nothing, expected a value"
    if error["type"] == "extra_forbidden":
        return f"found {_shown(error['input'])}, expected no such key"
    expected = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"found {_shown(error['input'])}, expected {_text(expected.replace('dictionary', 'object'))}"


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return _text(json.dumps(value[:MOST_SHOWN] if isinstance(value, str) else value))


def _text(text: str) -> str:
    return one_line(text, 2 * MOST_SHOWN)


@functools.cache
def _definitions() -> Json:
    definitions: Json = json.loads(SCHEMA.read_bytes())["$defs"]
    return definitions


@functools.cache
def _validator(name: str) -> SchemaValidator | None:
    from pydantic_core import SchemaValidator

    return SchemaValidator(_core(_definitions()[name])) if name in _definitions() else None


def _core(node: Json) -> CoreSchema:
    """The validator of a JSON Schema; ValueError for keywords that are not known here."""
    from pydantic_core import core_schema as core

    node = {key: value for key, value in node.items() if key not in ("description", "title")}
    kind = node.get("type")
    if "$ref" in node:
        target: Any = _definitions()
        for step in node.pop("$ref").split("/")[2:]:
            target = target[step]
        schema = _core(target)
    elif "anyOf" in node or "oneOf" in node:
        choices = node.pop("anyOf", None) or node.pop("oneOf")
        schemas = [_core(branch) for branch in choices if branch != {"type": "null"}]
        alternatives: Any = [(branch, ALTERNATIVE) for branch in schemas]
        schema = schemas[0] if len(schemas) == 1 else core.union_schema(alternatives, mode="left_to_right")
        schema = schema if len(schemas) == len(choices) else core.nullable_schema(schema)
    elif "enum" in node or "const" in node:
        values = node.pop("enum") if "enum" in node else [node.pop("const")]
        node.pop("type", None)
        schema = core.literal_schema(values)
        if all(type(value) is int for value in values):
            schema = core.chain_schema([core.int_schema(strict=True), schema])
    elif isinstance(kind, list) and len(kind) == 2 and kind[1] == "null":
        return core.nullable_schema(_core(node | {"type": kind[0]}))
    elif kind in _KINDS:
        schema = _KINDS[node.pop("type")](node)
    elif not node:
        schema = core.any_schema()
    else:
        raise ValueError(f"{node}: found no type that is known here")
    if node:
        raise ValueError(f"found {', '.join(node)} in the schema, expected only keywords that are checked here")
    return schema


def _whole(node: Json) -> CoreSchema:
    from pydantic_core import core_schema as core

    return core.int_schema(strict=True, ge=node.pop("minimum", LEAST), le=node.pop("maximum", MOST))


def _number(node: Json) -> CoreSchema:
    from pydantic_core import core_schema as core

    limits = {
        short: node.pop(name)
        for name, short in (
            ("minimum", "ge"), ("exclusiveMinimum", "gt"), ("maximum", "le"), ("exclusiveMaximum", "lt"),
        )
        if name in node
    }  # fmt: skip
    return core.float_schema(strict=True, allow_inf_nan=False, **limits)


def _string(node: Json) -> CoreSchema:
    from pydantic_core import core_schema as core

    schema: CoreSchema = core.str_schema(
        strict=True,
        pattern=node.pop("pattern", None),
        min_length=node.pop("minLength", None),
        max_length=node.pop("maxLength", None),
    )
    for key in ("contentEncoding", "format"):
        if key in node:
            schema = core.no_info_after_validator_function(_FORMATS[node.pop(key)], schema)
    return schema


def _array(node: Json) -> CoreSchema:
    from pydantic_core import core_schema as core

    node.pop("uniqueItems", None)  # nothing depends on it
    least, most = node.pop("minItems", None), node.pop("maxItems", None)
    return core.list_schema(_core(node.pop("items")), min_length=least, max_length=most, strict=True)


def _object(node: Json) -> CoreSchema:
    from pydantic_core import core_schema as core

    extra, required = node.pop("additionalProperties", True), node.pop("required", ())
    keys = node.pop("properties", {})
    if isinstance(extra, dict):
        if keys:
            raise ValueError("found properties beside additionalProperties of one type, expected only one of them")
        return core.dict_schema(core.str_schema(strict=True), _core(extra), strict=True)
    fields = {
        key: core.typed_dict_field(_core(field_node), required=key in required) for key, field_node in keys.items()
    }  # fmt: skip
    return core.typed_dict_schema(fields, strict=True, extra_behavior="allow" if extra else "forbid")


def _constant(kind: str) -> Callable[[Json], CoreSchema]:
    def of(_: Json) -> CoreSchema:
        from pydantic_core import core_schema as core

        return core.none_schema() if kind == "null" else core.bool_schema(strict=True)

    return of


def _read_by(read: Callable[[str], object], expected: str) -> Callable[[str], str]:
    def checked(text: str) -> str:
        try:
            read(text)
        except ValueError:
            raise ValueError(expected) from None
        return text

    return checked


# Addresses are passed on to other hosts, whose agents know nothing of zones ("fe80::1%eth0").
_FORMATS: Mapping[str, Callable[[str], str]] = {
    "ipv4": _read_by(ipaddress.IPv4Address, "an IPv4 address"),
    "ipv6": _read_by(lambda text: ipaddress.IPv6Address(text.replace("%", "zone")), "an IPv6 address"),
    "base64": _read_by(lambda text: base64.b64decode(text, validate=True), "base64"),
}


_KINDS: Mapping[str, Callable[[Json], CoreSchema]] = {
    "integer": _whole, "number": _number, "string": _string, "array": _array, "object": _object,
    "boolean": _constant("boolean"), "null": _constant("null"),
}  # fmt: skip
