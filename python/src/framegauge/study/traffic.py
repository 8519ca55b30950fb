"""The workloads of a study file that are only simulated: traffic as applications make it, without the applications."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
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
from framegauge.files.types import Bytes, Durations, OneOrMore, Problem, Seconds, Sizes, nearest
from framegauge.study.command import HostNames
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["TRAFFIC", "Arrivals", "Counts", "Shuffle", "Users"]

MOST_FLOWS = 1_000_000  # of a run
MOST_LOAD = 2.0

Count = Annotated[StrictInt, Field(ge=1, le=10_000)]
Counts = OneOrMore[Count]
Beside = OneOrMore[Annotated[StrictInt, Field(ge=0, le=10_000)]]


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
        share = float(value) if number else quantities.parse_share(value)  # type: ignore[arg-type]
    except QuantityError:
        raise QuantityError(value, LOAD_EXPECTED) from None
    if not 0 < share <= MOST_LOAD:
        raise QuantityError(value, LOAD_EXPECTED)
    return share


_LOAD = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": MOST_LOAD}, {"type": "string"}],
    "description": LOAD_EXPECTED,
}
Load = Annotated[float, PlainValidator(_load), WithJsonSchema(_LOAD)]
Loads = OneOrMore[Load]
Between = Literal["any-to-any", "many-to-one", "half-to-half"]
Betweens = OneOrMore[Between]
if TYPE_CHECKING:
    Distributions = list[Distribution]
else:
    _One = Annotated[
        Any, PlainValidator(_distribution), PlainSerializer(Distribution.as_json), WithJsonSchema(_DISTRIBUTION)
    ]
    Distributions = OneOrMore[_One]


class Traffic(Parameters):
    """Traffic that is only simulated, of a network of any size."""

    only_simulated: ClassVar[bool] = True

    sample: Seconds = 0.01


class Shuffle(Traffic):
    """Every host, or so many as `reduces` says, fetches `size` from every other, at most `at_once` fetches at a time.

    Some hosts may be the only `workers`. Those that fetch are spread evenly; a single one is the last. Host 1 begins
    with host 2, host 2 with host 3, and so on, so that no host is asked by all at once; or each has a random `order` of
    its own, as in Hadoop. Each of `at_once` fetchers of a host takes every so-manieth of the others in turn, the next
    when it has the one before.
    """

    key: ClassVar[str] = "shuffle"

    size: Sizes
    at_once: Counts = [5]
    request: Bytes = 100
    workers: HostNames | None = None
    reduces: Counts | None = None
    order: Literal["turn", "random"] = "turn"

    @model_validator(mode="after")
    def _consistent(self) -> Shuffle:
        above_zero(self, "size")
        if self.request == 0:
            raise Problem(("request",), 0, "more than 0")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of sizes and numbers of fetches."""
        fixed: dict[str, Any] = {"request_bytes": self.request, "sample_seconds": self.sample}
        if self.order != "turn":
            fixed["order"] = self.order
        axes: dict[str, list[Any]] = {"size_bytes": self.size, "at_once": self.at_once}
        return grid(axes if self.reduces is None else {**axes, "reduces": self.reduces}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """Two, or as many as fetch."""
        most = max(self.reduces or [2])
        return (most, "reduces") if most > 2 else (2, "")

    def misfits(self, hosts: Sequence[str]) -> Iterator[Problem]:
        """Problems with too many hosts, or with the names of workers; their paths are relative to these parameters."""
        for place, name in enumerate(self.workers or ()):
            if name not in hosts:
                yield Problem(("workers", place), name, nearest(name, hosts))
        least = max([2, *(self.reduces or ())])
        if self.workers is not None and not least <= len(self.workers) == len(set(self.workers)):
            yield Problem(("workers",), ", ".join(self.workers), f"at least {least} hosts, each once")
        if (count := len(self.workers or hosts)) * (count - 1) > MOST_FLOWS:
            yield Problem((), f"{count} hosts", f"at most {MOST_FLOWS} fetches: each host has one from every other")


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
            "response_sizes": [distribution.name for distribution in self.response],
            "duration_seconds": self.duration,
        }
        return grid(axes, {"request_bytes": self.request, "sample_seconds": self.sample})

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name."""
        return next(distribution for distribution in self.response if distribution.name == name)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""


class Arrivals(Traffic):
    """New flows at random times (Poisson) between random hosts for `duration`, whatever becomes of those before.

    `load` is the mean payload that a host's link is asked to carry, as a share of the rate of `testbed.link`: each
    host's with any-to-any, the last one's with many-to-one, those of the first half with half-to-half. `within` is the
    time after `duration` in which flows must end. `streams` long ones last for all of it.
    """

    key: ClassVar[str] = "arrivals"

    sizes: Distributions
    load: Loads
    duration: Durations = [0.1]
    pattern: Betweens = ["any-to-any"]
    streams: Beside = [0]
    within: Seconds = 10.0

    @model_validator(mode="after")
    def _consistent(self) -> Arrivals:
        above_zero(self, "duration")
        return self

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the lists; a distribution is stated by its name."""
        axes: dict[str, list[Any]] = {
            "flow_sizes": [distribution.name for distribution in self.sizes],
            "load": self.load,
            "duration_seconds": self.duration,
            "pattern": self.pattern,
        }
        if self.streams != [0]:
            axes["streams"] = self.streams
        return grid(axes, {"within_seconds": self.within, "sample_seconds": self.sample})

    def distribution(self, name: str) -> Distribution:
        """The distribution of this name."""
        return next(distribution for distribution in self.sizes if distribution.name == name)

    def needed_hosts(self) -> tuple[int, str]:
        """Two."""
        return 2, ""

    def misfits(self, hosts: int, bits_per_second: int | None) -> Iterator[Problem]:
        """Problems with too few or too many flows; their paths are relative to these parameters."""
        links = max({"any-to-any": hosts, "many-to-one": 1, "half-to-half": hosts // 2}[item] for item in self.pattern)
        for place, item in enumerate(self.sizes):
            rate = links * (bits_per_second or 0) / 8.0 / item.mean
            if (most := max(self.load) * max(self.duration) * rate) > MOST_FLOWS:
                yield Problem(("sizes", place), f"{most:.0f} flows", f"at most {MOST_FLOWS}: a shorter duration")


TRAFFIC: tuple[type[Parameters], ...] = (Shuffle, Users, Arrivals)
