"""fio: the job that it runs on an RBD image, the JSON that it prints, and its log of every block. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError

from framegauge import foreign
from framegauge.apps.course import Course
from framegauge.errors import ProgramFailure
from framegauge.printable import one_line
from framegauge.testbeds.base import Json

__all__ = ["IMAGE", "LOG", "POOL", "Done", "Load", "course", "fill", "parse"]

POOL, IMAGE = "rbd", "image"
LOG = "load_lat.log"
LOG_FIELDS = 5  # milliseconds, nanoseconds of latency, direction, bytes, priority
_LOGGED: Mapping[str, Any] = {
    "write_lat_log": "load", "per_job_logs": 0, "disable_slat": 1, "disable_clat": 1, "log_alternate_epoch": 1,
    "log_alternate_epoch_clock_id": time.CLOCK_MONOTONIC,
}  # fmt: skip
FILL_BYTES = 4 << 20  # the size of an object
FILL_DEPTH = 4
_WAYS = {"write": "write", "read": "read", "mixed": "rw"}
_BASE = {"ioengine": "rbd", "clientname": "admin", "pool": POOL, "rbdname": IMAGE, "thread": 1}
QUANTILES = ("50", "95", "99")
MILLISECOND, NANOSECOND = 1e-3, 1e-9


@dataclass(frozen=True)
class Load:
    """What fio does, in base units. `rate_per_second` is that of reads and writes together; None: a closed loop. With
    `logged`, it writes a line for every block to LOG, with times on the machine's monotonic clock."""

    operation: str
    access: str
    block_bytes: int
    depth: int
    duration_seconds: float
    rate_per_second: float | None = None
    read_share: float = 0.5
    seed: int = 1
    logged: bool = False

    @property
    def offered_bits_per_second(self) -> int | None:
        """The load that is offered; None: as much as passes."""
        return None if self.rate_per_second is None else round(8 * self.block_bytes * self.rate_per_second)

    def job(self) -> str:
        """The job as fio reads it.

        Latency is that from the submission of a block to its completion: with RBD most of it may be in the submission,
        which `clat` leaves out. `randseed` has all arms of a block of runs touch the same places.
        """
        words: dict[str, Any] = {
            **_BASE,
            "rw": ("rand" if self.access == "random" else "") + _WAYS[self.operation],
            "bs": self.block_bytes, "iodepth": self.depth, "time_based": 1,
            "runtime": f"{round(self.duration_seconds / MILLISECOND)}ms",
            "norandommap": 1, "randseed": self.seed, "lat_percentiles": 1, "clat_percentiles": 0,
            "percentile_list": ":".join(QUANTILES), "unified_rw_reporting": "both",
        }  # fmt: skip
        if self.operation == "mixed":
            words["rwmixread"] = round(100 * self.read_share)
        if self.rate_per_second is not None:
            words["rate_iops"] = ",".join(str(rate) for rate in self._rates())
        return _text({**words, **(_LOGGED if self.logged else {})})

    def _rates(self) -> tuple[int, int]:
        """Reads and writes per second, of which fio takes whole numbers; the kind that does not occur has any."""
        rate = round(self.rate_per_second or 0)
        reads = round(rate * round(100 * self.read_share) / 100) if self.operation == "mixed" else rate
        return reads, rate - reads if self.operation == "mixed" else rate


def fill() -> str:
    """The job that writes a whole image once."""
    return _text({**_BASE, "rw": "write", "bs": FILL_BYTES, "iodepth": FILL_DEPTH})


def _text(words: Mapping[str, Any]) -> str:
    return "[ceph]\n" + "".join(f"{name}={value}\n" for name, value in words.items())


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Latency(_Shape):
    N: Annotated[StrictInt, Field(ge=1)]
    percentile: dict[str, Annotated[StrictInt, Field(ge=0)]]


class _Way(_Shape):
    io_bytes: Annotated[StrictInt, Field(ge=0)]
    total_ios: Annotated[StrictInt, Field(ge=0)]
    short_ios: Annotated[StrictInt, Field(ge=0, le=0)]
    drop_ios: Annotated[StrictInt, Field(ge=0, le=0)]


class _Both(_Way):
    runtime: Annotated[StrictInt, Field(ge=1)]
    lat_ns: _Latency


