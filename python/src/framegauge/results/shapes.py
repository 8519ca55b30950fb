"""What the JSON files of a results folder may hold: the plan, the journal, the environment, the records of runs.

Folders are copied, edited and made by other programs. Everything that later code relies on is checked here once, when
a file is read. Keys that are not named here are kept: a newer framegauge of the same schema may have added them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictStr, ValidationError

from framegauge import foreign, metrics
from framegauge.errors import CorruptResults, InputError
from framegauge.metrics import METRICS
from framegauge.results.conditions import is_sound
from framegauge.results.readings import LENIENT, MOST_COUNT, Amount, Count, Number, Readings, Whole

__all__ = ["Environment", "Line", "Plan", "Record", "checked", "checked_plan", "load", "shown"]

SHOULD_BE = "Input should be "
# What pydantic's errors expected, in terms of JSON.
EXPECTED = {
    "bool_type": "true or false", "dict_type": "an object", "float_type": "a number", "int_type": "a whole number",
    "list_type": "a list", "model_type": "an object", "string_type": "text",
}  # fmt: skip
MOST_SHOWN = 80
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _known(metric: str) -> str:
    if metric not in METRICS:
        raise ValueError(f"one of {', '.join(METRICS)}")
    return metric


def _moment(text: str) -> str:
    if text:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("a time such as 2026-11-21T10:00:00+00:00") from None
    return text


def _conditions(conditions: dict[str, Any]) -> dict[str, Any]:
    for name, value in conditions.items():
        if not is_sound(name, value):
            raise ValueError(f"a condition that a run can have as {name}")
    return conditions


Blocks = Annotated[int, Field(strict=True, ge=1, le=MOST_COUNT)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Rate = Annotated[int, Field(strict=True, ge=1, le=10**15)]
Metric = Annotated[StrictStr, AfterValidator(_known)]
# A file's name without its ending: no path leads out of the folder of its run.
Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}$")]


class _Shape(BaseModel):
    model_config = LENIENT


class _Own(_Shape):
    """A metric that a study has declared."""

    unit: Annotated[StrictStr, Field(pattern=r"^[a-z_]{1,40}$")]
    higher_is_better: StrictBool
    hull: Amount | None = None
    margin: Share = 0.05


def _entered(own_metrics: dict[str, _Own]) -> dict[str, _Own]:
    for name, metric in own_metrics.items():
        try:
            metrics.declare(name, metrics.Metric(metric.unit, metric.higher_is_better, metric.hull, metric.margin))
        except InputError as error:
            raise ValueError(str(error)) from None
    return own_metrics


OwnName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,30}$")]


class _Attempt(_Shape):
    bits_per_second: Rate
    seconds: Amount
    reasons: list[StrictStr]


class _Trial(_Shape):
    """The trial before the first run. The runs are those of `bits_per_second`."""

    asked_bits_per_second: Rate
    bits_per_second: Rate
    attempts: Annotated[list[_Attempt], Field(min_length=1)]


class _Again(_Shape):
    """That a folder was sealed again, and what had not been as it was written."""

    at: Annotated[StrictStr, AfterValidator(_moment)]
    changed: list[StrictStr]


class Plan(_Shape):
    """results.json. Older ones lack what has a default."""

    # First, since what is below may name them.
    metrics: Annotated[dict[OwnName, _Own], AfterValidator(_entered)] = {}
    question: StrictStr
    scope: StrictStr
    treatment: StrictStr
    margins: dict[Metric, Share]
    primary: list[Metric] = []
    ask: Literal["difference", "not worse"] = "difference"
    estimators: dict[Metric, Literal["mean", "median of differences"]] = {}
    planned_runs: Count | None = None
    planned_blocks: Blocks | None = None
    stop: Literal["settled", "blocks"] = "blocks"
    framegauge: StrictStr | None = None
    extended_from: list[Blocks] = []
    trial: _Trial | None = None
    files: dict[StrictStr, StrictStr] = {}
    sealed_again: list[_Again] = []


class Line(_Shape):
    """A line of runs.jsonl."""

    number: Annotated[Count, Field(ge=1)]
    block: Count
    cell: Count
    arm: StrictStr
    role: Literal["baseline", "control", "treatment"]
    level: Any
    attempt: Count
    workload: StrictStr
    conditions: Annotated[dict[StrictStr, Any], AfterValidator(_conditions)]
    metrics: dict[StrictStr, Number]
    excluded: list[StrictStr]
    readings: Readings = Field(default_factory=Readings)
    degraded: list[StrictStr] = []
    seconds: Amount = 0.0
    began: Annotated[StrictStr, AfterValidator(_moment)] = ""
    files: dict[StrictStr, StrictStr] = {}


class _Lack(_Shape):
    name: StrictStr
    found: StrictStr
    needed_for: StrictStr


class Environment(_Shape):
    """environment.json."""

    agent: dict[StrictStr, Any] | None = None
    python: StrictStr | None = None
    platform: StrictStr | None = None
    degraded: list[_Lack] | None = None


class _Result(_Shape):
    started_seconds: Number | None = None


class _Asked(_Shape):
    """One request of a workload; those of streams name their tables and ends."""

    transfers: Name | None = None
    client: StrictStr | None = None
    server: StrictStr | None = None
    reverse: StrictBool = False
    result: _Result | None = None


class _Share(_Shape):
    mean: Amount
    most: Amount
    least: Amount


class _Times(_Shape):
    count: Whole
    mean_seconds: Amount
    p90_seconds: Amount


class _Flows(_Shape):
    connections: Whole
    bytes: list[Amount] = []


class _Judged(_Shape):
    found_seconds: Amount
    limit_seconds: Annotated[Amount, Field(gt=0)]


class _Step(_Shape):
    users: Whole
    operations_per_second: Amount
    judged: dict[StrictStr, _Judged] = {}
    beyond: list[StrictStr] = []


class _Web(_Shape):
    cpu: dict[StrictStr, _Share] = {}
    flows: dict[StrictStr, _Flows] = {}
    by_operation: dict[StrictStr, _Times] = {}
    parts: dict[StrictStr, _Times] = {}
    steps: list[_Step] = []


class _Workload(_Shape):
    bytes: Amount | None = None
    mean_segment_payload_bytes: Number | None = None
    congestion_control: dict[StrictStr, list[StrictStr]] | None = None
    retransmits: Number | None = None
    runs: list[_Asked] | None = None
    web: _Web | None = None


class _Syn(_Shape):
    mss_bytes: Whole | None = None


class _Wire(_Shape):
    syns: list[_Syn] = []


class _Nic(_Shape):
    mtu: Whole = 0


class _Host(_Nic):
    nics: list[_Nic] = []


class _Interface(_Shape):
    rx_packets: Whole | None = None


class _Counters(_Shape):
    interface: _Interface | None = None
    nstat: dict[StrictStr, Number] | None = None


class _Port(_Shape):
    port: StrictStr
    dropped_frames: Whole = 0
    marked_frames: Whole | None = None
    peak_queue_bytes: Number = 0


class _Wait(_Shape):
    port: StrictStr
    input_port: StrictStr
    frames: Whole = 0


class _Fabric(_Shape):
    ports: list[_Port] | None = None
    waits: list[_Wait] | None = None


class _Cpu(_Shape):
    user_seconds: Number | None = None
    nice_seconds: Number | None = None
    system_seconds: Number | None = None
    irq_seconds: Number | None = None
    softirq_seconds: Number | None = None
    idle_seconds: Number | None = None
    iowait_seconds: Number | None = None
    steal_seconds: Number | None = None


class _Softirqs(_Shape):
    net_rx: Number | None = None
    net_tx: Number | None = None


class _Measure(_Shape):
    cpus: list[_Cpu] | None = None
    softirqs: list[_Softirqs] | None = None
    elapsed_seconds: Amount | None = None
    fabric: _Fabric | None = None


class _Link(_Shape):
    port: StrictStr
    bits_per_second: Amount | None = None
    begin: StrictStr = Field("", alias="from")
    to: StrictStr


class _Network(_Shape):
    ports: list[_Link] | None = None


class _Rack(_Shape):
    network: _Network | None = None


class _Conditions(_Shape):
    bits_per_second: Amount | None = None


class _Change(_Shape):
    at_seconds: Amount
    made_seconds: Number
    set: dict[StrictStr, Any]


class Record(_Shape):
    """record.json, as far as reports use it; a run of which something was not read lacks that part."""

    conditions: _Conditions | None = None
    rack: _Rack | None = None
    before: dict[StrictStr, _Host] | None = None
    wire: dict[StrictStr, _Wire] | None = None
    workload: _Workload | None = None
    measure: _Measure | None = None
    counters_before: dict[StrictStr, _Counters] | None = None
    counters_after: dict[StrictStr, _Counters] | None = None
    changes: list[_Change] | None = None
    begun_seconds: Number | None = None


def load(data: bytes, where: str, expected: str) -> Any:
    """The JSON in `data`; CorruptResults if there is none, or something in it that JSON or UTF-8 does not have."""
    try:
        value = foreign.load_json(data)
        if any(word in data for word in (b"NaN", b"Infinity")) or SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except foreign.TooLarge as error:
        raise CorruptResults(f"{where}: {error}") from None
    except ValueError:
        raise CorruptResults(f"{where}: found no JSON, expected {expected}") from None
    return value


def checked(found: Any, shape: type[BaseModel], where: str) -> Mapping[str, Any]:
    """`found` itself, which has that shape; CorruptResults with the first thing that is wrong otherwise."""
    try:
        shape.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"])) or "the whole"
        raise CorruptResults(f"{where}: {one_line(path)}: {_said(first)}") from None
    return found  # type: ignore[no-any-return]


def checked_plan(found: Mapping[str, Any], where: str) -> None:
    """Checks the plan of a study; CorruptResults as for `checked`."""
    checked(found, Plan, where)
    ends = [*found.get("extended_from", ()), found.get("planned_blocks")]
    if ends[-1] is None and (len(ends) > 1 or found.get("stop") == "settled"):
        raise CorruptResults(f"{where}: planned_blocks: found nothing, expected the number of blocks of such a plan")
    if any(later is not None and later <= before for before, later in pairwise(ends)):
        raise CorruptResults(f"{where}: extended_from: found {shown(ends)}, expected each extension to add blocks")


def _said(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "found nothing, expected this key"
    why = error.get("ctx", {}).get("error") or EXPECTED.get(error["type"]) or error["msg"].removeprefix(SHOULD_BE)
    return f"found {shown(error['input'])}, expected {str(why)[:1].lower()}{str(why)[1:]}"


def shown(found: object) -> str:
    """A value as a short text in one line."""
    try:
        return one_line(json.dumps(found, default=str))
    except (ValueError, TypeError, RecursionError):
        return f"a {type(found).__name__}"


def one_line(text: str) -> str:
    """StrictStr from a file, cut off and without what cannot be printed."""
    clean = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:MOST_SHOWN])
    return clean if len(text) <= MOST_SHOWN else f"{clean}…"
