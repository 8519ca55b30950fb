"""mapreduce: a sort, or a search, on a Hadoop cluster whose every node is a host.

The daemons start, and teragen writes the input, before anything is measured. Afterwards the result is checked: the
sorted rows must have the checksum of the generated ones, and a search must have found every row.

Daemons send heartbeats all the time, and counters of several places cannot be read at the same moment: a packet between
two readings would be missing in one of them. So the whole cluster is stopped (SIGSTOP) from before the first reading
until the job begins, and from its end until after the last one. Whatever ends a run early kills what is stopped, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, cast

import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads import fetches, history, shuffle_log, tasks
from framegauge.workloads.base import Executed, Go, Program, side_by_side
from framegauge.workloads.command import Command, CommandRecord, fetched
from framegauge.workloads.fetches import Fetch
from framegauge.workloads.hadoop import HISTORY, Cluster, purpose
from framegauge.workloads.history import Job
from framegauge.workloads.tasks import Place, Task

__all__ = ["ROW_BYTES", "MapReduce"]

ROW_BYTES = 100  # of teragen
# Every row of teragen has two fixed bytes before the 32 digits of its number, of which the last two are kept.
PATTERN = r"\x00\x11[0-9A-F]{30}([0-9A-F]{2})"
MOST_FETCHES = 10_000  # that a record keeps
LOOK_SECONDS = 1.0
LOOKS = 5
GIGABYTE = 1e9
_EXAMPLES = "org.apache.hadoop.examples"


class MapReduceRecord(CommandRecord):
    """`fetches`: what reducers fetched, from where and when (at most MOST_FETCHES). `fetchers`: the hosts that did."""

    fetches: list[Json]
    fetchers: list[str]


@dataclass(frozen=True)
class MapReduce:
    """`job` is terasort or grep, of so many rows; `within_seconds` is for each of its steps."""

    cluster: Cluster
    job: str
    rows: int
    maps: int
    reduces: int
    within_seconds: float
    programs: Command = field(repr=False)
    name: ClassVar[str] = "mapreduce"
    needs: ClassVar[Sequence[Program]] = (
        Program("java", "openjdk-17-jre-headless"), Program("bash", "bash"), Program("setsid", "util-linux"),
    )  # fmt: skip

    @classmethod
    def of(
        cls, cluster: Cluster, job: str, rows: int, maps: int, reduces: int, within: float, base: Command
    ) -> MapReduce:
        """The workload. `base` has the settings of hosts (values, MTUs, Nagle); its programs are made here."""
        settings = {"mapreduce.job.reduces": reduces}
        if job == "terasort":
            settings["mapreduce.terasort.output.replication"] = cluster.replication
            task = cluster.job(f"{_EXAMPLES}.terasort.TeraSort", settings, "/in", "/out", within=within)
        else:
            task = cluster.job(
                f"{_EXAMPLES}.Grep",
                settings,
                "/in",
                "/out",
                PATTERN.replace("{30}", "{{30}}").replace("{2}", "{{2}}"),
                "1",
                within=within,
            )
        programs = replace(base, clients=[task], servers=cluster.servers(), prepare=cluster.prepare())
        return cls(cluster, job, rows, maps, reduces, within, programs)

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """Starting, generating and checking included; the runner learns how long runs take."""
        return self.programs.expect_seconds

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Names the hosts to one another, starts the cluster and generates the input; checks the result at the end."""
        entries = [{"name": host.name, "addresses": list(host.addresses)} for host in hosts]
        side_by_side([(host, lambda host: host.agent.request("host.names", {"entries": entries})) for host in hosts])
        records: list[MapReduceRecord] = []
        with self.programs.prepared(hosts, token) as inner:
            places = self.programs.places(hosts, token)
            self._generate(places)
            _everywhere(self.cluster.stop(), places)

            def go(on_progress: Progress | None) -> Executed:
                _everywhere(self.cluster.resume(), places)
                done = inner(on_progress)
                _everywhere(self.cluster.stop(), places)
                records.append(cast(MapReduceRecord, done.record))  # as every Command makes it, but for fetches
                return done

            yield go
            _everywhere(self.cluster.resume(), places)
            for record in records:
                self._conclude(places, record)

    def _generate(self, places: Mapping[str, Place]) -> None:
        settings: dict[str, object] = {"mapreduce.job.maps": self.maps}
        if self.cluster.is_stored_on_master:  # where a map is near no block, one writes as many for others to read
            settings = {"mapreduce.job.maps": 1, "mapreduce.job.ubertask.enable": "true"}
        words = (str(self.rows), "/in")
        self._run(
            self.cluster.job(f"{_EXAMPLES}.terasort.TeraGen", settings, *words, within=self.within_seconds), places
        )

    def _run(self, task: Task, places: Mapping[str, Place]) -> str:
        """Runs a program of the master to its end: what it printed."""
        return _run(task, places[self.cluster.master])

    def _conclude(self, places: Mapping[str, Place], record: MapReduceRecord) -> None:
        """Checks the result, and enters what Hadoop itself says of the jobs."""
        record["fetches"] = self._fetches(places)
        record["fetchers"] = list(dict.fromkeys(entry["to"] for entry in record["fetches"]))
        if self.job == "terasort":
            settings = {"mapreduce.job.ubertask.enable": "true"}
            main = f"{_EXAMPLES}.terasort.TeraValidate"
            self._run(self.cluster.job(main, settings, "/out", "/check", within=self.within_seconds), places)
        measured = ("TeraSort",) if self.job == "terasort" else ("grep-search", "grep-sort")
        result, jobs = self._read(places, ("TeraGen", *measured))
        if self.job == "terasort":
            record["checked"] = sorted_as(result, jobs["TeraGen"].counters["CHECKSUM"]) | {"rows": self.rows}
        else:
            record["checked"] = found_all(result, self.rows)
        first_job, last_job = jobs[measured[0]], jobs[measured[-1]]
        record["printed"] = {"job_time": last_job.finished_seconds - first_job.submitted_seconds}
        if first_job.shuffle_seconds is not None:
            record["printed"]["shuffle_time"] = first_job.shuffle_seconds
        record["jobs"] = [_document(jobs[name]) for name in measured]
        cpu_seconds = record["printed"]["task_cpu_time"] = sum(entry["task_cpu_seconds"] for entry in record["jobs"])
        if record["bytes"]:
            record["printed"]["task_cpu_cost"] = cpu_seconds / (record["bytes"] / GIGABYTE)
        record["traffic_by_purpose"] = by_purpose(record)

    def _read(self, places: Mapping[str, Place], names: Sequence[str]) -> tuple[str, dict[str, Job]]:
        """The result, and the histories of the jobs of these names, which are complete a moment after the jobs."""
        files = "/check/part-*" if self.job == "terasort" else "/out/part-*"
        jobs: dict[str, Job] = {}
        for _ in range(LOOKS):
            result, *texts = history.split(self._run(self.cluster.read(files, f"{HISTORY}/*/*.jhist"), places))
            jobs = {job.name: job for job in (history.parse("mapreduce", text) for text in texts)}
            if all(name in jobs for name in names):
                return result, jobs
            time.sleep(LOOK_SECONDS)
        missing = ", ".join(name for name in names if name not in jobs)
        raise ProgramFailure(f"mapreduce: found no history of {missing}, expected one from Hadoop")

    def _fetches(self, places: Mapping[str, Place]) -> list[Json]:
        """What reducers fetched so far, by their own logs: the first MOST_FETCHES, from the beginning of the first."""
        workers = [places[name] for name in self.cluster.workers]
        logs = side_by_side([(place.host, partial(_shuffle_logs, place)) for place in workers])
        rows = [
            (place.host.name, fetch)
            for place, texts in zip(workers, logs, strict=True)
            for text in texts
            for fetch in shuffle_log.parse(text)
        ]
        base = min((fetch.begin_seconds for _, fetch in rows), default=0.0)
        rows.sort(key=lambda row: (row[1].begin_seconds, row[0], row[1].server))
        return [
            {
                "to": receiver, "from": fetch.server, "bytes": fetch.bytes,
                "begin_seconds": round(fetch.begin_seconds - base, 3),
                "end_seconds": round(fetch.end_seconds - base, 3),
            }
            for receiver, fetch in rows[:MOST_FETCHES]
        ]  # fmt: skip

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """What fetches of each distance got, and the few beside the many, where the network tells these apart."""
        if "entrances" not in record:
            return {}
        transfers = [
            Fetch(row["to"], row["from"], row["bytes"], row["end_seconds"] - row["begin_seconds"])
            for row in record["fetches"]
        ]
        return fetches.evidence(transfers, record["entrances"]["receivers"])

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """Those of `command`: what was printed, here by Hadoop's own history, and goodput. share_of_few: what a fetch
        of the few got, over that of the many."""
        return {**self.programs.metrics(record, tables), **fetches.metrics(record)}


