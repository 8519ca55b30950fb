"""The workloads of a study file: their parameters, and the conditions that follow from them.

A parameter that is given as a list makes one condition of each value. `conditions` states them in base
units, under the names that the workloads themselves use (`workloads/`).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictInt,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from framegauge.errors import QuantityError
from framegauge.files.types import Durations, Flags, Flows, Model, Problem, Rates, Seconds, Sizes, as_list
from framegauge.study.sizes import SizesLevels, sizes_problems

__all__ = ["WORKLOADS", "Bulk", "Ftp", "Iperf3", "Mixed", "Parameters", "RequestResponse", "Stream", "Workload"]

RATE_EXPECTED = "requests a second above 0, such as 1000, or null for a closed loop"

Pattern = Literal["one-to-one", "many-to-one", "half-to-half", "many-to-many"]
Patterns = Annotated[list[Pattern], BeforeValidator(as_list, json_schema_input_type=Pattern | list[Pattern])]
Fan = Literal["one-to-one", "many-to-one"]
Fans = Annotated[list[Fan], BeforeValidator(as_list, json_schema_input_type=Fan | list[Fan])]
Arrival = Literal["uniform", "poisson"]
Arrivals = Annotated[list[Arrival], BeforeValidator(as_list, json_schema_input_type=Arrival | list[Arrival])]


def _frequency(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise QuantityError(value, RATE_EXPECTED)
    return float(value)


_FREQUENCY = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "description": RATE_EXPECTED}
Frequency = Annotated[float | None, PlainValidator(_frequency), WithJsonSchema(_FREQUENCY)]
Nic = Annotated[StrictInt, Field(ge=1)]
Nics = Annotated[list[Nic], BeforeValidator(as_list, json_schema_input_type=Nic | list[Nic])]
Frequencies = Annotated[list[Frequency], BeforeValidator(as_list, json_schema_input_type=Frequency | list[Frequency])]


class Parameters(Model):
    """What every workload's parameters can be asked. `key` is its name in a study file."""

    key: ClassVar[str]
    obeys_nagle: ClassVar[bool] = False

    @abstractmethod
    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists, in base units."""

    def needed_hosts(self) -> tuple[int, str]:
        """The least number of hosts, and the key that asks for it."""
        patterns = getattr(self, "pattern", ["one-to-one"])
        return (2, "") if set(patterns) == {"one-to-one"} else (3, "pattern")


def _grid(axes: Mapping[str, list[Any]], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) | dict(fixed) for values in itertools.product(*axes.values())]


def _above_zero(model: Model, *names: str) -> None:
    for name in names:
        if 0 in (getattr(model, name) or []):
            raise Problem((name,), 0, "more than 0")


class Stream(Parameters):
    """A long transfer: `size` (repeated until `repeat` has passed) or `duration`; lists are conditions.

    `rate`: each client offers no more, so that what is compared carries an equal load; a run that carries less is no
    evidence. null: as fast as it goes. `nics`: how many NICs of each host are used, each with `flows` of its own to the
    NIC of the same number. `sizes`: those of the sockets' buffers and of each write and read, at both ends; null: the
    kernel tunes the buffers.
    """

    key: ClassVar[str] = "stream"

    size: Sizes | None = None
    duration: Durations | None = None
    flows: Flows = [1]
    reverse: Flags = [False]
    bidir: Flags = [False]
    pattern: Patterns = ["one-to-one"]
    rate: Rates = [None]
    nics: Nics = [1]
    sizes: SizesLevels = [None]
    repeat: Seconds = 0.5
    sample: Seconds = 0.01

    @model_validator(mode="after")
    def _consistent(self) -> Stream:
        if (self.size is None) == (self.duration is None):
            found = "neither" if self.size is None else "both"
            raise Problem((), found, "exactly one of size and duration")
        _above_zero(self, "size", "duration")
        if True in self.reverse and True in self.bidir:
            raise Problem(("bidir",), True, "false where reverse is true: both directions are one condition")
        if self.rate != [None] and self.duration is None:
            raise Problem(("rate",), self.rate, "null with size: an equal load needs a duration")
        if "many-to-many" in self.pattern and True in self.bidir:
            raise Problem(("bidir",), True, "false with many-to-many: every host sends to every other already")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """One of size_bytes and duration_seconds in each. `sizes` may still be by MTU (study_sizes.at_mtu)."""
        axes: dict[str, list[Any]] = (
            {"size_bytes": self.size} if self.size is not None else {"duration_seconds": self.duration or []}
        )
        axes |= {"flows": self.flows, "reverse": self.reverse, "bidir": self.bidir, "pattern": self.pattern}
        if self.rate != [None]:
            axes["offered_bits_per_second"] = self.rate
        if self.nics != [1]:
            axes["nics"] = self.nics
        if self.sizes != [None]:
            axes["sizes"] = self.sizes
        return _grid(axes, {"repeat_seconds": self.repeat, "sample_seconds": self.sample})

    def misfits(self, nics_of_hosts: int, mtus: Sequence[Any]) -> Iterator[Problem]:
        """More NICs than every host has, and sizes that do not fit the levels of the factor mtu; paths below these
        parameters."""
        if max(self.nics, default=1) > nics_of_hosts:
            expected = f"at most {nics_of_hosts}: that is how many NICs every host has"
            yield Problem(("nics",), max(self.nics), f"{expected} (topology: {{rack: {{nics: 2}}}} gives each two)")
        yield from sizes_problems(self.sizes, mtus)


class RequestResponse(Parameters):
    """Requests and responses of stated sizes, by closed loop (`rate: null`) or at a stated rate a client."""

    key: ClassVar[str] = "rr"
    obeys_nagle: ClassVar[bool] = True

    request: Sizes = [100]
    response: Sizes = [1000]
    header: Sizes = [0]
    connections: Flows = [1]
    rate: Frequencies = [None]
    arrivals: Arrivals = ["uniform"]
    duration: Durations = [1.0]
    pattern: Fans = ["one-to-one"]

    @model_validator(mode="after")
    def _consistent(self) -> RequestResponse:
        _above_zero(self, "request", "response", "duration")
        for name, most, words in (
            ("request", 2**24, "16 MiB"),
            ("response", 2**24, "16 MiB"),
            ("connections", 512, "512"),
        ):
            if max(getattr(self, name)) > most:
                raise Problem((name,), max(getattr(self, name)), f"at most {words}")
        if self.rate == [None] and self.arrivals != ["uniform"]:
            raise Problem(("arrivals",), self.arrivals, "no such key without a rate: in a closed loop nothing arrives")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Without arrivals of its own where the loop is closed."""
        axes: dict[str, list[Any]] = {
            "request_bytes": self.request,
            "response_bytes": self.response,
            "header_bytes": self.header,
            "connections": self.connections,
            "rate_per_second": self.rate,
            "arrivals": self.arrivals,
            "duration_seconds": self.duration,
            "pattern": self.pattern,
        }
        found = _grid(axes, {})
        # A closed loop has no arrivals: several kinds of them would be the same condition twice.
        first = self.arrivals[0]
        return [each for each in found if each["rate_per_second"] is not None or each["arrivals"] == first]


