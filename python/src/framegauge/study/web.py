"""The workload `web`: an event calendar on real servers, and its users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, StrictBool, StrictInt, StrictStr, WithJsonSchema, model_validator

from framegauge.apps.web import COMPONENTS
from framegauge.apps.web.limits import LIMITS, SHARE
from framegauge.errors import QuantityError
from framegauge.files.types import Model, OneOrMore, Problem, Seconds, Share, Sizes, nearest
from framegauge.metrics import Metric
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Saturate", "Web"]

LARGEST_THUMBNAIL_BYTES = 60_000
LONGEST_PAGE_SECONDS = 5.0  # of CPU time and waiting; shorter than what the end of a run waits for
MOST_USERS = 5000
MOST_BROWSER_CONNECTIONS = 16

MOST_STEPS = 50
LONGEST_SECONDS = 4 * 3600.0  # of all steps of a run
SMALLEST_SHARE, LARGEST_SHARE = 0.5, 0.99
SATURATE = "saturate"
USERS_EXPECTED = f"a number of users from 1 to {MOST_USERS}, a list of such, or {SATURATE}"
# What users rarely set: their fields, and the conditions that they are. A study without them has none of these.
SET_APART = {
    "connections": "browser_connections", "page_cpu": "page_cpu_seconds", "page_wait": "page_wait_seconds",
    "keep_alive": "keep_alive",
}  # fmt: skip


def _users(value: object) -> list[int] | str:
    if value == SATURATE:
        return SATURATE
    counts: list[Any] = value if isinstance(value, list) else [value]
    if not counts or not all(type(count) is int and 1 <= count <= MOST_USERS for count in counts):
        raise QuantityError(value, USERS_EXPECTED)
    return counts


_NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST_USERS}
_USERS = {
    "anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}, {"const": SATURATE}],
    "description": USERS_EXPECTED,
}
Users = Annotated[list[int] | str, PlainValidator(_users), WithJsonSchema(_USERS)]
Number = Annotated[StrictInt, Field(ge=1, le=MOST_USERS)]


class Saturate(Model):
    """How `users: saturate` looks for the number of users that the site bears: from `first` on, `step` more at a time,
    until the `quantile` of the response times of some operation exceeds its limit, or `most` are there.

    `limits` replaces those of single operations; the others have the published ones.
    """

    first: Number = 50
    step: Number = 50
    most: Number = 500
    quantile: Share = SHARE
    limits: dict[StrictStr, Seconds] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Saturate:
        if self.most < self.first + self.step:
            raise Problem(("most",), self.most, f"at least {self.first + self.step}: two steps or more")
        if len(self.steps) > MOST_STEPS:
            text = f"{self.step} ({len(self.steps)} steps)"
            raise Problem(("step",), text, f"a larger one, for at most {MOST_STEPS} steps")
        if not SMALLEST_SHARE <= self.quantile <= LARGEST_SHARE:
            expected = f"{100 * SMALLEST_SHARE:g} % to {100 * LARGEST_SHARE:g} %"
            raise Problem(("quantile",), f"{100 * self.quantile:g} %", expected)
        for name, seconds in self.limits.items():
            if name not in LIMITS:
                raise Problem(("limits", name), name, f"an operation: {nearest(name, LIMITS)}")
            if seconds <= 0:
                raise Problem(("limits", name), f"{seconds:g} s", "more than 0 s")
        self.limits = {name: self.limits.get(name, seconds) for name, seconds in LIMITS.items()}
        return self

    @property
    def steps(self) -> list[int]:
        """The number of users in each step."""
        return list(range(self.first, self.most + 1, self.step))


class Web(Parameters):
    """Users of a web site in a closed loop: each opens a page with its parts, thinks, and opens the next.

    They come evenly over `ramp_up`; operations that end in the `steady` time after it count. The time to think is
    exponential with the mean `think`. `thumbnail` is the size of small images. `nagle_on` names the components (or
    hosts) that the factor `nagle` sets, by default all. Parts come over the user's `connections`. A page takes the web
    server `page_cpu` of CPU time and `page_wait` of waiting beside what it takes anyway. With `keep_alive: off` servers
    open a connection to one another for each request or query. `users: saturate` has ever more users come, in steps
    that each have a `ramp_up` and a `steady` time, until the site is saturated as `saturate` says.
    """

    key: ClassVar[str] = "web"
    obeys_nagle: ClassVar[bool] = True
    starts_programs: ClassVar[bool] = True

    users: Users = [50]
    saturate: Saturate | None = None
    think: Seconds = 5.0
    ramp_up: Seconds = 5.0
    steady: Seconds = 20.0
    thumbnail: Sizes = [3000]
    connections: Annotated[StrictInt, Field(ge=1, le=MOST_BROWSER_CONNECTIONS)] = 2
    page_cpu: Seconds = 0.0
    page_wait: Seconds = 0.0
    keep_alive: StrictBool = True
    nagle_on: OneOrMore[StrictStr] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Web:
        above_zero(self, "thumbnail")
        if self.steady < 1:
            raise Problem(("steady",), f"{self.steady:g} s", "1 s or more")
        if max(self.thumbnail) > LARGEST_THUMBNAIL_BYTES:
            raise Problem(("thumbnail",), max(self.thumbnail), f"at most {LARGEST_THUMBNAIL_BYTES} bytes")
        for name in ("page_cpu", "page_wait"):
            if getattr(self, name) > LONGEST_PAGE_SECONDS:
                raise Problem((name,), f"{getattr(self, name):g} s", f"at most {LONGEST_PAGE_SECONDS:g} s")
        if self.users != SATURATE and self.saturate is not None:
            raise Problem(("saturate",), f"users: {self.users}", f"users: {SATURATE} beside it")
        if self.users == SATURATE:
            self.saturate = self.saturate or Saturate()
            steps, step_seconds = len(self.saturate.steps), self.ramp_up + self.steady
            if steps * step_seconds > LONGEST_SECONDS:
                expected = f"{LONGEST_SECONDS / 3600:g} h or less altogether: fewer steps, or a shorter `steady`"
                raise Problem(("saturate",), f"{steps} steps of {step_seconds:g} s", expected)
        return self

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Operations a second, and the time of a page with all of its parts; or what the site bears."""
        if self.saturate is not None:
            return {"saturation_users": Metric("number", True), "saturation_operations": Metric("per_second", True)}
        return {
            "operations": Metric("per_second", True),
            "response_mean": Metric("seconds", False),
            "response_p90": Metric("seconds", False),
        }

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of users and sizes; and what is not as usual."""
        fixed: dict[str, Any] = {
            "think_seconds": self.think,
            "ramp_up_seconds": self.ramp_up,
            "steady_seconds": self.steady,
        }
        for name, key in SET_APART.items():
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                fixed[key] = value
        users: list[Any] = [self.users] if isinstance(self.users, str) else list(self.users)
        return grid({"users": users, "thumbnail_bytes": self.thumbnail}, fixed)

    def needed_hosts(self) -> tuple[int, str]:
        """One for each component."""
        return len(COMPONENTS), ""

    def nagle_hosts(self, hosts: Sequence[str]) -> list[str]:
        """The hosts whose programs the factor `nagle` sets."""
        places = dict(zip(COMPONENTS, hosts, strict=False))
        if self.nagle_on is None:
            return list(places.values())
        return [places.get(name, name) for name in self.nagle_on]

    def misfits(self, hosts: Sequence[str], family: int) -> Iterator[Problem]:
        """Problems with unknown components, and with IPv6."""
        if family != 4:
            yield Problem((), f"family: {family}", "testbed.family 4: the servers listen on IPv4")
        for name in self.nagle_on or ():
            if name not in COMPONENTS and name not in hosts:
                names = [*COMPONENTS, *hosts[: len(COMPONENTS)]]
                yield Problem(("nagle_on",), name, f"a component or a host: {nearest(name, names)}")
