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
    SerializerFunctionWrapHandler,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)

from framegauge.files.types import Durations, Flags, Flows, Model, Problem, Rates, Seconds, Sizes, as_list
from framegauge.study import traffic
from framegauge.study.bulk import Bulk, paced_by
from framegauge.study.ceph import Ceph
from framegauge.study.command import Command
from framegauge.study.datagrams import Datagrams
from framegauge.study.frequencies import Frequencies
from framegauge.study.incast import Incast
from framegauge.study.iscsi import Iscsi
from framegauge.study.mapreduce import MapReduce
from framegauge.study.nfs import Nfs
from framegauge.study.parameters import Parameters, above_zero, grid
from framegauge.study.quic import Quic
from framegauge.study.replay import Replay
from framegauge.study.senders import Few, SendersLevels, few_problems, senders_problems
from framegauge.study.sizes import SizesLevels, sizes_problems
from framegauge.study.web import Web

__all__ = [
    "WORKLOADS",
    "Bulk",
    "Ceph",
    "Command",
    "Datagrams",
    "Ftp",
    "Incast",
    "Iperf3",
    "Iscsi",
    "MapReduce",
    "Mixed",
    "Nfs",
    "Parameters",
    "Quic",
    "RequestResponse",
    "Stream",
    "Web",
    "Workload",
]

Pattern = Literal["one-to-one", "many-to-one", "half-to-half", "many-to-many"]
Patterns = Annotated[list[Pattern], BeforeValidator(as_list, json_schema_input_type=Pattern | list[Pattern])]
Fan = Literal["one-to-one", "many-to-one"]
Fans = Annotated[list[Fan], BeforeValidator(as_list, json_schema_input_type=Fan | list[Fan])]
Arrival = Literal["uniform", "poisson"]
Arrivals = Annotated[list[Arrival], BeforeValidator(as_list, json_schema_input_type=Arrival | list[Arrival])]


Nic = Annotated[StrictInt, Field(ge=1)]
Nics = Annotated[list[Nic], BeforeValidator(as_list, json_schema_input_type=Nic | list[Nic])]