def _shuffle_logs(place: Place, host: Host) -> list[str]:
    """The logs of the reducers that have run on a host."""
    folder = f"{place.folder}/logs/containers"
    files = host.agent.request("host.list", {"path": folder})["files"]
    paths = [file["path"] for file in files if file["path"].endswith("/syslog.shuffle")]
    return [fetched(host, path).decode("utf-8", "replace") for path in paths]


def _run(task: Task, place: Place) -> str:
    with tasks.started(task, place) as running:
        tasks.finish(task, running)
        return running.output()


def _everywhere(task: Task, places: Mapping[str, Place]) -> None:
    """Runs a program to its end, on all of its hosts at once."""

    def run(place: Place, host: Host) -> str:
        return _run(task, replace(place, host=host))

    side_by_side([(places[name].host, partial(run, places[name])) for name in task.hosts])


def sorted_as(result: str, checksum: int) -> Json:
    """The checksum that teravalidate found; ProgramFailure if rows are out of order, or it is not that of teragen."""
    rows = [line.split("\t") for line in result.splitlines() if "\t" in line]
    if wrong := [line for line in rows if line[0] != "checksum"]:
        raise ProgramFailure(f"teravalidate: found {' '.join(wrong[0])}, expected rows in order")
    sums = [int(line[1], 16) for line in rows]
    expected = checksum % (1 << 64)
    if len(sums) != 1 or sums[0] % (1 << 64) != expected:
        checksums = ", ".join(f"{value:x}" for value in sums) or "none"
        raise ProgramFailure(f"teravalidate: found checksum {checksums}, expected {expected:x} as of teragen")
    return {"checksum": f"{sums[0]:x}"}


