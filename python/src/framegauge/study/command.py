"""The workload `command`: any programs, as data. Servers, clients, what comes before and after, and their metrics."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import jmespath
import jmespath.exceptions
from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from framegauge import metrics
from framegauge.errors import QuantityError
from framegauge.files.placeholders import expected, placeholders
from framegauge.files.types import OneOrMore, Problem, Seconds, Sparse, nearest
from framegauge.metrics import Metric
from framegauge.study.parameters import Parameters, grid

__all__ = ["Client", "Command", "Conclusion", "Lives", "Preparation", "Reading", "Ready", "Server", "Step"]

NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
# Debian Policy 5.6.1.
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
MOST_VALUES = 1000
# Placeholders that have a meaning of their own.
RESERVED = ("address", "host", "mtu", "run", "kept")
Lives = Literal["run", "arm", "study"]


def _pattern(text: str) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise QuantityError(text, f"a regular expression ({error})") from None
    if pattern.groups > 1:
        raise QuantityError(text, "a regular expression with at most one group: (?:...) groups without keeping")
    return text


def _path(text: str) -> str:
    try:
        jmespath.compile(text)
    except jmespath.exceptions.JMESPathError as error:
        raise QuantityError(text, f"a JMESPath expression ({' '.join(str(error).split())})") from None
    return text


Regex = Annotated[StrictStr, Field(min_length=1), AfterValidator(_pattern)]
JmesPath = Annotated[StrictStr, Field(min_length=1), AfterValidator(_path)]
Words = Annotated[list[Annotated[str, Field(coerce_numbers_to_str=True)]], Field(min_length=1)]
HostName = StrictStr
HostNames = OneOrMore[HostName]


class Ready(Sparse):
    """When a server is ready: it listens on a TCP `port`, its output matches a regular expression, a `file` of its run
    exists, or so many `seconds` have passed. It has `within` to become so."""

    port: Annotated[StrictInt, Field(ge=1, le=65535)] | StrictStr | None = None
    output: Regex | None = None
    file: StrictStr | None = None
    seconds: Seconds | None = None
    within: Seconds = 10.0

    @model_validator(mode="after")
    def _consistent(self) -> Ready:
        names = [name for name in ("port", "output", "file", "seconds") if getattr(self, name) is not None]
        if len(names) != 1:
            raise Problem((), ", ".join(names) or "nothing", "exactly one of port, output, file and seconds")
        return self


class Step(Sparse):
    """A program on one or more hosts: `run` is the program and its arguments, `shell` a script for /bin/sh instead.

    `files` are written into the run's folder before it starts, as they are; `templates` have placeholders. `folder` is
    its working folder, by default the run's.
    """

    host: HostNames
    run: Words | None = None
    shell: Annotated[StrictStr, Field(min_length=1)] | None = None
    env: dict[StrictStr, StrictStr] = {}
    user: StrictStr | None = None
    folder: StrictStr | None = None
    files: dict[StrictStr, StrictStr] = {}
    templates: dict[StrictStr, StrictStr] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Step:
        if (self.run is None) == (self.shell is None):
            text = "neither" if self.run is None else "both"
            raise Problem((), text, "exactly one of run (a list of words) and shell (a script)")
        return self

    @property
    def argv(self) -> list[str]:
        """The program and its arguments, with placeholders."""
        return list(self.run) if self.run is not None else ["/bin/sh", "-c", self.shell or ""]

    def names(self, program: str) -> bool:
        """Whether the program is a word of this step."""
        if self.run is not None:
            return program in self.run
        return re.search(rf"(?<![\w./-]){re.escape(program)}(?![\w/-])", self.shell or "") is not None

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Everything with placeholders, and where it stands."""
        if self.run is not None:
            yield from ((("run", index), text) for index, text in enumerate(self.run))
        if self.shell is not None:
            yield ("shell",), self.shell
        if self.folder is not None:
            yield ("folder",), self.folder
        for key in ("env", "templates"):
            yield from (((key, name), text) for name, text in getattr(self, key).items())


class Server(Step):
    """A program that runs as long as the clients do, and is ended then with everything that it has started."""

    ready: Ready = Field(default_factory=lambda: Ready.model_validate({"seconds": "0.5 s"}))
    lives: Lives = "run"


class Client(Step):
    """A program that does the work: all clients start at the same moment, and the run ends with the last of them."""

    name: StrictStr | None = None
    within: Seconds = 60.0


class Conclusion(Step):
    """A program that runs to its end after the clients."""

    within: Seconds = 60.0


class Preparation(Conclusion):
    """A program that runs to its end before the servers start."""

    lives: Lives = "run"


class Reading(Sparse):
    """Where a metric stands in the clients' output (or in a `file` of their run), and what it means.

    `output` is a regular expression whose group (or whole match) is the number, `json` a JMESPath in output that is
    JSON. `client` names the clients that have it, by default all.
    """

    output: Regex | None = None
    json_: JmesPath | None = Field(default=None, alias="json")
    file: StrictStr | None = None
    client: StrictStr | None = None
    unit: StrictStr = "1"
    better: Literal["higher", "lower"]
    over_clients: Literal["sum", "mean", "max", "min"] = "sum"

    @model_validator(mode="after")
    def _consistent(self) -> Reading:
        if (self.output is None) == (self.json_ is None):
            text = "neither" if self.output is None else "both"
            raise Problem((), text, "exactly one of output (a regular expression) and json (a JMESPath)")
        if self.unit not in metrics.UNITS:
            raise Problem(("unit",), self.unit, f"one of {', '.join(metrics.UNITS)}")
        return self

    @property
    def metric(self) -> metrics.Metric:
        """The metric as the table of metrics has it."""
        return metrics.Metric(metrics.UNITS[self.unit][0], self.better == "higher")


