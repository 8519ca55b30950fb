"""The workloads of a study file that are only simulated: traffic as applications make it, without the applications."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictInt,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from framegauge import quantities
from framegauge.errors import QuantityError
from framegauge.files import distributions
from framegauge.files.distributions import Distribution
from framegauge.files.types import Bytes, Durations, Problem, Seconds, Sizes, as_list
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["TRAFFIC", "Arrivals", "Incast", "Shuffle", "Users"]

MOST_FLOWS = 1_000_000  # of a run
MOST_LOAD = 2.0

Count = Annotated[StrictInt, Field(ge=1, le=10_000)]
Counts = Annotated[
    list[Count], BeforeValidator(as_list, json_schema_input_type=Count | list[Count]), Field(min_length=1)
]


def _distribution(value: object, info: ValidationInfo) -> Distribution:
    return distributions.parse(value, (info.context or {}).get("beside"))


_WHOLE_TABLE = {"type": "array", "items": {"type": "number"}}
_DISTRIBUTION = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string"},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}, "bytes": _WHOLE_TABLE, "probability": _WHOLE_TABLE},
            "required": ["file", "bytes", "probability"],
            "additionalProperties": False,
        },
    ],
    "description": distributions.EXPECTED,
}
LOAD_EXPECTED = f"a load such as 0.5 or 50 %, above 0 and at most {MOST_LOAD:g}"


def _load(value: object) -> float:
    try:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found = float(value) if number else quantities.parse_share(value)  # type: ignore[arg-type]
    except QuantityError:
        raise QuantityError(value, LOAD_EXPECTED) from None
    if not 0 < found <= MOST_LOAD:
        raise QuantityError(value, LOAD_EXPECTED)
    return found


_LOAD = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": MOST_LOAD}, {"type": "string"}],
    "description": LOAD_EXPECTED,
}
Load = Annotated[float, PlainValidator(_load), WithJsonSchema(_LOAD)]
Loads = Annotated[list[Load], BeforeValidator(as_list, json_schema_input_type=Load | list[Load]), Field(min_length=1)]
Between = Literal["any-to-any", "many-to-one", "half-to-half"]
Betweens = Annotated[
    list[Between], BeforeValidator(as_list, json_schema_input_type=Between | list[Between]), Field(min_length=1)
]
if TYPE_CHECKING:
    Distributions = list[Distribution]
else:
    _One = Annotated[
        Any, PlainValidator(_distribution), PlainSerializer(Distribution.as_json), WithJsonSchema(_DISTRIBUTION)
    ]
    Distributions = Annotated[
        list[_One], BeforeValidator(as_list, json_schema_input_type=_One | list[_One]), Field(min_length=1)
    ]


class Traffic(Parameters):
    """Traffic that is only simulated, of a network of any size."""

    only_simulated: ClassVar[bool] = True

    sample: Seconds = 0.01


class Incast(Traffic):
    """The last host asks `servers` hosts at once, and each answers with `unit`, or with its stripe of `block`.

    The next of `rounds` begins when all of the one before have ended. `unit` is the server request unit: with more
    servers, more is on its way at once. With `block`, the same amount comes from more servers.
    """

    key: ClassVar[str] = "incast"

    unit: Sizes | None = None
    block: Sizes | None = None
    servers: Counts
    rounds: Annotated[StrictInt, Field(ge=1, le=100_000)] = 20
    request: Bytes = 100

    @model_validator(mode="after")
    def _consistent(self) -> Incast:
        if (self.unit is None) == (self.block is None):
            found = "neither" if self.unit is None else "both"
            raise Problem((), found, "exactly one of unit and block")
        above_zero(self, "unit", "block")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        if self.block is not None and min(self.block) < max(self.servers):
            expected = f"at least {max(self.servers)}: a byte from each of the servers"
            raise Problem(("block",), min(self.block), expected)
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Each has one of unit_bytes and block_bytes."""
        amounts = {"unit_bytes": self.unit} if self.unit is not None else {"block_bytes": self.block or []}
        fixed = {"rounds": self.rounds, "request_bytes": self.request, "sample_seconds": self.sample}
        return grid({**amounts, "servers": self.servers}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """The servers and the client."""
        return max(self.servers) + 1, "servers"


class Shuffle(Traffic):
    """Every host fetches `size` from every other, at most `at_once` fetches at a time.

    Host 1 begins with host 2, host 2 with host 3, and so on, so that no host is asked by all at once. Each of `at_once`
    fetchers of a host takes every so-manieth of the others in turn, the next when it has the one before.
    """

    key: ClassVar[str] = "shuffle"

    size: Sizes
    at_once: Counts = [5]
    request: Bytes = 100

    @model_validator(mode="after")
    def _consistent(self) -> Shuffle:
        above_zero(self, "size")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of sizes and numbers of fetches."""
        fixed = {"request_bytes": self.request, "sample_seconds": self.sample}
        return grid({"size_bytes": self.size, "at_once": self.at_once}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""

    def misfits(self, hosts: int) -> Iterator[Problem]:
        """Problems with too many hosts; their paths are relative to these parameters."""
        if hosts * (hosts - 1) > MOST_FLOWS:
            yield Problem((), f"{hosts} hosts", f"at most {MOST_FLOWS} fetches: each host has one from every other")


class Users(Traffic):
    """`count` users of the last host, on the others in turn: each thinks, asks, waits for the whole answer, and thinks
    again.

    Times to think are exponential with the mean `think`. `response` is a size, or a distribution of which each answer
    is drawn. Requests that are due within `duration` count.
    """

    key: ClassVar[str] = "users"
    obeys_nagle: ClassVar[bool] = True

    count: Counts
    think: Durations = [0.1]
    request: Bytes = 200
    response: Distributions
    duration: Durations = [2.0]

    @model_validator(mode="after")
    def _consistent(self) -> Users:
        above_zero(self, "think", "duration")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        rounds = max(self.count) * (max(self.duration) / min(self.think) + 1)
        if rounds > MOST_FLOWS:
            raise Problem(("think",), f"{rounds:.0f} requests", f"at most {MOST_FLOWS}: fewer users, or a longer time")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists; a distribution is stated by its name."""
        axes: dict[str, list[Any]] = {
            "users": self.count,
            "mean_think_seconds": self.think,
            "response_sizes": [each.name for each in self.response],
            "duration_seconds": self.duration,
        }
        return grid(axes, {"request_bytes": self.request, "sample_seconds": self.sample})

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name."""
        return next(each for each in self.response if each.name == name)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""


class Arrivals(Traffic):
    """New flows at random times (Poisson) between random hosts for `duration`, whatever becomes of those before.

    `load` is the mean payload that a host's link is asked to carry, as a share of the rate of `testbed.link`: each
    host's with any-to-any, the last one's with many-to-one, those of the first half with half-to-half. `within` is the
    time after `duration` in which flows must end.
    """

    key: ClassVar[str] = "arrivals"

    sizes: Distributions
    load: Loads
    duration: Durations = [0.1]
    pattern: Betweens = ["any-to-any"]
    within: Seconds = 10.0

    @model_validator(mode="after")
    def _consistent(self) -> Arrivals:
        above_zero(self, "duration")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists; a distribution is stated by its name."""
        axes: dict[str, list[Any]] = {
            "flow_sizes": [each.name for each in self.sizes],
            "load": self.load,
            "duration_seconds": self.duration,
            "pattern": self.pattern,
        }
        return grid(axes, {"within_seconds": self.within, "sample_seconds": self.sample})

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name."""
        return next(each for each in self.sizes if each.name == name)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""

    def misfits(self, hosts: int, bits_per_second: int | None) -> Iterator[Problem]:
        """Problems with too few or too many flows; their paths are relative to these parameters."""
        links = max({"any-to-any": hosts, "many-to-one": 1, "half-to-half": hosts // 2}[each] for each in self.pattern)
        for place, each in enumerate(self.sizes):
            rate = links * (bits_per_second or 0) / 8.0 / each.mean
            if (most := max(self.load) * max(self.duration) * rate) > MOST_FLOWS:
                yield Problem(("sizes", place), f"{most:.0f} flows", f"at most {MOST_FLOWS}: a shorter duration")


TRAFFIC: tuple[type[Parameters], ...] = (Incast, Shuffle, Users, Arrivals)
