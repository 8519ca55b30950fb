"""What a watch file may say. A misspelt key is an error with its line, as in a study file."""

from __future__ import annotations

import itertools
import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from framegauge import quantities
from framegauge.errors import QuantityError
from framegauge.files import yaml as yaml_file
from framegauge.files.types import Model, Problem, Seconds, Share, nearest
from framegauge.statistics.autocorrelated import LEAST_VALUES
from framegauge.watch import counters
from framegauge.watch.catalogue import METRICS, USUAL, USUAL_OF_AGENTS

__all__ = ["WINDOW_STEPS", "Agents", "Metric", "Server", "Watch", "json_schema", "load", "moment", "parse"]

TIME_EXPECTED = "a time with a date such as 2026-11-27T10:00:00Z (ISO 8601; UTC unless an offset is given)"
MOST_HOSTS, MOST_METRICS = 1000, 100
MOST_EARLIER = 31 * 86_400.0
LEAST_STEP = 0.1
LEAST_SAMPLE_STEP = 0.5
WINDOW_STEPS = 4  # of `$window`: enough for a rate if one scrape is lost, as Grafana's $__rate_interval
MOST_STEPS = 10_000  # of the whole time; Prometheus answers at most 11,000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def moment(value: object) -> datetime:
    """A time in UTC; QuantityError for anything else."""
    parsed = value
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.strip())
        except ValueError:
            raise QuantityError(value, TIME_EXPECTED) from None
    if not isinstance(parsed, datetime):
        raise QuantityError(str(value), TIME_EXPECTED)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _quantity(value: object) -> float:
    """A number of 0 or more in the metric's unit."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise QuantityError(value, "a number from 0")
    return float(value)


Time = Annotated[
    datetime,
    PlainValidator(moment),
    PlainSerializer(lambda at: at.isoformat()),
    WithJsonSchema({"type": "string", "format": "date-time", "description": TIME_EXPECTED}),
]
Level = Annotated[float, PlainValidator(_quantity), WithJsonSchema({"type": "number", "minimum": 0})]
Host = Annotated[StrictStr, Field(min_length=1, max_length=253)]


class Server(Model):
    """A Prometheus server, or what answers as one. Secrets are in files or variables of the environment, never here."""

    url: StrictStr
    token_file: StrictStr | None = None
    token_env: StrictStr | None = None
    username: StrictStr | None = None
    password_file: StrictStr | None = None
    password_env: StrictStr | None = None
    ca_file: StrictStr | None = None
    timeout: Seconds = 30.0

    @model_validator(mode="after")
    def _consistent(self) -> Server:
        try:
            parts = urllib.parse.urlsplit(self.url)
            port_is_good = parts.port is None or parts.port > 0
        except ValueError:
            raise Problem(("url",), self.url, "an address such as http://prometheus:9090") from None
        if parts.username is not None or parts.password is not None:
            # What is found must not be printed.
            raise Problem(("url",), "a password in it", "the password in a file: username and password_file")
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
            raise Problem(("url",), self.url, "an address such as http://prometheus:9090")
        if parts.query or parts.fragment:
            raise Problem(("url",), self.url.partition("?")[0], "an address without ? and #")
        secrets = {
            name: value for name in ("token_file", "token_env", "password_file", "password_env")
            if (value := getattr(self, name)) is not None
        }  # fmt: skip
        if len(secrets) > 1:
            raise Problem((), ", ".join(secrets), "one of them at most")
        if (self.username is not None) != any(name.startswith("password") for name in secrets):
            raise Problem((), ", ".join(secrets) or "username", "username with password_file or password_env")
        if not 0 < self.timeout <= 600:
            raise Problem(("timeout",), self.timeout, "more than 0 s and at most 10 min")
        return self

    def beside(self, folder: Path) -> Server:
        """The same, with the files that it names taken from `folder`."""
        names = ("token_file", "password_file", "ca_file")
        return self.model_copy(
            update={name: str(folder / value) for name in names if (value := getattr(self, name)) is not None}
        )


def _server(value: object) -> object:
    """An address alone is short for `url`."""
    return {"url": value} if isinstance(value, str) else value


class Agents(Model):
    """The project's own agents, which sample what hosts count. `folder` keeps the samples.

    `inventory` says how hosts are reached (`group`: of an Ansible inventory); one that it does not have is what ssh
    knows, `local` or `netns:NAME`, with these `options` for ssh. `interfaces`: those that are sampled, by default those
    that are up and have an address.
    """

    folder: Annotated[StrictStr, Field(min_length=1)]
    inventory: StrictStr | None = None
    group: StrictStr = "all"
    options: list[StrictStr] = Field(default_factory=list)
    interfaces: list[StrictStr] = Field(default_factory=list)

    def beside(self, folder: Path) -> Agents:
        """The same, with the files that it names taken from `folder`."""
        inventory = None if self.inventory is None else str(folder / self.inventory)
        return self.model_copy(update={"folder": str(folder / self.folder), "inventory": inventory})


def _agents(value: object) -> object:
    """A folder alone is short for `folder`."""
    return {"folder": value} if isinstance(value, str) else value


class Change(Model):
    """The switch: when, and of which hosts. What is measured within `settle` after it is not compared."""

    at: Time
    hosts: Annotated[list[Host], Field(min_length=1, max_length=MOST_HOSTS)]
    settle: Seconds = 120.0


def _counters(text: str) -> str:
    counters.parse(text)
    return text


class Metric(Model):
    """A metric: any PromQL, or `counters` of our own agents; what is better, and the smallest change worth acting on.

    `counters` are names joined with `+` (`TcpRetransSegs`, `rx_dropped + tx_dropped`, `eth0:rx_dropped`); of a gauge,
    two such sums with ` / ` between them are the ratio of what they grew by.
    `kind: count` and `rate` are counters as they are, without rate() around them: of events that are seldom, and of
    amounts that flow all the time. `kind: gauge` is any expression with one value per host. `negligible` is the level
    per host below which nobody cares: per second for counters. `decides: false` shows a metric, and the gate does not
    ask it.
    """

    query: Annotated[StrictStr, Field(min_length=1, max_length=10_000)] | None = None
    counters: Annotated[StrictStr, Field(min_length=1, max_length=1_000), AfterValidator(_counters)] | None = None
    kind: Literal["count", "rate", "gauge"]
    better: Literal["lower", "higher"]
    margin: Share
    negligible: Level | None = None
    unit: StrictStr = ""
    decides: StrictBool = True

    @model_validator(mode="after")
    def _consistent(self) -> Metric:
        if not 0 < self.margin < 1:
            raise Problem(("margin",), self.margin, "more than 0 % and less than 100 %")
        if self.query is None and self.counters is None:
            raise Problem(("query",), "nothing", "PromQL here, or counters, which our own agents read")
        if self.kind != "gauge" and self.counters is not None and counters.parse(self.counters).below:
            raise Problem(("counters",), self.counters, "a sum of counters, or kind: gauge for a ratio")
        if self.negligible is not None and self.better == "higher" and self.kind != "gauge":
            raise Problem(("negligible",), self.negligible, "this key only where lower is better, or with kind: gauge")
        return self


def _known(name: str) -> dict[str, Any]:
    if name not in METRICS:
        raise Problem((name,), "default", f"query, kind, better and margin, or {nearest(name, METRICS)}")
    metric = METRICS[name]
    return {
        "query": metric.query, "counters": metric.counters, "kind": metric.kind, "better": metric.better,
        "margin": quantities.exact_share(metric.margin),
        "negligible": metric.negligible, "unit": metric.unit, "decides": metric.decides,
    }  # fmt: skip


def _metrics(value: object) -> object:
    """`default` for the usual ones; in a mapping, `default` or a margin for a known one."""
    if value == "default":
        return {name: _known(name) for name in USUAL}
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        value = dict.fromkeys(value, "default")
    if not isinstance(value, dict):
        return value
    metrics = {}
    for name, entry in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Problem((), name, "names of small letters, digits and _")
        if entry == "default":
            entry = _known(name)
        elif isinstance(entry, str):
            entry = _known(name) | {"margin": entry}
        elif isinstance(entry, dict) and name in METRICS:
            entry = _known(name) | entry
        metrics[name] = entry
    return metrics


class Watch(Model):
    """One switch, and how it is judged: `before` and `after` it, the switched hosts beside `control`, by `metrics`.
    These are what `prometheus` has, or what our own `agents` sample.

    Where all hosts were switched, `earlier` takes the same hosts, so long before, as those that were not.
    `label` is the label whose value names a host, with or without its port. `coverage` is the share of steps that each
    host must have values for. `alike: true` says that hosts would change alike but for noise over time, by which three
    on a side find much more; where they differ by more than that, it is not believed. `ask: not worse` passes what is
    not worse by more than the margin; `difference` asks that a metric is better, or that there is no practical
    difference.
    """

    model_config = ConfigDict(extra="forbid")
    question: StrictStr = "Did the switch do harm?"
    prometheus: Annotated[Server, BeforeValidator(_server, json_schema_input_type=Server | str)] | None = None
    agents: Annotated[Agents, BeforeValidator(_agents, json_schema_input_type=Agents | str)] | None = None
    change: Change
    control: Annotated[list[Host], Field(min_length=1, max_length=MOST_HOSTS)] | None = None
    earlier: Seconds | None = None
    before: Seconds = 3600.0
    after: Seconds = 3600.0
    step: Seconds = 15.0
    label: StrictStr = "instance"
    coverage: Share = 0.9
    alike: StrictBool = False
    ask: Literal["not worse", "difference"] = "not worse"
    metrics: Annotated[
        dict[str, Metric],
        BeforeValidator(
            _metrics,
            json_schema_input_type=Literal["default"] | list[str] | dict[str, Metric | Literal["default"] | str],
        ),
        Field(min_length=1, max_length=MOST_METRICS),
    ] = Field(default_factory=lambda: {name: Metric.model_validate(_known(name)) for name in USUAL})

    @property
    def hosts(self) -> list[str]:
        """All hosts that are asked for."""
        return [*self.change.hosts, *(self.control or ())]

    @property
    def control_names(self) -> list[str]:
        """Those that were not switched: other hosts, or the same ones earlier."""
        return self.control or [f"{host} {self.earlier_text}" for host in self.change.hosts]

    @property
    def earlier_text(self) -> str:
        """Such as "24 h earlier"; "" with control hosts."""
        if self.earlier is None:
            return ""
        unit, seconds = ("h", 3600) if self.earlier >= 2 * 3600 else ("min", 60)
        return f"{self.earlier / seconds:g} {unit} earlier"

    @property
    def settles(self) -> int:
        """The steps after the switch that are not compared."""
        whole = math.ceil(self.change.settle / self.step - 1e-9)
        if self.agents is not None:  # samples are not taken at the moment of the switch, but up to a step before
            ratio = any(counters.parse(metric.counters or "").below for metric in self.metrics.values())
            return max(whole, WINDOW_STEPS if ratio else 0) + 1
        has_window = any("$window" in (metric.query or "") for metric in self.metrics.values())
        return max(whole, WINDOW_STEPS if has_window else 0)

    @property
    def ends(self) -> float:
        """When the time after the switch is over, seconds since 1970; with two steps for its last scrapes."""
        return self.change.at.timestamp() + self.after + (self.settles + 2) * self.step

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, values: Any) -> Any:
        """The usual metrics of agents, which have more of the kernel's counters than node_exporter."""
        if (
            isinstance(values, dict)
            and values.get("agents") is not None
            and values.get("metrics", "default") == "default"
        ):
            return {**values, "metrics": list(USUAL_OF_AGENTS)}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Watch:
        for problem in itertools.chain(self._of_source(), self._problems()):
            raise problem
        return self

    def _of_source(self) -> Iterator[Problem]:
        if (self.prometheus is None) is (self.agents is None):
            count_word = "neither" if self.agents is None else "both"
            yield Problem((), count_word, "prometheus or agents: where the metrics are from")
            return
        for name, metric in self.metrics.items():
            if self.agents is not None and metric.counters is None:
                expected = "counters, which our own agents read"
                yield Problem(("metrics", name), f"{name} without counters", expected)
            if self.prometheus is not None and metric.query is None:
                yield Problem(("metrics", name), f"{name} without a query", "PromQL, which Prometheus answers")
        if self.agents is not None and self.step < LEAST_SAMPLE_STEP:
            yield Problem(("step",), quantities.exact_seconds(self.step), "at least 500 ms between two samples")

    def _problems(self) -> Any:
        control = self.control or []
        if (self.control is None) is (self.earlier is None):
            text = "neither" if self.earlier is None else "both"
            yield Problem((), text, "control or earlier: hosts that were not switched, or a time when none was")
        if self.step < LEAST_STEP:
            yield Problem(("step",), quantities.exact_seconds(self.step), "at least 100 ms")
            return  # all else is counted in steps
        whole = self.before + self.settles * self.step + self.after
        if self.earlier is not None and not whole <= self.earlier <= MOST_EARLIER:
            expected = f"from {quantities.exact_seconds(whole)}, so that the two times are apart, to 31 days"
            yield Problem(("earlier",), quantities.exact_seconds(self.earlier), expected)
        for where, names in ((("change", "hosts"), self.change.hosts), (("control",), control)):
            for index, name in enumerate(names):
                if name in names[:index]:
                    yield Problem((*where, index), name, "each host once")
        for index, name in enumerate(control):
            if name in self.change.hosts:
                yield Problem(("control", index), name, "a host that was not switched: it is in change.hosts, too")
        for name in ("before", "after"):
            if getattr(self, name) < self.step * LEAST_VALUES:
                text = quantities.exact_seconds(getattr(self, name))
                yield Problem((name,), text, f"at least {LEAST_VALUES} steps")
        if whole > MOST_STEPS * self.step:
            expected = f"a step of at least {quantities.print_seconds(whole / MOST_STEPS)} for so long a time"
            yield Problem(("step",), quantities.exact_seconds(self.step), expected)
        if not _LABEL.fullmatch(self.label):
            yield Problem(("label",), self.label, "the name of a label, such as instance")
        if not 0.5 <= self.coverage <= 1:
            yield Problem(("coverage",), self.coverage, "a share from 50 % to 100 %")