def found_all(result: str, rows: int) -> Json:
    """The number of rows that grep found, by what their numbers end with; ProgramFailure if it is not that of all."""
    pairs = [line.split("\t") for line in result.splitlines() if "\t" in line]
    total = sum(int(line[0]) for line in pairs)
    if total != rows:
        raise ProgramFailure(f"grep: found {total} rows, expected the {rows} that teragen wrote")
    return {"rows": total}


def by_purpose(record: CommandRecord) -> Json:
    """Bytes that servers and clients sent to other hosts, and within one, by purpose: shuffle, hdfs, rpc."""
    result: Json = {}
    for scope, traffic in (("between_hosts", record["traffic"]), ("within_hosts", record["traffic_inside"])):
        sums = dict.fromkeys(("shuffle", "hdfs", "rpc"), 0)
        for groups in traffic.values():
            for group in groups:
                sums[purpose(group["port"])] += group["sent_bytes"]
        result[scope] = {f"{name}_bytes": value for name, value in sums.items()}
    return result


def _document(job: Job) -> Json:
    return {
        "name": job.name, "seconds": job.seconds, "maps": job.maps, "reduces": job.reduces,
        "shuffle_bytes": job.counters.get("REDUCE_SHUFFLE_BYTES", 0),
        "task_cpu_seconds": job.counters.get("CPU_MILLISECONDS", 0) / 1e3,
        "shuffles_seconds": job.shuffles_seconds, "counters": job.counters,
    }  # fmt: skip