class Bulk(Model):
    """Bulk streams beside rr: `hosts` of the other hosts (null: all) send `flows` each, at most at `rate` a host."""

    flows: Flows = [1]
    rate: Rates = [None]
    hosts: Annotated[StrictInt, Field(ge=1)] | None = None


class Mixed(Parameters):
    """rr beside bulk streams to the same server: does bulk hurt a neighbour's latency?"""

    key: ClassVar[str] = "mixed"
    obeys_nagle: ClassVar[bool] = True

    rr: RequestResponse = Field(default_factory=RequestResponse)
    bulk: Bulk = Field(default_factory=Bulk)

    @model_validator(mode="after")
    def _consistent(self) -> Mixed:
        if self.rr.pattern != ["one-to-one"]:
            raise Problem(("rr", "pattern"), self.rr.pattern, "one-to-one: the other hosts send the bulk")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """rr's, and the bulk's with `bulk_` before their names."""
        bulk: dict[str, list[Any]] = {"bulk_flows": self.bulk.flows, "bulk_bits_per_second": self.bulk.rate}
        quiet = [{name: value for name, value in each.items() if name != "pattern"} for each in self.rr.conditions()]
        return [{**each, **beside} for each in quiet for beside in _grid(bulk, {"bulk_hosts": self.bulk.hosts})]

    def needed_hosts(self) -> tuple[int, str]:
        """Two are enough: on a pair the client of rr sends the bulk too."""
        return (self.bulk.hosts or 0) + 2 if (self.bulk.hosts or 1) > 1 else 2, "bulk"


class Iperf3(Parameters):
    """iperf3 as it comes, for a stated time."""

    key: ClassVar[str] = "iperf3"
    obeys_nagle: ClassVar[bool] = True

    duration: Durations = [1.0]
    flows: Annotated[
        list[Annotated[StrictInt, Field(ge=1, le=128)]],
        BeforeValidator(as_list, json_schema_input_type=StrictInt | list[StrictInt]),
    ] = [1]
    reverse: Flags = [False]
    pattern: Patterns = ["one-to-one"]

    @model_validator(mode="after")
    def _consistent(self) -> Iperf3:
        _above_zero(self, "duration")
        for duration in self.duration:
            if duration != int(duration):
                raise Problem(("duration",), f"{duration} s", "whole seconds: iperf3 takes no others")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """As stream's with a duration."""
        axes: dict[str, list[Any]] = {
            "duration_seconds": self.duration, "flows": self.flows, "reverse": self.reverse, "pattern": self.pattern,
        }  # fmt: skip
        return _grid(axes, {})


class Ftp(Parameters):
    """Files of `size` fetched by curl from vsftpd, one after another until `repeat` has passed."""

    key: ClassVar[str] = "ftp"

    size: Sizes
    pattern: Fans = ["one-to-one"]
    repeat: Seconds = 0.5

    @model_validator(mode="after")
    def _consistent(self) -> Ftp:
        _above_zero(self, "size")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """One a size and pattern."""
        return _grid({"size_bytes": self.size, "pattern": self.pattern}, {"repeat_seconds": self.repeat})


WORKLOADS: Mapping[str, type[Parameters]] = {each.key: each for each in (Stream, RequestResponse, Mixed, Iperf3, Ftp)}


class Workload(Model):
    """One workload and its parameters, such as `stream: {size: 1 MB}`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1, "maxProperties": 1})

    stream: Stream | None = None
    rr: RequestResponse | None = None
    mixed: Mixed | None = None
    iperf3: Iperf3 | None = None
    ftp: Ftp | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        # `- rr:` alone is rr with its defaults.
        if isinstance(value, Mapping):
            return {key: {} if inner is None and key in WORKLOADS else inner for key, inner in value.items()}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Workload:
        given = sorted(self.model_fields_set)
        if len(given) != 1:
            found = ", ".join(given) or "nothing"
            raise Problem((), found, f"exactly one workload of {', '.join(WORKLOADS)}")
        return self

    @model_serializer(mode="wrap")
    def _only_what_is_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}

    @property
    def parameters(self) -> Parameters:
        """Of the one workload that is given."""
        found: Parameters = getattr(self, next(iter(self.model_fields_set)))
        return found