Value = StrictStr | StrictBool | StrictInt | StrictFloat
Values = OneOrMore[Value]


class Command(Parameters):
    """Any programs: `servers` that are ready before anything is measured, `clients` that do the work, and the `metrics`
    that these print. See `framegauge docs your-application`.

    In all words `{address}` is the host's own address, `{NAME}` that of any host or role, `{mtu}` the host's MTU,
    `{run}` an empty folder of this run, and the name of a factor or of one of the `parameters` its level. What is made
    with `lives: study` stays for the runs that follow, with its folder `{kept}`. `packages` says of programs in which
    Debian package they are.
    """

    key: ClassVar[str] = "command"
    reconnects: ClassVar[bool] = True
    obeys_nagle: ClassVar[bool] = True

    name: StrictStr
    roles: dict[StrictStr, HostNames] = {}
    parameters: dict[StrictStr, Values] = {}
    prepare: list[Preparation] = []
    servers: list[Server] = []
    clients: Annotated[list[Client], Field(min_length=1)]
    after: list[Conclusion] = []
    metrics: Annotated[dict[StrictStr, Reading], Field(min_length=1)]
    packages: dict[StrictStr, StrictStr] = {}
    keep: list[StrictStr] = []
    nagle_on: HostNames | None = None
    expect: Seconds | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Command:
        if NAME.fullmatch(self.name) is None:
            raise Problem(("name",), self.name, "a name of small letters, digits, - and _, such as redis")
        for kind, names in (("metrics", self.metrics), ("parameters", self.parameters), ("roles", self.roles)):
            for name in names:
                if WORD.fullmatch(name) is None:
                    raise Problem((kind, name), name, "a name of letters, digits and _, such as requests")
        for kind, names in (("parameters", self.parameters), ("roles", self.roles)):
            for name in names:
                if name in RESERVED:
                    raise Problem((kind, name), name, f"another name: {{{name}}} has a meaning of its own")
        if shared_names := self.parameters.keys() & self.roles.keys():
            raise Problem(("parameters", min(shared_names)), min(shared_names), "a name that is no role's")
        for name, reading in self.metrics.items():
            if name in metrics.METRICS and not metrics.is_own(name):
                raise Problem(("metrics", name), name, "another name: this one is built in")
            labels = [client.name for client in self.clients if client.name is not None]
            if reading.client is not None and reading.client not in labels:
                expected_name = f"the name of a client: {nearest(reading.client, labels)}" if labels else "no such key"
                raise Problem(("metrics", name, "client"), reading.client, expected_name)
        for program, package in self.packages.items():
            if not any(step.names(program) for _, step in self.steps()):
                raise Problem(("packages", program), program, "a program that run or shell of a step names")
            if PACKAGE.fullmatch(package) is None:
                raise Problem(("packages", program), package, "the name of a Debian package, such as redis-server")
        return self

    @property
    def label(self) -> str:
        """The name that results have for this workload."""
        return self.name

    @property
    def declares(self) -> Mapping[str, Metric]:
        """What the programs print."""
        return {name: reading.metric for name, reading in self.metrics.items()}

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination of the parameters' values."""
        return grid(self.parameters, {})

    def needed_hosts(self) -> tuple[int, str]:
        """One: which hosts are named is checked by `misfits`."""
        return 1, ""

    def steps(self) -> Iterator[tuple[tuple[str | int, ...], Step]]:
        """All programs, and where they stand."""
        for key in ("prepare", "servers", "clients", "after"):
            yield from (((key, index), step) for index, step in enumerate(getattr(self, key)))

    def hosts_of(self, names: list[str]) -> list[str]:
        """The hosts that these names of hosts and roles stand for, in order."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self.roles.get(name, [name]) for name in names)))

    def misfits(self, hosts: Sequence[str], factors: Sequence[str]) -> Iterator[Problem]:
        """Problems with unknown hosts and placeholders; their paths are relative to these parameters."""
        for kind in ("roles", "parameters"):
            for name in getattr(self, kind):
                if name in hosts or name in factors:
                    yield Problem((kind, name), name, "a name that no host and no factor has")
        for role, members in self.roles.items():
            for member in members:
                if member not in hosts:
                    yield Problem(("roles", role), member, f"a host: {nearest(member, hosts)}")
        places = [*hosts, *self.roles]
        words = list(dict.fromkeys([*RESERVED, *places, *self.parameters, *factors]))
        references: list[tuple[tuple[str | int, ...], str]] = [(("nagle_on",), name) for name in self.nagle_on or ()]
        lasting = [step for _, step in self.steps() if getattr(step, "lives", "run") != "run"]
        for path, step in self.steps():
            references += [((*path, "host"), name) for name in step.host]
            for place, text in step.texts():
                for word in placeholders(text):
                    if word not in words:
                        yield Problem((*path, *place), f"{{{word}}}", expected(word, words))
                    elif word == "run" and step in lasting:
                        yield Problem((*path, *place), "{run}", "{kept}: this program outlives a run and its folder")
                    elif word == "kept" and not lasting:
                        yield Problem((*path, *place), "{kept}", "{run}, or a program with `lives: study`")
        for path, name in references:
            if name not in places:
                yield Problem(path, name, f"a host or a role: {nearest(name, places)}")
