"""The workloads of a study file: their parameters, and the conditions that follow from them.

A parameter given as a list makes one condition of each value. `conditions` states them in base units, under the names
that the workloads use (`workloads/`).
"""

from __future__ import annotations

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
from framegauge.study import traffic
from framegauge.study.command import Command
from framegauge.study.mapreduce import MapReduce
from framegauge.study.parameters import Parameters, above_zero, grid
from framegauge.study.replay import Replay
from framegauge.study.sizes import SizesLevels, sizes_problems
from framegauge.study.web import Web

__all__ = [
    "WORKLOADS",
    "Bulk",
    "Command",
    "Ftp",
    "Iperf3",
    "MapReduce",
    "Mixed",
    "Parameters",
    "RequestResponse",
    "Stream",
    "Web",
    "Workload",
]

RATE_EXPECTED = "requests per second above 0, such as 1000, or null for a closed loop"

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


class Stream(Parameters):
    """A long transfer: `size` (repeated until `repeat` has passed) or `duration`; lists are conditions.

    `rate` limits what each client offers, so that all arms carry the same load; a run that carries less does not count.
    null: unlimited. `nics` is the number of NICs of each host that are used, each with its own `flows` to the NIC of
    the same number. `sizes` are those of socket buffers and of each write and read, at both ends; null: the kernel
    tunes the buffers.
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
        above_zero(self, "size", "duration")
        if True in self.reverse and True in self.bidir:
            raise Problem(("bidir",), True, "false where reverse is true: bidir includes both directions")
        if self.rate != [None] and self.duration is None:
            raise Problem(("rate",), self.rate, "null with size: an equal load needs a duration")
        if "many-to-many" in self.pattern and True in self.bidir:
            raise Problem(("bidir",), True, "false with many-to-many: every host already sends to every other")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Each has one of size_bytes and duration_seconds. `sizes` may still be by MTU (study.sizes.at_mtu)."""
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
        return grid(axes, {"repeat_seconds": self.repeat, "sample_seconds": self.sample})

    def misfits(self, nics_of_hosts: int, mtus: Sequence[Any]) -> Iterator[Problem]:
        """Problems with too many NICs, and with sizes that do not match the levels of the factor mtu; their paths are
        relative to these parameters."""
        if max(self.nics, default=1) > nics_of_hosts:
            expected = f"at most {nics_of_hosts}, the number of NICs that every host has"
            yield Problem(("nics",), max(self.nics), f"{expected} (topology: {{rack: {{nics: 2}}}} gives each two)")
        yield from sizes_problems(self.sizes, mtus)


class RequestResponse(Parameters):
    """Requests and responses of stated sizes, in a closed loop (`rate: null`) or at a stated rate per client."""

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
        above_zero(self, "request", "response", "duration")
        for name, most, words in (
            ("request", 2**24, "16 MiB"),
            ("response", 2**24, "16 MiB"),
            ("connections", 512, "512"),
        ):
            if max(getattr(self, name)) > most:
                raise Problem((name,), max(getattr(self, name)), f"at most {words}")
        if self.rate == [None] and self.arrivals != ["uniform"]:
            raise Problem(("arrivals",), self.arrivals, "no such key without a rate: a closed loop has no arrivals")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination; a closed loop is listed once, whatever the arrivals."""
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
        found = grid(axes, {})
        # A closed loop has no arrivals, so several kinds of them would repeat the same condition.
        first = self.arrivals[0]
        return [each for each in found if each["rate_per_second"] is not None or each["arrivals"] == first]


class Bulk(Model):
    """Bulk streams alongside rr: `hosts` other hosts (null: all) send `flows` each, at `rate` per host at most."""

    flows: Flows = [1]
    rate: Rates = [None]
    hosts: Annotated[StrictInt, Field(ge=1)] | None = None


class Mixed(Parameters):
    """rr alongside bulk streams to the same server, which shows whether bulk traffic raises a neighbour's latency."""

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
        """The conditions of rr, and those of the bulk streams with the prefix `bulk_`."""
        bulk: dict[str, list[Any]] = {"bulk_flows": self.bulk.flows, "bulk_bits_per_second": self.bulk.rate}
        quiet = [{name: value for name, value in each.items() if name != "pattern"} for each in self.rr.conditions()]
        return [{**each, **beside} for each in quiet for beside in grid(bulk, {"bulk_hosts": self.bulk.hosts})]

    def needed_hosts(self) -> tuple[int, str]:
        """Two unless `bulk.hosts` is more than one: on a pair, the client of rr also sends the bulk."""
        return (self.bulk.hosts or 0) + 2 if (self.bulk.hosts or 1) > 1 else 2, "bulk"


class Iperf3(Parameters):
    """The program iperf3, for a stated time."""

    key: ClassVar[str] = "iperf3"
    obeys_nagle: ClassVar[bool] = True
    starts_programs: ClassVar[bool] = True

    duration: Durations = [1.0]
    flows: Annotated[
        list[Annotated[StrictInt, Field(ge=1, le=128)]],
        BeforeValidator(as_list, json_schema_input_type=StrictInt | list[StrictInt]),
    ] = [1]
    reverse: Flags = [False]
    pattern: Patterns = ["one-to-one"]

    @model_validator(mode="after")
    def _consistent(self) -> Iperf3:
        above_zero(self, "duration")
        for duration in self.duration:
            if duration != int(duration):
                raise Problem(("duration",), f"{duration} s", "whole seconds: iperf3 accepts no fractions")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """The same names as those of a stream with a duration."""
        axes: dict[str, list[Any]] = {
            "duration_seconds": self.duration, "flows": self.flows, "reverse": self.reverse, "pattern": self.pattern,
        }  # fmt: skip
        return grid(axes, {})


class Ftp(Parameters):
    """Files of `size` that curl fetches from vsftpd, one after another until `repeat` has passed."""

    key: ClassVar[str] = "ftp"
    starts_programs: ClassVar[bool] = True

    size: Sizes
    pattern: Fans = ["one-to-one"]
    repeat: Seconds = 0.5

    @model_validator(mode="after")
    def _consistent(self) -> Ftp:
        above_zero(self, "size")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """One condition per size and pattern."""
        return grid({"size_bytes": self.size, "pattern": self.pattern}, {"repeat_seconds": self.repeat})


_OF_HOSTS: tuple[type[Parameters], ...] = (Stream, RequestResponse, Mixed, Iperf3, Ftp, Command, MapReduce, Web)
_SIMULATED: tuple[type[Parameters], ...] = (*traffic.TRAFFIC, Replay)
WORKLOADS: Mapping[str, type[Parameters]] = {each.key: each for each in (*_OF_HOSTS, *_SIMULATED)}


class Workload(Model):
    """One workload and its parameters, such as `stream: {size: 1 MB}`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1, "maxProperties": 1})

    stream: Stream | None = None
    rr: RequestResponse | None = None
    mixed: Mixed | None = None
    iperf3: Iperf3 | None = None
    ftp: Ftp | None = None
    command: Command | None = None
    mapreduce: MapReduce | None = None
    web: Web | None = None
    incast: traffic.Incast | None = None
    shuffle: traffic.Shuffle | None = None
    users: traffic.Users | None = None
    arrivals: traffic.Arrivals | None = None
    replay: Replay | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        # `- rr:` without a value is rr with its defaults.
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
        """The parameters of the workload that is given."""
        found: Parameters = getattr(self, next(iter(self.model_fields_set)))
        return found