class _Job(_Shape):
    error: Annotated[StrictInt, Field(ge=0, le=0)]
    read: _Way
    write: _Way
    mixed: _Both


class _Document(_Shape):
    jobs: Annotated[list[_Job], Field(min_length=1, max_length=1)]


@dataclass(frozen=True)
class Done:
    """What fio did: bytes and blocks by direction, the time that it took, and the quantiles of latency by per cent."""

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    seconds: float
    latency_seconds: Mapping[str, float]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of a run."""
        blocks, carried = self.reads + self.writes, self.read_bytes + self.written_bytes
        latencies = {f"latency_p{name}": seconds for name, seconds in self.latency_seconds.items()}
        return {"goodput": 8.0 * carried / self.seconds, "iops": blocks / self.seconds, **latencies}


def parse(text: str, load: Load) -> Done:
    """What fio printed of a load; ProgramFailure, in one line, if it is not all there, or does not add up."""
    try:
        job = _Document.model_validate(foreign.load_json(text.encode())).jobs[0]
    except ValidationError as error:
        detail = error.errors()[0]
        location = ".".join(map(str, detail["loc"]))
        raise ProgramFailure(f"fio: {location}: {one_line(detail['msg'], 120)}") from None
    except ValueError as error:
        raise ProgramFailure(f"fio: found no JSON ({one_line(error, 120)}): {one_line(text[:120])}") from None
    for name, side in (("read", job.read), ("write", job.write)):
        if side.io_bytes != side.total_ios * load.block_bytes:
            expected = f"{side.total_ios} blocks of {load.block_bytes}"
            raise ProgramFailure(f"fio: {name}.io_bytes: found {side.io_bytes}, expected {expected}")
        if load.operation in ("read", "write") and load.operation != name and side.total_ios:
            raise ProgramFailure(f"fio: {name}.total_ios: found {side.total_ios}, expected 0 of a {load.operation}")
    mixed, blocks = job.mixed, job.read.total_ios + job.write.total_ios
    if mixed.total_ios != blocks or blocks != mixed.lat_ns.N:
        counts = f"{mixed.total_ios} in all and {mixed.lat_ns.N} latencies"
        raise ProgramFailure(f"fio: mixed: found {counts}, expected {blocks} as of reads and writes")
    return Done(
        job.read.io_bytes, job.write.io_bytes, job.read.total_ios, job.write.total_ios,
        mixed.runtime * MILLISECOND, _quantiles(mixed.lat_ns.percentile),
    )  # fmt: skip


def course(text: str, blocks: int) -> Json:
    """What the client saw over time (`course`), and from when on, from the log of so many blocks; ProgramFailure, in
    one line, if that is not what it holds. fio writes whole milliseconds, when a block was done."""
    done = sorted(map(_logged, text.splitlines()))
    if len(done) != blocks or not done:
        raise ProgramFailure(f"fio: {LOG}: found {len(done)} lines, expected one for each of {blocks} blocks")
    history = Course(count=lambda: 0)
    history.begin(done[0][0] - done[0][1])
    for end, latency in done:
        history.answered(end, latency)
    return {"began_seconds": history.begun_seconds, "course": {**history.as_json(), "packets": []}}


def _logged(line: str) -> tuple[float, float]:
    """When a block was done, and its latency."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != LOG_FIELDS or not all(field.isascii() and field.isdigit() for field in fields):
        raise ProgramFailure(f"fio: {LOG}: found {one_line(line, 80)}, expected {LOG_FIELDS} whole numbers")
    return int(fields[0]) * MILLISECOND, int(fields[1]) * NANOSECOND


def _quantiles(percentiles: Mapping[str, int]) -> dict[str, float]:
    """By per cent, in seconds: fio prints 99 as 99.000000."""
    values = {name: percentiles.get(f"{name}.000000") for name in QUANTILES}
    numbers = [value for value in values.values() if value is not None]
    if len(numbers) < len(QUANTILES) or numbers != sorted(numbers):
        raise ProgramFailure(f"fio: lat_ns.percentile: found {percentiles}, expected {', '.join(QUANTILES)} in order")
    return {name: value * NANOSECOND for name, value in values.items() if value is not None}