class Stream(Parameters):
    """A long transfer: `size` (repeated until `repeat` has passed) or `duration`; lists are conditions.

    `senders` has the number of flows of each host to the `receiver` (by default the last host), instead of `pattern`
    and `flows`; `receivers` names that of a sender which sends to another. `few` names the senders whose share is
    compared with that of the others; by default they are those that come to the receiver's switch by the input port
    with the fewest flows. `rate` limits what each client offers, so that all arms carry the same load; a run that
    carries less does not count. null: unlimited. `nics` is the number of NICs of each host that are used, each with its
    own `flows` to the NIC of the same number. `sizes` are those of socket buffers and of each write and read, at both
    ends; null: the kernel tunes the buffers.
    """

    key: ClassVar[str] = "stream"

    size: Sizes | None = None
    duration: Durations | None = None
    flows: Flows = [1]
    reverse: Flags = [False]
    bidir: Flags = [False]
    pattern: Patterns = ["one-to-one"]
    senders: SendersLevels | None = None
    receiver: StrictStr | None = None
    receivers: Annotated[dict[StrictStr, StrictStr], Field(min_length=1)] | None = None
    few: Few | None = None
    rate: Rates = [None]
    nics: Nics = [1]
    sizes: SizesLevels = [None]
    repeat: Seconds = 0.5
    sample: Seconds = 0.01

    @model_validator(mode="after")
    def _consistent(self) -> Stream:
        if (self.size is None) == (self.duration is None):
            text = "neither" if self.size is None else "both"
            raise Problem((), text, "exactly one of size and duration")
        above_zero(self, "size", "duration")
        if True in self.reverse and True in self.bidir:
            raise Problem(("bidir",), True, "false where reverse is true: bidir includes both directions")
        if self.rate != [None] and self.duration is None:
            raise Problem(("rate",), self.rate, "null with size: an equal load needs a duration")
        if "many-to-many" in self.pattern and True in self.bidir:
            raise Problem(("bidir",), True, "false with many-to-many: every host already sends to every other")
        for problem in self._sending():
            raise problem
        return self

    def _sending(self) -> Iterator[Problem]:
        """Problems of `senders`, `receiver` and `few` with other keys."""
        for name in ("pattern", "flows") if self.senders else ():
            if name in self.model_fields_set:
                yield Problem((name,), getattr(self, name), "no such key with senders, which state the flows of hosts")
        for name in ("reverse", "bidir") if self.senders or self.few else ():
            if True in getattr(self, name):
                key = "senders" if self.senders else "few"
                yield Problem((name,), True, f"false with {key}: all data is sent to one receiver")
        if self.senders and self.nics != [1]:
            yield Problem(("nics",), self.nics, "1 with senders, which state the flows of hosts")
        for name in ("receiver", "receivers") if not self.senders else ():
            if value := getattr(self, name):
                yield Problem((name,), value, "no such key without senders: the pattern says who receives")
        if self.few and not self.senders and self.pattern != ["many-to-one"]:
            yield Problem(("few",), self.few, "no such key without senders or pattern: many-to-one")

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what `senders` replaces, and without the keys of senders that are not given."""
        absent = {name for name in ("senders", "receiver", "receivers", "few") if getattr(self, name) is None}
        absent |= {"flows", "pattern"} if self.senders else set()
        return {name: value for name, value in handler(self).items() if name not in absent}

    @property
    def compares_few(self) -> bool:
        """Whether senders are named, so that it is asked what the few of them get."""
        return bool(self.senders or self.few)

    @property
    def unpaced(self) -> str | None:
        """Nothing, unless `rate` paces already."""
        return paced_by(self.rate, "rate")

    @property
    def single(self) -> str | None:
        """Nothing, unless a `rate` or a further NIC needs what MPTCP has not."""
        if self.rate != [None]:
            return "no such factor with a rate: the kernel paces no MPTCP socket"
        return "no such factor with several nics: MPTCP would use them by itself" if self.nics != [1] else None

    def conditions(self) -> list[dict[str, Any]]:
        """Each has one of size_bytes and duration_seconds. `sizes` may still be by MTU (study.sizes.at_mtu)."""
        axes: dict[str, list[Any]] = (
            {"size_bytes": self.size} if self.size is not None else {"duration_seconds": self.duration or []}
        )
        if self.senders is None:
            axes |= {"flows": self.flows, "reverse": self.reverse, "bidir": self.bidir, "pattern": self.pattern}
        else:
            axes |= {"senders": [dict(level) for level in self.senders]}
        if self.rate != [None]:
            axes["offered_bits_per_second"] = self.rate
        if self.nics != [1]:
            axes["nics"] = self.nics
        if self.sizes != [None]:
            axes["sizes"] = self.sizes
        host_keys = {"receiver": self.receiver, "few": None if self.few is None else ",".join(self.few)}
        fixed: dict[str, Any] = {name: value for name, value in host_keys.items() if value is not None}
        if self.receivers:
            fixed["receivers"] = dict(self.receivers)
        return grid(axes, {**fixed, "repeat_seconds": self.repeat, "sample_seconds": self.sample})

    def needed_hosts(self) -> tuple[int, str]:
        """Three with senders, of which two may send."""
        return super().needed_hosts() if self.senders is None else (3, "senders")

    def misfits(self, hosts: Sequence[str], nics_of_hosts: int, mtus: Sequence[Any]) -> Iterator[Problem]:
        """Problems with hosts that are not there, with too many NICs, and with sizes that do not match the levels of
        the factor mtu; their paths are relative to these parameters."""
        if self.senders is not None:
            yield from senders_problems(self.senders, self.receiver, self.receivers or {}, hosts)
        if self.few is not None:
            levels = [list(each) for each in self.senders or ()]
            yield from few_problems(self.few, levels or [hosts[:-1]])
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
        combinations = grid(axes, {})
        # A closed loop has no arrivals, so several kinds of them would repeat the same condition.
        first = self.arrivals[0]
        return [each for each in combinations if each["rate_per_second"] is not None or each["arrivals"] == first]


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

    @property
    def unpaced(self) -> str | None:
        """Nothing, unless the `rate` of the bulk paces already."""
        return paced_by(self.bulk.rate, "bulk.rate")

    def conditions(self) -> list[dict[str, Any]]:
        """The conditions of rr, and those of the bulk streams with the prefix `bulk_`."""
        quiet = [{name: value for name, value in each.items() if name != "pattern"} for each in self.rr.conditions()]
        return [{**each, **beside} for each in quiet for beside in self.bulk.conditions()]

    def needed_hosts(self) -> tuple[int, str]:
        """Those of the bulk."""
        return self.bulk.needed_hosts()


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


_OF_HOSTS: tuple[type[Parameters], ...] = (
    Stream, RequestResponse, Mixed, Iperf3, Ftp, Command, MapReduce, Web, Incast, Iscsi, Ceph, Nfs, Datagrams,
    Quic,
)  # fmt: skip
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
    incast: Incast | None = None
    iscsi: Iscsi | None = None
    ceph: Ceph | None = None
    nfs: Nfs | None = None
    datagrams: Datagrams | None = None
    quic: Quic | None = None
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
        keys = sorted(self.model_fields_set)
        if len(keys) != 1:
            text = ", ".join(keys) or "nothing"
            raise Problem((), text, f"exactly one workload of {', '.join(WORKLOADS)}")
        return self

    @model_serializer(mode="wrap")
    def _only_what_is_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}

    @property
    def parameters(self) -> Parameters:
        """The parameters of the workload that is given."""
        parameters: Parameters = getattr(self, next(iter(self.model_fields_set)))
        return parameters
