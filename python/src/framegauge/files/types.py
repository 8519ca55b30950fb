"""The types of values in a study file: quantities with units, factors, and the error for a broken rule."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge import quantities
from framegauge.errors import QuantityError
from framegauge.files import settings

__all__ = [
    "Aggregate",
    "Bytes",
    "Durations",
    "Factor",
    "Flags",
    "Flow",
    "Flows",
    "FrameLimit",
    "LineRate",
    "Model",
    "Mtu",
    "OneOrMore",
    "Ppm",
    "Problem",
    "Qdisc",
    "Rate",
    "Rates",
    "Seconds",
    "Share",
    "Sizes",
    "Sparse",
    "as_list",
    "nearest",
    "one_of",
]

MTU_EXPECTED = (
    "an MTU in bytes between 68 and 65535, such as 9000, or one per host, such as {h1: 9000, h2: 1500} "
    "or {default: 9000, h2: 1500}, or with a storage network {default: 1500, storage: 9000}"
)
LEAST_AGGREGATE, MOST_AGGREGATE = 10_000, 524_280  # the kernel's own limit (GSO_MAX_SIZE)
AGGREGATE_EXPECTED = (
    f"the largest aggregate in bytes between {LEAST_AGGREGATE} and {MOST_AGGREGATE}, such as 65536 or 180000"
)
MOST_NAMED = 40  # known words that one line lists
HOST = re.compile(r"h[1-9][0-9]*")
# In a level of MTUs, besides hosts:
STORAGE = "storage"  # the network of the hosts' second NICs
ROUTES = "routes"  # those of all hosts

_QUANTITY = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


class Problem(ValueError):
    """A broken rule: `path` is the place to look at, relative to the model that raised it."""

    def __init__(self, path: tuple[str | int, ...], found: object, expected: str) -> None:
        self.path = path
        super().__init__(str(QuantityError(found, expected)))


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most similar to an unknown one, or all of them, as text for an error."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f'"{close[0]}"' if close else one_of(names)


def one_of(names: Sequence[str]) -> str:
    """The names as a list for an error."""
    rest = "" if len(names) <= MOST_NAMED else f", … ({len(names)} in all)"
    return f"one of {', '.join(names[:MOST_NAMED])}{rest}"


def _mtu_bytes(value: object) -> int:
    try:
        mtu = quantities.parse_bytes(value)
    except QuantityError:
        raise QuantityError(value, MTU_EXPECTED) from None
    if not 68 <= mtu <= 65535:  # IPv4's smallest MTU (RFC 791) and its largest packet
        raise QuantityError(value, MTU_EXPECTED)
    return mtu


def _aggregate_bytes(value: object) -> int:
    try:
        size = quantities.parse_bytes(value)
    except QuantityError:
        raise QuantityError(value, AGGREGATE_EXPECTED) from None
    if not LEAST_AGGREGATE <= size <= MOST_AGGREGATE:
        raise QuantityError(value, AGGREGATE_EXPECTED)
    return size


def _names_hosts(value: Mapping[Any, Any]) -> bool:
    words = ("default", STORAGE, ROUTES)
    return bool(value) and all(
        isinstance(key, str) and (key in words or HOST.fullmatch(key) is not None) for key in value
    )


def _mtu_level(value: object) -> int | dict[str, int]:
    """One MTU, or one per host, that of the storage network and that of routes; the study checks the names of hosts."""
    if not isinstance(value, Mapping):
        return _mtu_bytes(value)
    if not value or not all(isinstance(key, str) for key in value):
        raise QuantityError(dict(value), MTU_EXPECTED)
    # In the order of hosts, so that the order in a file makes no difference.
    keys = sorted(value, key=lambda key: (key != "default", key == ROUTES, key == STORAGE, len(key), key))
    return {key: _mtu_bytes(value[key]) for key in keys}


def _rate(value: object) -> int | None:
    if value is None or value == "unshaped":
        return None
    rate = quantities.parse_bits_per_second(value)
    if rate == 0:
        raise QuantityError(value, quantities.RATE_EXPECTED + ", or unshaped")
    return rate


def _line_rate(value: object) -> int:
    rate = quantities.parse_bits_per_second(value)
    if rate == 0:
        raise QuantityError(value, quantities.RATE_EXPECTED)
    return rate


class _AsList:
    """Makes a list of a single value, and tells the JSON Schema that this may be written, too."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(as_list, handler(source))

    def __get_pydantic_json_schema__(
        self, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        several = handler(core)
        return {"anyOf": [handler.resolve_ref_schema(several)["items"], several]}


def as_list(value: object) -> object:
    """The value as a list: a single condition becomes a list of one."""
    return value if isinstance(value, list) else [value]


# A kind as in tc(8); "default" is the kernel's own choice.
Qdisc = Annotated[
    StrictStr,
    AfterValidator(settings.qdisc),
    WithJsonSchema({"enum": ["default", *settings.listed("qdisc")]}),
]

Bytes = Annotated[
    int,
    PlainValidator(quantities.parse_bytes),
    PlainSerializer(quantities.exact_bytes),
    WithJsonSchema(_QUANTITY | {"description": quantities.BYTES_EXPECTED}),
]
# An MTU is written as a plain number: 9216, not 9 KiB.
FrameLimit = Annotated[
    int, PlainValidator(quantities.parse_bytes), WithJsonSchema(_QUANTITY | {"description": quantities.BYTES_EXPECTED})
]
# As with an MTU, a plain number.
Aggregate = Annotated[
    int,
    PlainValidator(_aggregate_bytes),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": LEAST_AGGREGATE, "maximum": MOST_AGGREGATE}, {"type": "string"}],
            "description": AGGREGATE_EXPECTED,
        }
    ),
]
Seconds = Annotated[
    float,
    PlainValidator(quantities.parse_seconds),
    PlainSerializer(quantities.exact_seconds),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 0}], "description": quantities.SECONDS_EXPECTED}),
]
Rate = Annotated[
    int | None,
    PlainValidator(_rate),
    PlainSerializer(lambda rate: "unshaped" if rate is None else quantities.exact_bits_per_second(rate)),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}], "description": quantities.RATE_EXPECTED}),
]
LineRate = Annotated[
    int,
    PlainValidator(_line_rate),
    PlainSerializer(quantities.exact_bits_per_second),
    WithJsonSchema({"type": "string", "description": quantities.RATE_EXPECTED}),
]
Ppm = Annotated[
    int,
    PlainValidator(quantities.parse_ppm),
    PlainSerializer(quantities.exact_ppm),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 0}], "description": quantities.PPM_EXPECTED}),
]
Share = Annotated[
    float,
    PlainValidator(quantities.parse_share),
    PlainSerializer(quantities.exact_share),
    WithJsonSchema({"type": "string", "description": quantities.SHARE_EXPECTED}),
]
Mtu = Annotated[
    Any,
    PlainValidator(_mtu_level),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 68, "maximum": 65535},
                {"type": "string"},
                {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"type": "integer"},
                },
            ],
            "description": MTU_EXPECTED,
        }
    ),
]
Item = TypeVar("Item")
# A value, or a list of them that is not empty.
OneOrMore = Annotated[list[Item], Field(min_length=1), _AsList()]
Sizes = Annotated[list[Bytes], BeforeValidator(as_list, json_schema_input_type=Bytes | list[Bytes])]
Durations = Annotated[list[Seconds], BeforeValidator(as_list, json_schema_input_type=Seconds | list[Seconds])]
Rates = Annotated[list[Rate], BeforeValidator(as_list, json_schema_input_type=Rate | list[Rate])]
Flow = Annotated[StrictInt, Field(ge=1, le=1000)]
Flows = Annotated[list[Flow], BeforeValidator(as_list, json_schema_input_type=Flow | list[Flow])]
Flags = Annotated[list[StrictBool], BeforeValidator(as_list, json_schema_input_type=StrictBool | list[StrictBool])]

