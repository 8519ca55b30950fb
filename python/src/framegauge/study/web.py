"""The workload `web`: an event calendar on real servers, and its users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, model_validator

from framegauge.apps.web import COMPONENTS
from framegauge.files.types import Problem, Seconds, Sizes, as_list, nearest
from framegauge.metrics import Metric
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Web"]

LARGEST_THUMBNAIL_BYTES = 60_000
MOST_USERS = 5000

Users = Annotated[StrictInt, Field(ge=1, le=MOST_USERS)]


class Web(Parameters):
    """Users of a web site in a closed loop: each opens a page with its parts, thinks, and opens the next.

    They come evenly over `ramp_up`; operations that end in the `steady` time after it count. The time to think is
    exponential with the mean `think`. `thumbnail` is the size of small images. `nagle_on` names the components (or
    hosts) that the factor `nagle` sets, by default all.
    """

    key: ClassVar[str] = "web"
    obeys_nagle: ClassVar[bool] = True
    starts_programs: ClassVar[bool] = True

    users: Annotated[list[Users], BeforeValidator(as_list, json_schema_input_type=Users | list[Users])] = [50]
    think: Seconds = 5.0
    ramp_up: Seconds = 5.0
    steady: Seconds = 20.0
    thumbnail: Sizes = [3000]
    nagle_on: (
        Annotated[
            list[StrictStr], BeforeValidator(as_list, json_schema_input_type=str | list[str]), Field(min_length=1)
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _consistent(self) -> Web:
        above_zero(self, "thumbnail")
        if self.steady < 1:
            raise Problem(("steady",), f"{self.steady:g} s", "1 s or more")
        if max(self.thumbnail) > LARGEST_THUMBNAIL_BYTES:
            raise Problem(("thumbnail",), max(self.thumbnail), f"at most {LARGEST_THUMBNAIL_BYTES} bytes")
        return self

    @property
    def declares(self) -> Mapping[str, Metric]:
        """Operations a second, and the time of a page with all of its parts."""
        return {
            "operations": Metric("per_second", True),
            "response_mean": Metric("seconds", False),
            "response_p90": Metric("seconds", False),
        }

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of users and sizes."""
        fixed = {"think_seconds": self.think, "ramp_up_seconds": self.ramp_up, "steady_seconds": self.steady}
        return grid({"users": self.users, "thumbnail_bytes": self.thumbnail}, fixed)

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
                known = [*COMPONENTS, *hosts[: len(COMPONENTS)]]
                yield Problem(("nagle_on",), name, f"a component or a host: {nearest(name, known)}")