def load(path: str | Path, at: str | None = None, switched: Sequence[str] = (), control: Sequence[str] = ()) -> Watch:
    """The watch in a YAML file; StudyError lists all problems. What is given beside it stands instead of the file's;
    `switched` and `control` are hosts, or several with commas between them."""
    switched, control = ([name for word in words for name in word.split(",") if name] for words in (switched, control))

    def alter(values: dict[str, Any]) -> None:
        change = values.get("change")
        if at is not None or switched:
            change = dict(change) if isinstance(change, dict) else {}
            values["change"] = (
                change | ({} if at is None else {"at": at}) | ({"hosts": list(switched)} if switched else {})
            )
        if control:
            values["control"] = list(control)
            values.pop("earlier", None)

    watch = yaml_file.parse(yaml_file.read(path, "a watch file"), str(path), Watch, "watch", alter=alter)
    place = Path(path).parent
    return watch.model_copy(
        update={
            "prometheus": None if watch.prometheus is None else watch.prometheus.beside(place),
            "agents": None if watch.agents is None else watch.agents.beside(place),
        }
    )


def parse(text: str, name: str) -> Watch:
    """The watch in `text`; `name` stands for the file in messages."""
    return yaml_file.parse(text, name, Watch, "watch")


def json_schema() -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a watch file, for editors."""
    return yaml_file.json_schema(Watch, "watch")
