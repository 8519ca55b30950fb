"""The study: testbed, factors with levels, workloads, margins. Pure data, validated.

A study file is YAML; `study_file.load` reads it and names file and line of every problem. What is kept
here is the shape (`Study`), what follows from it (`arms`, `cells`), and nothing that runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge import quantities
from framegauge.errors import QuantityError

__all__ = ["Arm", "Cell", "Factor", "Problem", "Stream", "Study", "arms", "cells", "level_text"]

MTU_EXPECTED = "an MTU in bytes between 68 and 65535, such as 9000, or one a host, such as {h1: 9000, h2: 1500}"
HOSTS = ("h1", "h2")

_QUANTITY = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}


class Problem(ValueError):
    """A rule across fields: `path` is where the user should look, below the model that raised it."""

    def __init__(self, path: tuple[str, ...], found: object, expected: str) -> None:
        self.path = path
        super().__init__(str(QuantityError(found, expected)))


def _mtu_bytes(value: object) -> int:
    try:
        mtu = quantities.parse_bytes(value)
    except QuantityError:
        raise QuantityError(value, MTU_EXPECTED) from None
    if not 68 <= mtu <= 65535:  # IPv4's smallest MTU (RFC 791) and its largest packet
        raise QuantityError(value, MTU_EXPECTED)
    return mtu


def _mtu_level(value: object) -> int | dict[str, int]:
    if isinstance(value, Mapping):
        if sorted(value) != sorted(HOSTS):
            raise QuantityError(dict(value), MTU_EXPECTED)
        return {host: _mtu_bytes(value[host]) for host in HOSTS}
    return _mtu_bytes(value)


def _rate(value: object) -> int | None:
    if value is None or value == "unshaped":
        return None
    rate = quantities.parse_bits_per_second(value)
    if rate == 0:
        raise QuantityError(value, quantities.RATE_EXPECTED + ", or unshaped")
    return rate


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Bytes = Annotated[
    int,
    PlainValidator(quantities.parse_bytes),
    PlainSerializer(quantities.exact_bytes),
    WithJsonSchema(_QUANTITY | {"description": quantities.BYTES_EXPECTED}),
]
# An MTU reads best as a plain number: 9216, not 9 KiB.
FrameLimit = Annotated[
    int, PlainValidator(quantities.parse_bytes), WithJsonSchema(_QUANTITY | {"description": quantities.BYTES_EXPECTED})
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
                    "required": list(HOSTS),
                    "additionalProperties": False,
                    "properties": {host: {"type": "integer"} for host in HOSTS},
                },
            ],
            "description": MTU_EXPECTED,
        }
    ),
]
Sizes = Annotated[list[Bytes], BeforeValidator(_as_list, json_schema_input_type=Bytes | list[Bytes])]
Durations = Annotated[list[Seconds], BeforeValidator(_as_list, json_schema_input_type=Seconds | list[Seconds])]
Flow = Annotated[StrictInt, Field(ge=1, le=1000)]
Flows = Annotated[list[Flow], BeforeValidator(_as_list, json_schema_input_type=Flow | list[Flow])]
Flags = Annotated[list[StrictBool], BeforeValidator(_as_list, json_schema_input_type=StrictBool | list[StrictBool])]

Level = TypeVar("Level")


class Model(BaseModel):
    """Unknown keys are errors: a misspelt limit is never silently skipped."""

    model_config = ConfigDict(extra="forbid")


class Factor(Model, Generic[Level]):
    """Levels of one factor. A single value is a fixed condition; a list is short for `levels`."""

    levels: Annotated[list[Level], Field(min_length=1)]
    baseline: Level | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, list):
            return {"levels": value}
        # {h1: 9000, h2: 1500} is one level; any other mapping is meant as {levels: …}.
        if isinstance(value, Mapping) and not (value and all(key in HOSTS for key in value)):
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


class Link(Model):
    """The link from each host to the switch. `rate: unshaped` (veth only): the CPU is the limit."""

    rate: Rate = 10**9
    buffer: Bytes = 512 * 1024
    port_mtu: FrameLimit = 9216


class Nic(Model):
    """The modelled NIC: interrupt moderation adds latency, so it is stated; `aggregate` is its largest TSO."""

    moderation: Seconds = 50e-6
    aggregate: Bytes = 36 * 1024


class Shaper(Model):
    """What bounds the sender's queue: tbf at `factor` x line rate; one mechanism for every arm."""

    factor: Annotated[float, Field(gt=0, le=1)] = 0.999
    burst: Bytes = 70_000


class Fake(Model):
    """An invented network, for trying things out and for tests: its figures are no evidence."""

    noise: Share = 0.003
    goodput_loss: Share = 0.0
    faults: list[StrictStr] = []


class Testbed(Model):
    """Where the study runs: `rack` is our fabric, `veth` the kernel alone, `fake` an invented network."""

    kind: Literal["rack", "veth", "fake"]
    topology: Literal["pair"] = "pair"
    link: Link = Field(default_factory=Link)
    nic: Nic = Field(default_factory=Nic)
    shaper: Shaper = Field(default_factory=Shaper)
    family: Literal[4, 6] = 4
    fake: Fake | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Testbed:
        if self.link.rate is None and self.kind != "veth":
            raise Problem(("link", "rate"), "unshaped", "a rate such as 1 Gb/s (unshaped needs kind: veth)")
        if self.fake is not None and self.kind != "fake":
            raise Problem(("fake",), "fake", "no such key unless kind: fake")
        return self


class Factors(Model):
    """What is varied, or held."""

    mtu: Factor[Mtu]
    rtt: Factor[Seconds] | None = None
    offloads: Factor[StrictBool] = Field(default_factory=lambda: Factor[StrictBool](levels=[False]))
    congestion_control: Factor[StrictStr] = Field(default_factory=lambda: Factor[StrictStr](levels=["cubic"]))