Level = TypeVar("Level")


class Model(BaseModel):
    """A model in which unknown keys are errors, so that a misspelt limit is never silently skipped."""

    model_config = ConfigDict(extra="forbid")


class Sparse(Model):
    """A model that writes only what is given, under the names used in a file."""

    @model_serializer(mode="wrap")
    def _only_what_is_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        return {names[name]: value for name, value in handler(self).items() if value is not None}


class Factor(Model, Generic[Level]):
    """The levels of one factor. A single value is a fixed condition; a list is short for `levels`."""

    levels: Annotated[list[Level], Field(min_length=1)]
    baseline: Level | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, list):
            return {"levels": value}
        # {h1: 9000, h2: 1500} is one level; any other mapping is taken as {levels: …}.
        if isinstance(value, Mapping) and not _names_hosts(value):
            return value
        return {"levels": [value]}

    @model_validator(mode="after")
    def _consistent(self) -> Factor[Level]:
        for index, level in enumerate(self.levels):
            if level in self.levels[:index]:
                raise Problem(("levels",), level, "each level once (for an A/A comparison set control: true)")
        if self.baseline is None:
            self.baseline = self.levels[0]
        elif self.baseline not in self.levels:
            raise Problem(("baseline",), self.baseline, "one of the levels")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        reference = handler(core)
        items = handler.resolve_ref_schema(reference)["properties"]["levels"]["items"]
        return {"anyOf": [reference, {"type": "array", "minItems": 1, "items": items}, items]}