class Stream(Model):
    """A long transfer: `size` (repeated until `repeat` has passed) or `duration`; lists are conditions."""

    size: Sizes | None = None
    duration: Durations | None = None
    flows: Flows = [1]
    reverse: Flags = [False]
    repeat: Seconds = 0.5
    sample: Seconds = 0.01

    @model_validator(mode="after")
    def _consistent(self) -> Stream:
        if (self.size is None) == (self.duration is None):
            found = "neither" if self.size is None else "both"
            raise Problem((), found, "exactly one of size and duration")
        if 0 in (self.size or []) or 0 in (self.duration or []):
            raise Problem(("size" if self.size else "duration",), 0, "more than 0")
        return self


class Workload(Model):
    """One workload and its parameters, such as `stream: {size: 1 MB}`."""

    stream: Stream


class Margins(Model):
    """The smallest relative effect worth acting on, by metric; only these metrics are judged."""

    goodput: Share | None = None
    completion_time: Share | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Margins:
        given = {name: value for name, value in self if value is not None}
        if not given or 0 in given.values():
            raise Problem((), given, "a margin above 0 % for at least one metric (goodput, completion_time)")
        return self


class Study(Model):
    """One question, and the experiment that answers it."""

    question: StrictStr = "Do jumbo frames help?"
    testbed: Testbed
    factors: Factors
    workloads: Annotated[list[Workload], Field(min_length=1)]
    treatment: Literal["mtu", "rtt", "offloads", "congestion_control"] = "mtu"
    control: StrictBool = True
    blocks: Annotated[StrictInt, Field(ge=2, le=10_000)] = 6
    budget: Seconds = 600.0
    margins: Margins
    seed: Annotated[StrictInt, Field(ge=0)] = 1
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = 2
    sysctls: dict[StrictStr, StrictStr] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        if self.factors.rtt is None:
            self.factors.rtt = Factor[Seconds].model_validate("0 s" if self.testbed.kind == "veth" else "0.2 ms")
        levels = self.treatment_factor.levels
        if len(levels) < 2 and not self.control:
            where = ("factors", self.treatment)
            raise Problem(where, levels[0], "two or more levels for the treatment, or control: true")
        if self.testbed.kind == "veth" and self.factors.rtt.levels != [0.0]:
            raise Problem(("factors", "rtt"), self.factors.rtt.levels, "0 on testbed veth: it cannot delay")
        for level in self.factors.mtu.levels:
            smallest = min(level.values()) if isinstance(level, dict) else level
            if self.testbed.family == 6 and smallest < 1280:
                raise Problem(("factors", "mtu"), smallest, "at least 1280 with family: 6 (RFC 8200)")
            if self.testbed.kind != "veth" and smallest > self.testbed.link.port_mtu:
                expected = f"at most link.port_mtu {self.testbed.link.port_mtu}: larger frames die at the switch"
                raise Problem(("factors", "mtu"), smallest, expected)
        return self

    @property
    def treatment_factor(self) -> Factor[Any]:
        """The factor whose levels are compared with its baseline."""
        factor: Factor[Any] = getattr(self.factors, self.treatment)
        return factor

    def margin(self) -> dict[str, float]:
        """Margins as shares, by metric."""
        return {name: value for name, value in self.margins if value is not None}


@dataclass(frozen=True)
class Arm:
    """One level of the treatment within a block; the control is the baseline's level once more."""

    role: Literal["baseline", "control", "treatment"]
    level: Any

    @property
    def name(self) -> str:
        """Unique within a study."""
        return self.role if self.role != "treatment" else level_text(self.level)


@dataclass(frozen=True)
class Cell:
    """One combination of everything that is not the treatment: verdicts are given within a cell."""

    index: int
    workload: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, Any]


def level_text(level: object) -> str:
    """A level as a word: 9000, h1=9000,h2=1500, 0.0002, true."""
    if isinstance(level, Mapping):
        return ",".join(f"{host}={mtu}" for host, mtu in level.items())
    return str(level).lower() if isinstance(level, bool) else str(level)


def arms(study: Study) -> list[Arm]:
    """Baseline first, then the A/A control, then the other levels in the file's order."""
    factor = study.treatment_factor
    found = [Arm("baseline", factor.baseline)]
    if study.control:
        found.append(Arm("control", factor.baseline))
    return found + [Arm("treatment", level) for level in factor.levels if level != factor.baseline]


def cells(study: Study) -> list[Cell]:
    """Every combination of the other factors' levels and the workloads' parameters."""
    names = [name for name in Factors.model_fields if name != study.treatment]
    grid = itertools.product(*(getattr(study.factors, name).levels for name in names))
    factors = [dict(zip(names, levels, strict=True)) for levels in grid]
    parameters = [each for workload in study.workloads for each in _stream_parameters(workload.stream)]
    pairs = itertools.product(parameters, factors)
    return [Cell(index, "stream", each, chosen) for index, (each, chosen) in enumerate(pairs)]


def _stream_parameters(stream: Stream) -> list[dict[str, Any]]:
    amounts: Sequence[tuple[str, Any]] = (
        [("size_bytes", size) for size in stream.size]
        if stream.size is not None
        else [("duration_seconds", duration) for duration in stream.duration or []]
    )
    fixed = {"repeat_seconds": stream.repeat, "sample_seconds": stream.sample}
    grid = itertools.product(amounts, stream.flows, stream.reverse)
    return [{name: amount, "flows": flows, "reverse": back} | fixed for (name, amount), flows, back in grid]
